"""Examples in docstrings and in the user guide that need an optional package skip, with their reason, without it."""

from importlib.util import find_spec

import pytest

NEEDS = {
    "hardthresh.attacks.": "torch",
    "hardthresh.objectives.attack.": "torch",
    "hardthresh.objectives.function.Function.from_torch": "torch",
    "hardthresh.objectives.function.Function.from_jax": "jax",
    "robustness.rst": "torch",
}
"""How the names of such examples begin."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for start, package in NEEDS.items():
                if item.name.startswith(start) and find_spec(package) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))
