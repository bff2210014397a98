"""The gate: everything runs, and what does not depend on the machine did not get worse. No timing is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import contest
import instances
import startup
import tables

EXPECTED = Path(__file__).with_name("expected.json")
OURS = ("hardthresh.minimize", "hardthresh estimator")

MORE_PASSES = 1.02  # another BLAS rounds differently; a change that costs anything costs more than this
WORSE_OBJECTIVE = 1 + 1e-6


def run(*, update: bool) -> tuple[dict[str, Any], list[str]]:
    """Run everything once in small, and return the measurements and what is worse than expected.json."""
    report: dict[str, Any] = {"imports": startup.imports(repeats=1)}
    print(tables.imports(report["imports"]), flush=True)
    report["first_fits"] = startup.first_fits(startup.SIZES[:1], repeats=1)
    print(tables.first_fits(report["first_fits"]), flush=True)
    report["contests"] = [contest.hold(instance, seconds=0.0, fewest=1) for instance in instances.tiny()]
    for outcome in report["contests"]:
        print(tables.contest(outcome), flush=True)
    print(tables.legend(report["contests"]))
    found = {
        outcome["instance"]: {
            name: {key: outcome["solvers"].get(name, {}).get(key) for key in ("passes", "objective")} for name in OURS
        }
        for outcome in report["contests"]
    }
    if update:
        EXPECTED.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(f"\nwrote {EXPECTED.name}")
        return report, []
    complaints = worse(found, json.loads(EXPECTED.read_text(encoding="utf-8")), report["contests"])
    if not complaints:
        print("\nPasses per solve and objectives are not worse than those of expected.json.")
    return report, complaints


def worse(found: dict[str, Any], expected: dict[str, Any], outcomes: list[dict[str, Any]]) -> list[str]:
    """Return one line for everything that is missing or worse than expected."""
    reasons = {outcome["instance"]: outcome.get("absent", {}) for outcome in outcomes}
    complaints = []
    for instance, solvers in expected.items():
        for name, before in solvers.items():
            now = found.get(instance, {}).get(name, {})
            where = f"{instance}, {name}"
            if now.get("objective") is None:
                complaints.append(f"{where}: no result ({reasons.get(instance, {}).get(name, 'the instance is gone')})")
                continue
            if now["passes"] > MORE_PASSES * before["passes"]:
                complaints.append(f"{where}: {now['passes']:.3f} data passes, expected {before['passes']:.3f}")
            if now["objective"] > WORSE_OBJECTIVE * before["objective"]:
                complaints.append(f"{where}: objective {now['objective']:.9g}, expected {before['objective']:.9g}")
    return complaints
