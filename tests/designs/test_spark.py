"""The example of an engine on Spark keeps the protocol, with the bits of one process. Skipped without Spark or Java."""

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from hardthresh import SparseLinearRegression, SparseLogisticRegression
from hardthresh.core.errors import InvalidInputError
from hardthresh.designs import Serial, from_arrays
from hardthresh.designs.engine import NUMBER

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed, as by no extra: pip install pyspark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark runs on Java, which is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def engine_on():
    """What makes an engine on two workers of this machine, where a task may fail twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "examples" / "engines")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        conf = pyspark.SparkConf().set("spark.ui.enabled", "false").set("spark.driver.host", "127.0.0.1")
        conf = conf.set("spark.driver.bindAddress", "127.0.0.1").set("spark.executorEnv.PYTHONPATH", ":".join(sys.path))
        with pyspark.SparkContext("local[2, 3]", conf=conf) as context:
            from spark_engine import SparkEngine

            yield lambda blocks, leaf_size: SparkEngine(blocks, context, leaf_size)


def a_table(n, rows, classes=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 300)).astype(np.float32)
    y = X[:, [3, 50]] @ [1.0, -1.0] + rng.standard_normal(n)
    return from_arrays(X, y > 0 if classes else y, rows=rows)


@pytest.mark.parametrize(
    ("model", "leaf_size"), [(SparseLinearRegression, 1), (SparseLinearRegression, 8), (SparseLogisticRegression, 8)]
)
def test_a_fit_on_spark_has_the_bits_of_one_process(engine_on, model, leaf_size):
    blocks = a_table(2000, 200, classes=model is SparseLogisticRegression)
    ours = model(n_nonzero_coefs=2).fit(engine_on(blocks, leaf_size))
    theirs = model(n_nonzero_coefs=2).fit(Serial(blocks))
    assert ours.coef_.tobytes() == theirs.coef_.tobytes()
    assert ours.history_["readings"][-1] == theirs.history_["readings"][-1]


@pytest.mark.parametrize("leaf_size", [1, 8])
def test_sums_and_kept_rows_have_the_bits_of_one_process(engine_on, leaf_size):
    """Of 66 blocks, three rows of the tree, whose sums depend on the order."""

    def some(X, y, weight, offset):
        return (X.sum(axis=0, dtype=np.float64) * np.exp(y[:1]),), (X[::2], y[::2], weight, offset)

    def total(X, y, weight, offset):
        return (X.T @ y,)

    def first(data):
        return data.apply(lambda part: part[:2])

    blocks, columns, found = a_table(1320, 20), np.array([3, 50, 200]), []
    for engine in (engine_on(blocks, leaf_size), Serial(blocks)):
        sums, kept = engine.both(some, columns=columns)
        with kept, engine.keep(lambda *rows: some(*rows)[1]) as wide:
            rows = engine.rows([3, (2, np.array([1, 5])), (65, first)])
            parts = [*sums, *engine.sweep(total, on=kept), *engine.sweep(total, on=wide), rows.X, rows.y]
        found.append(([part.tobytes() for part in parts], engine.readings))
    assert found[0] == found[1]


def test_a_task_whose_worker_is_killed_is_done_again(engine_on, tmp_path):
    def lost_once(X, y, weight, offset, number):
        if number == 5 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return (X.T @ y,)

    blocks = a_table(1500, 100)
    (ours,) = engine_on(blocks, 1).sweep(lost_once, NUMBER)
    assert (tmp_path / "killed").exists()
    assert ours.tobytes() == Serial(blocks).sweep(lost_once, NUMBER)[0].tobytes()


def test_a_task_that_kills_each_worker_is_told(engine_on):
    def deadly(X, y, weight, offset):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(Exception, match=r"failed 3 times(.|\n)*Python worker exited unexpectedly"):
        engine_on(a_table(300, 100), 1).sweep(deadly)


@pytest.mark.parametrize("method", ["sweep", "keep", "both"])
def test_an_error_of_a_task_is_that_of_one_process(engine_on, tmp_path, method):
    """It is raised as it is, at the first try."""

    def refuses(X, y, weight, offset, number):
        with (tmp_path / "tries").open("a") as tries:
            tries.write(f"{number} ")
        if number == 7:
            raise InvalidInputError("y has NaN in block 7")
        return () if method == "sweep" else ((), (X, y, weight, offset)) if method == "both" else (X, y, weight, offset)

    with pytest.raises(InvalidInputError, match=r"^y has NaN in block 7$"):
        getattr(engine_on(a_table(1500, 100), 1), method)(refuses, NUMBER)
    assert (tmp_path / "tries").read_text().split().count("7") == 1
