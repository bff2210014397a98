"""The quality of a fitted linear model: certificate, proof, alternatives and summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hardthresh.arrays import double, to_numpy
from hardthresh.certificates import Alternatives, ModelCertificate, Proof, relative_gap
from hardthresh.core.checking import without_overflow_warnings
from hardthresh.core.errors import HardThreshError, InvalidInputError, warn
from hardthresh.core.objective import Evaluation
from hardthresh.core.result import Result
from hardthresh.core.state import Trace
from hardthresh.core.stationarity import leading_norm
from hardthresh.core.support import Support
from hardthresh.solvers.branch_and_bound.solver import BranchAndBoundState
from hardthresh.solvers.start import starting_point

from ..blocked import is_blocks
from ..choice_facts import unit_of
from ..facts import read
from ..table import Table
from .certificate import alternatives_to, certify_problem, prove_problem
from .choosing import ChoosingModel
from .fingerprint import Fingerprint
from .problem import Problem, features_of, point_of
from .rows import Rows
from .summarize import share_removed, summarize
from .summary import Summary


class AssessedModel(ChoosingModel):
    """Base of the models that can be asked how good they are. See the concrete classes."""

    _training: tuple[Problem, Result, Fingerprint] | None = None
    _certificate: ModelCertificate | None = None
    _summary: Summary | None = None
    _held_out_rows: Rows | None = None

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> ModelCertificate:
        """Check the quality of the fit: first-order optimality conditions, and exchanges of features.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as in `fit`. Default: the training data, for which the certificate is computed only once. With other
            data, the certificate says how well the fitted coefficients, without a refit, solve the problem of these
            data with the parameters of the model. Pass the training data to a model that was loaded from a file. The
            model is not changed.

        Returns
        -------
        ModelCertificate
            ``print`` it to read it.

        Raises
        ------
        HardThreshError
            Without data: if the model was loaded, unpickled or copied before its certificate was computed, because such
            a model does not contain the training data; or if the training data were changed in place since the fit.
        ValueError
            For data that `fit` would not accept, columns other than those of the training data, or unknown classes.

        Notes
        -----
        Cost: about k + 25 to k + 50 data passes, and with `groups` the Hessian of each group. A fitted model keeps its
        training data in memory for this method; files, copies and pickles of the model do not contain them. Guarantee:
        for the squared loss without `positive` or `bounds`, the statement about exchanges is a proof. Otherwise it is
        heuristic: the exchanges are ranked by a quadratic model, and only the most promising are refitted.
        """
        if self._is_about(X, y, sample_weight, offset):
            return self._certify(*self._problem_of(X, y, sample_weight, offset))
        if self._certificate is None:
            problem, result = self._untouched_training()
            found = self._certify(problem, result.w, result.support, result.state.trace)
            self._certificate = found.with_bound(_proved(result), problem.objective.lower_bound)
        return self._certificate

    def summary(self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Summary:
        """Return how well the model fits, and how much each chosen feature contributes.

        For each feature: its coefficient, also per standard deviation; the increase of the objective when the feature
        is removed and the others are refitted; its best substitute, and the increase of the objective with it; after
        cross-validation, the share of the folds that choose it; and a standard error. The standard errors assume that
        the features were chosen in advance. They were chosen on the same rows, so **the standard errors are too small,
        and not valid for confidence intervals**. They use the observed second derivatives of the objective, whereas GLM
        of statsmodels uses expected ones; the two differ for models with a log link other than Poisson models. The
        shape of negative binomial counts is treated as known.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as for `certificate`. Default: the training data, for which the summary is computed only once.

        Returns
        -------
        Summary
            ``print`` it to read it; `to_frame` and `to_dict` return its numbers.

        Raises
        ------
        HardThreshError, ValueError
            As for `certificate`.

        Notes
        -----
        Cost: about k + 1 data passes, and two refits for each feature, with O(n k^2) operations per Newton step.

        For an average of models, the coefficients are those of the average. The increases of the objective, the
        substitutes and the standard errors are those of the best single model, because an average is not the minimiser
        of an objective.
        """
        if self._is_about(X, y, sample_weight, offset):
            return self._summarize(*self._problem_of(X, y, sample_weight, offset)[:2])
        if self._summary is None:
            problem, result = self._untouched_training()
            found = self._summarize(problem, result.w)
            gap = relative_gap(found.objective, _proved(result), problem.objective.lower_bound)
            self._summary = replace(found, gap=gap) if gap < (1.0 if found.gap is None else found.gap) else found
        return self._summary

    @without_overflow_warnings
    def alternatives(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        tolerance: float = 0.02,
        most: int = 100,
        time_limit: float | None = 0.0,
    ) -> Alternatives:
        """Return other sets of k features that fit nearly as well, and the substitutes of each chosen feature.

        The search starts from the chosen features and exchanges one feature at a time, as long as the refitted
        objective rises by at most twice the tolerance. It may miss some sets (heuristic). With a `time_limit`, branch
        and bound tries to prove that there are no others.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as for `certificate`. Default: the training data.
        tolerance : float
            The largest relative increase of the objective, in (0, 1].
        most : int
            The largest number of sets to return, >= 1. The sets with the lowest objectives are returned.
        time_limit : float or None
            The seconds that the exchanges and the branch and bound may take together, >= 0; None for no limit, and 0
            for exchanges alone, whose number is limited by `most`. Branch and bound applies to the same problems as in
            `prove`, and takes longer than there, especially with a large tolerance. If it ends within the limit,
            ``complete`` of the result is True; otherwise ``reason`` says why it stopped. Ctrl-C stops the search, and
            the sets found so far are returned.

        Returns
        -------
        Alternatives
            ``print`` it to read it; `to_frame` and `to_dict` return the sets.

        Raises
        ------
        HardThreshError, ValueError
            As for `certificate`; also for losses with a kink, which have no second derivatives to rank exchanges by,
            and for overlapping groups.

        Notes
        -----
        Cost: one data pass for each set from which features are exchanged; for losses other than the squared one, one
        data pass for each feature of such a set. See `hardthresh.certificates.alternative_supports`.

        The dispersion of negative binomial counts, the smoothing of the pinball loss and the scale of Huber's loss are
        fixed at their values in the model.
        """
        found = self._asked(X, y, sample_weight, offset)
        unit = read(self).unit  # a categorical column is a feature, and its levels are a group
        return alternatives_to(
            *found, tolerance=tolerance, most=most, time_limit=time_limit, unit=unit, subject=self._subject()
        )

    @without_overflow_warnings
    def prove(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        *,
        time_limit: float | None = 60.0,
        resume: Proof | None = None,
        progress: bool | None = None,
    ) -> Proof:
        """Try to prove that no other set of k features has a lower objective.

        For least squares with one output, branch and bound returns a proof, a lower bound that rises during the search,
        or a better set. For other losses and several outputs, and with categorical columns, `groups`, `positive` or
        `bounds`, the result is a more accurate computation of the lower bound of `certificate`.

        Parameters
        ----------
        X, y, sample_weight, offset : optional
            Data, as for `certificate`. Default: the training data.
        time_limit : float or None
            The seconds that the search may take, > 0; None for no limit. Ctrl-C stops the search, and the bounds proved
            so far are returned.
        resume : Proof, optional
            The result of an earlier call, possibly read by `hardthresh.load`, from which the search continues.
        progress : bool, optional
            Whether to show a progress line. Default: the parameter `verbose` of the model.

        Returns
        -------
        Proof
            ``print`` shows it as text, and `hardthresh.report.plot_gap` draws the upper and the lower bound over time.
            The model is not changed.

        Raises
        ------
        HardThreshError, ValueError
            As for `certificate`; also for a time limit that is not positive, and if `resume` is the proof of a problem
            with other data, weights, offsets, always-included columns, k or alpha. For a table in blocks, also if
            branch and bound does not apply, and for more than 4,096 columns.

        Notes
        -----
        The time may grow exponentially with k. Proofs are fast with more rows than columns or with a large ridge, and
        often impossible in practice with fewer rows than columns and a small ridge. The gap is then large, which does
        not mean that the model is poor. See `hardthresh.solvers.BranchAndBound` for memory and cost.
        """
        problem, *asked = self._asked(X, y, sample_weight, offset)
        return prove_problem(
            problem.to_prove(),
            *asked,
            time_limit=time_limit,
            resume=resume,
            progress=bool(self.verbose if progress is None else progress),
            subject=self._subject(),
        )

    def _asked(
        self, X: Any, y: Any, sample_weight: Any, offset: Any
    ) -> tuple[Problem, Any, Support, Callable[[int], str]]:
        """Return the problem that is asked about, the point and its support, and what names a feature, or a group."""
        if self._is_about(X, y, sample_weight, offset):
            problem, w, support, _ = self._problem_of(X, y, sample_weight, offset)
        else:
            problem, result = self._untouched_training()
            w, support = result.w, result.support
        return problem, w, support, problem.group_name if problem.grouped else read(self).names.__getitem__

    def _is_about(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> bool:
        """Return whether something is asked about given data, not about those of the fit."""
        check_is_fitted(self)
        if X is not None or y is not None:
            return True
        if sample_weight is not None or offset is not None:
            raise InvalidInputError("sample_weight and offset belong to data; give X and y, too")
        return False

    @without_overflow_warnings
    def _summarize(self, problem: Problem, w: Any) -> Summary:
        return summarize(self, problem, w, self._subject())

    def _subject(self) -> str:
        """Return what certificates and summaries are about, if not the model itself."""
        return ""

    def _expected(self, u: np.ndarray, loss: Any) -> np.ndarray:
        """Return what linear predictors say about targets, for people: expected ones, or the decision of a classifier.

        Where a loss knows no expected target, these are the linear predictors.
        """
        if not hasattr(loss, "mean") or (loss.classifies and not loss.multiplies):
            return u
        with np.errstate(over="ignore"):
            return np.asarray(loss.mean(u))

    def _expected_rows(self, problem: Problem, coef: Any = None, intercept: Any = None) -> np.ndarray:
        """Return that of the rows of a problem, by the model or by other coefficients on the scale of the data."""
        if coef is None:
            coef, intercept = self._predictor()
            coef = to_numpy(coef)
            intercept = intercept if isinstance(intercept, float) else to_numpy(intercept)
        model = problem.objective
        return self._expected(double(model.predict(point_of(problem, coef, intercept, "the model"))), model.loss)

    def _shown(self, rows: Rows, table: Table) -> Rows:
        """Return rows of a table with targets as people know them, where the loss takes other numbers."""
        return rows

    def _fit_scores(self, problem: Problem, at: Evaluation) -> dict[str, float]:
        """Return how well an evaluated point of a problem fits its rows."""
        return {"r2" if problem.objective.traits.quadratic else "d2": share_removed(problem, at)}

    @without_overflow_warnings
    def _certify(self, problem: Problem, w: Any, support: Any, trace: Trace) -> ModelCertificate:
        name = problem.group_name if problem.grouped else self._feature_name
        found = certify_problem(problem, w, support, name, trace)
        return replace(found, unit=unit_of(self))  # a categorical column is a feature

    @without_overflow_warnings
    def _problem_of(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> tuple[Problem, Any, Any, Trace]:
        """Return the problem of other data, the coefficients as its point, their support, and the scales of the run."""
        if X is None or (y is None and not is_blocks(X)):
            raise InvalidInputError(
                f"certificates and summaries of given data need both X and y, got no {'X' if X is None else 'y'}"
            )
        if not hasattr(self, f"{self._k_name}_"):
            raise InvalidInputError("groups was set, or taken back, since the fit; fit the model again")
        best = getattr(self, f"best_{self._k_name}_", None)
        k = self._checked_k(getattr(self, self._k_name)) if best is None else best
        self._check_library(X, "certificate")
        table = self._encode(self._validate(X, y, sample_weight, offset, reset=False).weighted(), reset=False)
        problem = self._problem(table, k)
        objective, constraint = problem.objective, problem.constraint
        coef, intercept = self._certified()
        lost = np.flatnonzero(features_of(coef) & (to_numpy(problem.inverse_scale) == 0))
        if lost.size:
            warn(f"{self._listed(lost, 'constant')} of these data: what they add is constant")
        w = point_of(problem, coef, intercept, "the model")
        null = starting_point(objective, constraint, None)[0]
        trace = Trace(null_value=null.value, null_gradient=leading_norm(constraint, null.gradient))
        return problem, w, problem.support(w, getattr(self, "groups_", ())), trace

    def _certified(self) -> tuple[np.ndarray, Any]:
        """Return the coefficients and the intercept that a certificate is about."""
        coef, intercept = self._predictor()
        return to_numpy(coef), intercept if isinstance(intercept, float) else to_numpy(intercept)

    def _predictor(self) -> tuple[Any, Any]:
        """Return the coefficients and the intercept of linear predictors: of several, a row and a number for each."""
        if self.coef_.ndim == 1:
            return self.coef_, float(self.intercept_)
        if self.coef_.shape[0] == 1:
            return self.coef_[0, :], float(self.intercept_[0])
        return self.coef_, self.intercept_

    @without_overflow_warnings
    def _untouched_training(self) -> tuple[Problem, Result]:
        """Return the problem that was fitted and its result; raise an error if the data are gone or changed."""
        if self._training is None:
            raise HardThreshError(
                "this model does not carry its training data, because it was loaded or copied, or learned from "
                "batches; give them again, as in certificate(X, y), summary(X, y), alternatives(X, y), prove(X, y) or "
                "inference(X, y), or ask the model that was fitted"
            )
        problem, result, before = self._training
        if not before.agrees(problem.fingerprint()):
            raise HardThreshError("the training data were changed in place since the fit; fit the model again")
        return problem, result


def _proved(result: Result) -> float:
    """Return the lower bound that the search of a fit with ``solver="exact"`` has proved; -inf of other fits."""
    return result.state.lower_bound if isinstance(result.state, BranchAndBoundState) else -inf
