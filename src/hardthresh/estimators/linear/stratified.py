"""The quality of fitted models of survival times, on data with strata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hardthresh.certificates import Alternatives, ModelCertificate, Proof

from .intervals import Inference
from .streaming import StreamedModel
from .summary import Summary
from .survival_targets import stratified


class StratifiedModel(StreamedModel):
    """Base of the models whose rows may have strata. See the concrete classes."""

    def _path_counts(self, X: Any, y: Any, least: int, params: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, int]:
        return super()._path_counts(X, stratified(y, params.get("strata")), least, params)

    def certificate(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None, strata: Any = None
    ) -> ModelCertificate:
        """Return what is known about the quality of the fit: first-order conditions, and exchanges of features.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            Data, as in `fit`. Without them the certificate is about the training data, and computed once.

        Returns
        -------
        ModelCertificate
            ``print`` it to read it.

        Raises
        ------
        HardThreshError, ValueError
            As for the other sparse linear models.
        """
        return super().certificate(X, stratified(y, strata), sample_weight, offset)

    def summary(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None, strata: Any = None
    ) -> Summary:
        """Return how well the model fits, and what each chosen feature is worth to it.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            Data, as in `fit`. Without them the summary is about the training data, and computed once.

        Returns
        -------
        Summary
            ``print`` it to read it; `to_frame` and `to_dict` return its numbers.

        Raises
        ------
        HardThreshError, ValueError
            As for the other sparse linear models.
        """
        return super().summary(X, stratified(y, strata), sample_weight, offset)

    def alternatives(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        strata: Any = None,
        *,
        tolerance: float = 0.02,
        most: int = 100,
        time_limit: float | None = 0.0,
    ) -> Alternatives:
        """Return the sets of as many features that fit nearly as well, and what takes the place of each feature.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            Data, as in `fit`. Without them it is about the training data.
        tolerance, most, time_limit :
            As for the other sparse linear models.

        Returns
        -------
        Alternatives
            ``print`` it to read it; `to_frame` and `to_dict` return the sets.

        Raises
        ------
        HardThreshError, ValueError
            As for the other sparse linear models.
        """
        return super().alternatives(
            X, stratified(y, strata), sample_weight, offset, tolerance=tolerance, most=most, time_limit=time_limit
        )

    def prove(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        strata: Any = None,
        *,
        time_limit: float | None = 60.0,
        resume: Proof | None = None,
        progress: bool | None = None,
    ) -> Proof:
        """Return a lower bound of the objective of all sets of as many features.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            Data, as in `fit`. Without them it is about the training data.
        time_limit, resume, progress :
            As for the other sparse linear models.

        Returns
        -------
        Proof
            ``print`` it to read it.

        Raises
        ------
        HardThreshError, ValueError
            As for the other sparse linear models.
        """
        return super().prove(
            X,
            stratified(y, strata),
            sample_weight,
            offset,
            time_limit=time_limit,
            resume=resume,
            progress=progress,
        )

    def inference(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        strata: Any = None,
        *,
        kind: str = "refit",
        level: float = 0.95,
        robust: bool | None = None,
        groups: Any = None,
        weights: str = "auto",
        random_state: Any = None,
    ) -> Inference:
        """Return intervals of the coefficients of the chosen features, with what they are valid for.

        Parameters
        ----------
        X, y, sample_weight, offset, strata : optional
            Data, as in `fit`. ``kind="split"`` needs them, because it fits again.
        kind, level, robust, groups, weights, random_state :
            As for the other sparse linear models.

        Returns
        -------
        Inference
            ``print`` it to read it; `to_frame` and `to_dict` return its numbers.

        Raises
        ------
        HardThreshError, ValueError
            As for the other sparse linear models.
        """
        return super().inference(
            X,
            stratified(y, strata),
            sample_weight,
            offset,
            kind=kind,
            level=level,
            robust=robust,
            groups=groups,
            weights=weights,
            random_state=random_state,
        )
