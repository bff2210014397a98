"""Docstrings of public names follow numpydoc: sections in order, and every parameter, in the order of the call."""

import ast
import inspect
import re
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import hardthresh

validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed (it comes with the extra test)")

IGNORED = {
    "GL01",  # a summary begins in the line of the opening quotes, as in scikit-learn
    *("ES01", "SA01", "EX01"),  # no extended summary, See Also or example is required of everything
    "PR04",  # several parameters in one line are "as for" another function, which has their types
    "PR08",  # descriptions begin with a symbol of the equation, such as k, n or s', which stays as it is
    "RT03",  # where the type says it all, such as "self" or "Axes", a description would repeat it
}
INHERITED = {
    *("PR01", "RT01"),  # the method that is overridden has the sections; the docstring says what differs
}


def is_ours(thing):
    return thing.__module__.partition(".")[0] == "hardthresh"


def public_names():
    """Return the public objects by name, those of the package's own namespace last, which repeats some of the rooms."""
    rooms = [room for room in hardthresh.__all__ if inspect.ismodule(getattr(hardthresh, room))]
    places = [import_module(f"hardthresh.{room}") for room in rooms] + [hardthresh]
    things = {f"{place.__name__}.{name}": getattr(place, name) for place in places for name in place.__all__}
    return {name: thing for name, thing in things.items() if callable(thing)}


def public_members(classes):
    """Return the class that defines each public method and property, by name; each definition is there once."""
    found = {}
    for name, cls in classes.items():
        for member in (each for each in dir(cls) if not each.startswith("_")):
            definer = next((base for base in cls.__mro__ if member in vars(base)), None)  # None: of a metaclass
            if definer is not None and is_ours(definer) and is_validated(vars(definer)[member]):
                found.setdefault((definer, member), f"{name}.{member}")
    return {name: definer for (definer, _), name in found.items()}


def is_validated(member):
    """Whether it is a method or a property; numpydoc cannot read properties that a helper makes of a lambda."""
    if isinstance(member, property):
        return member.fget.__name__ != "<lambda>"
    return inspect.isfunction(getattr(member, "__func__", member))


NAMES = public_names()
CLASSES = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}
MEMBERS = public_members(CLASSES)
OF_ESTIMATORS = {base for cls in CLASSES.values() if BaseEstimator in cls.__mro__ for base in cls.__mro__}


def needs_no_parameters(thing):
    """Whether a class is never called by its users, or describes its fields as attributes."""
    if not inspect.isclass(thing):
        return False
    if issubclass(thing, Enum) or getattr(thing, "_is_protocol", False):
        return True
    return (is_dataclass(thing) or hasattr(thing, "_fields")) and "Attributes\n" in (thing.__doc__ or "")


def errors_of(name, ignored):
    found = validate.validate(name)
    if found["docstring"].lstrip().startswith(("Return", "Yield", "Whether")):
        ignored = ignored | {"RT01", "YD01"}  # the summary describes the value
    errors = [f"{name}: {code}: {text}" for code, text in found["errors"] if code not in ignored]
    return [error for error in errors if not re.search(r"PR01: Parameters \{'_\w+'\} not documented", error)]


def test_backslashes_of_equations_are_no_escapes():
    r"""A docstring with \bar or \frac that is not raw has a control character, at which the documentation breaks."""
    for path in (Path(hardthresh.__file__).parent).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\\[abfvxuUN0-7]|[\x07\x08\x0b\x0c]", text):
            continue  # without an escape there is none in a docstring, and most files need not be parsed
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                assert not re.search(r"[\x07\x08\x0b\x0c]", ast.get_docstring(node) or ""), (path, node)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({id(thing): name for name, thing in reversed(NAMES.items())}.values()))
def test_docstrings_follow_numpydoc(name):
    assert errors_of(name, IGNORED | {"PR01"} if needs_no_parameters(NAMES[name]) else IGNORED) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name.rpartition(".")[0] for name in MEMBERS}))
def test_docstrings_of_methods_follow_numpydoc(name):
    """One sentence that names the arguments is enough of a method for those who extend the package, but not of an
    estimator's method; a section on parameters, where there is one, is complete."""
    errors = []
    for member, definer in MEMBERS.items():
        if member.rpartition(".")[0] != name:
            continue
        method = member.rpartition(".")[2]
        definition = vars(definer)[method]
        bases = [base for base in definer.__mro__[1:] if is_ours(base)]
        overrides = any(getattr(vars(base).get(method), "__doc__", "") for base in bases)
        if overrides and not definition.__doc__:
            continue
        short = "Parameters\n" not in (definition.__doc__ or "")
        ignored = IGNORED | (INHERITED if overrides else set())
        ignored |= {"PR01"} if short and definer not in OF_ESTIMATORS else set()
        errors += errors_of(member, ignored)
    assert errors == []
