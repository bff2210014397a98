"""Values of options, and checks before any work is done."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

from hardthresh.core.checking import checked_integer, checked_word
from hardthresh.core.errors import InvalidInputError


def names_of(text: str | Sequence[str] | None) -> list[str]:
    """Return the names in a list with commas, or in several of an option that is given again; quotes protect a comma.

    Examples
    --------
    >>> names_of('age, "height, cm"'), names_of(None), names_of(["age", "sex,site"])
    (['age', 'height, cm'], [], ['age', 'sex', 'site'])
    """
    texts = [] if text is None else [text] if isinstance(text, str) else text
    return [name.strip() for text in texts for name in next(csv.reader([text], skipinitialspace=True), [])]


NO_LIMIT = "none"
"""What ``--time-limit`` takes for no limit."""


def seconds_of(text: str) -> float | None:
    """Return the seconds that ``--time-limit`` gives; None for no limit.

    Raises
    ------
    InvalidInputError
        If it is neither a number nor "none".

    Examples
    --------
    >>> seconds_of("60"), seconds_of("none")
    (60.0, None)
    """
    if text == NO_LIMIT:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not isfinite(seconds):
        raise InvalidInputError(
            f"--time-limit must be a finite number of seconds, or {NO_LIMIT} for no limit; got {text!r}"
        )
    return seconds


def k_of(text: str, d: int) -> int | list[int] | str:
    """Return the number of features that ``--k`` asks for, or those to compare; two words leave them to the model.

    Parameters
    ----------
    text : str
        "auto", "search", a number, a range "1-20", or numbers "2,5,10".
    d : int
        The number of features to choose from. A range ends there at the latest.

    Raises
    ------
    InvalidInputError
        If it is none of these, or more than `d`.

    Examples
    --------
    >>> k_of("10", 100), k_of("2-4", 100), k_of("2-20", 4), k_of("auto", 100)
    (10, [2, 3, 4], [2, 3, 4], 'auto')
    """
    if text in ("auto", "search"):
        return text
    try:
        if text.isdecimal():
            numbers = [int(text)]
        elif "-" in text:
            first, last = map(int, text.split("-"))
            numbers = list(range(first, (min(last, d) if first <= d else last) + 1))
        else:
            numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers:
        raise InvalidInputError(
            f"--k must be auto, search, a number such as 10, a range 1-20 or a list 2,5,10; got {text!r}"
        )
    for number in numbers:
        checked_integer("--k", number, 0, d, "the number of features to choose from")
    return numbers[0] if text.isdecimal() else numbers


def alpha_of(text: str) -> float | list[float] | str:
    """Return the ridge that ``--alpha`` asks for, or the ridges to compare; "auto" leaves them to the model.

    Parameters
    ----------
    text : str
        "auto", a number, or numbers "0.01,0.1,1".

    Raises
    ------
    InvalidInputError
        If it is none of these, or negative or infinite.

    Examples
    --------
    >>> alpha_of("auto"), alpha_of("0.5"), alpha_of("0.1,1")
    ('auto', 0.5, [0.1, 1.0])
    """
    if text == "auto":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 <= number < inf for number in numbers):
        raise InvalidInputError(f"--alpha must be auto, a number >= 0 such as 0.1, or a list 0.01,0.1,1; got {text!r}")
    return numbers if "," in text else numbers[0]


def remarks_on_k(text: str, k: int | list[int] | str, choice: list[str]) -> list[str]:
    """Return remarks on ``--k``: a range that was cut, and options of the choice of k that have no effect.

    Examples
    --------
    >>> remarks_on_k("2-20", [2, 3, 4], []), remarks_on_k("3", 3, ["rule"])
    (['--k 2-20 ends at 4, the number of features to choose from'], ['--rule has no effect with one k'])
    """
    if isinstance(k, int):
        return [f"--{option} has no effect with one k" for option in choice]
    if not isinstance(k, str) and "-" in text and int(text.split("-")[1]) > k[-1]:
        return [f"--k {text} ends at {k[-1]:,}, the number of features to choose from"]
    return []


WITHOUT_FOLDS = {"rule": ("best",), "averaging": ("auto", "none")}
"""Values of options about folds that are as good without any, as in `estimators.folds`."""


def check_criterion(criterion: str, given: Sequence[str], n_features_original: int | None) -> None:
    """Check ``--criterion``, and that the options that were given belong to it.

    Raises
    ------
    InvalidInputError
        For an unknown criterion, options about folds beside an information criterion, and options of one without it.
    """
    checked_word("--criterion", criterion, ("cv", "ebic", "bic", "aic", "gic"))
    names = [name.replace("_", "-") for name in given]
    about_folds = [name for name in names if name != "ebic-gamma"]
    if criterion != "cv" and about_folds:
        raise InvalidInputError(
            f"--{about_folds[0]} is about folds, and --criterion {criterion} fits none; leave it out"
        )
    if criterion != "ebic" and "ebic-gamma" in names:
        raise InvalidInputError(f"--ebic-gamma is for --criterion ebic, not for {criterion}")
    if criterion not in ("ebic", "gic") and n_features_original is not None:
        raise InvalidInputError(f"--n-features-original is for --criterion ebic and gic, not for {criterion}")


def check_together(options: Mapping[str, Any]) -> None:
    """Check that the options about the target and the offset, by their names in `fit`, go together.

    Raises
    ------
    InvalidInputError
        With the options that do not.
    """
    loss, targets, order = options["loss"], options["target"] or (), options["order"]
    time, event, strata = options["time"], options["event"], options["strata"]
    offset, exposure = options["offset"], options["exposure"]
    classes, positive_class = options["classes"], options["positive_class"]
    if (time is None) != (event is None):
        raise InvalidInputError("--time and --event go together: a time, and whether the event happened then")
    twice = [name for place, name in enumerate(targets) if name in targets[:place]]
    if twice:
        raise InvalidInputError(f"--target names {twice[0]!r} twice")
    if len(targets) > 1 and (order is not None or classes or positive_class is not None):
        raise InvalidInputError("several targets are numbers; leave --order, --classes and --positive-class out")
    if time is not None and targets:
        raise InvalidInputError("--time and --event are what to predict; leave --target out")
    if time is not None and loss not in ("auto", "cox"):
        raise InvalidInputError(f"--time and --event are for --loss cox, not for {loss}")
    if time is None and loss == "cox":
        raise InvalidInputError("--loss cox needs --time COLUMN and --event COLUMN")
    if strata is not None and time is None:
        raise InvalidInputError("--strata is for --loss cox, with --time and --event; leave it out")
    if order is not None and loss not in ("auto", "ordinal"):
        raise InvalidInputError(f"--order is for --loss ordinal, not for {loss}")
    if offset is not None and exposure is not None:
        raise InvalidInputError("--offset and --exposure are the same on another scale; leave one of them out")
    if classes and (time is not None or order is not None):
        raise InvalidInputError("--classes is for classes without an order; leave it out")
    if positive_class is not None and (time is not None or order is not None or loss == "ordinal"):
        raise InvalidInputError("--positive-class is for classes without an order; leave it out")


def check_output(
    path: Path | None, option: str, ending: str | Sequence[str], reads: Mapping[str, Any] | None = None
) -> None:
    """Refuse a file that cannot be written, that the command reads, or that holds a model, before any work is done.

    Any other file of that name is replaced.

    Parameters
    ----------
    path : Path or None
        The file; None if the option was not given.
    option : str
        The option that names it.
    ending : str or sequence of str
        The ending that its name must have, or one of several.
    reads : mapping from str to Path or Server, optional
        What the command reads, by its description.

    Raises
    ------
    InvalidInputError
        If its name has another ending, its folder does not exist, or it is a folder, a saved model or proof, or one of
        the files that are read, under this or another name.
    """
    if path is None:
        return
    _check_place(path, option, ending, reads)
    if _is_stored(path):
        raise InvalidInputError(
            f"{option} {path} holds a saved model or proof, which would be lost; choose another name, or remove this "
            "file first"
        )


def _check_place(path: Path, option: str, ending: str | Sequence[str], reads: Mapping[str, Any] | None = None) -> None:
    """Refuse a file that cannot be written, or that the command reads."""
    endings = [ending] if isinstance(ending, str) else [*ending]
    if path.suffix not in endings:
        raise InvalidInputError(f"the name of {path} must end in {' or '.join(endings)}")
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise InvalidInputError(f"there is no folder {path.parent} to write {path.name} in")
    for what, other in (reads or {}).items():
        if isinstance(other, Path) and path.exists() and other.exists() and path.samefile(other):
            raise InvalidInputError(f"{option} {path} is {what}, which would be lost; choose another name")


def _is_stored(path: Path) -> bool:
    """Return whether a file holds what `hardthresh.save` wrote."""
    if path.suffix != ".json" or not path.is_file():
        return False
    from hardthresh.storage import StorageError, load_notes

    try:
        load_notes(path)
    except StorageError:
        return False
    return True


def check_model_output(path: Path | None, reads: Mapping[str, Any] | None = None) -> None:
    """Refuse a file to save a model or a proof in that cannot be written, or holds neither of them.

    Raises
    ------
    InvalidInputError
        If it cannot be written, or would be lost.
    """
    if path is None:
        return
    _check_place(path, "--out", ".json", reads)
    if path.is_file() and path.stat().st_size:
        from hardthresh.storage import StorageError, load_notes

        try:
            load_notes(path)
        except StorageError as error:
            raise InvalidInputError(f"{error}; choose another name, or remove this file first") from error
