"""What `fit` passes on to the splitter and to the scorer of a cross-validation, as scikit-learn's own estimators do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from hardthresh.core.errors import InvalidInputError

Metadata = dict[str, Any]


class CrossValidatedMixin:
    """Metadata routing of the estimators whose `fit` divides rows into folds with the splitter `cv`."""

    cv: Any
    scoring: Any = None

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata `fit` takes, and passes on to the splitter and to the scorer.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        if self.scoring is not None:
            scorer = check_scoring(self, scoring=self.scoring)
            router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

    def _route(self, params: Metadata, n_samples: int, sample_weight: Any = None) -> tuple[Metadata, Metadata]:
        """Return the metadata for the splitter, and those for the scorer.

        Without metadata routing the splitter gets `groups`, and the scorer the weights.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", **params, **weights)
            return routed.splitter.split, {} if self.scoring is None else routed.scorer.score
        _raise_for_params({name: value for name, value in params.items() if name != "groups"}, self, "fit")
        groups = params.get("groups")
        if groups is None:
            return {}, weights
        if not hasattr(self.cv, "split"):
            raise InvalidInputError(
                f"groups has no effect on the folds of cv={'a list' if hasattr(self.cv, '__iter__') else self.cv}; "
                "leave it out, or pass a splitter that uses it, such as cv=GroupKFold(5)"
            )
        count = len(groups) if hasattr(groups, "__len__") else None
        if count != n_samples:
            columns = (
                f"; groups of columns are set by {type(self).__name__}(groups=...)" if hasattr(self, "groups") else ""
            )
            raise InvalidInputError(
                f"groups has {count} labels, but X has {n_samples} rows: fit takes the group of each row, for the "
                f"splitter{columns}"
            )
        return {"groups": groups}, weights


def rows_of(params: Metadata, rows: np.ndarray, n_samples: int) -> Metadata:
    """Return metadata for some of the rows: what has one entry per row is indexed, and the rest is passed on."""
    selected: Metadata = _check_method_params(np.empty(n_samples), params, indices=rows)
    return selected
