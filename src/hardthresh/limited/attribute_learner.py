"""A learner for people and devices: it asks about one example after the other, with the names of attributes."""

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
    """Asks a person or a device which attributes to observe, and makes a model of the answers.

    Made by ``LimitedAttributeRegression(...).start(n_features)``. It can be stored after any answer, and continues
    from the file as if there had been no interruption: it asks again only for what was not answered.

    Attributes
    ----------
    estimator : estimator
        The settings.
    learner : Learner
        The conversation.
    feature_names : list of str, or None
        The names of the attributes.

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
        """The cost of the answers."""
        return self.learner.meter

    @property
    def done(self) -> bool:
        """Whether it has no more questions; with ``strategy="auto"`` it never is: stop when you have had enough."""
        return self.learner.done

    def ask(self) -> tuple[int, Array]:
        """Return the number of an example, from 0, and the increasing indices of its attributes to observe.

        It asks the same until `tell` answers the question or `skip` withdraws it.
        """
        return self.learner.ask()

    def questions(self, count: int) -> list[tuple[int, Array]]:
        """Return up to `count` questions at once, to be answered in any order."""
        return self.learner.questions(count)

    def names(self, indices: Any) -> list[str]:
        """Return the names of some attributes."""
        names = self.feature_names
        return [f"attribute {j}" if names is None else names[j] for j in np.asarray(indices).tolist()]

    def tell(self, example: int, values: Any, y: float) -> None:
        """Answer a question: the attributes of an example in the order they were asked for, and its target.

        Raises
        ------
        InvalidInputError
            If there is no such question, or the answer makes no sense; nothing has changed then.
        """
        self.learner.tell(example, values, y)

    def skip(self, example: int, *, paid: bool | Array = False) -> None:
        """Withdraw the question about an example; another example takes its place.

        Parameters
        ----------
        example : int
            An example with an open question.
        paid : bool or int array
            Whether its attributes were paid for all the same, or which of them.
        """
        self.learner.skip(example, paid=paid)

    def model(self) -> Any:
        """Return a fitted estimator, made of the answers so far; the learner itself does not change.

        Warns
        -----
        ConvergenceWarning
            If there were too few answers to choose attributes by more than chance.
        """
        learner, model = deepcopy(self.learner), clone(self.estimator)
        model._set_columns(learner.cost_model.n_features, self.feature_names)
        return model._set_result(learner.result(f"{learner.meter.examples} examples were answered"), None)
