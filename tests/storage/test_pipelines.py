"""Pipelines of an imputer and a model are stored without anything private of scikit-learn."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardthresh as ht
from hardthresh.storage import StorageError

RNG = np.random.default_rng(0)
X = np.where(RNG.random((40, 5)) < 0.2, np.nan, RNG.standard_normal((40, 5)) + 3.0)
X[:, 3] = RNG.standard_normal(40)  # whole
X[:, 4] = np.nan  # empty
Y = RNG.standard_normal(40)

IMPUTERS = {
    "mean": SimpleImputer(),
    "marked": SimpleImputer(add_indicator=True),
    "median, empty columns kept": SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
    "most frequent": SimpleImputer(strategy="most_frequent"),
    "constant": SimpleImputer(strategy="constant", fill_value=-1.0, add_indicator=True),
}


def again(obj, tmp_path):
    ht.save(obj, tmp_path / "x.json")
    return ht.load(tmp_path / "x.json")


@pytest.mark.parametrize("name", IMPUTERS)
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values", "ignore:.* constant column")
def test_a_loaded_pipeline_predicts_the_same_bits(name, tmp_path):
    pipeline = make_pipeline(IMPUTERS[name], ht.SparseLinearRegression(n_nonzero_coefs=2)).fit(X, Y)
    loaded = again(pipeline, tmp_path)
    assert [step for step, _ in loaded.steps] == [step for step, _ in pipeline.steps]
    new = np.where(RNG.random((9, 5)) < 0.5, np.nan, 1.0)  # with gaps elsewhere, too
    assert_array_equal(loaded.predict(new), pipeline.predict(new))
    assert_array_equal(loaded[0].transform(new), pipeline[0].transform(new))
    assert {**loaded[0].get_params(), "missing_values": 0} == {**pipeline[0].get_params(), "missing_values": 0}
    assert_array_equal(again(loaded, tmp_path).predict(new), pipeline.predict(new))


def test_names_of_columns_are_kept(tmp_path):
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    pipeline = make_pipeline(SimpleImputer(add_indicator=True), ht.SparseLinearRegression(n_nonzero_coefs=1))
    loaded = again(pipeline.fit(frame, Y), tmp_path)
    assert_array_equal(loaded.feature_names_in_, list("abcd"))
    assert_array_equal(loaded[0].get_feature_names_out(), pipeline[0].get_feature_names_out())
    assert_array_equal(loaded.predict(frame), pipeline.predict(frame))


def test_what_is_not_fitted_stays_so(tmp_path):
    loaded = again(make_pipeline(SimpleImputer(strategy="median"), ht.SparseLinearRegression()), tmp_path)
    assert loaded[0].strategy == "median"
    assert not hasattr(loaded[0], "statistics_")
    assert_array_equal(loaded[0].fit(X[:, :4]).statistics_, np.nanmedian(X[:, :4], axis=0))


def test_other_steps_and_marks_are_refused(tmp_path):
    with pytest.raises(StorageError, match=r"steps\[0\]\[1\] cannot be stored: it is a .*StandardScaler"):
        ht.save(make_pipeline(StandardScaler(), ht.SparseLinearRegression()), tmp_path / "x.json")
    with pytest.raises(StorageError, match="its missing_values are -1, not NaN"):
        ht.save(make_pipeline(SimpleImputer(missing_values=-1), ht.SparseLinearRegression()), tmp_path / "x.json")


DAMAGE = {
    "no pairs": (lambda node: node.update(steps=[1]), "steps are not pairs"),
    "no transformer": (lambda node: node.update(steps=[["a", 1], ["b", 2]]), "a pipeline that is none"),
    "text": (lambda node: node["steps"][0][1].update(rows=[["a"], ["b"]]), "."),
    "one dimension": (lambda node: node["steps"][0][1].update(rows=[1.0, 2.0]), "."),
    "another strategy": (lambda node: node["steps"][0][1]["settings"].update(strategy="best"), "cannot be fitted"),
    "names": (lambda node: node["steps"][0][1].update(names=["a"]), "do not fit together"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_pipelines_are_refused(damage, tmp_path):
    change, message = DAMAGE[damage]
    pipeline = make_pipeline(SimpleImputer(), ht.SparseLinearRegression(n_nonzero_coefs=1)).fit(X[:, :4], Y)
    ht.save(pipeline, tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    change(document["object"])
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match=message):
        ht.load(tmp_path / "x.json")


# columns


FRAME = pd.DataFrame(X[:, :4], columns=list("abcd")).assign(site=pd.Categorical(RNG.choice(["north", "south"], 40)))
PARTS = [("numbers", SimpleImputer(add_indicator=True), ["b", "a", "c"]), ("categories", "passthrough", ["site"])]


def transformer(parts=PARTS, **settings):
    return ColumnTransformer(parts, verbose_feature_names_out=False, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_a_loaded_transformer_of_columns_transforms_alike(output, tmp_path):
    columns = transformer(remainder="drop" if output == "default" else "passthrough").set_output(transform=output)
    if output == "default":  # an array of numbers and texts is none that a model takes
        columns.fit(FRAME)
        loaded = again(columns, tmp_path)
    else:
        pipeline = make_pipeline(columns, ht.SparseLinearRegression(n_nonzero_coefs=3)).fit(FRAME, Y)
        loaded = again(pipeline, tmp_path)
        assert_array_equal(loaded.predict(FRAME), pipeline.predict(FRAME))
        assert_array_equal(again(loaded, tmp_path).predict(FRAME), pipeline.predict(FRAME))
        loaded = loaded[0]
    assert_array_equal(loaded.get_feature_names_out(), columns.get_feature_names_out())
    transformed = loaded.transform(FRAME)
    assert type(transformed) is type(columns.transform(FRAME))
    assert_array_equal(np.asarray(transformed), np.asarray(columns.transform(FRAME)))
    assert {**loaded.get_params(deep=False), "transformers": 0} == {**columns.get_params(deep=False), "transformers": 0}


def test_a_transformer_that_is_not_fitted_stays_so(tmp_path):
    loaded = again(transformer().set_output(transform="pandas"), tmp_path)
    assert not hasattr(loaded, "transformers_")
    assert loaded.fit_transform(FRAME).equals(transformer().set_output(transform="pandas").fit_transform(FRAME))


UNSTORABLE = {
    "another part": ([("numbers", StandardScaler(), ["a"])], {}, "'numbers' is no SimpleImputer, 'passthrough' or"),
    "positions": (
        [("numbers", SimpleImputer(), [0])],
        {},
        "the columns of 'numbers' are not the names of a data frame",
    ),
    "a slice": ([("numbers", SimpleImputer(), slice(0, 2))], {}, "the columns of 'numbers' are not the names of a"),
    "a remainder": (PARTS, {"remainder": SimpleImputer()}, "its remainder is an estimator"),
    "texts": ([("texts", SimpleImputer(strategy="most_frequent"), ["site"])], {}, "what it fills in are no numbers"),
}


@pytest.mark.parametrize("name", UNSTORABLE)
def test_other_transformers_of_columns_are_refused(name, tmp_path):
    parts, settings, message = UNSTORABLE[name]
    columns = transformer(parts, **settings)
    if name == "texts":
        columns.fit(FRAME)
    with pytest.raises(StorageError, match=message):
        ht.save(columns, tmp_path / "x.json")


DAMAGE_OF_COLUMNS = {
    "no triples": lambda node: node.update(parts=[1]),
    "an unknown column": lambda node: node["parts"][0][2].append("z"),
    "a column less": lambda node: node["parts"][0][2].pop(),
    "an unknown setting": lambda node: node["settings"].update(nobody=1),
    "an unknown output": lambda node: node.update(output="tables"),
    "no names": lambda node: node.update(names=3),
}


@pytest.mark.parametrize("damage", DAMAGE_OF_COLUMNS)
def test_damaged_transformers_of_columns_are_refused(damage, tmp_path):
    ht.save(transformer().set_output(transform="pandas").fit(FRAME), tmp_path / "x.json")
    document = json.loads((tmp_path / "x.json").read_text())
    DAMAGE_OF_COLUMNS[damage](document["object"])
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match="it holds a transformer of columns whose parts do not fit together"):
        ht.load(tmp_path / "x.json")
