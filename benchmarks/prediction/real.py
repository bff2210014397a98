"""Real sets: random splits into training rows and held-out rows, two to one, stratified by class.

Every regression and every two-class set of the folder that HARDTHRESH_DATA names is here, pairs of classes of sets with
more, and genes predicted from other genes. Only the simulated genotypes of `plink` are left out. `TRAINING_ROWS` and
`HELD_OUT_ROWS` limit the time: larger sets have a random sample of rows in each split. Of the columns of gds1611 every
third is used, of hapmap_chr10 every eighth, and of mice_genotypes every sixteenth, because the path of the lasso takes
minutes with all. Rows of the same molecule (musk) or patient (ctslice) are not
kept together, for nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from hardthresh.datasets import DatasetError

from . import halves
from .instance import LOGISTIC, SQUARED, Judge, Training, held_out

TRAINING_ROWS = 1000
HELD_OUT_ROWS = 1000
RARE = 10  # words in fewer documents are left out, as in datasets/real.py
SHARE = 1 / 3  # of the rows is held out

Table = tuple[Any, np.ndarray]
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class RealSet:
    """A table with one target.

    Attributes
    ----------
    title : str
        The name in tables.
    family : str
        The sets that share rows or a source have the same.
    loss : str
        ``"squared"`` or ``"logistic"``.
    file : str
        The stem of the file.
    read : callable
        Makes the table of the arrays in the file.
    """

    title: str
    family: str
    loss: str
    file: str = field(repr=False)
    read: Callable[[Arrays], Table] = field(repr=False)

    real = True

    @property
    def half(self) -> str:
        """Whether the set is for choosing or for reporting."""
        return _halves(self.loss)[self.family]

    def table(self) -> Table:
        """Return the complete columns that vary, as float64, and the target; classes are 0 and 1."""
        X, y = self.read(_arrays(self.file))
        X = sparse.csc_matrix(X, dtype=np.float64) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        if not sparse.issparse(X):
            X = X[:, np.isfinite(X).all(axis=0) & (np.ptp(X, axis=0) > 0)]
        if self.loss == LOGISTIC:
            y = (y > y.min()).astype(np.float64)
        return X, y

    def draw(self, repetition: int) -> tuple[Training, Judge]:
        """Return a random split and its judge."""
        X, y = _table(self.title)
        train, test = split(y, self.loss, (crc32(self.title.encode()), repetition))
        return Training(X[train], y[train], self.loss), held_out(self.loss, y[train], X[test], y[test])


def split(y: np.ndarray, loss: str, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on and rows held out, both in random order, with equal shares of the classes."""
    rng = np.random.default_rng(seed)
    strata = [y == value for value in (0.0, 1.0)] if loss == LOGISTIC else [np.ones(y.size, dtype=bool)]
    train, test = [], []
    for stratum in strata:
        rows = rng.permutation(np.flatnonzero(stratum))
        share = rows.size / y.size
        n_test = min(round(SHARE * rows.size), round(share * HELD_OUT_ROWS))
        n_train = min(rows.size - n_test, round(share * TRAINING_ROWS))
        test.append(rows[:n_test])
        train.append(rows[n_test : n_test + n_train])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))


def sets() -> list[RealSet]:
    """Return all sets: first those with a measured target, then those with two classes."""
    return list(_sets().values())


def find(title: str) -> RealSet:
    """Return the set with a title."""
    return _sets()[title]


# reading ---------------------------------------------------------------------------------------------------------


def _arrays(name: str) -> Arrays:
    path = Path(os.environ.get("HARDTHRESH_DATA", "")) / f"{name}.npz"
    if not path.is_file():
        raise DatasetError(f"there is no file {path.name} in the folder HARDTHRESH_DATA")
    with np.load(path, allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


@lru_cache(maxsize=4)
def _table(title: str) -> Table:
    return _sets()[title].table()


@lru_cache
def _halves(loss: str) -> dict[str, str]:
    return halves.of_families(each.family for each in _sets().values() if each.loss == loss)


def _plain(arrays: Arrays, X: str = "X", y: str = "y", column: int | None = None, thin: int = 1) -> Table:
    """Return two arrays as they are; of the columns every `thin`-th."""
    target = arrays[y] if column is None else arrays[y][:, column]
    return arrays[X][:, ::thin], target


def _pair(arrays: Arrays, X: str, y: str, first: Any, second: Any) -> Table:
    """Return the rows of two classes."""
    labels = arrays[y]
    rows = (labels == first) | (labels == second)
    table = arrays[X][rows]
    return table.reshape(table.shape[0], -1), labels[rows] == second


def _filled(arrays: Arrays) -> Table:
    """Return log ratios with 0, no difference, for those that are missing."""
    return np.nan_to_num(arrays["Xg"]), arrays["y"]


def _genotypes(arrays: Arrays) -> Table:
    """Return every eighth variant of hapmap_chr10, with the mean for missing ones."""
    X = arrays["X"][:, ::8].astype(np.float64)
    missing = arrays["X"][:, ::8] < 0
    X[missing] = np.nan
    return np.where(missing, np.nanmean(X, axis=0), X), arrays["y"]


def _phenotype(arrays: Arrays, name: str) -> Table:
    """Return every sixteenth variant of the mice, and a phenotype, where it was measured."""
    y = arrays["pheno"][:, list(arrays["pheno_name"]).index(name)]
    return arrays["X"][~np.isnan(y), ::16], y[~np.isnan(y)]


def _comments(arrays: Arrays) -> Table:
    return arrays["X_train"], np.log1p(arrays["y_train"])


def _gene(arrays: Arrays, place: int, thin: int) -> Table:
    """Return the complete probe of the place-th largest variance, and every `thin`-th of the others to predict it."""
    X = arrays["X"][:, ~np.isnan(arrays["X"]).any(axis=0)].astype(np.float64)
    target = np.argsort(-X.var(axis=0), kind="stable")[place - 1]
    return np.delete(X, target, axis=1)[:, ::thin], X[:, target]


def _lineage(arrays: Arrays) -> Table:
    return arrays["X"], np.char.startswith(arrays["BT"], "T")


def _fusion(arrays: Arrays) -> Table:
    """Return the leukemias of B cells with the fusion BCR/ABL and those without a known one."""
    rows = np.char.startswith(arrays["BT"], "B") & np.isin(arrays["mol_biol"], ("BCR/ABL", "NEG"))
    return arrays["X"][rows], arrays["mol_biol"][rows] == "BCR/ABL"


def _khan(arrays: Arrays, first: int, second: int) -> Table:
    both = {name: np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]]) for name in ("X", "y")}
    return _pair(both, "X", "y", first, second)


def _compressed(arrays: Arrays, prefix: str = "") -> Any:
    parts = (arrays[f"{prefix}{name}"] for name in ("data", "indices", "indptr"))
    return sparse.csr_matrix(tuple(parts), shape=tuple(arrays[f"{prefix}shape"]))


def _words(counts: Any) -> Any:
    """Return logarithms of 1 + counts, of words that are not rare."""
    X = sparse.csc_matrix(counts, dtype=np.float64).log1p()
    return X[:, np.diff(X.indptr) >= RARE]


def _documents(arrays: Arrays) -> Table:
    return _words(_compressed(arrays)), arrays["y"]


def _weighted_documents(arrays: Arrays) -> Table:
    """Return the documents of RCV1, whose words have weights already."""
    X = sparse.vstack([_compressed(arrays, "train_"), _compressed(arrays, "test_")]).tocsc()
    return X[:, np.diff(X.indptr) >= RARE], np.concatenate([arrays["y_train"], arrays["y_test"]])


def _groups(arrays: Arrays, first: int, second: int) -> Table:
    """Return the documents of two newsgroups."""
    X = sparse.vstack([_compressed(arrays, "train_"), _compressed(arrays, "test_")]).tocsr()
    y = np.concatenate([arrays["y_train"], arrays["y_test"]])
    rows = np.flatnonzero((y == first) | (y == second))
    return _words(X[rows]), y[rows] == second


# the list --------------------------------------------------------------------------------------------------------

GENES = (1, 10, 100)
"""Places by variance of the genes that serve as targets; arbitrary."""

PHENOTYPES = ("Obesity.BMI", "Obesity.BodyLength", "Biochem.HDL")

Readers = dict[str, tuple[str, str, Callable[[Arrays], Table]]]  # title: family, file, reader


def _measured() -> Readers:
    plain: Readers = {
        name: (name, name, _plain) for name in ("bloodbrain", "communities_crime", "ctslice_fragment", "riboflavin")
    }
    return plain | {
        "blogfeedback": ("blogfeedback", "blogfeedback", _comments),
        **{
            f"{name} gene {place}": (name, name, partial(_gene, place=place, thin=thin))
            for name, thin in (("gds1116", 1), ("gds1611", 3), ("gds181", 1))
            for place in GENES
        },
        **{f"mice {name}": ("mice", "mice_genotypes", partial(_phenotype, name=name)) for name in PHENOTYPES},
        **{
            f"tecator {name}": ("tecator", "tecator", partial(_plain, y="Y", column=column))
            for column, name in enumerate(("moisture", "fat", "protein"))
        },
        **{
            f"wheat {column + 1}": ("wheat", "wheat_genotypes", partial(_plain, y="Y", column=column))
            for column in range(4)
        },
    }


def _classes() -> Readers:
    isolet = partial(_pair, X="X", y="y")
    digits = partial(_pair, X="X_train", y="y_train")
    return {
        "all_chiaretti B/T": ("all_chiaretti", "all_chiaretti", _lineage),
        "all_chiaretti BCR/ABL": ("all_chiaretti", "all_chiaretti", _fusion),
        "arcene": ("arcene", "arcene", _plain),
        "basehock": ("newsgroups", "basehock", _documents),
        "colon": ("colon", "colon_alon", _plain),
        "golub_leukemia": ("golub", "golub_leukemia", _plain),
        "golub_leukemia_3051": ("golub", "golub_leukemia_3051", _plain),
        "gravier_breast": ("gravier", "gravier_breast", _plain),
        "hapmap_chr10": ("hapmap", "hapmap_chr10", _genotypes),
        "isolet B/D": ("isolet", "isolet1560", partial(isolet, first=2, second=4)),
        "isolet M/N": ("isolet", "isolet1560", partial(isolet, first=13, second=14)),
        "isolet F/S": ("isolet", "isolet1560", partial(isolet, first=6, second=19)),
        "khan 2/4": ("khan", "khan_srbct", partial(_khan, first=2, second=4)),
        "madelon": ("madelon", "madelon", _plain),
        "mnist 4/9": ("mnist", "mnist", partial(digits, first=4, second=9)),
        "mnist 3/5": ("mnist", "mnist", partial(digits, first=3, second=5)),
        "musk1": ("musk", "musk1", _plain),
        "musk2": ("musk", "musk2", _plain),
        "nci60 NSCLC/renal": ("nci60", "nci60", partial(_pair, X="X", y="label", first="NSCLC", second="RENAL")),
        "news20 atheism/religion": ("newsgroups", "news20", partial(_groups, first=0, second=19)),
        "news20 electronics/medicine": ("newsgroups", "news20", partial(_groups, first=12, second=13)),
        "nki272": ("breast", "nki272", _plain),
        "pcmac": ("newsgroups", "pcmac", _documents),
        "prostate_6033": ("prostate", "prostate_6033", _plain),
        "prostate_singh": ("prostate", "prostate_singh", _plain),
        "rcv1_fragment": ("rcv1", "rcv1_fragment", _weighted_documents),
        "vandevijver295": ("breast", "vandevijver295", _plain),
        "vantveer2002": ("breast", "vantveer2002", _filled),
        "vantveer_9pathways": ("breast", "vantveer_9pathways", partial(_plain, y="metastases")),
    }


@lru_cache
def _sets() -> dict[str, RealSet]:
    found = {}
    for loss, readers in ((SQUARED, _measured()), (LOGISTIC, _classes())):
        for title, (family, file, read) in sorted(readers.items()):
            found[title] = RealSet(title, family, loss, file, read)
    return found
