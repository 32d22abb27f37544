"""Common code of all estimators: dtypes, callbacks of scikit-learn, warnings without a certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lopro.driver.result import Iterate, Result, Status
from lopro.errors import InfeasibleError

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there were no callbacks to support

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An empty base class: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


__all__ = ["FLOATS", "CallbackSupportMixin", "FitWatcher", "check_outcome", "with_callbacks"]

#: Dtypes that are preserved.
FLOATS = [np.float64, np.float32]


class FitWatcher:
    """Reports the fit of an estimator to its callbacks: one subtask for each projection.

    ``attributes`` computes the fitted attributes for prediction from a point, so that a callback can
    score the estimator as if the fit had ended there.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self._hooks = {"estimator": estimator, "X": X, "y": y}
        begin = getattr(estimator, "_init_callback_context", None)
        self._context = None if begin is None else begin(max_subtasks=None)
        if self._context is not None:
            self._context.call_on_fit_task_begin(**self._hooks)

    def callback(self, attributes: Callable[[Any], dict[str, Any]]) -> Callable[[Iterate], bool]:
        """Return the callback of `lopro.solve` for each projection; it returns whether to stop."""

        def report(iterate: Iterate) -> bool:
            if self._context is None:
                return False
            task = self._context.subcontext(task_name="projection")
            task.call_on_fit_task_begin(**self._hooks)
            fitted = {"reconstruction_attributes": lambda: attributes(iterate.x)}
            return bool(task.call_on_fit_task_end(**self._hooks, **fitted))

        return report

    def done(self) -> None:
        """Report that the fit is complete."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._hooks, reconstruction_attributes={})


def check_outcome(result: Result, advice: str) -> None:
    """Raise an error if there is no solution; warn if the certificate does not attain ``tol``."""
    if result.status is Status.INFEASIBLE:
        raise InfeasibleError(f"no coefficients have so small a residual. {advice}")
    if not result.success:
        warnings.warn(
            f"not certified: {result.message}; the relative duality gap is "
            f"{result.certificate.relative_gap:.2e}. {advice}",
            ConvergenceWarning,
            stacklevel=2,
        )
