"""The data sets inside the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hardthresh.datasets.dataset import Dataset
from hardthresh.datasets.real import Fetcher, fetch

_PARAMETERS = """Parameters
    ----------
    return_X_y : bool
        Return ``(data, target)`` instead of a `Dataset`.
    as_frame : bool
        Return pandas objects instead of arrays."""

_RAISES = """Raises
    ------
    MissingDependencyError
        If `as_frame` is True and pandas is not installed."""


def _loader(function: Callable[..., Any]) -> Fetcher:
    """Complete the docstring, and tell type checkers what each argument returns."""
    text = function.__doc__ or ""  # without docstrings, under python -OO
    function.__doc__ = text.replace("{parameters}", _PARAMETERS).replace("{raises}", _RAISES)
    return cast(Fetcher, function)


@_loader
def load_colon(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
    """Load the colon cancer data of Alon et al. (1999), which are part of the package.

    Raw expression intensities of 2,000 genes (columns) in 62 tissue samples (rows): 22 normal, target 0, and 40
    tumours, target 1. The source holds no gene identifiers, so the columns are named by their position, "gene_0001" to
    "gene_2000".

    {parameters}

    Returns
    -------
    Dataset, or tuple (data, target)
        `data` float64 of shape (62, 2000), `target` int64 of shape (62,).

    {raises}

    References
    ----------
    U. Alon, N. Barkai, D. A. Notterman, K. Gish, S. Ybarra, D. Mack and A. J. Levine (1999). Broad patterns of gene
    expression revealed by clustering analysis of tumor and normal colon tissues probed by oligonucleotide arrays.
    Proceedings of the National Academy of Sciences 96(12):6745-6750.

    Examples
    --------
    >>> from hardthresh.datasets import load_colon
    >>> colon = load_colon()
    >>> colon.data.shape
    (62, 2000)
    >>> list(colon.target_names), (colon.target == 1).sum().item()
    (['normal', 'tumour'], 40)
    >>> colon.feature_names[[0, 1999]].tolist()
    ['gene_0001', 'gene_2000']
    """
    return fetch("colon", return_X_y=return_X_y, as_frame=as_frame)


@_loader
def load_growth(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
    """Load the economic growth of 72 countries, with 41 possible causes; the data are part of the package.

    The target is the average yearly growth of the gross domestic product per head, 1960 to 1992, as a fraction. The
    columns are the candidates of Fernandez, Ley and Steel (2001), under the names of the source, such as "GDP60" (the
    logarithm of the product per head in 1960), "LifeExp" (life expectancy in 1960), "EquipInv" (investment in
    equipment), "Confucian" (fraction of the population) and "SubSahara" (0 or 1). 72 rows cannot determine 41 effects,
    so the question is which few causes explain growth; those authors answered with weights of models instead of a
    single model.

    {parameters}

    Returns
    -------
    Dataset, or tuple (data, target)
        `data` float64 of shape (72, 41), `target` float64 of shape (72,). No value is missing.

    {raises}

    Notes
    -----
    Licence: BSD-3-Clause, from the R package BMS 0.3.5, copyright 2011-2022 Martin Feldkircher and Stefan Zeugner.

    References
    ----------
    C. Fernandez, E. Ley and M. F. J. Steel (2001). Model uncertainty in cross-country growth regressions. Journal of
    Applied Econometrics 16(5):563-576.

    Examples
    --------
    >>> from hardthresh import SparseLinearRegression
    >>> from hardthresh.datasets import load_growth
    >>> growth = load_growth()
    >>> growth.data.shape
    (72, 41)
    >>> model = SparseLinearRegression(n_nonzero_coefs=5).fit(growth.data, growth.target)
    >>> growth.feature_names[model.support_].tolist()
    ['SubSahara', 'LifeExp', 'GDP60', 'Confucian', 'EquipInv']
    """
    return fetch("growth", return_X_y=return_X_y, as_frame=as_frame)


@_loader
def load_actg175(*, return_X_y: bool = False, as_frame: bool = False) -> Dataset | tuple[Any, Any]:
    """Load a clinical trial of treatments of HIV, with censored times; the data are part of the package.

    AIDS Clinical Trials Group Study 175 compared zidovudine alone with three other treatments. The target is the time,
    in days, until the CD4 count fell by at least half, AIDS or death, whichever came first: 521 events, 1,618 times are
    censored.

    ============ ==================================================================================================
    columns      what
    ============ ==================================================================================================
    age, wtkg    years, and weight in kg
    hemo         haemophilia
    homo         homosexual activity
    drugs        history of intravenous drug use
    karnof       Karnofsky score, 0 to 100: how well daily life is managed
    oprior       antiretroviral therapy other than zidovudine before the trial
    z30          zidovudine in the 30 days before the trial
    preanti      days of antiretroviral therapy before the trial
    race, gender 0 white, 1 other; 0 female, 1 male
    str2, strat  antiretroviral therapy before the trial: 0 no, 1 yes; 1 none, 2 at most a year, 3 longer
    symptom      symptoms of HIV
    cd40, cd80   counts of CD4 and CD8 cells per cubic millimetre, before the treatment
    zdv_ddi      1 for zidovudine and didanosine
    zdv_zal      1 for zidovudine and zalcitabine
    ddi          1 for didanosine; all three are 0 for zidovudine alone
    ============ ==================================================================================================

    {parameters}

    Returns
    -------
    Dataset, or tuple (data, target)
        `data` float64 of shape (2139, 19). `target` of shape (2139,) is a structured array with the fields ``event``
        (bool: True where the event was seen, False where the time is censored) and ``time`` (float64, days), or a
        DataFrame with these columns; `SparseCoxRegression` takes both. No value is missing.

    {raises}

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository, data set 890). Columns that were measured after the treatment
    began, such as the counts after 20 weeks, are left out, because they are unknown when a prognosis is made.

    References
    ----------
    S. M. Hammer et al. (1996). A trial comparing nucleoside monotherapy with combination therapy in HIV-infected adults
    with CD4 cell counts from 200 to 500 per cubic millimeter. New England Journal of Medicine 335(15):1081-1090.

    Examples
    --------
    >>> from hardthresh import SparseCoxRegression
    >>> from hardthresh.datasets import load_actg175
    >>> trial = load_actg175()
    >>> trial.data.shape, trial.target["event"].sum().item()
    ((2139, 19), 521)
    >>> model = SparseCoxRegression(n_nonzero_coefs=5).fit(trial.data, trial.target)
    >>> trial.feature_names[model.support_].tolist()
    ['preanti', 'symptom', 'cd40', 'cd80', 'zdv_ddi']
    """
    return fetch("actg175", return_X_y=return_X_y, as_frame=as_frame)
