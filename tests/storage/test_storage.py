"""What is saved comes back bit for bit, nothing in a file is executed, and a damaged file says so."""

import json
import os
import pickle
import subprocess
import sys
import threading
from base64 import b64encode
from dataclasses import dataclass, fields
from itertools import islice
from math import inf, nan

import numpy as np
import pytest
from equality import assert_same
from sklearn.model_selection import KFold, RepeatedKFold, RepeatedStratifiedKFold, StratifiedKFold

import hardthresh as ht
from hardthresh.arrays.factored import Pattern
from hardthresh.certificates import certify
from hardthresh.constraints import Sparsity
from hardthresh.core import Evaluation, History, MaxIter, RelativeDecrease, State, Status, StepRule, SupportStable
from hardthresh.core.registry import registered
from hardthresh.losses import Logistic
from hardthresh.objectives import LinearModel
from hardthresh.solvers import IHT, BranchAndBound
from hardthresh.steps import BarzilaiBorwein, Fixed, SparsePolyak
from hardthresh.storage import StorageError, load_notes
from hardthresh.storage.errors import reading
from levels import at_most, in_turn, only_at, reaches, slow_beyond


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


@pytest.fixture
def roundtrip(path):
    def go(obj):
        ht.save(obj, path)
        return ht.load(path)

    return go


def problem(loss="squared", d=200, xp=np):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, d))
    y = X[:, :4] @ [3.0, -2.0, 1.0, 2.0] + 0.1 * rng.standard_normal(50)
    y = y if loss == "squared" else (y > 0).astype(float)
    return LinearModel(xp.asarray(X), xp.asarray(y), loss=loss)


def edit(path, change):
    """Change the outer level of a saved file."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        10**30,
        -0.0,
        0.1 + 0.2,
        5e-324,
        inf,
        -inf,
        'Gen ä\ud800 "$" 5\'',
        [1, 2.0, [None]],
        (1, (2.0, nan), ()),
        range(1, 31, 2),
        {"a": (1,), "b": {}},
        {1: "one", (2, 3): "pair"},
        {"$": "float", "value": "nan"},
        np.float32(0.1),
        np.int8(-3),
        np.bool_(True),
        np.float64(nan),
        np.str_("text"),
        Status.MAX_ITER,
        History({"value": [1.0, nan], "step": [0.5], "none": []}),
        IHT(step=SparsePolyak(target=0.12, scale=5.0)),
        Sparsity(3, free=(0, 11), lower=0.0, upper=np.ones(12)),
        Logistic(),
        RelativeDecrease(1e-6) & SupportStable(5) | MaxIter(200),
    ],
    ids=repr,
)
def test_values_come_back(roundtrip, value):
    assert_same(value, roundtrip(value))


@pytest.mark.parametrize("size", [0, 1, 64, 65, 1000])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "i8", "i4", "u1", "?", "c16", "U7"])
def test_arrays_come_back(roundtrip, size, dtype):
    array = np.random.default_rng(size).standard_normal(size).astype(dtype)
    assert_same(array, roundtrip(array))


@pytest.mark.parametrize("shape", [(), (3, 4), (30, 40), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shape_and_order_come_back(roundtrip, shape, order):
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape) * 0.1, order=order)
    assert_same(array, roundtrip(array))


def test_special_numbers_in_arrays_keep_their_bits(roundtrip):
    array = np.array([0.0, -0.0, nan, -nan, inf, -inf, 5e-324])
    array.view("u8")[2] += 1  # a NaN with a payload
    assert_same(array, roundtrip(array))


def test_arrays_of_texts_come_back(roundtrip):
    names = np.array([["Gen ä", "b"], [None, 3]], dtype=object)
    assert_same(names, roundtrip(names))


def test_a_random_state_goes_on(roundtrip):
    random_state = np.random.RandomState(3)
    random_state.standard_normal()
    again = roundtrip(random_state)
    assert again.standard_normal(5).tobytes() == random_state.standard_normal(5).tobytes()


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(3),
        StratifiedKFold(4, shuffle=True, random_state=7),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=7),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2),
    ],
    ids=repr,
)
def test_splitters_come_back(roundtrip, splitter):
    again = roundtrip(splitter)
    assert (type(again), vars(again)) == (type(splitter), vars(splitter))


def test_a_class_of_splitters_is_not_a_splitter(path):
    with pytest.raises(StorageError, match=r"\.cv cannot be stored"):
        ht.save(ht.SparseLinearRegressionCV(cv=KFold), path)


@pytest.fixture(params=["array_api_strict", "torch"])
def xp(request):
    """Another array library than NumPy, as its arrays' ``library`` in a file."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.mark.parametrize("shape", [(), (0,), (3, 4), (30, 40)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
def test_arrays_of_other_libraries_come_back_in_them(roundtrip, path, xp, shape, dtype):
    array = xp.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7, dtype=getattr(xp, dtype))
    assert_same(array, roundtrip(array))
    assert json.loads(path.read_text())["object"]["library"] == xp.__name__


@pytest.mark.parametrize("size", [3, 100])
def test_without_their_library_arrays_come_back_as_numpy_and_it_is_said_once(path, xp, size, monkeypatch):
    ht.save([xp.arange(size), xp.arange(size)], path)
    message = rf"model\.json: arrays of {xp.__name__} come back as NumPy arrays; it cannot be imported here"
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, xp.__name__, None)
        missing.delitem(sys.modules, f"array_api_compat.{xp.__name__}", raising=False)
        with pytest.warns(UserWarning, match=message) as warned:
            again = ht.load(path)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert_same([np.arange(size), np.arange(size)], again)


def test_no_other_library_is_imported_because_a_file_names_it(path, monkeypatch):
    ht.save(np.arange(3), path)
    edit(path, lambda document: document["object"].update(library="antigravity"))
    with pytest.warns(UserWarning, match="arrays of antigravity come back as NumPy arrays; only those of torch and"):
        assert_same(np.arange(3), ht.load(path))
    assert "antigravity" not in sys.modules


def test_an_array_that_numpy_does_not_have_is_refused_by_name(path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(StorageError, match=r"list\[0\] cannot be stored: NumPy has no such array"):
        ht.save([torch.zeros(3, dtype=torch.bfloat16)], path)


SOLVERS = [solver for entry in registered("solver").values() for solver in entry.examples()] + [
    IHT(step=step) for entry in registered("step").values() for step in entry.examples()
]


def loss_for(solver, loss):
    """That loss, or the squared one for the solver that takes quadratics alone."""
    return "squared" if isinstance(solver, BranchAndBound) else loss


@slow_beyond(8)
@in_turn("solver,loss", SOLVERS, ["squared", "logistic"])
def test_a_resumed_run_makes_the_same_numbers(roundtrip, solver, loss):
    f, sparsity = problem(loss_for(solver, loss)), Sparsity(5, free=(7,))
    whole = list(islice(ht.iterate(f, sparsity, solver, seed=3), 9))
    again = roundtrip(whole[4])
    assert_same(whole[4], again)
    for expected, state in zip(whole[4:], ht.iterate(f, sparsity, solver, state=again), strict=False):
        assert_same(expected, state)


@pytest.mark.slow
@in_turn("solver,loss", SOLVERS if reaches("pairs") else SOLVERS[:1], ["squared", "logistic"])
def test_a_run_of_another_library_resumes_to_the_same_numbers(roundtrip, solver, loss, xp):
    f, sparsity = problem(loss_for(solver, loss), xp=xp), Sparsity(5, free=(7,))
    whole = list(islice(ht.iterate(f, sparsity, solver, seed=3), 7))
    again = roundtrip(whole[3])
    for expected, state in zip(whole[3:], ht.iterate(f, sparsity, solver, state=again), strict=False):
        assert_same(expected, state)


@pytest.mark.slow
def test_minimize_takes_up_a_run_of_another_library(roundtrip, xp):
    f, sparsity = problem("logistic", xp=xp), Sparsity(5)
    settings = {"solver": IHT(), "tol": 0.0}
    straight = ht.minimize(f, sparsity, max_iter=12, **settings)
    half = roundtrip(ht.minimize(f, sparsity, max_iter=5, **settings))
    resumed = ht.minimize(f, sparsity, max_iter=12, state=half.state, **settings)
    assert_same(straight.state, resumed.state)
    assert_same(straight.w, resumed.w)


def test_a_result_comes_back_without_the_data(roundtrip):
    result = ht.minimize(problem(), Sparsity(4), IHT())
    again = roundtrip(result)
    for field in fields(result):
        if field.name != "objective":
            assert_same(getattr(result, field.name), getattr(again, field.name))
    assert again.objective is None
    assert repr(again) == repr(result)
    with pytest.raises(ht.core.HardThreshError, match="does not contain the data"):
        certify(again)


ESTIMATORS = {
    "regression": lambda: ht.SparseLinearRegression(n_nonzero_coefs=3, always_include=["g5"], alpha=0.1),
    "classifier": lambda: ht.SparseLogisticRegression(n_nonzero_coefs=3, solver=IHT(step=BarzilaiBorwein())),
    "regression, cv": lambda: ht.SparseLinearRegressionCV(n_nonzero_coefs=range(1, 5), cv=KFold(3)),
    "classifier, cv": lambda: ht.SparseLogisticRegressionCV(n_nonzero_coefs=[1, 3, 6], cv=3, scoring="accuracy"),
}


@pytest.fixture(params=ESTIMATORS)
def fitted(request):
    """A fitted estimator with the data it was fitted on: names, and classes that are texts."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(rng.standard_normal((60, 80)), columns=[f"g{j}" for j in range(80)])
    y = frame["g3"] - 2 * frame["g7"] + 0.1 * rng.standard_normal(60)
    if "classifier" in request.param:
        y = np.where(y > 0, "tumour", "normal")
    return ESTIMATORS[request.param]().fit(frame, y), frame


@at_most(3)
def test_estimators_come_back(roundtrip, fitted):
    model, frame = fitted
    again = roundtrip(model)
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    public = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    for name in public:
        assert_same(getattr(model, name), getattr(again, name))
    assert_same(model.predict(frame), again.predict(frame))
    assert_same(np.asarray(model.transform(frame)), np.asarray(again.transform(frame)))
    if hasattr(model, "predict_proba"):
        assert_same(model.predict_proba(frame), again.predict_proba(frame))


@slow_beyond(1)
@at_most(3)
def test_the_certificate_comes_back(roundtrip, fitted):
    model, _ = fitted
    with pytest.raises(ht.core.HardThreshError, match="does not carry its training data"):
        roundtrip(model).certificate()
    certificate = model.certificate()
    assert_same(certificate, roundtrip(model).certificate())


@pytest.mark.slow
def test_the_output_format_comes_back(roundtrip, fitted):
    model, frame = fitted
    model.set_output(transform="pandas")
    assert list(roundtrip(model).transform(frame)) == list(model.transform(frame)) != []


@pytest.mark.slow
def test_the_training_data_are_not_in_the_file(fitted, tmp_path):
    model, frame = fitted
    ht.save(model, tmp_path / "model.json")
    secret = frame.to_numpy()[:, 0].tobytes()
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir())
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 0.9 * len(pickle.dumps(frame)) + 60_000


def test_a_settings_object_of_an_estimator_and_an_unfitted_estimator_come_back(roundtrip):
    model = ht.SparseLinearRegression(solver=IHT(step=Fixed(0.1)), always_include=np.array([1, 2]))
    assert repr(roundtrip(model)) == repr(model)


def inline(dtype, shape, data, **more):
    return {"$": "array", "dtype": dtype, "shape": shape, "order": "C", "data": data, **more}


NODES = [
    (-inf, {"$": "float", "value": "-inf"}),
    ((1, "a"), {"$": "tuple", "items": [1, "a"]}),
    (range(1, 9, 2), {"$": "range", "items": [1, 9, 2]}),
    ({"a": None}, {"a": None}),
    ({1: True}, {"$": "dict", "items": [[1, True]]}),
    (np.array([[1.5], [2.0]]), inline("<f8", [2, 1], [1.5, 2.0])),
    (np.array(["a", None], dtype=object), {"$": "texts", "shape": [2], "items": ["a", None]}),
    (np.float32(0.5), {"$": "scalar", "array": inline("<f4", [], [0.5])}),
    (Status.BUDGET, {"$": "enum", "class": "result/status", "version": 1, "name": "BUDGET"}),
    (Fixed(0.5), {"$": "object", "class": "step/fixed", "version": 1, "fields": {"step": 0.5}}),
    (History({"value": [1.0]}), {"$": "history", "columns": {"value": inline("<f8", [1], [1.0])}}),
]


@pytest.mark.skipif(sys.byteorder == "big", reason="the numbers below are written as on a little-endian machine")
@pytest.mark.parametrize(("value", "node"), NODES, ids=lambda x: type(x).__name__)
def test_the_format_stays_as_it_is(path, value, node):
    """A file that an older hardthresh wrote is read, and an older hardthresh reads what is written now."""
    ht.save(value, path)
    assert json.loads(path.read_text())["object"] == node
    document = {"format": "hardthresh", "format_version": 3, "notes": {}, "object": node, "arrays": {}}
    path.write_text(json.dumps(document))
    assert_same(value, ht.load(path))


@pytest.mark.skipif(sys.byteorder == "big", reason="the bytes below are written as on a little-endian machine")
def test_larger_arrays_are_text_in_the_same_file(path):
    columns = np.asfortranarray(np.arange(70, dtype="i2").reshape(35, 2))
    ht.save([columns, columns], path)
    document = json.loads(path.read_text())
    assert document["object"] == [{"$": "array", "name": "a0"}] * 2
    content = b64encode(np.arange(70, dtype="<i2").reshape(35, 2).tobytes("F")).decode()
    assert document["arrays"] == {"a0": {"dtype": "<i2", "shape": [35, 2], "order": "F", "base64": content}}
    one, other = ht.load(path)
    assert one is other
    one[0, 0] = 7  # what is loaded can be written to
    assert [*path.parent.iterdir()] == [path]


def test_a_model_written_by_hand_is_read(path):
    node = {
        "$": "estimator",
        "class": "estimator/linear_regression_cv",
        "parameters": {
            "n_nonzero_coefs": [1, 2],
            "cv": {"$": "splitter", "class": "KFold", "settings": {"n_splits": 3, "shuffle": False}},
        },
        "fitted": {
            "coef_": inline("<f8", [2], [0.0, 2.0]),
            "support_": inline("<i8", [1], [1]),
            "intercept_": 0.5,
            "n_features_in_": 2,
            "later_": 1,
        },
    }
    ht.save([1], path)
    edit(path, lambda document: document.update(object=node, later={}))
    model = ht.load(path)
    assert model.cv.n_splits == 3
    assert model.predict(np.array([[1.0, 3.0]])).tolist() == [6.5]


def test_notes_are_kept_apart(path):
    ht.save([1], path, notes={"command": "hardthresh fit", "numbers": [1, 2]})
    assert ht.load(path) == [1]
    assert load_notes(path) == {"command": "hardthresh fit", "numbers": [1, 2]}


@pytest.mark.parametrize("notes", [{"x": nan}, {"x": object()}])
def test_notes_that_are_not_json_are_refused(path, notes):
    with pytest.raises(StorageError, match="notes must be plain JSON values"):
        ht.save([1], path, notes=notes)
    assert not path.exists()


def test_the_file_is_strict_json_with_versions(path):
    ht.save({"x": nan, "y": inf}, path)

    def refuse(name):
        raise AssertionError(name)

    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert (document["format"], document["format_version"], document["arrays"]) == ("hardthresh", 3, {})
    assert document["written_by"].keys() == {"hardthresh", "numpy", "scikit-learn"}


@dataclass(frozen=True)
class Stranger:
    """A class that nobody registered."""

    x: int = 0


@dataclass(frozen=True)
class Homemade(StepRule):
    """A step rule that nobody registered."""

    def move(self, *_):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Stranger(), "Stranger cannot be stored"),
        ([1, {"a": (lambda: 0)}], r"list\[1\]\.a cannot be stored: it is a builtins.function"),
        (IHT(step=Homemade()), r"IHT\.step cannot be stored"),
        ({1, 2}, "set cannot be stored"),
        (np.array([object()]), "array of arbitrary Python objects"),
        (type("Float", (float,), {})(1.0), "Float cannot be stored"),
    ],
)
def test_other_objects_are_refused_by_name(path, value, where):
    with pytest.raises(StorageError, match=where):
        ht.save(value, path)
    assert not path.exists()


def test_a_callable_setting_of_an_estimator_is_refused_by_name(path):
    model = ht.SparseLinearRegressionCV(n_nonzero_coefs=[1], scoring=max)
    with pytest.raises(StorageError, match=r"SparseLinearRegressionCV\.scoring cannot be stored"):
        ht.save(model, path)


def test_the_name_must_end_in_json(tmp_path):
    with pytest.raises(StorageError, match=r"must end in \.json, got 'model'"):
        ht.save([1], tmp_path / "model")


def test_a_missing_file_says_so(path):
    with pytest.raises(StorageError, match=r"model\.json: cannot be read, No such file"):
        ht.load(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_says_so(path, share):
    ht.save(problem().evaluate(np.ones(200)), path)
    text = path.read_bytes()
    path.write_bytes(text[: int(share * len(text))])
    with pytest.raises(StorageError, match=r"model\.json: damaged"):
        ht.load(path)


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"format": "other"}'])
def test_another_json_file_says_so(path, text):
    path.write_text(text)
    with pytest.raises(StorageError, match="not written by hardthresh"):
        ht.load(path)


def test_binary_rubbish_says_so(path):
    path.write_bytes(bytes(range(256)))
    with pytest.raises(StorageError, match="not written by hardthresh"):
        ht.load(path)


def test_a_newer_format_asks_for_an_upgrade(path):
    ht.save([1], path)
    edit(path, lambda document: document.update(format_version=4, written_by={"hardthresh": "9.0"}))
    with pytest.raises(StorageError, match=r"format version 4, from hardthresh 9\.0; .*upgrade"):
        ht.load(path)


@pytest.mark.parametrize("key", ["arrays", "notes", "object"])
def test_a_missing_part_says_so(path, key):
    ht.save([1], path)
    edit(path, lambda document: document.pop(key))
    with pytest.raises(StorageError, match=f"damaged, KeyError: '{key}'"):
        load_notes(path) if key == "notes" else ht.load(path)


@pytest.mark.parametrize(
    "node",
    [
        {"$": "object", "class": "os.system", "fields": {"command": "true"}},
        {"$": "object", "class": "builtins.eval", "fields": {}},
        {"$": "object", "class": "subprocess.Popen", "fields": {"args": ["true"]}},
        {"$": "enum", "class": "state/basic", "name": "x"},
        {"$": "object", "class": "result/status", "fields": {}},
        {"$": "object", "class": "estimator/linear_regression", "fields": {}},
        {"$": "object", "class": "objective/linear_model", "fields": {}},
        {"$": "object", "class": "hardthresh.core.step.Move", "fields": {}},
        {"$": "object", "class": "hardthresh.core.registry.Entry", "fields": {}},
        {"$": "estimator", "class": "sklearn.svm.SVC", "parameters": {}, "fitted": {}},
        {"$": "estimator", "class": "solver/iht", "parameters": {}, "fitted": {}},
        {"$": "splitter", "class": "BaseShuffleSplit", "settings": {}},
    ],
)
def test_unknown_classes_are_not_made(path, node):
    ht.save([1], path)
    edit(path, lambda document: document.update(object=node))
    with pytest.raises(StorageError, match=r"model\.json: unknown class"):
        ht.load(path)


@pytest.mark.parametrize(
    "node",
    [
        {"$": "pickle", "data": ""},
        {"$": "splitter", "class": "KFold"},
        {"$": "float", "value": "__import__"},
        {"$": "tuple"},
        {"$": "array", "file": "a7"},
        {"$": "array", "dtype": "O", "shape": [1], "order": "C", "data": [1]},
        {"$": "array", "dtype": "<f8", "shape": [2], "order": "C", "data": [1]},
        {"$": "array", "dtype": "<f8", "shape": [1], "order": "C", "data": ["x"]},
        {"$": "enum", "class": "result/status", "name": "WELL"},
        {"$": "object", "class": "step/fixed", "fields": {"length": 1}},
        {"$": "object", "class": "step/fixed", "version": 0, "fields": {"step": 0.5}},
        {"$": "object", "class": "step/fixed", "version": "1", "fields": {"step": 0.5}},
        {"$": "object", "class": "step/fixed", "version": [1], "fields": {"step": 0.5}},
        {"$": "object", "class": "constraint/sparsity", "fields": {"k": -1}},
        {"$": "history", "columns": {"x": 3}},
        {"$": ["unhashable"]},
    ],
    ids=str,
)
def test_invented_content_says_so(path, node):
    ht.save([1], path)
    edit(path, lambda document: document.update(object=[node]))
    with pytest.raises(StorageError, match=r"model\.json: "):
        ht.load(path)


def test_a_very_deep_file_says_so(path):
    ht.save([1], path)
    path.write_text(path.read_text().replace('"object": [\n  1\n ]', '"object": ' + "[" * 200_000 + "]" * 200_000))
    with pytest.raises(StorageError, match="damaged"):
        ht.load(path)


def test_an_estimator_takes_no_other_attributes_from_a_file(path, regression):
    def change(document):
        document["object"]["fitted"] |= {"predict": 1, "__class__": 2, "_private_": 3, "other_": 4}

    ht.save(regression, path)
    edit(path, change)
    assert {*vars(ht.load(path))} - {*vars(regression)} == {"other_"}


@pytest.fixture(scope="module")
def regression():
    """A model of two of four features, 0 and 2, which have names."""
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((30, 4))
    frame = pandas.DataFrame(X, columns=[*"abcd"])
    return ht.SparseLinearRegression(n_nonzero_coefs=2).fit(frame, X @ [2.0, 0.0, -1.0, 0.0])


@pytest.fixture(scope="module")
def classifier():
    """A model of one of four features, 2."""
    X = np.random.default_rng(0).standard_normal((30, 4))
    return ht.SparseLogisticRegression(n_nonzero_coefs=1).fit(X, X[:, 2] > 0)


def without(name):
    return lambda node: node["fitted"].pop(name)


def put(name, value):
    return lambda node: node["fitted"].update({name: value})


def renamed(node):
    node["fitted"]["coeff_"] = node["fitted"].pop("coef_")


UNSOUND = {
    "out of range": (put("support_", inline("<i8", [2], [0, 77])), "support_ names feature 77; there are 4"),
    "negative": (put("support_", inline("<i8", [2], [-1, 0])), "support_ names feature -1"),
    "twice": (put("support_", inline("<i8", [2], [3, 3])), "support_ is not strictly increasing"),
    "not sorted": (put("support_", inline("<i8", [2], [2, 0])), "support_ is not strictly increasing"),
    "other": (put("support_", inline("<i8", [2], [0, 3])), "not zero for feature 2, which is not in support_"),
    "not integers": (put("support_", inline("<f8", [2], [0.0, 2.0])), "a list of integers is needed"),
    "no array": (put("support_", [0, 2]), r"support_ must be a number or an array, got \[0, 2\]"),
    "number": (put("coef_", 4), r"coef_ has shape \(\); \(4,\) is needed"),
    "shortened": (put("coef_", inline("<f8", [3], [2.0, 0.0, -1.0])), r"coef_ has shape \(3,\); \(4,\) is needed"),
    "too many": (put("coef_", inline("<f8", [2, 4], [1.0] * 8)), r"coef_ has shape \(2, 4\)"),
    "renamed": (renamed, "coef_ missing"),
    "no coef_": (without("coef_"), "coef_ missing"),
    "no intercept_": (without("intercept_"), "intercept_ missing"),
    "no support_": (without("support_"), "support_ missing"),
    "no n_features_in_": (without("n_features_in_"), "n_features_in_ missing"),
    "intercept": (put("intercept_", "high"), "intercept_ must be a number or an array, got 'high'"),
    "count": (put("n_features_in_", "4"), "n_features_in_ must be a positive integer, got '4'"),
    "names": (put("feature_names_in_", {"$": "texts", "items": ["a"], "shape": [1]}), "4 names are needed"),
    "alpha": (lambda node: node["parameters"].update(alpha="rm"), "alpha must be .*, got 'rm'"),
    "max_iter": (lambda node: node["parameters"].update(max_iter=0), "max_iter must be an integer >= 1, got 0"),
}


@pytest.mark.parametrize(("change", "wrong"), UNSOUND.values(), ids=UNSOUND)
def test_an_unsound_model_says_so(path, regression, change, wrong):
    ht.save(regression, path)
    edit(path, lambda document: change(document["object"]))
    with pytest.raises(StorageError, match=rf"model\.json: not a sound SparseLinearRegression: .*{wrong}"):
        ht.load(path)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (put("coef_", inline("<f8", [1, 3], [0.0, 0.0, 1.0])), r"coef_ has shape \(1, 3\)"),
        (put("intercept_", 0.5), r"intercept_ has shape \(\); \(1,\) is needed"),
        (put("classes_", inline("<i8", [1], [0])), "two labels or more are needed"),
        (put("classes_", inline("<i8", [3], [0, 1, 2])), r"coef_ has shape \(1, 4\); \(3, 4\) is needed"),
        (without("classes_"), "classes_ missing"),
    ],
)
def test_an_unsound_classifier_says_so(path, classifier, change, wrong):
    ht.save(classifier, path)
    edit(path, lambda document: change(document["object"]))
    with pytest.raises(StorageError, match=rf"model\.json: not a sound SparseLogisticRegression: .*{wrong}"):
        ht.load(path)


def test_features_on_request_may_have_zero_coefficients(roundtrip, regression):
    model = pickle.loads(pickle.dumps(regression))
    model.support_ = np.array([0, 1, 2])
    assert roundtrip(model).support_.tolist() == [0, 1, 2]


def test_estimators_after_a_failed_fit_are_not_saved(path):
    model = ht.SparseLinearRegression(n_nonzero_coefs=9)
    with pytest.raises(ht.core.HardThreshError):
        model.fit(np.eye(3), np.ones(3))
    with pytest.raises(StorageError, match="not a sound SparseLinearRegression: coef_ and intercept_ and support_"):
        ht.save(model, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"shape": [10**13]}, r"shape \[10000000000000\] and dtype float64 is said to be in 8000 bytes"),
        ({"shape": [2**62, 4]}, "is said to be in 8000 bytes"),
        ({"shape": [-1, -1000]}, "damaged, ValueError"),
        ({"shape": [999]}, "is said to be in 8000 bytes"),
        ({"dtype": "<f4"}, "is said to be in 8000 bytes"),
        ({"dtype": "O"}, "it holds an array of object"),
        ({"dtype": "i4,i4"}, r"it holds an array of \[\('f0'"),
        ({"dtype": "<U1000000"}, "is said to be in 8000 bytes"),
        ({"order": "X"}, "damaged"),
        ({"base64": "AAAA"}, "is said to be in 3 bytes"),
        ({"base64": "not base64!"}, "damaged"),
        ({"base64": None}, "damaged"),
    ],
    ids=str,
)
def test_an_array_must_have_the_bytes_that_it_needs(path, change, wrong):
    ht.save(np.arange(1000.0), path)
    edit(path, lambda document: document["arrays"]["a0"].update(change))
    with pytest.raises(StorageError, match=rf"model\.json: .*{wrong}"):
        ht.load(path)


def test_an_array_that_nothing_names_is_not_read(path):
    ht.save([1], path)
    edit(path, lambda document: document["arrays"].update(a0={"shape": "rubbish"}))
    assert ht.load(path) == [1]


def test_short_strings_do_not_ask_for_much_memory(path):
    node = {"$": "array", "dtype": "<U1000000", "shape": [1], "order": "C", "data": ["a"]}
    ht.save([1], path)
    edit(path, lambda document: document.update(object=[node] * 64))
    with pytest.raises(StorageError, match="<U1000000 whose strings are far shorter"):
        ht.load(path)


def test_padded_strings_come_back(roundtrip):
    for width in (1, 60, 1000):
        assert_same(np.array(["a", "bc"], dtype=f"U{width}"), roundtrip(np.array(["a", "bc"], dtype=f"U{width}")))


def test_records_are_refused_by_name(path):
    with pytest.raises(StorageError, match=r"list\[0\] cannot be stored: its dtype is \[\('i', '<i8'\)"):
        ht.save([np.zeros(3, dtype=[("i", "<i8"), ("x", "<f8")])], path)


def test_lack_of_memory_is_reported(path):
    with pytest.raises(StorageError, match=r"model\.json: needs more memory than there is"), reading(path):
        raise MemoryError


@pytest.mark.parametrize(
    "change",
    [{"pos": 625}, {"pos": 10**6}, {"pos": 2**31 - 1}, {"pos": -5}, {"pos": "x"}, {"key": inline("<u4", [1], [5])}],
    ids=str,
)
def test_a_random_state_that_would_crash_is_refused(path, change):
    """Finding 2: NumPy reads beside the key, and the process dies of it."""
    ht.save(np.random.RandomState(0), path)
    edit(path, lambda document: document["object"]["state"]["state"].update(change))
    with pytest.raises(StorageError, match=r"model\.json: "):
        ht.load(path)


@pytest.mark.parametrize(
    "change", [{"cols": [2**31 - 9] * 70}, {"cols": [-1] * 70}, {"starts": [0, 2**30, 70]}, {"starts": [1, 35, 70]}]
)
def test_indices_outside_a_sparse_matrix_are_refused(path, change):
    """The products of SciPy would read and write foreign memory."""
    rows, cols = np.repeat([0, 1], 35), np.tile(np.arange(35), 2)
    ht.save(Pattern.of(rows, cols, (2, 35)), path)
    fields = {name: inline("<i4", [len(data)], data) for name, data in change.items()}
    edit(path, lambda document: document["object"]["fields"].update(fields))
    with pytest.raises(StorageError, match=r"do not fit a matrix of shape \(2, 35\)"):
        ht.load(path)


def test_a_model_can_be_moved_and_renamed(path, tmp_path):
    ht.save(np.arange(1000.0), path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    path.rename(folder / "renamed.json")
    assert ht.load(folder / "renamed.json").shape == (1000,)


def test_equal_objects_make_equal_files(tmp_path):
    contents = []
    for name in ("a.json", "b.json"):
        ht.save(np.arange(1000.0), tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_a_killed_save_leaves_the_old_model(path, monkeypatch):
    def killed(file):
        raise KeyboardInterrupt

    ht.save(np.arange(1000.0), path)
    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        ht.save(np.arange(2000.0), path)
    assert_same(np.arange(1000.0), ht.load(path))
    assert [*path.parent.iterdir()] == [path]


@only_at("pairs")
def test_saves_and_loads_of_one_name_do_not_disturb_one_another(path):
    """Finding 12: readers failed while two writers were at work, and the writers too."""
    failures = []

    def write(number):
        try:
            for _ in range(20):
                ht.save(np.full(1000, number), path)
        except Exception as error:  # in a thread it would go unseen
            failures.append(error)

    write(0)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        loaded = ht.load(path)
        assert_same(np.full(1000, loaded[0]), loaded)
    for writer in writers:
        writer.join()
    assert failures == []
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.slow
def test_a_state_is_loaded_without_scikit_learn(path):
    ht.save(State(at=Evaluation(np.ones(100), 1.0, np.ones(100)), support=np.array([1])), path)
    code = f"import sys, hardthresh; hardthresh.load({str(path)!r}); print('sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout.strip(), run.stderr) == ("False", "")
