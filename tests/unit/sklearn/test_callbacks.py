"""scikit-learn's callbacks are called at every projection, can score the model, and can stop the fit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")

from sklearn.exceptions import ConvergenceWarning

import lopro
from lopro.sklearn import BasisPursuitDenoising


class Recorder:
    """A callback that records its arguments and stops the fit after some projections."""

    def __init__(self, stop_after=None):
        self.stop_after, self.scores, self.events = stop_after, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "projection":
            self.scores.append(fitted_estimator.score(X, y))
            return len(self.scores) == self.stop_after
        return False


@pytest.fixture
def data(rng):
    X = rng.standard_normal((30, 60))
    return X, X[:, 3] - 2 * X[:, 50] + 5.0


def test_every_projection_is_a_task(data):
    seen = Recorder()
    model = BasisPursuitDenoising(method=lopro.LoPNAG(), tol=1e-5).set_callbacks(seen)
    model.fit(*data)
    assert seen.events[:2] == ["setup", "begin fit"]
    assert seen.events[-2:] == ["end fit", "teardown"]
    assert len(seen.scores) >= model.n_projections_ - 1  # the start may cost one
    assert seen.scores[-1] == pytest.approx(model.score(*data), abs=1e-3)


def test_a_callback_may_stop_the_fit(data):
    seen = Recorder(stop_after=2)
    model = BasisPursuitDenoising(method=lopro.LoPNAG()).set_callbacks(seen)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        model.fit(*data)
    assert len(seen.scores) == 2
    assert np.isfinite(model.coef_).all()
