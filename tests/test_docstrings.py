"""Docstrings of public names follow numpydoc: sections in order, and every parameter, in the order of the call."""

import inspect
import re
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module

import pytest

import hardthresh

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed (it comes with the extra test)")

IGNORED = {
    *("GL01", "GL02", "RT02"),  # as in scikit-learn: where a summary begins, and names of returned values
    *("ES01", "SA01", "EX01"),  # no extended summary, See Also or example is required of everything
    *("PR04", "PR08", "PR09"),  # several parameters in one line have no type; descriptions begin with k, n or s'
    *("RT01", "RT03", "RT04"),  # a summary that begins with "Return" describes the value
}
NAMES = sorted(
    {
        f"hardthresh.{room}.{name}"
        for room in hardthresh.__all__
        if inspect.ismodule(getattr(hardthresh, room))
        for name in import_module(f"hardthresh.{room}").__all__
        if callable(getattr(getattr(hardthresh, room), name))
    }
)


def needs_no_parameters(thing):
    """Whether a class is never called by its users, or describes its fields as attributes."""
    if not inspect.isclass(thing):
        return False
    if issubclass(thing, Enum) or getattr(thing, "_is_protocol", False):
        return True
    return (is_dataclass(thing) or hasattr(thing, "_fields")) and "Attributes\n" in (thing.__doc__ or "")


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_follow_numpydoc(name):
    found = validate.validate(name)
    thing = getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2])
    ignored = IGNORED | {"PR01"} if needs_no_parameters(thing) else IGNORED
    errors = [f"{code}: {text}" for code, text in found["errors"] if code not in ignored]
    assert [error for error in errors if not re.fullmatch(r"PR01: Parameters \{'_\w+'\} not documented", error)] == []
