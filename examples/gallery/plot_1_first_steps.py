"""
First steps
===========

A problem is an objective and a constraint. `lopro.solve` returns a point that satisfies the
constraint, and a bound on its distance from the optimal value.
"""

# %%
# Fit data by least squares, with coefficients that satisfy fifteen linear inequalities:
#
# .. math:: \min_x \tfrac12 \|Ax - b\|^2 \quad\text{subject to}\quad Cx \le h.
import matplotlib.pyplot as plt
import numpy as np

import lopro

rng = np.random.default_rng(0)
A, b = rng.standard_normal((30, 10)), rng.standard_normal(30)
C, h = rng.standard_normal((15, 10)), np.full(15, 0.1)

problem = lopro.Problem(
    lopro.objectives.LeastSquares(A, b),
    lopro.constraints.Polyhedron(C, h),
)
result = lopro.solve(problem)
print(result)

# %%
# From the top: the **status** is CONVERGED only if the point is feasible *and* the gap is
# proved to be below ``tol``. The **lower bound** is below the value of every feasible point, so the
# optimal value lies between it and ``fun``. The last lines name the method that was chosen, and what it
# cost: iterations, **projections** on the set, gradients, products with matrices.
#
# The answer can be checked without `lopro`:
x = result.x
print(f"largest violation: {np.max(C @ x - h):.1e}")
print(f"objective:         {0.5 * np.sum((A @ x - b) ** 2):.9f}")
print(f"lower bound:       {result.certificate.lower_bound:.9f}")

# %%
# ``result.history`` has a row for each candidate of the method. ``result.plot()`` draws the gaps of
# these rows, or the point if there is only one row, as here.
result.plot()

# %%
# The default tolerance is a relative gap of 1e-6. Tolerances and budgets are arguments; a spent budget is not
# an error but a status.
for options in ({"tol": 1e-10}, {"max_projections": 1}, {"max_iter": 20}):
    r = lopro.solve(problem, **options)
    print(
        f"{options!s:<24} {r.status.name:<16} f = {r.fun:.9f}  gap {r.certificate.relative_gap:.0e}"
        f"  projections {r.counts.projections}"
    )

# %%
# To observe a run or to stop it by a rule of your own, iterate over it: `lopro.iterate` runs the same code.
run = lopro.iterate(problem)
gaps = [state.relative_gap for state in run]
print("gap after each candidate:", ", ".join(f"{gap:.0e}" for gap in gaps))
plt.show()
