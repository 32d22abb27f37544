"""
Your own f and c
================

Any convex function with a gradient will do as an objective, and any convex function with a subgradient
as a constraint. Callables are the short way; a longer one gives
faster methods.
"""

# %%
# The short way: callables
# ------------------------
#
# `lopro.minimize` is used like ``scipy.optimize.minimize``. Entropy over the part of the simplex that
# lies in a ball:
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import lopro

n, centre = 6, np.array([0.5, 0.3, 0.2, 0.0, 0.0, 0.0])
result = lopro.minimize(
    lambda x: np.sum((x + 1e-3) * np.log(x + 1e-3)),
    x0=np.full(n, 1 / n),
    jac=lambda x: np.log(x + 1e-3) + 1.0,
    constraint=[
        Bounds(np.zeros(n), np.ones(n)),
        LinearConstraint(np.ones((1, n)), lb=1.0, ub=1.0),
        NonlinearConstraint(
            lambda x: np.sum((x - centre) ** 2), -np.inf, 0.04, jac=lambda x: 2 * (x - centre)
        ),
    ],
)
print(result.status.name, result.x.round(4))
print(f"certified relative gap {result.certificate.relative_gap:.0e}")

# %%
# The longer way: a constraint with more properties
# -------------------------------------------------
#
# A `lopro.constraints.FunctionConstraint` has a value and a subgradient, and optionally more. The
# most useful property is that ``c`` is smooth: accelerated methods can then be used. Here is the unit ball of
# the 4-norm, ``sum x_i^4 <= 1``.

target = np.array([3.0, 4.0, -1.0, 0.2])
ball = lopro.constraints.FunctionConstraint(
    lambda x: float(np.sum(x**4)) - 1.0, lambda x: 4.0 * x**3, smooth=True, infimum=-1.0
)
f = lopro.objectives.SquaredDistance(target)
result = lopro.solve(lopro.Problem(f, ball))
print(result.status.name, result.x.round(4), f"projections: {result.counts.projections}")

# %%
# No projection was given: a generic method computes it, from values and gradients. If you have a formula,
# give it as ``project=...``. The optimality condition checks the answer: ``target - x`` must be a multiple
# of the gradient of ``c``, and it is.
ratio = (target - result.x) / (4.0 * result.x**3)
print("multiplier by entry:", ratio.round(3))

# %%
# A sum of objectives
# -------------------
#
# Objectives add up and can be scaled; the sum keeps what its parts can do (a prox, a gradient).
f = lopro.objectives.LeastSquares(np.eye(4), target) + 0.5 * lopro.objectives.L1Norm()
result = lopro.solve(lopro.Problem(f, ball))
print(result.status.name, result.x.round(4), f"f = {result.fun:.6f}")

# %%
# A warning: for a ``c`` that is *not* smooth only the subgradient method applies. It finds good points, but
# its bounds improve slowly. If your set is an intersection, give the parts as a list; if it is ``{x : M x
# in Q}`` with a simple ``Q``, say that (:doc:`/extend/constraint`): both keep the fast methods.
