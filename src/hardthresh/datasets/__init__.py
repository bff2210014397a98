"""Data to learn from: one real set inside the package, fetchers for others, and simulators with exact seeds."""

from __future__ import annotations

from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import DatasetError
from hardthresh.datasets.real import (
    DatasetInfo,
    fetch,
    fetch_arcene,
    fetch_blogfeedback,
    fetch_bloodbrain,
    fetch_communities_crime,
    fetch_leukemia,
    fetch_madelon,
    fetch_musk1,
    fetch_musk2,
    fetch_news20,
    fetch_riboflavin,
    fetch_tecator,
    list_datasets,
    load_colon,
)

__all__ = [
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "fetch",
    "fetch_arcene",
    "fetch_blogfeedback",
    "fetch_bloodbrain",
    "fetch_communities_crime",
    "fetch_leukemia",
    "fetch_madelon",
    "fetch_musk1",
    "fetch_musk2",
    "fetch_news20",
    "fetch_riboflavin",
    "fetch_tecator",
    "list_datasets",
    "load_colon",
]
