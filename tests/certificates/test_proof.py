"""How far a set of features is proved to be the best: the search, its end, and how it goes on."""

import json
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import hardthresh as ht
from hardthresh.certificates import Proof, prove
from hardthresh.constraints import GroupSparsity, Sparsity
from hardthresh.core.errors import InvalidInputError
from hardthresh.objectives import LinearModel
from hardthresh.report import plot_gap
from hardthresh.solvers import BranchAndBound
from levels import at


def problem(seed=0, n=60, d=30, k=5, alpha=0.02):
    """Correlated columns, a weak signal, and a ridge: a search of some hundred nodes."""
    rng = np.random.default_rng((24, seed))
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    y = X[:, rng.permutation(d)[:k]].sum(axis=1) + 2.0 * rng.standard_normal(n)
    return LinearModel(X, y, l2=alpha), Sparsity(k)


def interrupted_after(monkeypatch, iterations):
    """Let Ctrl-C come during an iteration of the search."""
    advance, count = BranchAndBound.advance, iter(range(iterations))

    def stopped(self, objective, constraint, state):
        if next(count, None) is None:
            raise KeyboardInterrupt
        return advance(self, objective, constraint, state)

    monkeypatch.setattr(BranchAndBound, "advance", stopped)


@pytest.mark.parametrize("seed", [0, 1, *at("pairs", range(2, 6))])
def test_a_proof_is_right(seed):
    f, _ = problem(seed, n=20, d=10, k=3, alpha=0.01)
    best = min(ht.minimize(f.columns(np.array(some)), Sparsity(3)).value for some in combinations(range(10), 3))
    proof = prove(f, Sparsity(3), ht.minimize(f, Sparsity(3)).w, time_limit=None)
    assert proof.proved
    assert proof.status == "proved to 1e-9 relative"
    assert_allclose(proof.upper_bound, best, rtol=1e-9)
    assert best * (1 - 2e-9) <= proof.lower_bound <= best * (1 + 1e-12)
    assert proof.gap <= 2e-9


def test_a_proof_says_to_how_much():
    """Columns with a large mean, where rounding leaves eight digits."""
    rng = np.random.default_rng(26)
    X = rng.standard_normal((100, 6))
    X[:, 0] += 1e6
    X = np.column_stack([np.ones(100), X])
    f, constraint = LinearModel(X, X[:, 1] - 1e6 + 0.1 * rng.standard_normal(100)), Sparsity(1, free=(0,))
    proof = prove(f, constraint, np.zeros(7))
    assert proof.proved
    assert proof.found_better
    assert 1e-9 < proof.gap <= float(proof.status.split()[2]) < 1e-6
    assert str(proof).startswith(proof.status.capitalize())
    assert "resumed" not in str(proof)


def test_bounds_that_contradict_a_value_prove_nothing(monkeypatch):
    f, constraint = problem(n=20, d=10, k=3)
    monkeypatch.setattr("hardthresh.certificates.proving.lower_bound", lambda *_: 1e6)
    proof = prove(f, constraint, ht.minimize(f, constraint).w, time_limit=1e-9)
    assert not proof.proved
    assert proof.lower_bound == 0.0
    assert "wrong by rounding" in proof.reason


def test_a_better_set_is_told_and_the_model_is_not_blamed_for_the_gap():
    f, constraint = problem()
    w = np.zeros(30)
    w[:5] = 1e-3
    proof = prove(f, constraint, w, name=lambda j: f"x{j}", subject="a bad guess")
    found = ht.minimize(f, constraint, BranchAndBound())
    assert proof.found_better
    assert proof.features == tuple(f"x{j}" for j in found.support)
    assert proof.value == f.value(w) > proof.upper_bound
    assert_allclose(proof.upper_bound, found.value)
    text = str(proof).splitlines()
    assert text[0] == "About a bad guess."
    assert text[1].startswith("Proved to 1e-9 relative: no set of this size has an objective below ")
    assert text[2] == f"A better set was found: {', '.join(proof.features)}."
    assert not prove(f, constraint, found.w).found_better


def test_interrupting_keeps_the_bound_and_the_search_goes_on(monkeypatch):
    f, constraint = problem()
    w = ht.minimize(f, constraint).w
    whole = prove(f, constraint, w, time_limit=None)
    with monkeypatch.context() as patched:
        interrupted_after(patched, 4)
        part = prove(f, constraint, w)
    assert not part.proved
    assert 0.0 < part.gap < 1.0
    assert part.reason.startswith("interrupted at iteration 4")
    assert part.status.startswith("gap ")
    assert part.gap == pytest.approx(part.state.gap)  # that of the progress line
    assert str(part).endswith("This proof can be resumed.")
    more = prove(f, constraint, w, resume=part, time_limit=None)
    assert more.proved
    assert more.n_nodes == whole.n_nodes > part.n_nodes
    assert more.lower_bound == whole.lower_bound
    assert more.seconds >= part.seconds  # the seconds of the first run are counted in
    for name, column in more.history.items():
        assert_array_equal(column[: part.history[name].size], part.history[name])


def test_stopped_before_the_first_node_it_has_the_bound_of_the_certificate(monkeypatch):
    f, constraint = problem(alpha=0.5)
    found = ht.minimize(f, constraint)
    interrupted_after(monkeypatch, 0)
    proof = prove(f, constraint, found.w)
    assert proof.n_nodes == 0
    assert proof.lower_bound == ht.certificates.lower_bound(f, constraint, f.evaluate(found.w)) > 0.5 * found.value


def test_after_ctrl_c_nothing_more_is_computed(monkeypatch):
    f, constraint = problem()
    w = ht.minimize(f, constraint).w
    interrupted_after(monkeypatch, 2)
    monkeypatch.setattr("hardthresh.certificates.proving.lower_bound", None)
    assert prove(f, constraint, w).n_nodes > 0


def test_the_end_by_time_is_told_in_words():
    f, constraint = problem()
    proof = prove(f, constraint, ht.minimize(f, constraint).w, time_limit=1e-9)
    assert str(proof).endswith("; the time limit was reached. This proof can be resumed.")


def test_a_stored_proof_goes_on(monkeypatch, tmp_path):
    f, constraint = problem()
    w = ht.minimize(f, constraint).w
    with monkeypatch.context() as patched:
        interrupted_after(patched, 3)
        part = prove(f, constraint, w)
    ht.save(part, tmp_path / "proof.json")
    again = ht.load(tmp_path / "proof.json")
    assert isinstance(again, Proof)
    assert str(again) == str(part)
    one, other = (prove(f, constraint, w, resume=proof, time_limit=None) for proof in (part, again))
    assert one.n_nodes == other.n_nodes
    assert one.lower_bound == other.lower_bound


def test_bounds_only_come_nearer():
    f, constraint = problem(1)
    proof = prove(f, constraint, ht.minimize(f, constraint).w)
    history = proof.history
    assert list(history) == ["seconds", "n_nodes", "lower_bound", "upper_bound"]
    assert len({column.size for column in history.values()}) == 1
    assert (np.diff(history["lower_bound"]) >= 0).all()
    assert (np.diff(history["upper_bound"]) <= 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert (history["lower_bound"] <= history["upper_bound"] * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("logistic", "searches are for least squares"),
        ("groups", "searches choose single columns for one output: no groups, categorical features or several outputs"),
        ("positive", "searches take no bounds on coefficients"),
    ],
)
def test_of_other_problems_the_root_is_bounded_and_it_says_so(case, why):
    f, constraint = problem(alpha=0.1)
    if case == "logistic":
        f = LinearModel(f.design, (f.y > 0).astype(float), loss="logistic", l2=0.1)
    if case == "groups":
        constraint = GroupSparsity(np.repeat(np.arange(15), 2).tolist(), 2)
    if case == "positive":
        constraint = Sparsity(5, lower=0.0)
    proof = prove(f, constraint, ht.minimize(f, constraint).w)
    assert 0.0 < proof.lower_bound < proof.value == proof.upper_bound
    assert proof.n_nodes == 1
    assert proof.reason == f"Only the bound of all sets together was computed: {why}"
    assert str(proof).endswith(f"{why}.")
    with pytest.raises(InvalidInputError, match="no search to go on with"):
        prove(f, constraint, f.zeros(), resume=proof)


def test_where_there_is_no_bound_it_says_what_it_would_take():
    f, constraint = problem(n=20, alpha=0.0)
    f = LinearModel(f.design, (f.y > 0).astype(float), loss="logistic")
    proof = prove(f, constraint, f.zeros())
    assert (proof.lower_bound, proof.gap, proof.status, proof.n_nodes) == (None, None, "no bound", 0)
    assert "a bound needs a convex loss without a kink, and a ridge (alpha > 0)" in str(proof)
    assert all(column.size == 0 for column in proof.history.values())
    assert plot_gap(proof).texts[0].get_text() == "there is no lower bound to be drawn"


def test_a_weak_bound_says_nothing_against_the_model(monkeypatch):
    f, constraint = problem(n=15, d=30, alpha=1e-4)
    interrupted_after(monkeypatch, 1)
    proof = prove(f, constraint, ht.minimize(f, constraint).w)
    assert proof.status == "nothing proved"
    assert "That is a weakness of the bound, and says nothing against the model." in str(proof)


def test_it_is_written_as_json():
    f, constraint = problem()
    proof = prove(f, constraint, np.zeros(30))
    written = json.loads(json.dumps(proof.to_dict()))
    assert written["status"] == "proved to 1e-9 relative"
    assert written["lower_bound"] == proof.lower_bound
    assert written["better_features"] == list(proof.features)
    assert len(written["history"]["seconds"]) == proof.history["seconds"].size
    assert repr(proof) == str(proof)


def test_the_plot_has_both_bounds(monkeypatch):
    f, constraint = problem()
    with monkeypatch.context() as patched:
        interrupted_after(patched, 5)
        proof = prove(f, constraint, ht.minimize(f, constraint).w)
    upper, lower = plot_gap(proof).lines
    assert lower.get_ydata()[0] > f.lower_bound == 0.0  # what is known before the search would set the scale
    assert upper.get_ydata()[-1] == proof.upper_bound
    assert lower.get_ydata()[-1] == proof.lower_bound
    assert lower.get_xdata()[-1] >= proof.seconds
    assert (lower.get_ydata() <= upper.get_ydata()).all()
    assert lower.axes.get_title(loc="left") == proof.status


def test_the_plot_of_one_bound_has_level_lines():
    f, constraint = problem()
    f = LinearModel(f.design, (f.y > 0).astype(float), loss="logistic", l2=0.1)
    proof = prove(f, constraint, ht.minimize(f, constraint).w)
    assert proof.history["seconds"].size == 1
    upper, lower = plot_gap(proof).lines
    for line, bound in ((upper, proof.upper_bound), (lower, proof.lower_bound)):
        np.testing.assert_array_equal(line.get_xdata(), [0.0, proof.seconds])
        np.testing.assert_array_equal(line.get_ydata(), [bound, bound])


def test_the_plot_of_a_quick_proof_has_ticks_that_can_be_read():
    f, constraint = problem()
    proof = prove(f, constraint, ht.minimize(f, constraint).w)
    assert proof.proved
    ax = plot_gap(proof).axes
    ax.figure.draw_without_rendering()
    assert ax.yaxis.get_offset_text().get_text() == ""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert len({*labels}) == len(labels)
    assert np.ptp(ax.get_ylim()) >= 1e-3 * proof.upper_bound * (1 - 1e-9)


def test_the_plot_of_another_thing_is_refused():
    with pytest.raises(InvalidInputError, match=r"chart shows the Proof that model.prove\(\) returns; got dict"):
        plot_gap({})


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan, "long"])
def test_a_time_limit_is_positive(limit):
    f, constraint = problem()
    with pytest.raises(InvalidInputError, match="time_limit"):
        prove(f, constraint, f.zeros(), time_limit=limit)


def test_only_a_proof_of_the_same_problem_goes_on(monkeypatch):
    f, constraint = problem()
    with monkeypatch.context() as patched:
        interrupted_after(patched, 2)
        part = prove(f, constraint, ht.minimize(f, constraint).w)
    other, _ = problem(2)
    with pytest.raises(InvalidInputError, match="this proof is about other data, weights or offsets, or another ridge"):
        prove(other, constraint, ht.minimize(other, constraint).w, resume=part)
    with pytest.raises(InvalidInputError, match="resume must be the Proof of an earlier call"):
        prove(f, constraint, f.zeros(), resume=part.state)


@pytest.fixture(scope="module")
def whole():
    """A problem and its proof."""
    f, constraint = problem(n=40, d=12, k=3, alpha=0.1)
    return f, prove(f, constraint, ht.minimize(f, constraint).w)


def matrix(f):
    return np.column_stack([f.predict(unit) for unit in np.eye(f.shape[0])])


def other_problems(f):
    """Problems that the point of the proof says nothing about, as f is the same there, or nearly."""
    X, y = matrix(f), np.asarray(f.y)
    chosen = np.flatnonzero(ht.minimize(f, Sparsity(3)).w)
    unused = np.setdiff1d(np.arange(12), chosen)[0]
    changed = X.copy()
    changed[:, unused] = y
    entry = X.copy()
    entry[5, unused] += 1e-4
    return {
        "a column that is not chosen": (LinearModel(changed, y, l2=0.1), Sparsity(3), "other data"),
        "one entry of it": (LinearModel(entry, y, l2=0.1), Sparsity(3), "other data"),
        "its ridge": (LinearModel(X, y, l2=np.where(np.arange(12) == unused, 0.0, 0.1)), Sparsity(3), "another ridge"),
        "y, by 1e-9": (LinearModel(X, y * (1 + 1e-9), l2=0.1), Sparsity(3), "other data"),
        "larger k": (f, Sparsity(4), "of k = 3, not of k = 4"),
        "smaller k": (f, Sparsity(2), "of k = 3, not of k = 2"),
        "a free column": (f, Sparsity(3, free=(int(chosen[0]),)), "a choice among 12 features, not 11"),
    }


@pytest.mark.parametrize("changed", list(other_problems(problem(n=40, d=12, k=3, alpha=0.1)[0])))
def test_a_proof_of_another_problem_is_refused(whole, changed):
    f, proof = whole
    other, constraint, why = other_problems(f)[changed]
    with pytest.raises(InvalidInputError, match=f"resume: this proof is .*{why}.*; leave resume out to begin anew"):
        prove(other, constraint, ht.minimize(f, Sparsity(2)).w, resume=proof)


def test_other_free_columns_are_another_problem():
    f, _ = problem(n=40, d=12, k=3, alpha=0.1)
    proof = prove(f, Sparsity(3, free=(0,)), f.zeros())
    with pytest.raises(InvalidInputError, match="other features that are always included"):
        prove(f, Sparsity(3, free=(1,)), f.zeros(), resume=proof)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_problem_may_have_its_rows_in_another_order(dtype):
    f, constraint = problem()
    X, y, order = (
        matrix(f).astype(dtype),
        np.asarray(f.y, dtype=dtype),
        np.random.default_rng(5).permutation(60),
    )
    f, same = LinearModel(X, y, l2=0.02), LinearModel(X[order], y[order], l2=0.02)
    w = ht.minimize(f, constraint).w
    assert prove(same, constraint, w, resume=prove(f, constraint, w, time_limit=1e-9)).proved


def test_a_stored_proof_without_a_fingerprint_does_not_go_on(whole, tmp_path):
    """Version 1 of its file."""
    f, proof = whole
    ht.save(proof, tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    del document["object"]["fields"]["problem"]
    document["object"]["version"] = 1
    (tmp_path / "proof.json").write_text(json.dumps(document))
    old = ht.load(tmp_path / "proof.json")
    assert str(old) == str(proof)
    with pytest.raises(InvalidInputError, match="does not tell which problem it is about; leave resume out"):
        prove(f, Sparsity(3), f.zeros(), resume=old)


def test_a_progress_line_tells_the_gap(monkeypatch):
    told = []

    class Line:
        def __enter__(self):
            return told.append

        def __exit__(self, *error):
            return False

    monkeypatch.setattr("hardthresh.certificates.proving.progress_line", lambda enabled, title, total: Line())
    f, constraint = problem()
    prove(f, constraint, f.zeros(), progress=True)
    assert told
    assert "gap" in told[0]


def test_other_coefficients_of_the_same_set_are_no_better_set():
    f, constraint = problem()
    w = ht.minimize(f, constraint, BranchAndBound()).w
    proof = prove(f, constraint, 0.5 * w)
    assert proof.found_better
    assert proof.same_features
    assert "A better set" not in str(proof)
    assert "the same set, with other coefficients" in str(proof)
    assert proof.to_dict()["same_features"] is True


def test_no_time_limit_is_named():
    f, constraint = problem()
    with pytest.raises(InvalidInputError, match="None is for no limit"):
        prove(f, constraint, f.zeros(), time_limit=np.inf)


@pytest.mark.parametrize("gap", [1e-7, 1e-9])
def test_features_whose_rounding_keeps_a_search_from_a_proof_are_named(gap):
    """A near copy and its column lower the objective together, to a value that is partly rounding."""
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((30, 6)), rng.standard_normal(30)
    X[:, 3] = X[:, 0] + gap * z
    f = LinearModel(X, X[:, 0] + z + 0.1 * rng.standard_normal(30))
    proof = prove(f, Sparsity(2), ht.minimize(f, Sparsity(2)).w, name=lambda j: f"gene {j}")
    assert not proof.proved
    assert "rounding hides what some sets of nearly dependent features (gene 0, gene 3) reach" in str(proof)
