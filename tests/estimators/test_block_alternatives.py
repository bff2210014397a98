"""Other supports of models over blocks: those in memory, by readings whose number does not grow with the supports."""

import numpy as np
import pytest

import hardthresh as ht
from hardthresh.designs import Threads, from_arrays, logged_readings, scratch
from hardthresh.designs.scratch import Scratch
from levels import at_most, only_at, turn

N, D = 1500, 300
KINDS = {
    "squared": (ht.SparseLinearRegression, lambda u, rng: 0.1 * u + rng.standard_normal(N)),
    "logistic": (ht.SparseLogisticRegression, lambda u, rng: (0.3 * u + rng.logistic(size=N) > 0).astype(int)),
    "poisson": (ht.SparsePoissonRegression, lambda u, rng: rng.poisson(np.exp(0.1 * u)).astype(float)),
}


def data(kind, d=D):
    """A table with many supports that fit nearly as well: neighbours have a correlation of .9, and effects are weak."""
    estimator, targets = KINDS[kind]
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, d))
    X[:, 1:] = 0.9 * X[:, :-1] + 0.44 * X[:, 1:]
    return estimator(n_nonzero_coefs=3), X, targets(X[:, [50, 100, 150]] @ [1.0, -1.0, 1.0], rng)


def sets(found):
    return [each.numbers for each in found.supports]


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("kind", ["squared", *turn([kind for kind in KINDS if kind != "squared"], "supports")])
def test_readings_do_not_grow_with_the_number_of_supports(kind):
    """The columns of each level are kept by one reading, and its gradients and Hessians are another one."""
    model, X, y = data(kind)
    plain = model.fit(X, y).alternatives(most=100)
    model.fit(from_arrays(X, y, rows=300))
    with logged_readings() as log:
        found = model.alternatives(most=100)
    assert sets(found) == sets(plain)
    assert len(found.supports) == 100
    assert found.examined == plain.examined >= 100
    np.testing.assert_allclose([each.value for each in found.supports], [each.value for each in plain.supports])
    assert log.readings <= 6  # two for each exchange of one of the three columns


@only_at("pairs")
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_they_have_the_same_bits_on_each_engine(kind):
    model, X, y = data(kind)
    table = from_arrays(X, y, rows=300)
    first = model.fit(table).alternatives(most=30)
    assert model.fit(Threads(table, 3)).alternatives(most=30).supports == first.supports


@pytest.mark.slow
def test_kept_columns_are_there_for_questions_and_gone_with_the_model(monkeypatch):
    """Those of a fit that are not large, and those that were asked for: else each question would read the table."""
    made = []
    monkeypatch.setattr(scratch, "MOST_IN_MEMORY", 0)
    monkeypatch.setattr(scratch, "Scratch", lambda: made.append(Scratch()) or made[-1])
    model, X, y = data("poisson", d=200)
    model.fit(from_arrays(X, y, rows=300))
    with logged_readings() as log:
        model.inference()
    assert log.readings == 0
    open_files = [each.remove for each in made]
    assert sum(each.alive for each in open_files) == 1  # the columns before it was known that more are needed are gone
    made.clear()
    del model
    assert not any(each.alive for each in open_files)


@pytest.mark.slow
def test_of_known_products_nothing_is_read():
    model, X, y = data("squared", d=200)
    plain = model.fit(X, y).alternatives()
    model.fit(from_arrays(X, y, rows=300))
    with logged_readings() as log:
        assert sets(model.alternatives()) == sets(plain)
    assert log.readings == 0
