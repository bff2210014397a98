"""Real data: colon comes with the package, the others are looked for in the folder HARDTHRESH_DATA."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from benchmark_utils.bases import BaseDataset

from hardthresh.datasets import fetch

RARE = 10  # a word in fewer documents than this is left out


class Dataset(BaseDataset):
    """A dense set standardised, without its constant columns; words as the logarithm of 1 + their count.

    blogfeedback is about the logarithm of 1 + the number of comments, news20 about the groups on science against all
    others. Logistic models have an intercept; the target of a regression is centred.
    """

    name = "real"
    requirements = ["pip::hardthresh"]  # noqa: RUF012
    parameters = {  # noqa: RUF012
        "set, loss, k": [
            ("riboflavin", "squared", 10),
            ("leukemia", "logistic", 3),
            ("colon", "logistic", 3),
            ("arcene", "logistic", 10),
            ("madelon", "logistic", 20),
            ("news20", "logistic", 50),
            ("blogfeedback", "squared", 20),
        ]
    }
    test_config = {"set": "colon", "loss": "logistic", "k": 3}  # noqa: RUF012

    @property
    def title(self) -> str:
        """The name of the instance in our tables."""
        return f"{self.set} k{self.k} {self.loss}"

    def get_data(self) -> dict[str, Any]:
        """Read and prepare the set."""
        made = fetch(self.set)
        X = _words(made.data) if scipy.sparse.issparse(made.data) else _standardised(made.data)
        y = _target(self.set, made)
        settings = {"loss": self.loss, "k": self.k, "largest": min(50, X.shape[0] // 4)}
        if self.loss == "logistic":
            return {"X": X, "y": y, "intercept": True, **settings}
        return {"X": X, "y": y - y.mean(), **settings}


def _standardised(data: Any) -> Any:
    X = np.asarray(data, dtype=np.float64)
    X = X[:, X.std(axis=0) > 0]
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


def _words(counts: Any) -> Any:
    X = scipy.sparse.csc_matrix(counts, dtype=np.float64).log1p()
    return X[:, np.diff(X.indptr) >= RARE]


def _target(name: str, made: Any) -> Any:
    if name == "news20":
        science = [i for i, group in enumerate(made.target_names) if group.startswith("sci.")]
        return np.isin(made.target, science).astype(np.float64)
    y = np.asarray(made.target, dtype=np.float64)
    return np.log1p(y) if name == "blogfeedback" else y
