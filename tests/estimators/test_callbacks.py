"""scikit-learn's callbacks, where there are some, and fits without them, where there are none."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from levels import only_at

WITHOUT = """
import sys
import numpy as np
import sklearn.feature_selection, sklearn.metrics, sklearn.model_selection  # they need theirs
sys.modules["sklearn.callback"] = None  # as before scikit-learn 1.9
from hardthresh.core.registry import registered
import hardthresh.estimators, hardthresh.limited.estimators
from hardthresh.estimators.callbacks import CallbackSupportMixin
assert CallbackSupportMixin.__module__ == "hardthresh.estimators.callbacks"
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
y = 1 + 8 * (X[:, 0] > 0)  # classes or amounts
for entry in registered("estimator").values():
    for model in entry.examples():
        assert not any("callback" in name for name in dir(model) if name.startswith("set_"))
        model.fit(X, y)
        if not hasattr(model, "learner_"):  # who buys attributes has seen too little
            print(*getattr(model, "support_", [0]))
"""


@only_at("pairs")
def test_estimators_work_without_the_callbacks_of_scikit_learn(tmp_path):
    run = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert all(line.startswith("0") for line in run.stdout.splitlines())
    assert len(run.stdout.splitlines()) >= 4


class Recorder:
    """A callback that writes down what it is told."""

    def __init__(self, stop_after=None):
        self.events = []
        self.models = []
        self.stop_after = stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.events.append(("end", context.task_name, context.task_id))
        self.models.append((fitted_estimator, X, y, metadata))
        return len(self.models) == self.stop_after


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9 has no callbacks")


def balanced(events):
    """Whether every task that begins ends, the inner ones first."""
    stack = []
    for kind, name, number in events:
        if kind == "begin":
            stack.append((name, number))
        elif kind == "end" and (not stack or stack.pop() != (name, number)):
            return False
    return not stack


@pytest.mark.slow
def test_every_task_that_begins_ends(case, callback):
    X, y = case.data()
    recorder = Recorder()
    model = case.make().set_callbacks(recorder).fit(X, y)
    assert balanced(recorder.events)
    kinds = [kind for kind, _, _ in recorder.events]
    assert kinds[0] == "setup"
    assert kinds[-1] == "teardown"
    count = len(model.candidates_) if case.chooses else model.n_iter_
    assert kinds.count("begin") == kinds.count("end") == count + 1
    assert_array_equal(model.coef_, case.make().fit(X, y).coef_)
    for fitted, data, target, _ in recorder.models:
        assert_array_equal(data, X)
        assert_array_equal(target, y)
        assert fitted.predict(X).dtype == model.predict(X).dtype
    assert_array_equal(recorder.models[-1][0].predict(X), model.predict(X))
    if case.chooses:
        for row, (fitted, *_) in enumerate(recorder.models[:-1]):
            assert_array_equal(np.reshape(fitted.coef_, -1), model.coefs_path_[row])


def test_a_callback_may_stop_a_fit(plain, callback):
    X, y = plain.data(noise=2.0)
    recorder = Recorder(stop_after=1)
    with pytest.warns(ConvergenceWarning, match="the callback stopped the run"):
        model = plain.make().set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == 1
    assert not model.converged_
    assert balanced(recorder.events)


class Overflowing(Recorder):
    """A callback in which NumPy warns."""

    def __init__(self, kind, outermost):
        super().__init__()
        self.where = kind, outermost

    def on_fit_task_begin(self, estimator, context):
        self.overflow("begin", context)

    def on_fit_task_end(self, estimator, context):
        self.overflow("end", context)

    def overflow(self, kind, context):
        if self.where == (kind, context.parent is None):
            np.float64(1e200) ** 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hardthresh.core.SearchRangeWarning")
@pytest.mark.parametrize("outermost", [False, True])
@pytest.mark.parametrize("kind", ["begin", "end"])
def test_numpy_warns_of_what_overflows_in_a_callback(case, callback, kind, outermost):
    X, y = case.data()
    model = case.make().set_callbacks(Overflowing(kind, outermost))
    with pytest.warns(RuntimeWarning, match="overflow encountered"):
        model.fit(X, y)
    with np.errstate(over="ignore"):
        model.fit(X, y)


def test_a_failing_fit_is_torn_down(case, callback):
    X, y = case.data()
    recorder = Recorder()
    with pytest.raises(ValueError, match="alpha"):
        case.make(alpha=-1.0).set_callbacks(recorder).fit(X, y)
    assert [kind for kind, _, _ in recorder.events].count("begin") == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_along_the_way(case, callback, weighted):
    X, y = case.data()
    monitor = callback.ScoringMonitor(scoring="accuracy" if case.loss.classifies else "r2")
    model = case.make().set_callbacks(monitor)
    model.fit(X, y, **({"sample_weight": np.linspace(0, 1, y.size)} if weighted else {}))
    scores = monitor.get_logs().data
    assert len(scores) >= 2


def test_a_progress_bar(case, callback, capfd):
    pytest.importorskip("rich", reason="rich is not installed")
    X, y = case.data()
    model = case.make().set_callbacks(callback.ProgressBar()).fit(X, y)
    assert_array_equal(model.coef_, case.make().fit(X, y).coef_)
    captured = capfd.readouterr()
    assert case.cls.__name__ in captured.out + captured.err


def test_callbacks_are_heard_within_a_search(plain, callback):
    X, y = plain.data()
    recorder = Recorder()
    GridSearchCV(plain.make().set_callbacks(recorder), {"n_nonzero_coefs": [1, 2]}, cv=2).fit(X, y)
    assert recorder.events
    assert balanced(recorder.events)
