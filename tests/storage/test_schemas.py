"""Files name classes by names that say nothing of modules; what changes its fields changes its version."""

import importlib
import json
import pkgutil
import re
import sys
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import get_args

import numpy as np
import pytest
from equality import assert_same
from kinds import LEARNERS
from test_kinds import STORED, every, read

import hardthresh as ht
import hardthresh.estimators
from hardthresh.constraints.supports import MaskedCoordinates
from hardthresh.core import (
    InvalidInputError,
    State,
    Status,
    Stop,
    StopRule,
    register,
    registered,
    registry,
    schema,
    stored,
)
from hardthresh.core.constraint import Constraint
from hardthresh.core.schema import Successor, renames
from hardthresh.core.solver import Solver
from hardthresh.core.step import StepRule
from hardthresh.limited.algorithms.retraced import _Retraced
from hardthresh.limited.contract import Algorithm, AlgorithmState
from hardthresh.losses.base import Loss
from hardthresh.objectives import LinearModel
from hardthresh.storage import StorageError
from hardthresh.storage.classes import NAMES_OF_VERSION_2, kind_of
from levels import slow_beyond

LIST = Path(__file__).with_name("schemas.json")
"""The version and the fields of each class that is stored."""


def is_ours(cls):
    """Whether a class can be stored and stands in a file of hardthresh, no example of a docstring nor what
    ``dataclass(slots=True)`` has replaced."""
    home = sys.modules.get(cls.__module__)
    found = getattr(home, cls.__qualname__, None) is cls
    return found and cls.__module__.startswith("hardthresh.") and kind_of(cls) is not None


def import_all():
    """Import every module that may name a class."""
    for module in pkgutil.walk_packages(ht.__path__, "hardthresh."):
        if "__main__" not in module.name and module.name.split(".")[1] not in ("cli", "report"):
            importlib.import_module(module.name)


def ours():
    """The schemas of hardthresh's own classes."""
    return {name: entry for name, entry in schema.schemas().items() if is_ours(entry.cls)}


@pytest.fixture
def own_names(monkeypatch):
    """Names and registrations of a test stay its own."""
    monkeypatch.setattr(schema, "_SCHEMAS", schema.schemas())
    monkeypatch.setattr(registry, "_ENTRIES", {kind: dict(known) for kind, known in registry._ENTRIES.items()})


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_are_a_kind_and_a_word():
    assert len(ours()) > 100
    assert [name for name in ours() if not re.fullmatch(r"[a-z]+/[a-z0-9_]+", name)] == []


def test_registered_classes_have_the_names_of_the_registry():
    for kind in get_args(registry.Kind):
        for entry in registered(kind).values():
            assert schema.schemas()[f"{kind}/{entry.name}"].cls is entry.cls


def classes_in(annotation, home):
    """The classes of hardthresh that an annotation names, also by an alias."""
    if isinstance(annotation, str):
        for word in re.findall(r"\w+", annotation):
            yield from classes_in(vars(home).get(word), home)
    elif isinstance(annotation, type):
        if annotation.__module__.startswith("hardthresh."):
            yield annotation
    else:
        for part in get_args(annotation):
            yield from classes_in(getattr(part, "__forward_arg__", part), home)


def fields_of(cls):
    """The classes that the stored fields of a dataclass, its own and inherited ones, may be instances of."""
    if not is_dataclass(cls):
        return
    names = {field.name for field in fields(cls) if field.init}
    for base in cls.__mro__:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if name in names:
                yield from classes_in(annotation, sys.modules[base.__module__])


def with_subclasses(cls):
    yield cls
    for derived in cls.__subclasses__():
        yield from with_subclasses(derived)


def test_every_class_that_a_stored_object_can_hold_has_a_name():
    """Found in the annotations of fields: a new state, rule or setting without a name could not be saved."""
    import_all()
    named = {entry.cls for entry in schema.schemas().values()}
    contracts = (Algorithm, AlgorithmState, Constraint, Loss, Solver, State, StepRule, StopRule)
    reached = {cls for base in (*contracts, *named) for cls in with_subclasses(base) if is_ours(cls)}
    reached |= {cls for held in list(reached) for part in fields_of(held) for cls in with_subclasses(part)}
    storable = {cls for cls in reached if is_ours(cls)}
    assert len(storable) > 100
    never = {MaskedCoordinates, *with_subclasses(_Retraced)}  # written as Coordinates; only used while absorbing
    assert sorted(cls.__qualname__ for cls in storable - named - never) == []


@slow_beyond(30)
@every
def test_a_class_that_moves_is_written_as_before(name, tmp_path, monkeypatch):
    thing = read(STORED / f"{name}.json", name)
    ht.save(thing, tmp_path / "before.json")
    with monkeypatch.context() as moved:
        for entry in ours().values():
            moved.setattr(entry.cls, "__module__", "hardthresh.elsewhere")
        ht.save(thing, tmp_path / "after.json")
        assert type(read(tmp_path / "after.json", name)) is type(thing)
    written = (tmp_path / "after.json").read_bytes()
    assert written == (tmp_path / "before.json").read_bytes()
    assert b"hardthresh." not in written


def test_every_name_of_version_2_leads_to_a_class():
    import_all()
    assert {*NAMES_OF_VERSION_2.values()} <= ours().keys()
    assert len({*NAMES_OF_VERSION_2.values()}) == len(NAMES_OF_VERSION_2)


@pytest.mark.parametrize("value", [Stop(Status.BUDGET, ""), LinearModel(np.eye(3), np.ones(3))])
def test_objects_without_name_or_fields_are_refused(value, tmp_path):
    with pytest.raises(StorageError, match=r"list\[0\] cannot be stored: it is a hardthresh\..*hardthresh\.core\.st"):
        ht.save([value], tmp_path / "x.json")


@pytest.mark.usefixtures("own_names")
def test_a_name_is_given_only_once():
    with pytest.raises(InvalidInputError, match=r"the name 'step/fixed' in files is taken by Fixed; choose another"):

        @stored("step/fixed")
        class Other:
            pass


# --- versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_files_of_version_3_with_the_kind_observation_still_load(name, tmp_path):
    """Algorithms were registered as observation, before any of their fields was renamed."""
    text = (STORED / f"{name}.json").read_text()
    for path, now in NAMES_OF_VERSION_2.items():
        text = text.replace(f'"{path}"', f'"{re.sub("^algorithm/", "observation/", now)}"')
    assert "hardthresh." not in text
    (tmp_path / "x.json").write_text(text.replace('"format_version": 2', '"format_version": 3'))
    assert_same(ht.load(tmp_path / "x.json"), read(STORED / f"{name}.json", name))


def written_fields(cls):
    if issubclass(cls, Enum):
        return list(cls.__members__)
    if kind_of(cls) == "estimator":
        return cls._get_param_names()
    return [field.name for field in fields(cls) if field.init]


def test_changed_fields_have_a_new_version():
    import_all()
    now = {name: {"version": entry.version, "fields": written_fields(entry.cls)} for name, entry in ours().items()}
    then = json.loads(LIST.read_text())
    changed = [name for name in now.keys() & then.keys() if now[name] != then[name]]
    same_version = [name for name in changed if now[name]["version"] == then[name]["version"]]
    assert same_version == [], "append an upgrade to `stored` or `register`, so that files of before still load"
    assert changed == [], "put the new version and its fields into schemas.json"
    assert now.keys() == then.keys(), "put what is new into schemas.json; a name that is gone makes files unreadable"


def widen(fields):
    """From version 1, a width, to 2, two ends."""
    return {"start": 0, "stop": fields["width"]}


def centre(fields):
    """From version 2, two ends, to 3."""
    return {"centre": (fields["start"] + fields["stop"]) / 2, "radius": (fields["stop"] - fields["start"]) / 2}


@pytest.fixture
def window(own_names):
    """A class in its third version."""

    @stored("test/window", upgrades=[widen, centre])
    @dataclass(frozen=True)
    class Window:
        centre: float
        radius: float

    return Window


def put(path, node):
    """A file of an object that another version of the program wrote."""
    ht.save(0, path)
    document = json.loads(path.read_text())
    document["object"] = node
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        (1, {"width": 6}),
        (2, {"start": 2, "stop": 4}),
        (3, {"centre": 3.0, "radius": 1.0}),
    ],
)
def test_fields_of_earlier_versions_are_upgraded(window, version, fields, tmp_path):
    node = {"$": "object", "class": "test/window", "version": version, "fields": fields}
    put(tmp_path / "x.json", node)
    loaded = ht.load(tmp_path / "x.json")
    assert loaded == window(3.0, 3.0 if version == 1 else 1.0)
    ht.save(loaded, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["object"]["version"] == 3


@pytest.mark.usefixtures("window")
def test_a_later_version_asks_for_an_upgrade(tmp_path):
    put(tmp_path / "x.json", {"$": "object", "class": "test/window", "version": 4, "fields": {}})
    with pytest.raises(StorageError, match=r"a test/window of version 4; .* versions up to 3: upgrade hardthresh"):
        ht.load(tmp_path / "x.json")


@pytest.mark.usefixtures("window")
def test_an_upgrade_that_fails_on_invented_fields_says_that_the_file_is_damaged(tmp_path):
    put(tmp_path / "x.json", {"$": "object", "class": "test/window", "version": 1, "fields": {"height": 1}})
    with pytest.raises(StorageError, match=r"x\.json: damaged, KeyError: 'width'"):
        ht.load(tmp_path / "x.json")


@pytest.mark.usefixtures("own_names")
def test_members_of_enumerations_are_upgraded(tmp_path):
    @stored("test/colour", upgrades=[lambda fields: {"name": fields["name"].upper()}])
    class Colour(Enum):
        RED = 1

    put(tmp_path / "x.json", {"$": "enum", "class": "test/colour", "version": 1, "name": "red"})
    assert ht.load(tmp_path / "x.json") is Colour.RED


@pytest.mark.usefixtures("own_names")
def test_parameters_and_fitted_attributes_are_upgraded_together(tmp_path):
    def rename(fields):
        fields["n_nonzero_coefs"] = fields.pop("k")
        fields["coef_"] = fields.pop("weights_")
        return fields

    cls = ht.SparseLinearRegression
    register("estimator", "linear_regression", upgrades=[rename])(cls)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    model = cls(n_nonzero_coefs=2).fit(X, X @ [1.0, 0.0, -1.0, 0.0])
    ht.save(model, tmp_path / "x.json")
    node = json.loads((tmp_path / "x.json").read_text())["object"]
    assert node["version"] == 2
    node["version"] = 1
    node["parameters"]["k"] = node["parameters"].pop("n_nonzero_coefs")
    node["fitted"]["weights_"] = node["fitted"].pop("coef_")
    put(tmp_path / "x.json", node)
    again = ht.load(tmp_path / "x.json")
    assert again.get_params() == model.get_params()
    assert_same(again.predict(X), model.predict(X))


@pytest.mark.usefixtures("own_names")
def test_an_upgrade_may_lead_to_another_class_and_its_upgrades(tmp_path):
    @stored("test/disc", upgrades=[renames(r="radius")])
    @dataclass(frozen=True)
    class Disc:
        radius: float

    @stored("test/shape", upgrades=[renames(size="r"), lambda fields: Successor("test/disc", fields)])
    @dataclass(frozen=True)
    class Shape:
        pass

    for version, name in ((1, "size"), (2, "r")):
        put(tmp_path / "x.json", {"$": "object", "class": "test/shape", "version": version, "fields": {name: 2.5}})
        assert ht.load(tmp_path / "x.json") == Disc(2.5)


# --- classes of users ------------------------------------------------------------------------------------------------

HOMEMADE = """
from dataclasses import dataclass
from hardthresh.core import Move, StepRule, register

@dataclass(frozen=True)
class Beside:
    x: int = 0

@register("step", "homemade")
@dataclass(frozen=True)
class Homemade(StepRule):
    beside: Beside = Beside()

    def move(self, *_):
        raise NotImplementedError
"""


@pytest.fixture
def homemade(monkeypatch, own_names):
    """The module of a user, that registers a step rule."""
    module = ModuleType("their_steps")
    monkeypatch.setitem(sys.modules, "their_steps", module)
    exec(HOMEMADE, vars(module))
    return module


def test_classes_of_users_are_stored_by_registered_name_and_those_beside_them_by_module(homemade, tmp_path):
    rule = homemade.Homemade(homemade.Beside(3))
    ht.save(rule, tmp_path / "x.json")
    node = json.loads((tmp_path / "x.json").read_text())["object"]
    assert (node["class"], node["fields"]["beside"]["class"]) == ("step/homemade", "their_steps.Beside")
    assert ht.load(tmp_path / "x.json") == rule


def test_files_of_version_2_with_classes_of_users_still_load(homemade, tmp_path):
    put(tmp_path / "x.json", {"$": "object", "class": "their_steps.Homemade", "fields": {}})
    assert ht.load(tmp_path / "x.json") == homemade.Homemade()


def test_files_of_version_2_with_classes_of_users_are_upgraded(monkeypatch, own_names, tmp_path):
    module = ModuleType("their_steps")
    monkeypatch.setitem(sys.modules, "their_steps", module)
    upgrade = "upgrades=[lambda fields: {'beside': fields['next_to']}]"
    exec(HOMEMADE.replace('"homemade")', f'"homemade", {upgrade})'), vars(module))
    beside = {"$": "object", "class": "their_steps.Beside", "fields": {"x": 2}}
    put(tmp_path / "x.json", {"$": "object", "class": "their_steps.Homemade", "fields": {"next_to": beside}})
    assert ht.load(tmp_path / "x.json") == module.Homemade(module.Beside(2))


@pytest.mark.usefixtures("own_names")
def test_names_have_one_form_and_a_class_has_one():
    with pytest.raises(InvalidInputError, match="a name in files is 'kind/name' in small letters"):
        stored("no slash at all")

    @stored("test/first")
    @dataclass(frozen=True)
    class Thing:
        x: int

    with pytest.raises(InvalidInputError, match="Thing has the name 'test/first' in files; a class has one"):
        stored("test/second")(Thing)


def test_a_refused_registration_leaves_nothing(own_names):
    stored("step/taken")(type("First", (), {"__module__": "elsewhere"}))
    with pytest.raises(InvalidInputError, match="'step/taken' in files is taken"):
        register("step", "taken")(type("Second", (), {"__module__": "elsewhere"}))
    assert "taken" not in registry.registered("step")


@pytest.mark.parametrize("version", [None, "1", 1.0, True, 0])
def test_an_invented_version_is_refused(version, window, tmp_path):
    put(tmp_path / "x.json", {"$": "object", "class": "test/window", "version": version, "fields": {"width": 6}})
    with pytest.raises(StorageError, match="which is not a version"):
        ht.load(tmp_path / "x.json")


def test_without_their_file_classes_of_users_are_unknown(homemade, tmp_path, monkeypatch):
    ht.save(homemade.Homemade(), tmp_path / "x.json")
    monkeypatch.delitem(registry._ENTRIES["step"], "homemade")
    monkeypatch.delitem(schema._SCHEMAS, "step/homemade")
    with pytest.raises(StorageError, match=r"unknown class .*; if it is your own, import the file that registers it"):
        ht.load(tmp_path / "x.json")
