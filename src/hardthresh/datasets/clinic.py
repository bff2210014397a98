"""A fictitious clinic: named measurements in panels with prices, and an outcome that depends on a few of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardthresh.core.checking import checked_integer, checked_number
from hardthresh.core.errors import MissingDependencyError

# panel -> its price, and the mean and standard deviation of each of its values; prices and patients are fictitious
_PANELS: dict[str, tuple[float, dict[str, tuple[float, float]]]] = {
    "examination": (
        5.0,
        {
            "age": (58, 12),
            "weight": (82, 15),
            "waist": (98, 13),
            "systolic": (134, 17),
            "diastolic": (80, 10),
            "pulse": (72, 11),
        },
    ),
    "blood count": (
        6.0,
        {
            "haemoglobin": (140, 14),
            "haematocrit": (42, 4),
            "leucocytes": (6.8, 1.8),
            "lymphocytes": (2.1, 0.6),
            "neutrophils": (4.0, 1.4),
            "platelets": (245, 60),
            "cell volume": (90, 5),
        },
    ),
    "metabolic panel": (
        12.0,
        {
            "glucose": (6.4, 1.6),
            "sodium": (140, 2.6),
            "potassium": (4.3, 0.4),
            "chloride": (103, 3),
            "bicarbonate": (25, 2.5),
            "calcium": (2.35, 0.1),
            "urea": (5.8, 1.8),
            "creatinine": (82, 19),
            "albumin": (43, 3.5),
            "bilirubin": (11, 5),
            "ALT": (28, 14),
            "AST": (26, 10),
        },
    ),
    "lipids": (10.0, {"cholesterol": (5.1, 1.1), "HDL": (1.35, 0.4), "LDL": (3.1, 0.9), "triglycerides": (1.7, 0.9)}),
    "HbA1c": (11.0, {"HbA1c": (44, 9)}),
    "urine": (7.0, {"urine albumin": (22, 18), "urine protein": (90, 45), "urine pH": (6, 0.7)}),
    "inflammation": (8.0, {"CRP": (4, 3), "sedimentation": (14, 9)}),
    "iron": (18.0, {"ferritin": (130, 80), "iron": (17, 6), "transferrin": (2.6, 0.4)}),
    "thyroid": (22.0, {"TSH": (2.1, 1), "T4": (15, 2.5), "T3": (4.8, 0.7)}),
    "vitamins": (26.0, {"vitamin D": (58, 22), "vitamin B12": (310, 110), "folate": (18, 7)}),
    "ECG": (30.0, {"PR": (165, 22), "QRS": (96, 13), "QT": (420, 24), "axis": (30, 28)}),
    "heart peptide": (28.0, {"NT-proBNP": (160, 120)}),
    "spirometry": (35.0, {"FEV1": (2.9, 0.7), "FVC": (3.7, 0.8)}),
}

# the values that share a cause, in addition to a weak common cause of all values
_COMMON_CAUSES = {
    "diabetes": ["glucose", "HbA1c", "triglycerides", "waist", "weight"],
    "kidney": ["creatinine", "urea", "urine albumin", "urine protein", "potassium"],
    "heart": ["NT-proBNP", "QRS", "PR", "age", "systolic"],
    "blood": ["haemoglobin", "haematocrit", "iron", "ferritin"],
    "inflammation": ["CRP", "sedimentation", "leucocytes", "neutrophils", "platelets"],
    "fat": ["cholesterol", "LDL"],
    "liver": ["ALT", "AST"],
    "lungs": ["FEV1", "FVC"],
}

# days in hospital per standard deviation, arbitrary
_EFFECTS = {
    "age": 2.0,
    "systolic": 1.6,
    "HbA1c": 2.5,
    "creatinine": 2.0,
    "albumin": -2.0,
    "CRP": 1.5,
    "NT-proBNP": 1.6,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clinic:
    """Simulated patients with measurements and their prices.

    Attributes
    ----------
    X : ndarray of shape (n_patients, 51)
        The measurements, in the units of a laboratory.
    y : ndarray of shape (n_patients,)
        Days in hospital within a year according to a linear model, so that values may be negative.
    feature_names : list of str
        The names of the columns of X.
    panels : list of str
        The panel of each column.
    prices : dict of str to float
        The price of each panel.
    coef : ndarray of shape (51,)
        True coefficients: days per unit of each measurement.
    noise : float
        Standard deviation of the noise.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: list[str]
    panels: list[str]
    prices: dict[str, float]
    coef: NDArray[np.float64]
    noise: float

    def __repr__(self) -> str:
        return f"Clinic(X={self.X.shape}, panels={len(self.prices)}, non-zeros={np.count_nonzero(self.coef)})"

    def to_pandas(self) -> Any:
        """Return X as a pandas data frame.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("to_pandas needs pandas, which is not installed; or use X") from error
        return pd.DataFrame(self.X, columns=self.feature_names)


def make_clinic(n_patients: int = 4000, *, noise: float = 3.0, seed: int = 0) -> Clinic:
    """Simulate patients of a fictitious clinic, whose measurements are bought in panels.

    .. math:: x_j = μ_j + σ_j z_j, \\qquad y = 9 + \\sum_j c_j z_j + ε

    There are 51 values in 13 panels, and 7 values of 6 panels have an effect. The z are standard normal with
    correlation 0.1, and 0.6 between values with a common cause, such as glucose and HbA1c.

    Parameters
    ----------
    n_patients : int >= 1
        Number of patients.
    noise : float >= 0
        Standard deviation of ε; that of the sum of all effects is about 6.4.
    seed : int >= 0
        Seed. Draw order: the common causes, the individual parts, the noise, all standard normal.

    Returns
    -------
    Clinic

    Raises
    ------
    InvalidInputError
        If an argument is out of its range.

    Examples
    --------
    >>> from hardthresh.datasets import make_clinic
    >>> clinic = make_clinic(5)
    >>> clinic
    Clinic(X=(5, 51), panels=13, non-zeros=7)
    >>> clinic.feature_names[:3], clinic.panels[:3], clinic.prices["examination"]
    (['age', 'weight', 'waist'], ['examination', 'examination', 'examination'], 5.0)
    """
    n_patients = checked_integer("n_patients", n_patients, 1)
    checked_number("noise", noise, least=0.0)
    units = {name: unit for _, values in _PANELS.values() for name, unit in values.items()}
    names = list(units)
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n_patients, 1 + len(_COMMON_CAUSES)))
    z = rng.standard_normal((n_patients, len(names)))
    groups = list(_COMMON_CAUSES.values())
    for j, name in enumerate(names):
        group = next((i for i, members in enumerate(groups) if name in members), None)
        own = 0.9 if group is None else 0.4  # the shares 0.1 + 0.9 and 0.1 + 0.5 + 0.4 give variance one
        shared = 0.0 if group is None else np.sqrt(0.5) * causes[:, 1 + group]
        z[:, j] = np.sqrt(0.1) * causes[:, 0] + shared + np.sqrt(own) * z[:, j]
    mean, spread = np.array(list(units.values())).T
    effect = np.array([_EFFECTS.get(name, 0.0) for name in names])
    return Clinic(
        X=mean + spread * z,
        y=9.0 + z @ effect + noise * rng.standard_normal(n_patients),
        feature_names=names,
        panels=[panel for panel, (_, values) in _PANELS.items() for _ in values],
        prices={panel: price for panel, (price, _) in _PANELS.items()},
        coef=effect / spread,
        noise=float(noise),
    )
