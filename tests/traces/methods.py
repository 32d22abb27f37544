"""The methods that are traced, made with few iterations where their defaults are long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lopro
from lopro import adaptive, baselines, inner, penalties, restarts, theorems

__all__ = ["methods"]

T = 300


def methods() -> Iterator[tuple[str, Any]]:
    """Yield names and methods."""
    yield "Auto", lopro.Auto()
    yield "LoPGD", lopro.LoPGD()
    yield "LoPGD-halving", lopro.LoPGD(theorems.HalvingSteps(lam=5.0, eta=0.1, steps=50, epochs=4))
    yield "LoPNAG", lopro.LoPNAG()
    yield (
        "LoPNAG-halving",
        lopro.LoPNAG(theorems.HalvingSmoothing(lam=5.0, gamma=0.1, steps=50, epochs=4)),
    )
    yield "LoPNAG-recentring", lopro.LoPNAG(adaptive.Recentring())
    yield "Multipliers", lopro.MultiplierMethod()
    yield "WorkingSet", lopro.WorkingSet()
    yield "MatrixFree", lopro.MatrixFree()
    yield (
        "OneProjection",
        lopro.OneProjection(inner.AcceleratedGradient(), penalties.Softplus(4.0, 0.1), T),
    )
    yield from _stochastic()
    for name in baselines.__all__:
        method = getattr(baselines, name)
        if isinstance(method, type) and (hasattr(method, "card") or hasattr(method, "about")):
            yield f"baselines.{name}", _made(method)
    for solver in (restarts.SubgradientSolver(), restarts.AcceleratedSolver()):
        scheme = lopro.LoPGD if isinstance(solver, restarts.SubgradientSolver) else lopro.LoPNAG
        for schedule in (restarts.LogScaleGrid, restarts.ApproximateSharpness):
            name = f"{scheme.__name__}-{schedule.__name__}"
            yield name, scheme(schedule(solver, budget=T))


def _stochastic() -> Iterator[tuple[str, Any]]:
    steps = inner.SqrtStep(0.1)
    descent = inner.StochasticSubgradient(steps, inner.LinearWeights())
    yield "OneProjection-stochastic", lopro.OneProjection(descent, penalties.Hinge(4.0), T)


def _made(method: type) -> Any:
    import dataclasses

    names = {f.name for f in dataclasses.fields(method)}
    return method(**({"iterations": T} if "iterations" in names else {}))
