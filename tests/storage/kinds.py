"""One object of every kind that can be stored, and the numbers that it must give again once it is loaded.

The folder ``stored`` holds a file of each, written by ``python tests/storage/kinds.py FOLDER`` before files of the
package were moved, in format version 2; those of kinds that are newer, by the version that brought them. They stay as
they are: whatever is moved or renamed must still read them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import model_selection

import hardthresh as ht
from hardthresh import baselines, certificates, constraints, core, limited, losses, objectives, solvers, steps
from hardthresh.arrays import FactoredMatrix, to_numpy
from hardthresh.limited.sources.values import Answer
from hardthresh.solvers.accelerated import SmallMove
from hardthresh.solvers.stochastic.probabilistic import NothingLeft

RNG = np.random.default_rng(20261122)
N, D = 25, 12
LABELS = (2, 0, 1, 1, 0, 3, 3, 2, 0, 1, 4, 2)
CHAIN = ((0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (8, 9, 10), (10, 11, 0))


def rounded(values: Any) -> np.ndarray:
    """Numbers of three digits, so that no library or machine has other data."""
    return np.round(np.asarray(values), 3)


X = rounded(RNG.standard_normal((N, D)))
X[:, 5] = rounded(X[:, 3] + 0.3 * RNG.standard_normal(N))
NUMBERS = rounded(2 * X[:, 3] - X[:, 7] + 0.5 * X[:, 9] + 0.3 * RNG.standard_normal(N))
CLASSES = (NUMBERS + RNG.standard_normal(N) > 0).astype(float)
COUNTS = np.floor(np.exp(0.4 * NUMBERS))
AMOUNTS = rounded(np.exp(0.4 * NUMBERS))
ROWS = rounded(X[:, :2] @ RNG.standard_normal((2, 4)) + 0.1 * RNG.standard_normal((N, 4)))
TABLE = rounded(X[:, :1] @ RNG.standard_normal((1, 5)) + 0.1 * X[:, :5])
GAPPY = np.where(RNG.random(TABLE.shape) < 0.2, np.nan, TABLE)
MAPS = rounded(RNG.standard_normal((N, 4, 3)))
FOUR = rounded(X[:, :4] + 0.6 * X[:, [1, 2, 3, 0]])


class Kind(NamedTuple):
    """How to make a thing to store, and how to use it: numbers that a loaded one must give again.

    Without a use a loaded one must equal a new one, bit for bit.
    """

    make: Callable[[], Any]
    use: Callable[[Any], Any] | None = None


def estimator(name: str, settings: dict[str, Any], *data: Any, method: str = "predict") -> Kind:
    """A fitted estimator, and what one of its methods gives for a few rows."""

    def make() -> Any:
        model = getattr(ht, name)(**settings).fit(*data)
        if hasattr(model, "certificate"):
            model.certificate()
        return model

    return Kind(make, lambda model: getattr(model, method)(data[0][:5]))


def run(objective: Callable[[], Any], constraint: Any, solver: Any, iterations: int = 2) -> Kind:
    """The result of a run that was stopped early, and where the run ends that goes on from its state."""

    def go(most: int, **settings: Any) -> Any:
        return ht.minimize(objective(), constraint, solver, max_iter=most, tol=0.0, **settings)

    def use(result: Any) -> list[float]:
        whole = go(iterations + 6, state=result.state)
        return [*to_dense(result.w), result.value, result.passes, *to_dense(whole.w), whole.value, whole.n_iter]

    return Kind(lambda: go(iterations, seed=3), use)


def learner(algorithm: Any, cost_model: Any, y: Any = NUMBERS, told: int = 17) -> Kind:
    """A learner that was told some answers, and what it ends with when it is told the rest."""

    def tell(learner: Any, until: int) -> Any:
        while not learner.done and learner.ask()[0] < until:
            example, indices = learner.ask()
            learner.tell(example, X[example % N, indices], y[example % N])
        return learner

    def use(learner: Any) -> list[float]:
        end = tell(learner, 5 * N).final_state()
        return [*end.w, end.intercept, learner.meter.attributes, learner.meter.money, *learner.curve.errors]

    def make() -> Any:
        w0 = np.eye(D)[3] if isinstance(algorithm, limited.Exploitation) else None
        return tell(limited.Learner.of(algorithm, cost_model, w0, 5 * N), told)

    return Kind(make, use)


def conversation() -> Any:
    """A learner of an estimator, in the middle of the first examples."""
    learner = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=5).start(D, [f"g{j}" for j in range(D)])
    for _ in range(3):
        example, indices = learner.ask()
        learner.tell(example, X[example, indices], NUMBERS[example])
    learner.skip(learner.ask()[0], paid=True)
    return learner


def go_on(learner: Any) -> list[float]:
    """What a conversation asks next, and the model that its answers make."""
    for _ in range(600):
        example, indices = learner.ask()
        learner.tell(example, X[example % N, indices], NUMBERS[example % N])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few answers
        return [example, *indices, learner.meter.attributes, *learner.model().coef_]


def perturbation() -> Any:
    """A universal perturbation of a linear classifier of four pixels."""
    import torch

    from hardthresh.attacks import universal_perturbation

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 2)).double()
    with torch.no_grad():
        net[1].weight[:] = torch.tensor([[1.0, -2.0, 0.5, 0.1], [-1.0, 1.0, 0.2, 0.4]])
        net[1].bias[:] = 0.0
    images = rounded(0.5 + 0.2 * FOUR[:6]).clip(0, 1).reshape(6, 1, 2, 2)
    return universal_perturbation(net, images, k=1, max_iter=20)


def to_dense(w: Any) -> list[float]:
    """The entries of a point, however it is kept."""
    return np.asarray(w.to_dense() if isinstance(w, FactoredMatrix) else to_numpy(w)).ravel().tolist()


def linear(loss: str = "squared", **settings: Any) -> Callable[[], Any]:
    """A linear model of one of the targets."""
    y = {"squared": NUMBERS, "logistic": CLASSES, "poisson": COUNTS}[loss]
    return lambda: objectives.LinearModel(X, y, loss=loss, **settings)


def matrices() -> Any:
    return objectives.MatrixRegression(MAPS, NUMBERS)


def completion(storage: str) -> Callable[[], Any]:
    table = GAPPY[:9]
    rows, cols = np.nonzero(np.isfinite(table))
    return lambda: objectives.MatrixCompletion(rows, cols, table[rows, cols], shape=table.shape, storage=storage)


def partitions(splitters: list[Any]) -> list[float]:
    """The rows that splitters hold out."""
    groups = np.repeat(range(5), 2)
    splits = [splitter.split(np.zeros(10), np.tile([0, 1], 5), groups) for splitter in splitters]
    return [row for split in splits for _, held_out in split for row in (len(held_out), *held_out)]


PLAIN = limited.CostModel.of(D, 5)
PRICED = limited.CostModel.of(D, costs={"a": 2.0, "b": 1.0, "c": 0.7}, panels=list("abc" * 4), budget=3.0)
SIX = constraints.Sparsity(6)
THREE = constraints.Sparsity(3, free=(7,))
BOX = constraints.Sparsity(3, lower=0.0, upper=np.ones(D))

ESTIMATORS = {
    "linear_regression": estimator(
        "SparseLinearRegression", {"n_nonzero_coefs": 3, "alpha": 0.1, "always_include": [2]}, X, NUMBERS
    ),
    "linear_regression_cv": estimator(
        "SparseLinearRegressionCV", {"n_nonzero_coefs": range(1, 4), "cv": model_selection.KFold(3)}, X, NUMBERS
    ),
    "linear_regression_groups": estimator(
        "SparseLinearRegression", {"n_nonzero_groups": 2, "groups": list(LABELS), "solver": solvers.IHT()}, X, NUMBERS
    ),
    "logistic_regression": estimator(
        "SparseLogisticRegression",
        {
            "n_nonzero_coefs": 2,
            "random_state": np.random.RandomState(3),
            "solver": solvers.StochasticIHT(0.1),
            "max_iter": 8,
        },
        X,
        np.where(CLASSES > 0, "yes", "no"),
        method="predict_proba",
    ),
    "logistic_regression_cv": estimator(
        "SparseLogisticRegressionCV",
        {"n_nonzero_coefs": [1, 3], "cv": 3, "scoring": "accuracy"},
        X,
        CLASSES,
        method="decision_function",
    ),
    "poisson_regression": estimator("SparsePoissonRegression", {"n_nonzero_coefs": 2}, X, COUNTS),
    "gamma_regression_cv": estimator("SparseGammaRegressionCV", {"n_nonzero_coefs": [1, 2], "cv": 3}, X, AMOUNTS),
    "low_rank_regression": estimator("LowRankRegression", {"rank": 2, "solver": solvers.IHT(), "max_iter": 8}, X, ROWS),
    "logistic_regression_cv_average": estimator(
        "SparseLogisticRegressionCV", {"n_nonzero_coefs": range(3, 5), "cv": 3}, X, CLASSES, method="decision_function"
    ),
    "low_rank_regression_cv": estimator("LowRankRegressionCV", {"rank": [1, 2], "cv": 3}, X, ROWS),
    "low_rank_imputer": estimator("LowRankImputer", {"rank": 1}, GAPPY, method="transform"),
    "low_rank_imputer_cv": estimator("LowRankImputerCV", {"cv": 3, "random_state": 0}, GAPPY, method="transform"),
    "graphical_model": estimator("SparseGaussianGraphicalModel", {"n_edges": 3}, FOUR, method="mahalanobis"),
    "graphical_model_cv": estimator("SparseGaussianGraphicalModelCV", {"cv": 3}, FOUR, method="mahalanobis"),
    "low_rank_imputer_twin": estimator("LowRankImputerCV", {"rank": 2, "cv": 3}, GAPPY, method="transform"),
    "graphical_model_twin": estimator("SparseGaussianGraphicalModelCV", {"cv": 3}, FOUR, method="mahalanobis"),
    "limited_regression": estimator(
        "LimitedAttributeRegression", {"n_nonzero_coefs": 2, "n_observed": 5}, np.tile(X, (3, 1)), np.tile(NUMBERS, 3)
    ),
    "limited_classifier": estimator(
        "LimitedAttributeLogisticRegression",
        {"n_nonzero_coefs": 2, "n_observed": 5},
        np.tile(X, (3, 1)),
        np.tile(CLASSES, 3),
        method="predict_proba",
    ),
    "conversation": Kind(conversation, go_on),
}

RUNS = {
    "working_set": run(linear(), SIX, solvers.WorkingSet("thorough"), 1),
    "working_set_logistic": run(linear("logistic", l2=0.01), THREE, solvers.WorkingSet(), 1),
    "pursuit": run(linear("poisson"), THREE, solvers.HardThresholdingPursuit(), 1),
    "pursuit_bounds": run(linear(), BOX, solvers.HardThresholdingPursuit(exchanges=10), 1),
    "pursuit_groups": run(linear(), constraints.GroupSparsity(LABELS, 2), solvers.HardThresholdingPursuit(), 1),
    "iht": run(linear(), THREE, solvers.IHT()),
    "iht_fixed": run(linear("logistic"), THREE, solvers.IHT(step=steps.Fixed(0.5))),
    "iht_polyak": run(linear(), constraints.DoubleSparsity(LABELS, 2, 2), solvers.IHT(step=steps.Polyak(0.01))),
    "iht_sparse_polyak": run(linear(), SIX, solvers.IHT(step=steps.SparsePolyak(0.01, scale=2.0))),
    "iht_adaptive": run(linear(), SIX, solvers.IHT(step=steps.AdaptiveSparsePolyak(epoch_length=2)), 4),
    "iht_exact": run(linear(), constraints.OverlappingGroupSparsity(CHAIN, 2), solvers.IHT(steps.ExactLineSearch())),
    "iht_backtracking": run(linear("poisson"), SIX, solvers.IHT(step=steps.Backtracking())),
    "iht_barzilai_borwein": run(linear("logistic"), SIX, solvers.IHT(step=steps.BarzilaiBorwein(window=3)), 3),
    "accelerated": run(linear(), SIX, solvers.AcceleratedIHT(), 3),
    "accelerated_nesterov": run(linear("logistic"), SIX, solvers.AcceleratedIHT(momentum=solvers.NesterovMomentum())),
    "accelerated_paper": run(matrices, constraints.Rank(1), solvers.AcceleratedIHT("paper", solvers.ExactMomentum())),
    "conjugate": run(completion("factored"), constraints.Rank(1, method="subspace"), solvers.ConjugateIHT()),
    "conjugate_dense": run(completion("dense"), constraints.Rank(1), solvers.ConjugateIHT()),
    "probabilistic": run(linear("logistic"), THREE, solvers.ProbabilisticIHT(), 3),
    "probabilistic_paper": run(
        linear(),
        SIX,
        solvers.ProbabilisticIHT("paper", alpha=1.0, batch=solvers.PowerBatch(10), vote=solvers.CoordinateVote(0.5)),
        3,
    ),
    "probabilistic_vote": run(
        linear(), SIX, solvers.ProbabilisticIHT(batch=solvers.ExponentialBatch(5), vote=solvers.SetVote(0.6)), 3
    ),
    "stochastic": run(linear(), SIX, solvers.StochasticIHT(0.1, batch=solvers.FixedBatch(10)), 3),
    "edges": run(lambda: objectives.GraphicalModel(FOUR), constraints.EdgeSparsity(8), solvers.IHT()),
    "rows": run(lambda: objectives.MultiOutputModel(X, ROWS), constraints.Rank(2), solvers.IHT()),
    "frank_wolfe": run(linear(), baselines.L1Ball(2.0), baselines.FrankWolfe("pairwise", corrective=True)),
    "frank_wolfe_groups": run(linear(), baselines.GroupBall(LABELS, 2.0), baselines.FrankWolfe("away")),
    "frank_wolfe_nuclear": run(matrices, baselines.NuclearBall(0.5), baselines.FrankWolfe("away")),
    "greedy": run(linear(), SIX, baselines.ForwardGreedy()),
    "greedy_foba": run(linear("logistic", l2=0.1), SIX, baselines.AdaptiveForwardBackward()),
    "greedy_oblivious": run(linear(), SIX, baselines.Oblivious(), 1),
    "bfgd": run(matrices, constraints.Rank(1), baselines.BFGD()),
}

LEARNERS = {
    "exploration": learner(limited.Exploration(0.1, limited.algorithms.Geometric(15, 1.2), 3), PLAIN),
    "exploitation": learner(limited.Exploitation(0.1, 25), PLAIN),
    "hybrid": learner(limited.Hybrid(0.1, 8, 10, 1, 2, n_nonzero_coefs=3), PLAIN, told=21),
    "adaptive": learner(limited.AdaptiveHybrid(3), PRICED, told=60),
    "logistic_adaptive": learner(limited.LogisticHybrid(3), PLAIN, CLASSES, told=60),
    "dual_averaging": learner(limited.RegularizedDualAveraging(3, gamma=200.0), PLAIN),
    "dantzig": learner(limited.DantzigSelector(3), PLAIN),
    "learning_result": Kind(
        lambda: limited.learn(limited.AdaptiveHybrid(3), limited.ArraySource(X, NUMBERS, 5, shuffle=False)),
        lambda result: [*result.w, result.intercept, result.meter.attributes, *result.learning_curve["squared_error"]],
    ),
    "answer": Kind(lambda: [Answer(3, [1, 2], [0.5, -1.0], 2.0, False, 2.0), Answer("p7", [4], None, None, True, 1.0)]),
    "market": Kind(lambda: [PLAIN, PRICED, limited.Meter(3, 2, 2, 4.0), limited.Example(3, 0.5)]),
}

OTHERS = {
    "certificates": Kind(
        lambda: [
            core.Certificate(0.0, 1.0, 2.0, 0.5),
            certificates.SwapCertificate(False, 3, 7, 0.25, 99, True, (1, 2), 1e-9, 0.5),
            ht.SparseLinearRegression(n_nonzero_coefs=3).fit(X, NUMBERS).certificate(),
        ],
        lambda stored: [stored[0].smallest_L, *stored[1].undecided, stored[2].stationarity.smallest_L, stored[2].value],
    ),
    "perturbation": Kind(perturbation, lambda attack: [*to_dense(attack.delta), attack.accuracy_after]),
    "stopping": Kind(
        lambda: (
            (core.MaxIter(9) | core.Passes(3.5) | core.Seconds(2.0) | core.Settled() | core.Unbounded())
            & (core.RelativeDecrease(1e-6) | core.SupportStable(3) | core.Stationarity(1e-3) | core.LowerBound(0.1))
            & (SmallMove(1e-3) | NothingLeft(0.1) | baselines.DualityGap(1e-3))
        )
    ),
    "settings": Kind(
        lambda: {
            "losses": [losses.Squared(), losses.Logistic(), losses.Poisson()],
            "batches": [solvers.FullBatch(), solvers.NormTest(), solvers.Replay([np.arange(3)], [None])],
            "momentum": solvers.ConstantMomentum(0.4),
            "solvers": [
                solvers.WorkingSet("fast"),
                solvers.HardThresholdingPursuit(exchanges=4),
                solvers.AcceleratedIHT("paper", solvers.ExactMomentum()),
                solvers.AcceleratedIHT(momentum=solvers.NesterovMomentum()),
                solvers.ConjugateIHT(),
                solvers.ProbabilisticIHT(
                    "paper", alpha=1.0, batch=solvers.PowerBatch(10), vote=solvers.CoordinateVote(0.5)
                ),
                solvers.ProbabilisticIHT(batch=solvers.ExponentialBatch(5), vote=solvers.SetVote(0.6)),
                baselines.FrankWolfe("pairwise", corrective=True),
                baselines.ForwardGreedy("decrease"),
                baselines.AdaptiveForwardBackward(),
                baselines.Oblivious(),
                baselines.BFGD(0.5),
            ],
            "steps": [
                steps.Fixed(0.1),
                steps.Polyak(0.5),
                steps.SparsePolyak(relax=2),
                steps.AdaptiveSparsePolyak(epoch_length=3),
                steps.ExactLineSearch(),
                steps.Backtracking(first=0.5),
                steps.BarzilaiBorwein(kind="short"),
            ],
            "constraint": constraints.GroupSparsity([*"abcdefghijkl"], 2, free=(3,), weights="size"),
            "status": list(core.Status),
            "evaluation": core.Evaluation(np.ones(3), 1.0, np.zeros(3)),
            "projection": core.Projection(np.ones(3), constraints.Coordinates(np.arange(3))),
            "bases": constraints.Bases(np.ones((3, 1)), np.ones((2, 1)), np.ones(1)),
        }
    ),
    "splitters": Kind(
        lambda: [
            model_selection.GroupKFold(3),
            model_selection.GroupShuffleSplit(2, random_state=0),
            model_selection.KFold(3, shuffle=True, random_state=np.random.RandomState(5)),
            model_selection.LeaveOneGroupOut(),
            model_selection.LeaveOneOut(),
            model_selection.LeavePOut(9),
            model_selection.PredefinedSplit([0, 0, 1, 1, -1]),
            model_selection.ShuffleSplit(2, random_state=1),
            model_selection.StratifiedGroupKFold(2),
            model_selection.StratifiedKFold(2),
            model_selection.StratifiedShuffleSplit(2, test_size=4, random_state=1),
            model_selection.TimeSeriesSplit(3),
        ],
        partitions,
    ),
    "random_state": Kind(lambda: np.random.RandomState(7), lambda state: state.standard_normal(5)),
}

KINDS = ESTIMATORS | RUNS | LEARNERS | OTHERS


def write(folder: Path) -> None:
    """Write a file of each kind, with the numbers that it gives in its notes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, use) in KINDS.items():
        path = folder / f"{name}.json"
        ht.save(make(), path)
        if use is not None:
            ht.save(ht.load(path), path, notes={"gives": np.asarray(use(ht.load(path)), dtype=float).ravel().tolist()})


if __name__ == "__main__":
    write(Path(sys.argv[1]))
