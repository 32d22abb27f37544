"""
Choosing a method: when do few projections pay?
===============================================

A projected method spends one gradient and one projection per iteration. The methods here replace
most projections by gradients of the constraint. So the question is one of cost: how many gradients does a
projection cost?
"""

# %%
# The cost of a projection
# ------------------------
#
# Measure it for your own set; here are four.
import functools
import time

import matplotlib.pyplot as plt
import numpy as np

import lopro
from lopro.methods.baselines import ProjectedGradient

rng = np.random.default_rng(0)
A = rng.standard_normal((300, 1000))
C = rng.standard_normal((120, 60))
sets = {
    "box": (lopro.constraints.Box(-np.ones(1000), np.ones(1000)), (1000,)),
    "residual ball": (lopro.constraints.ResidualBall(A, rng.standard_normal(300), 1.0), (1000,)),
    "psd cone, d = 150": (lopro.constraints.PSDCone(150), (150, 150)),
    "polyhedron": (lopro.constraints.Polyhedron(C, np.ones(120)), (60,)),
}


def seconds(call, repeats=5):
    """Return the best time of several calls; the first one, which may factorise, is not counted."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


costs = {}
for name, (set_, shape) in sets.items():
    x = 10.0 * rng.standard_normal(shape)
    x = 0.5 * (x + x.T) if len(shape) == 2 else x
    projection = seconds(functools.partial(set_.project, x))
    gradient = seconds(functools.partial(set_.subgradient, x))
    costs[name] = projection / gradient
    print(f"{name:<18} projection {1e3 * projection:7.2f} ms = {costs[name]:6.1f} gradients of c")

# %%
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(list(costs), list(costs.values()), color="#0072B2")
ax.set(xscale="log", xlabel="cost of a projection, in gradients of c")
ax.axvline(1, color="0.5", lw=0.8)

# %%
# What that means
# ---------------
#
# Near 1 or below, as for the box, project as often as you like. From 10 on, few projections pay. The
# polyhedron is the extreme: each projection is a quadratic program. Least squares over it, by projected
# gradient descent and by the default:
A, b = rng.standard_normal((90, 60)), 5.0 * rng.standard_normal(90)
problem = lopro.Problem(lopro.objectives.LeastSquares(A, b), sets["polyhedron"][0])
for method in (ProjectedGradient(iterations=100, report=20), lopro.Auto()):
    r = lopro.solve(problem, method=method, tol=1e-6)
    print(
        f"{type(method).__name__:<18} {r.status.name:<14} gap {r.certificate.relative_gap:.0e}  "
        f"projections {r.counts.projections:4d}  gradients {r.counts.gradients:5d}  {r.seconds:.2f} s"
    )

# %%
# Which one, then?
# ----------------
#
# * ``method=None`` lets `lopro.Auto` choose by the structure of the problem; `lopro.bpdn` chooses by the
#   matrix. That is nearly always the best choice.
# * Only subgradients? `lopro.LoPGD`. Smooth ``c``, and ``f`` smooth or with a prox? `lopro.MultiplierMethod`,
#   or `lopro.LoPNAG` for the paper's method.
# * A proved rate with constants you know? The schedules of the theorems: `lopro.OneProjection`,
#   ``LoPGD(Theorem2(...))``, ``LoPNAG(Theorem3(...))``. They are made for the worst case: correct, and slow.
#
# A method that cannot run on a problem raises an error before it starts, which names what is missing:
try:
    lopro.solve(problem, method=lopro.LoPNAG())
except lopro.MissingCapabilityError as error:
    print(error)
plt.show()
