"""Measure the table of docs/guide/imputation.rst: held-out error and processor time of imputers on real tables.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m docs.figures.imputation FOLDER [--all]

FOLDER holds the .npz files of the data mirror. ``--all`` also runs scikit-learn's iterative imputer with all columns on
the two wide tables, which needs more than 23 GB.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

import hardthresh as ht
from hardthresh.datasets import load_colon

IMPUTERS = {
    "means": SimpleImputer(),
    "neighbours": KNNImputer(),
    "iterative": IterativeImputer(),
    "iterative, 20 columns": IterativeImputer(n_nearest_features=20, random_state=0),
    "low rank": ht.LowRankImputerCV(),
}
FILES = {"tecator": "tecator", "bloodbrain": "bloodbrain", "communities": "communities_crime", "yeast": "gds1116"}
WIDE = ("yeast", "colon")


def table(name: str, folder: Path) -> np.ndarray:
    """Return a table: columns that vary and have at least 20 entries; of the yeast's, among the first 1,000."""
    X = np.log(load_colon().data) if name == "colon" else np.load(folder / f"{FILES[name]}.npz")["X"][:, :1000]
    X = X.astype(float)
    return X[:, (np.nanstd(X, axis=0) > 0) & (np.isfinite(X).sum(axis=0) >= 20)]


def main(folder: Path, everything: bool) -> None:
    """Print one line for each table and imputer."""
    for name in (*FILES, "colon"):
        X = table(name, folder)
        hidden = np.isfinite(X) & (np.random.default_rng(0).random(X.shape) < 0.2)
        given, deviation = np.where(hidden, np.nan, X), np.nanstd(X, axis=0)
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, {np.isnan(X).mean():.1%} missing, {hidden.sum()} more hidden")
        for title, imputer in IMPUTERS.items():
            if title.startswith("iterative") and not everything and (title == "iterative") == (name in WIDE):
                continue
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the iterative imputer, which seldom converges in its ten rounds
                filled = imputer.fit_transform(given)
            seconds = time.process_time() - start
            error = np.sqrt(np.mean((((filled - X) / deviation)[hidden]) ** 2))
            rank = f", rank {imputer.rank_}, ridge {imputer.alpha_}" if isinstance(imputer, ht.LowRankImputer) else ""
            print(f"  {title}: {error:.4f} in {seconds:.2f} s{rank}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--all" in sys.argv)
