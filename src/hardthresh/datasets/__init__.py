"""Three real data sets in the package, fetchers for others, and simulators whose seeds always give the same data."""

from __future__ import annotations

from hardthresh.datasets.bundled import load_actg175, load_colon, load_growth
from hardthresh.datasets.clinic import Clinic, make_clinic
from hardthresh.datasets.ct_slices import fetch_ct_slices
from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.files import DatasetError
from hardthresh.datasets.graphs import SimulatedGraph, make_graphical_model
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
)
from hardthresh.datasets.simulate import Simulated, make_sparse_regression
from hardthresh.datasets.wave_energy import fetch_wave_energy

__all__ = [
    "Clinic",
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Simulated",
    "SimulatedGraph",
    "fetch",
    "fetch_arcene",
    "fetch_blogfeedback",
    "fetch_bloodbrain",
    "fetch_communities_crime",
    "fetch_ct_slices",
    "fetch_leukemia",
    "fetch_madelon",
    "fetch_musk1",
    "fetch_musk2",
    "fetch_news20",
    "fetch_riboflavin",
    "fetch_tecator",
    "fetch_wave_energy",
    "list_datasets",
    "load_actg175",
    "load_colon",
    "load_growth",
    "make_clinic",
    "make_graphical_model",
    "make_sparse_regression",
]
