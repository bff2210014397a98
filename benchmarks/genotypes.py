"""Models of genotypes in a PLINK .bed file that is as large as in genome-wide studies.

    python benchmarks/genotypes.py simulate FOLDER             # 50,000 x 100,000, 1.25 GB: two minutes
    python benchmarks/genotypes.py speed FOLDER                # products alone, beside bed-reader where it is installed
    python benchmarks/genotypes.py fit FOLDER                  # our fits: given k, EBIC, cases and controls
    python benchmarks/genotypes.py lasso FOLDER                # bed-reader and LassoCV, on as many variants as --screen
    python benchmarks/genotypes.py adelie FOLDER               # the lasso of adelie, on its own copy of the file

Each prints one JSON line per row, with the wall and CPU seconds of the process, its peak memory, the bytes that it
read, and the load of the machine before and after; `benchmarks/results/genotypes.jsonl` has those of the table in
README.md. Run one at a time.

Haplotypes copy one of 30 founders and change to another with probability .01 per variant, so that variants near one
another are correlated (Li and Stephens 2003). The alleles of a founder are an autoregressive normal process of
correlation .9 below a threshold, with frequencies of .05 to .5; .2 % of the genotypes are missing. The trait has 60
causal variants with normal effects, which explain .4 of the variance beside three covariates that explain .2. Cases are
the upper half of another draw of the noise. Seeds: 2100 for genotypes, 2101 for traits.

A chosen variant is called true if its squared correlation with a causal variant is at least .5, and a causal variant is
found if a chosen one has that with it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

SEED_GENOTYPES, SEED_TRAITS = 2100, 2101
FOUNDERS, SWITCH, BLOCK, RHO, MISSING = 30, 0.01, 100, 0.9, 0.002
CAUSAL, EXPLAINED, BY_COVARIATES, COVARIATES = 60, 0.4, 0.2, 3
CODES = np.array([3, 2, 0, 1], dtype=np.uint8)  # of 0, 1 and 2 copies, and of a missing genotype
TAGGED = 0.5


def simulate(folder: Path, n: int, p: int) -> None:
    """Write the genotypes block by block of variants, and the traits."""
    from scipy.stats import norm

    folder.mkdir(parents=True, exist_ok=True)
    rng, traits = np.random.default_rng(SEED_GENOTYPES), np.random.default_rng(SEED_TRAITS)
    causal = np.sort(traits.choice(p, CAUSAL, replace=False))
    effects, genetic = traits.standard_normal(CAUSAL), np.zeros(n)
    weights = rng.dirichlet(np.ones(FOUNDERS))
    origin = rng.choice(FOUNDERS, (2, n), p=weights)
    process = rng.standard_normal(FOUNDERS)
    with open(folder / "g.bed", "wb") as file:
        file.write(b"\x6c\x1b\x01")
        for start in range(0, p, BLOCK):
            size = min(BLOCK, p - start)
            alleles = np.empty((size, FOUNDERS), dtype=np.uint8)
            for allele in alleles:
                process = RHO * process + np.sqrt(1 - RHO**2) * rng.standard_normal(FOUNDERS)
                allele[:] = process < norm.ppf(rng.uniform(0.05, 0.5))
            copies = alleles[:, origin[0]] + alleles[:, origin[1]]
            for j in np.flatnonzero((causal >= start) & (causal < start + size)):
                column = copies[causal[j] - start].astype(float)
                effects[j] *= column.std() > 0
                genetic += effects[j] * (column - column.mean()) / (column.std() or 1.0)
            places = rng.integers(0, copies.size, int(MISSING * copies.size))
            copies.reshape(-1)[places] = 3
            code = np.pad(CODES[copies], ((0, 0), (0, -n % 4)))
            file.write((code[:, 0::4] | code[:, 1::4] << 2 | code[:, 2::4] << 4 | code[:, 3::4] << 6).tobytes())
            change = rng.random(origin.shape) < 1 - (1 - SWITCH) ** size
            origin = np.where(change, rng.choice(FOUNDERS, origin.shape, p=weights), origin)
    C = traits.standard_normal((n, COVARIATES))
    slopes = traits.standard_normal(COVARIATES)
    fixed = genetic / genetic.std() * EXPLAINED**0.5 + C @ slopes / np.linalg.norm(slopes) * BY_COVARIATES**0.5
    noise = (1 - EXPLAINED - BY_COVARIATES) ** 0.5
    y = fixed + noise * traits.standard_normal(n)
    liability = fixed + noise * traits.standard_normal(n)
    np.savez(folder / "traits.npz", C=C, y=y, case=liability > np.median(liability), causal=causal, effects=effects)


@contextmanager
def measured(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Time a row, and print it."""
    before, read = os.getloadavg()[0], _bytes_read()
    wall, cpu = time.perf_counter(), time.process_time()
    yield row
    row |= {
        "wall_s": round(time.perf_counter() - wall, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "read_gb": round((_bytes_read() - read) / 1e9, 3),
        "load": [round(before, 1), round(os.getloadavg()[0], 1)],
    }
    print(json.dumps(row), flush=True)


def _bytes_read() -> int:
    """Return the bytes that this process has read from files."""
    return int(Path("/proc/self/io").read_text().split()[1])


def found(folder: Path, chosen: np.ndarray, n: int) -> dict[str, Any]:
    """Return what chosen variants have in common with the causal ones."""
    causal, width = np.load(folder / "traits.npz")["causal"], (n + 3) // 4
    copies = np.array([2.0, np.nan, 1.0, 0.0])

    def standardized(columns: np.ndarray) -> np.ndarray:
        X = np.empty((n, columns.size))
        for x, j in zip(X.T, columns, strict=True):
            packed = np.fromfile(folder / "g.bed", np.uint8, width, offset=3 + int(j) * width)
            x[:] = copies[packed[:, None] >> np.array([0, 2, 4, 6], np.uint8) & 3].reshape(-1)[:n]
            x -= np.nanmean(x)
        X = np.nan_to_num(X)
        return X / np.maximum(X.std(axis=0), 1e-12)

    tagged = (standardized(np.sort(chosen)).T @ standardized(causal) / n) ** 2 >= TAGGED
    return {
        "chosen": int(chosen.size),
        "exact": int(np.isin(chosen, causal).sum()),
        "recall": round(float(tagged.any(axis=0).mean()), 3) if chosen.size else 0.0,
        "false": int((~tagged.any(axis=1)).sum()),
    }


def fit(folder: Path, n: int, what: list[str]) -> None:
    """Fit our models."""
    from hardthresh import Bed, SparseLinearRegression, SparseLogisticRegression

    traits = np.load(folder / "traits.npz")
    kinds = {
        "k = 60": (SparseLinearRegression, {"n_nonzero_coefs": CAUSAL}, traits["y"]),
        "EBIC": (SparseLinearRegression, {}, traits["y"]),
        "cases, k = 60": (SparseLogisticRegression, {"n_nonzero_coefs": CAUSAL}, traits["case"]),
        "cases, EBIC": (SparseLogisticRegression, {}, traits["case"]),
    }
    for name in what or kinds:
        kind, settings, y = kinds[name]
        with measured({"task": "fit", "model": name}) as row:
            bed = Bed(folder / "g.bed", traits["C"], n_samples=n)
            model = kind(always_include=bed.covariate_names, **settings).fit(bed, y)
            row |= {count: round(float(model.history_[count][-1]), 2) for count in ("passes", "readings")}
            row["converged"] = bool(model.converged_)
            own = model.support_[model.support_ >= COVARIATES] - COVARIATES
        print(json.dumps({"task": "found", "model": name, **found(folder, own, n)}), flush=True)


def lasso(folder: Path, n: int, p: int, screen: int) -> None:
    """Fit scikit-learn's LassoCV to the variants of the largest correlations with the trait without the covariates."""
    from bed_reader import open_bed
    from sklearn.linear_model import LassoCV

    traits = np.load(folder / "traits.npz")
    C = np.column_stack([np.ones(n), traits["C"]])
    y = traits["y"] - C @ np.linalg.lstsq(C, traits["y"], rcond=None)[0]
    with measured({"task": "fit", "model": f"bed-reader + LassoCV, {screen} variants"}):
        reader = open_bed(str(folder / "g.bed"), iid_count=n, sid_count=p, properties={}, num_threads=1)

        def read(some: Any) -> np.ndarray:
            X = reader.read(np.s_[:, some], dtype="float32", order="F", num_threads=1)
            X = np.where(np.isnan(X), np.nanmean(X, axis=0), X) - np.nanmean(X, axis=0)
            return X / np.maximum(X.std(axis=0), 1e-6)

        size = np.concatenate([abs(y.astype(np.float32) @ read(slice(j, min(j + 256, p)))) for j in range(0, p, 256)])
        kept = np.sort(np.argpartition(-size, screen)[:screen])
        model = LassoCV(cv=5, precompute=True).fit(read(kept), y.astype(np.float32))
    own = kept[np.flatnonzero(model.coef_)]
    print(json.dumps({"task": "found", "model": f"LassoCV, {screen} variants", **found(folder, own, n)}), flush=True)


def adelie(folder: Path, n: int, p: int, threads: int) -> None:
    """Fit the path of adelie's lasso; its file is made from the .bed file first."""
    import adelie as ad
    from bed_reader import open_bed

    traits, copy = np.load(folder / "traits.npz"), folder / "g.snpdat"
    with measured({"task": "fit", "model": "adelie, its own file"}):
        reader = open_bed(str(folder / "g.bed"), iid_count=n, sid_count=p, properties={}, num_threads=threads)
        calls = reader.read(dtype="int8", order="F", num_threads=threads)
        calls[calls == -127] = -9
        ad.io.snp_unphased(str(copy)).write(calls, n_threads=threads)
        del calls
    with measured({"task": "fit", "model": "adelie, path of the lasso"}) as row:
        genotypes = ad.matrix.snp_unphased(ad.io.snp_unphased(str(copy)), dtype=np.float64, n_threads=threads)
        C = np.asfortranarray(traits["C"])
        X = ad.matrix.concatenate([ad.matrix.dense(C, n_threads=threads), genotypes], axis=1, n_threads=threads)
        X = ad.matrix.standardize(X)
        state = ad.grpnet(
            X, ad.glm.gaussian(traits["y"]), penalty=np.r_[np.zeros(COVARIATES), np.ones(p)],
            n_threads=threads, max_active_size=3 * CAUSAL, progress_bar=False,
        )  # fmt: skip
        coefs = state.betas
        row["steps"] = int(coefs.shape[0])
    for step in range(coefs.shape[0]):
        own = np.flatnonzero(coefs[step].toarray().ravel()[COVARIATES:])
        if own.size >= CAUSAL or step == coefs.shape[0] - 1:
            print(json.dumps({"task": "found", "model": f"adelie, step {step}", **found(folder, own, n)}), flush=True)
            break


def speed(folder: Path, n: int, p: int) -> None:
    """Time single products, and the decoders, on one thread."""
    from hardthresh import Bed

    rng, genotypes = np.random.default_rng(0), n * p / 1e9
    bed = Bed(folder / "g.bed", n_samples=n)
    r, R = rng.standard_normal(n), rng.standard_normal((n, 8))
    kinds: dict[str, Any] = {
        "counts of genotypes": lambda: bed.means,
        "X'r": lambda: bed.pullback(r),
        "X'R, 8 right-hand sides": lambda: bed.pullback(R),
        "X w, all columns": lambda: bed.predict(np.ones(p)),
    }
    try:
        from bed_reader import open_bed

        reader = open_bed(str(folder / "g.bed"), iid_count=n, sid_count=p, properties={}, num_threads=1)

        def decode(dtype: str) -> None:
            for j in range(0, p, 256):
                reader.read(np.s_[:, j : min(j + 256, p)], dtype=dtype, order="F", num_threads=1)

        kinds |= {f"bed-reader, {dtype}": (lambda dtype=dtype: decode(dtype)) for dtype in ("int8", "float32")}
    except ImportError:
        pass
    for name, function in kinds.items():
        cpu = time.process_time()
        with measured({"task": "speed", "what": name}) as row:
            function()
            row["g_genotypes_per_cpu_s"] = round(genotypes / (time.process_time() - cpu), 2)


def main(arguments: list[str] | None = None) -> None:
    """Run one task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("simulate", "speed", "fit", "lasso", "adelie"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--variants", type=int, default=100_000)
    parser.add_argument("--screen", type=int, default=2_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", nargs="*", default=[])
    options = parser.parse_args(arguments)
    n, p, folder = options.samples, options.variants, options.folder
    if options.task == "simulate":
        simulate(folder, n, p)
    elif options.task == "speed":
        speed(folder, n, p)
    elif options.task == "fit":
        fit(folder, n, options.models)
    elif options.task == "lasso":
        lasso(folder, n, p, options.screen)
    else:
        adelie(folder, n, p, options.threads)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    main()
