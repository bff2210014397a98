"""The learner of an estimator: it returns questions to a person or a device, and makes a model of the answers."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hardthresh.core.schema import stored
from hardthresh.core.typing import Array

from .learner import Learner
from .meter import Meter


@stored("learner/estimator")
@dataclass
class AttributeLearner:
    """Returns which attributes of the next example to observe, and makes a model of the answers.

    ``LimitedAttributeRegression(...).start(n_features)`` returns one. It can be stored after any answer
    (`hardthresh.save`). A learner that is loaded from the file returns the unanswered questions again, and learns the
    same coefficients as without the interruption.

    Attributes
    ----------
    estimator : estimator
        The estimator with the settings, not fitted.
    learner : Learner
        The learner of the algorithm, with the open questions and all that was learned from the answers.
    feature_names : list of str, or None
        The names of the attributes.

    Notes
    -----
    Cost: each answer is used once. Guarantee: no question costs more than the budget for one example; for the
    coefficients see the strategy of the estimator.

    Examples
    --------
    >>> import hardthresh as ht
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> learner = ht.LimitedAttributeRegression(n_nonzero_coefs=2, n_observed=4).start(n_features=9)
    >>> example, indices = learner.ask()
    >>> example, indices
    (0, array([0, 1, 2, 3]))
    >>> learner.tell(example, [0.3, 1.2, 0.0, 7.1], y=0.4)
    >>> with TemporaryDirectory() as folder:
    ...     ht.save(learner, Path(folder) / "state.json")
    ...     learner = ht.load(Path(folder) / "state.json")
    >>> learner.ask()[0], learner.meter.attributes
    (1, 4)
    """

    estimator: Any
    learner: Learner
    feature_names: list[str] | None = None

    def __repr__(self) -> str:
        return f"AttributeLearner({self.estimator!r}, {self.learner!r})"

    @property
    def meter(self) -> Meter:
        """The attributes, examples and money that the answers have cost."""
        return self.learner.meter

    @property
    def done(self) -> bool:
        """Whether there are no more questions: never with ``strategy="auto"``, so the caller decides when to stop."""
        return self.learner.done

    def ask(self) -> tuple[int, Array]:
        """Return the number of an example, from 0, and the increasing indices of its attributes to observe.

        Further calls return the same question until `tell` answers it or `skip` withdraws it.

        Raises
        ------
        HardThreshError
            If there are no more questions.
        """
        return self.learner.ask()

    def questions(self, count: int) -> list[tuple[int, Array]]:
        """Return up to `count` >= 1 questions, pairs as from `ask`, which can be answered in any order."""
        return self.learner.questions(count)

    def names(self, indices: Any) -> list[str]:
        """Return the names of the attributes `indices`: "attribute j" if they have no names."""
        names = self.feature_names
        return [f"attribute {j}" if names is None else names[j] for j in np.asarray(indices).tolist()]

    def tell(self, example: int, values: Any, y: float) -> None:
        """Answer a question: pass the values of the attributes in the order of the question, and the target.

        Raises
        ------
        InvalidInputError
            If no question about this example is open, if the values are not one finite number for each attribute, or
            if the target is not a finite number, or for two classes not 0 or 1. The learner has not changed then.
        HardThreshError
            If there are no more questions.
        """
        self.learner.tell(example, values, y)

    def skip(self, example: int, *, paid: bool | Array = False) -> None:
        """Withdraw the question about an example; a new example replaces it.

        Parameters
        ----------
        example : int
            An example with an open question.
        paid : bool or int array
            Whether the attributes of the question were paid for although there is no answer, or the indices of those
            that were.

        Raises
        ------
        InvalidInputError
            If no question about this example is open, or `paid` has other attributes than the question.
        HardThreshError
            If there are no more questions.
        """
        self.learner.skip(example, paid=paid)

    def model(self) -> Any:
        """Return a fitted estimator that is learned from the answers so far; the learner does not change.

        Warns
        -----
        ConvergenceWarning
            If the coefficients cannot be relied on, such as after too few answers to choose attributes; `stop_reason_`
            of the estimator is the reason.
        """
        learner, model = deepcopy(self.learner), clone(self.estimator)
        model._set_columns(learner.cost_model.n_features, self.feature_names)
        return model._set_result(learner.result(f"{learner.meter.examples} examples were answered"), None)
