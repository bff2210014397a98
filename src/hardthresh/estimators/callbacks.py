"""Callbacks of scikit-learn 1.9 and later, called after each iteration; earlier versions have none."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from hardthresh.core.checking import Function, with_warnings_of_caller, without_overflow_warnings
from hardthresh.core.errors import OutOfMemoryError
from hardthresh.core.memory import memory_for_blocks
from hardthresh.core.state import State
from hardthresh.core.threads import serial_blas
from hardthresh.designs.reading_log import shown_readings

from .blocked import is_blocks
from .table import Table

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTask", "fit_method"]


def fit_method(method: Function) -> Function:
    """Decorate the `fit` of an estimator.

    Callbacks end when it does, BLAS runs on one thread until then, and where memory runs out, it says what to do. It
    refuses or reports what overflows, so that NumPy need not warn.
    """

    @without_overflow_warnings
    @wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with serial_blas(), shown_readings(bool(getattr(self, "verbose", False))):
                return method(self, *args, **kwargs)
        except MemoryError as error:
            if isinstance(error, OutOfMemoryError):  # which says what to do
                raise
            if is_blocks(args[0] if args else kwargs.get("X")):
                raise OutOfMemoryError(
                    f"there is not enough memory for this fit ({error}): {memory_for_blocks()}"
                ) from error
            jobs = getattr(self, "n_jobs", None)
            one_by_one = "" if jobs in (None, 1) else f"; n_jobs=1 in place of {jobs} fits one fold at a time"
            raise OutOfMemoryError(
                f"there is not enough memory for this fit ({error}): {self._saves_memory}{one_by_one}"
            ) from error

    decorated: Function = with_callbacks(fit)
    return decorated


class FitTask:
    """The fit of one estimator as scikit-learn's callbacks see it: a task with one subtask per iteration or candidate.

    Parameters
    ----------
    estimator : estimator
        With or without callbacks.
    given : Table
        The training data with targets as they were given, for callbacks that score.
    max_subtasks : int
        The largest number of iterations or candidates.
    """

    @with_warnings_of_caller()
    def __init__(self, estimator: Any, given: Table, max_subtasks: int) -> None:
        wanted = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
        self._context = estimator._init_callback_context(max_subtasks=max_subtasks) if wanted else None
        if self._context is None:
            return
        self._data: dict[str, Any] = {"estimator": estimator, "X": given.as_given(), "y": given.y}
        if given.sample_weight is not None:
            self._data["metadata"] = {"sample_weight": given.sample_weight}
        self._context.call_on_fit_task_begin(**self._data)

    @with_warnings_of_caller()
    def done(self, name: str, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report one finished subtask, and return whether a callback asks to stop.

        `attributes` gives what makes a copy of the estimator ready to predict, to callbacks that want one.
        """
        if self._context is None:
            return False
        task = self._context.subcontext(task_name=name)
        task.call_on_fit_task_begin(**self._data)
        return bool(
            task.call_on_fit_task_end(**self._data, reconstruction_attributes=without_overflow_warnings(attributes))
        )

    def on_state(self, attributes: Callable[[State], dict[str, Any]]) -> Callable[[State], None] | None:
        """Return a callback for `minimize` that reports each iteration and may stop it; None when nobody listens."""
        if self._context is None:
            return None

        def report(state: State) -> None:
            if state.iteration > 0 and self.done("iteration", lambda: attributes(state)):
                raise StopIteration

        return report

    @with_warnings_of_caller()
    def end(self) -> None:
        """Report the end of the fit; the estimator is fitted now."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._data, reconstruction_attributes={})
