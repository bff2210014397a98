"""Genotypes in a PLINK 1 .bed file, and dense covariates beside them, as X of the models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hardthresh.core.checking import checked_integer
from hardthresh.core.errors import InvalidInputError, format_value, plural
from hardthresh.core.typing import Array

from .bed_file import BedFile, Variants
from .beside import SideBySide
from .dense import DenseDesign


class Bed(SideBySide):
    r"""Genotypes in a PLINK 1 .bed file of any size, with optional dense covariates, as X of the linear models.

    A column contains the number of copies (0, 1 or 2) of the first allele of a variant in the .bim file. Missing
    genotypes are replaced by the mean of the variant.

    Parameters
    ----------
    path : str or path
        The .bed file in variant-major order (which PLINK has written since 2009). The .fam file in the same folder
        gives the number of samples, and the .bim file the names of the variants.
    covariates : array or data frame, shape (n_samples, n_covariates), optional
        Dense columns of finite numbers, such as age, sex and principal components, which precede the variants: one row
        for each sample, in the order of the .fam file.
    n_samples : int, optional
        The number of samples. Required if there is no .fam file.
    means : array, shape (n_variants,), optional
        The values that replace missing genotypes. Default: the mean of the variant over the samples of the file. To
        predict for other samples, pass the means of the fit: ``Bed("new.bed", means=train.means)``.
    dtype : {numpy.float64, numpy.float32}
        The type of points, coefficients and covariates. Products with genotypes are summed in double precision.

    Attributes
    ----------
    shape : tuple of int
        (number of samples, number of covariates and variants).
    feature_names : array of str
        The names of the columns, which models use: those of the covariates (``"covariate0"``, ... without names), and
        for each variant its identifier and its counted allele, such as ``"rs123_A"``, as in the .raw files of PLINK.
    covariate_names : list of str
        The names of the covariates, for example for ``always_include=bed.covariate_names``.
    sample_ids, variant_ids : array of str or None
        The identifiers in the .fam file (of individuals) and in the .bim file; None without these files.
    means : array, shape (n_variants,)
        The values that replace missing genotypes.

    Raises
    ------
    InvalidInputError
        If the file is not a variant-major .bed file, its size does not match the number of samples, the number of
        samples is unknown, or covariates have the wrong shape or are not finite.
    HardThreshError
        When the object is used, if the file has changed since its construction.
    OSError
        If a file cannot be read.

    See Also
    --------
    SparseLinearRegression, SparseLogisticRegression : Models of quantitative traits, and of cases and controls.

    Notes
    -----
    ``bed[rows]`` selects samples, by index or mask, without a copy, for example training and test rows. ``bed[:,
    columns]`` returns an array of some columns.

    Cost: a data pass reads the file once, in blocks of 256 columns, by the threads of the library. The memory is 64
    bytes for each sample and thread, plus what solvers store for each column. The first use reads the file once to
    count the genotypes. Products with chosen columns read only these. Stochastic solvers raise an error, because each
    mini-batch would read the whole file. Results are bitwise identical for any number of threads.

    Convert files of plink2 (.pgen) or Oxford (.bgen) with ``plink2 --make-bed``.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from hardthresh import Bed, SparseLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(0, 4, (50, 100), dtype=np.uint8)  # 50 variants of 100 samples
    >>> packed = codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6
    >>> path = os.path.join(tempfile.mkdtemp(), "small.bed")
    >>> with open(path, "wb") as file:
    ...     size = file.write(bytes([0x6C, 0x1B, 0x01]) + packed.tobytes())
    >>> bed = Bed(path, rng.standard_normal((100, 1)), n_samples=100)
    >>> bed
    Bed('small.bed', 100 samples, 1 covariate, 50 variants)
    >>> y = bed.predict(np.eye(51)[7]) + 0.1 * rng.standard_normal(100)
    >>> model = SparseLinearRegression(n_nonzero_coefs=1, always_include=bed.covariate_names).fit(bed, y)
    >>> model.get_feature_names_out()
    array(['covariate0', 'variant6'], dtype=object)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        covariates: Any = None,
        *,
        n_samples: int | None = None,
        means: Any = None,
        dtype: Any = np.float64,
    ) -> None:
        dtype = np.dtype(dtype)
        if dtype not in (np.float64, np.float32):
            raise InvalidInputError(f"dtype must be float64 or float32, got {dtype}")
        path = os.fspath(path)
        people, variants = _lines(path, ".fam"), _lines(path, ".bim")
        if people is None and n_samples is None:
            raise InvalidInputError(f"there is no {_beside(path, '.fam')}; give n_samples=, the number of samples")
        if people is not None and n_samples is not None and len(people) != n_samples:
            raise InvalidInputError(
                f"{_beside(path, '.fam')} has {plural(len(people), 'sample')}, n_samples is {n_samples}"
            )
        n = checked_integer("n_samples", n_samples if people is None else len(people), 1)
        file = BedFile.of(path, n)
        if variants is not None and len(variants) != file.p:
            raise InvalidInputError(
                f"{_beside(path, '.bim')} has {plural(len(variants), 'variant')}, and {path} has {file.p} for "
                f"{plural(n, 'sample')}; are they of the same data?"
            )
        self.path, self.dtype = path, dtype
        self.sample_ids = None if people is None else np.array([line[1] for line in people], dtype=object)
        self.variant_ids = None if variants is None else np.array([line[1] for line in variants], dtype=object)
        names = [f"variant{j}" for j in range(file.p)] if variants is None else [f"{v[1]}_{v[4]}" for v in variants]
        parts, self.covariate_names = _dense(covariates, n, dtype)
        self.feature_names = np.array([*self.covariate_names, *names], dtype=object)
        super().__init__([*parts, Variants(file, None, _given_means(means, file.p), dtype)])

    @property
    def _variants(self) -> Variants:
        variants = self._parts[-1]
        assert isinstance(variants, Variants)
        return variants

    @property
    def means(self) -> np.ndarray:
        """The values that replace missing genotypes of each variant."""
        return self._variants.fill

    def rows(self, indices: Array | slice) -> Bed:
        part = object.__new__(Bed)
        vars(part).update(vars(self), _parts=tuple(part.rows(indices) for part in self._parts))
        if self.sample_ids is not None:
            part.sample_ids = self.sample_ids[indices]
        return part

    def __getitem__(self, key: Any) -> Any:
        """Return some samples, by index, mask or slice; for ``bed[rows, columns]`` an array of some of the columns."""
        rows, columns = key if isinstance(key, tuple) else (key, ...)
        part = self.rows(rows if isinstance(rows, slice) else _places(rows, self.shape[0], "samples"))
        if columns is ...:
            return part
        every = np.arange(self.shape[1])[columns] if isinstance(columns, slice) else columns
        chosen, places = np.unique(_places(every, self.shape[1], "columns"), return_inverse=True)
        return part.columns(chosen).dense()[:, places]

    def __repr__(self) -> str:
        n, d = self.shape
        m = len(self.covariate_names)
        counted = [plural(n, "sample"), *([plural(m, "covariate")] if m else []), plural(d - m, "variant")]
        return f"Bed({os.path.basename(self.path)!r}, {', '.join(counted)})"


def _places(key: Any, size: int, what: str) -> np.ndarray:
    """Return indices, or a mask, as indices from 0 on."""
    key = np.atleast_1d(np.asarray(key))
    if key.dtype == bool:
        if key.shape != (size,):
            raise InvalidInputError(f"a mask of the {what} has shape ({size},), got {key.shape}")
        return np.flatnonzero(key)
    if key.ndim != 1 or (key.size and (key.dtype.kind not in "iu" or key.min() < -size or key.max() >= size)):
        raise InvalidInputError(f"the {what} are integers below {size} or a mask, got {format_value(key)}")
    places: np.ndarray = key.astype(np.intp) % size
    return places


def _beside(path: str, ending: str) -> str:
    """Return the file of another ending beside a .bed file."""
    return (path[: -len(".bed")] if path.endswith(".bed") else path) + ending


def _lines(path: str, ending: str) -> list[list[str]] | None:
    """Return the fields of the lines of a file beside a .bed file; None if there is none."""
    name, needed = _beside(path, ending), {".fam": 2, ".bim": 5}[ending]
    if not os.path.exists(name):
        return None
    with open(name, encoding="utf-8") as file:
        lines = [line.split(maxsplit=6) for line in file if line.strip()]
    for number, line in enumerate(lines, 1):
        if len(line) < needed:
            raise InvalidInputError(f"line {number} of {name} has {plural(len(line), 'field')}; {needed} are needed")
    return lines


def _given_means(means: Any, p: int) -> np.ndarray | None:
    """Return what missing genotypes count as, checked."""
    if means is None:
        return None
    given = np.asarray(means, dtype=np.float64)
    if given.shape != (p,) or not np.all((given >= 0) & (given <= 2)):
        raise InvalidInputError(
            f"means must be {p} numbers from 0 to 2, one for each variant, got {format_value(given)}"
        )
    return given


def _dense(covariates: Any, n: int, dtype: np.dtype) -> tuple[list[DenseDesign], list[str]]:
    """Return covariates as a design, and their names; no design if there are none."""
    if covariates is None:
        return [], []
    columns = getattr(covariates, "columns", None)
    try:
        C = np.asarray(covariates, dtype=dtype, order="F")
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"covariates: {error}; numbers are needed") from error
    C = C[:, None] if C.ndim == 1 else C
    if C.ndim != 2 or C.shape[0] != n:
        raise InvalidInputError(f"covariates have shape {C.shape}; ({n}, q) is needed, one row for each sample")
    names = [f"covariate{j}" for j in range(C.shape[1])] if columns is None else [str(name) for name in columns]
    wrong = ~np.isfinite(C)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidInputError(
            f"covariate {names[column]} is {C[row, column]} for sample {row}, counted from 0; fill it in, or leave out "
            "the sample: bed[rows]"
        )
    return ([DenseDesign.of(C)] if names else []), names
