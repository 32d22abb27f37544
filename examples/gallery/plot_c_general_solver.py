"""
The general solver: an efficient frontier, quantiles, a blurred image
=====================================================================

`lopro.solve` takes any sum of the functions in `lopro.objectives` over the sets in `lopro.constraints`, and
chooses a method by their structure. Here are three problems, solved by three methods, with the same kind
of certificate.
"""

# %%
# An efficient frontier
# ---------------------
#
# Minimise the risk of a portfolio less its return, for several prices of risk. These are quadratic programs:
# an interior point method (PIQP) solves them, and the answer is proved afterwards.
import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage
from scipy.sparse.linalg import LinearOperator

import lopro
from lopro.constraints import Affine, Intersection, Polyhedron

rng = np.random.default_rng(0)
n = 40
returns, factors = rng.normal(0.05, 0.03, n), rng.standard_normal((n, 5))
risk = 0.01 * (factors @ factors.T + np.diag(rng.random(n)))
weights = Intersection(
    Affine(np.ones((1, n)), 1.0, 1.0), Polyhedron.box(np.zeros(n), np.full(n, 0.2))
)
frontier, gaps = [], []
for price in np.geomspace(0.05, 20.0, 25):
    f = lopro.objectives.Quadratic(2.0 * price * risk, -returns)
    result = lopro.solve(lopro.Problem(f, weights))
    frontier.append((np.sqrt(result.x @ risk @ result.x), returns @ result.x))
    gaps.append(result.certificate.relative_gap)
print(result)
print(f"\nlargest relative gap of the 25: {max(gaps):.0e}")

fig, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
ax.plot(np.sqrt(np.diag(risk)), returns, ".", color="0.6", label="single assets")
ax.plot(*np.transpose(frontier), "o-", ms=4, label="portfolios")
ax.set(xlabel="standard deviation", ylabel="expected return")
ax.legend(frameon=False)

# %%
# Increasing quantiles
# --------------------
#
# Quantile regression with cubic polynomials, and constraints that make each curve increasing. The loss has
# kinks; Newton's method works on the augmented Lagrangian of the problem.
t = np.sort(rng.uniform(0.0, 1.0, 300))
y = t**2 + (0.05 + 0.2 * t) * rng.standard_normal(300)
basis = np.vander(t, 4, increasing=True)
grid = np.linspace(0.0, 1.0, 30)
slopes = np.column_stack([np.zeros(30), np.ones(30), 2.0 * grid, 3.0 * grid**2])
increasing = Affine(slopes, lower=0.0)

fig, ax = plt.subplots(figsize=(5.5, 3.5), layout="constrained")
ax.plot(t, y, ".", ms=3, color="0.6")
for quantile in (0.1, 0.5, 0.9):
    loss = lopro.objectives.PinballLoss(basis, y, quantile=quantile)
    result = lopro.solve(lopro.Problem(loss, increasing))
    below = np.mean(y <= basis @ result.x)
    print(f"{quantile:.0%}: {result.status.name}, {below:.0%} of the samples below")
    ax.plot(grid, np.vander(grid, 4, increasing=True) @ result.x, label=f"{quantile:.0%}")
ax.legend(frameon=False)

# %%
# A blurred image
# ---------------
#
# Least squares with a total variation penalty and no constraint; the blur is an operator, known by its
# products with images.
image = np.zeros((24, 24))
image[5:18, 8:16] = 1.0
image[10:14, 3:21] = 0.6


def blur(x):
    """Average over 3 x 3 pixels; symmetric, hence its own adjoint."""
    return scipy.ndimage.uniform_filter(x.reshape(24, 24), 3, mode="constant").ravel()


A = LinearOperator((576, 576), matvec=blur, rmatvec=blur, dtype=float)
seen = blur(image) + 0.02 * rng.standard_normal(576)
f = lopro.objectives.LeastSquares(A, seen) + 0.01 * lopro.objectives.TotalVariation((24, 24))
print(lopro.explain(lopro.Problem(f)))
result = lopro.solve(lopro.Problem(f), tol=1e-5)
print(result)

fig, axes = plt.subplots(1, 3, figsize=(7.0, 2.6), layout="constrained")
for ax, picture, title in zip(
    axes, (image, seen, result.x), ("the image", "blurred, with noise", "recovered"), strict=True
):
    ax.imshow(picture.reshape(24, 24), cmap="gray", vmin=-0.1, vmax=1.1)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
