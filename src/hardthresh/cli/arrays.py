"""Files of arrays: NPZ, NPY and the text format of libsvm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from hardthresh.core.errors import InvalidInputError

from .data import Data, Matrix, Request, check_role, listed, refuse_lacking, suggestion

TARGETS = ("y", "target", "y_train")
MATRICES = ("X", "X_train", "data", "train")
FEATURE_NAMES = ("feature_names", "feature_name", "features", "feature", "names", "columns", "vocabulary")
CLASS_NAMES = ("class_names", "class_name", "target_names")


def read_arrays(path: Path, kind: str, request: Request) -> Data:
    """Read a file of arrays; see `hardthresh.cli.reading.read`."""
    if request.categorical:
        raise InvalidInputError(f"--categorical is for tables whose columns have names; {path} holds arrays of numbers")
    if kind == "libsvm":
        data = _libsvm(path, request)
    elif kind == "npy":
        data = _npy(path, request)
    else:
        data = _npz(path, request)
    if request.only is None or data.names is None:
        gone = [data.position(name) for name in request.drop]
        return data.chosen(np.delete(np.arange(data.X.shape[1]), gone))
    lacking = sorted({*request.only} - {*data.names})
    if lacking:
        refuse_lacking(str(path), lacking, data.names)
    return data.chosen([data.position(name) for name in request.only])


def _npy(path: Path, request: Request) -> Data:
    if request.learn and not request.has_target:
        raise InvalidInputError(f"add --target FILE.npy, the file with the target of {path}")
    data = Data(str(path), _matrix(_array(path), path, "the array"))
    roles = {role: _per_row(_array(Path(name)), data, role, name) for role, name in request.roles.items()}
    return data.with_roles(roles, {role: Path(name).stem for role, name in request.roles.items()})


def _npz(path: Path, request: Request) -> Data:
    arrays = _arrays(path)
    data = _npz_matrix(path, arrays, request.x_key)
    if request.learn and not request.has_target:
        usual = next((name for name in TARGETS if name in arrays), None)
        if usual is None:
            fitting = [name for name, array in arrays.items() if array.shape == data.X.shape[:1]]
            raise InvalidInputError(f"add --target NAME, the array to predict; {path} has {listed(fitting)}")
        request = replace(request, target=usual)
    roles = {}
    for role, name in request.roles.items():
        if name not in arrays:
            raise InvalidInputError(f"{path} has no array {name!r} for the {role}; {suggestion(name, arrays)}")
        values = _class_names(arrays[name], arrays) if role == "target" else arrays[name]
        roles[role] = _per_row(values, data, role, name)
    return data.with_roles(roles, request.roles)


def _npz_matrix(path: Path, arrays: dict[str, np.ndarray], x_key: str | None) -> Data:
    """Return the matrix under its name, dense or as the parts of a sparse one, with the names of its columns."""
    for name in MATRICES if x_key is None else (x_key,):
        parts = [f"{name}_{part}".removeprefix("data_") for part in ("data", "indices", "indptr", "shape")]
        if all(part in arrays for part in parts):
            from scipy.sparse import csr_array

            data, indices, indptr, shape = (arrays[part] for part in parts)
            try:
                X = csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
                X.check_format(full_check=True)  # else products would read outside of the arrays
            except (ValueError, TypeError) as error:
                raise InvalidInputError(f"{name} of {path} is damaged: {error}") from error
        elif name in arrays:
            X = arrays[name]
        else:
            continue
        X = _matrix(X, path, name)
        return Data(str(path), X, _feature_names(arrays, *X.shape))
    matrices = [name for name, array in arrays.items() if array.ndim >= 2]
    wanted = x_key or MATRICES[0]
    raise InvalidInputError(f"{path} has no matrix {wanted!r}: name it with --x-key; {suggestion(wanted, matrices)}")


def _libsvm(path: Path, request: Request) -> Data:
    for role, name in request.roles.items():
        raise InvalidInputError(f"a libsvm file holds a target and features only; leave out --{role} {name}")
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInputError(f"{path} cannot be read as libsvm: {' '.join(str(error).split())}") from error
    return Data(str(path), csr_array(X), target=check_role(y, str(path), "target", "y"), ragged=True)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    content = _load(path)
    if isinstance(content, np.ndarray):
        raise InvalidInputError(f"{path} holds one array only, like an npy file; rename it")
    return content


def _array(path: Path) -> np.ndarray:
    content = _load(path)
    if not isinstance(content, np.ndarray):
        raise InvalidInputError(f"{path} holds several arrays, like an npz file; rename it")
    return content


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            return content if isinstance(content, np.ndarray) else {name: content[name] for name in content.files}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        if "Object arrays cannot be loaded" in str(error):
            reason = "it holds Python objects, which could run code; save numbers and texts as arrays of their own type"
        else:
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            reason = "it is not a NumPy file" if "pickle" in reason else reason
        raise InvalidInputError(f"{path} cannot be read: {reason}") from error


def _matrix(X: Matrix, path: Path, name: str) -> Matrix:
    if X.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} of {path} has dtype {X.dtype}; a matrix of real numbers is needed")
    if X.ndim < 2:
        raise InvalidInputError(f"{name} of {path} has shape {X.shape}; a matrix with one row per example is needed")
    X = X if X.ndim == 2 else X.reshape(X.shape[0], -1)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _per_row(values: np.ndarray, data: Data, role: str, name: str) -> np.ndarray:
    from hardthresh.designs.formats.stored import as_text

    n = data.X.shape[0]
    if values.shape not in ((n,), (n, 1)):
        raise InvalidInputError(
            f"the {role} {name!r} has shape {values.shape}; {data.source} needs one entry for each of its {n:,} rows"
        )
    return check_role(as_text(values).ravel(), data.source, role, name)


def _feature_names(arrays: dict[str, np.ndarray], n: int, d: int) -> tuple[str, ...] | None:
    """Return the names of the columns: under the usual keys first, then any texts that fit in number and differ."""
    texts = {name: array for name, array in arrays.items() if array.dtype.kind == "U" and array.shape == (d,)}
    for name, array in arrays.items():
        if name.endswith("_utf8") and array.dtype == np.uint8:  # one long text, with one name per line
            lines = np.array(array.tobytes().decode().split("\n"))
            texts |= {name.removesuffix("_utf8"): lines} if lines.shape == (d,) else {}
    usual = [name for name in FEATURE_NAMES if name in texts]
    for name in usual or (list(texts) if n != d else []):
        if len(np.unique(texts[name])) == d:
            return tuple(texts[name].tolist())
    return None


def _class_names(y: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the classes by name where the file says what the numbers 0, 1, ... stand for."""
    names = next((arrays[name] for name in CLASS_NAMES if name in arrays), None)
    if names is None or names.dtype.kind != "U" or y.dtype.kind not in "iu" or y.size == 0:
        return y
    return np.asarray(names[y]) if y.min() >= 0 and y.max() < len(names) else y
