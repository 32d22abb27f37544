r"""
The nearest correlation matrix
==============================

Correlations that were computed pair by pair, each from the days on which both series have data, need not form
a correlation matrix. `lopro.nearest_correlation` finds the nearest one,

.. math:: \min_X\ \tfrac12\|X - G\|_F^2 \quad\text{s.t.}\quad X_{ii} = 1,\ X \succeq 0,

and proves a lower bound on that distance.
"""

# %%
# Sixty series with three common factors, a hundred and twenty days, and more than half of the data missing.
import matplotlib.pyplot as plt
import numpy as np

import lopro

rng = np.random.default_rng(0)
n, days = 60, 120
loadings = rng.standard_normal((n, 3))
series = rng.standard_normal((days, 3)) @ loadings.T + rng.standard_normal((days, n))
seen = rng.random((days, n)) < 0.45


def pairwise(i, j):
    """Return the correlation over the days on which both are seen."""
    both = seen[:, i] & seen[:, j]
    return np.corrcoef(series[both, i], series[both, j])[0, 1]


G = np.array([[pairwise(i, j) for j in range(n)] for i in range(n)])
G = 0.5 * (G + G.T)
np.fill_diagonal(G, 1.0)
print(f"negative eigenvalues: {np.sum(np.linalg.eigvalsh(G) < 0)} of {n}")

# %%
# A portfolio along the first eigenvector would have a negative variance. The nearest correlation matrix takes
# six eigendecompositions or so, whatever its size.
result = lopro.nearest_correlation(G)
print(result)
X = result.x
print(f"eigendecompositions: {result.counts.eigendecompositions}")
print(f"least eigenvalue: {np.linalg.eigvalsh(X)[0]:.1e}, proved not to be negative")

# %%
# The eigenvalues below zero are gone, and the others are a little smaller: clipping the eigenvalues alone
# would leave a diagonal above one.
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(np.linalg.eigvalsh(G), ".", label="pair by pair")
ax.plot(np.linalg.eigvalsh(X), ".", label="nearest correlation matrix")
ax.axhline(0.0, color="0.5", lw=0.8)
ax.set(title="eigenvalues", xlabel="index", ylim=(-2.0, 3.0))
ax.legend(frameon=False)

# %%
# Some entries are more accurate
# ------------------------------
#
# The first five series are complete, so their correlations are a correlation matrix already and are kept as
# they are. Weights are the numbers of days of the others, and a least eigenvalue makes the result
# invertible.
G[:5, :5] = np.corrcoef(series[:, :5].T)
G = 0.5 * (G + G.T)
np.fill_diagonal(G, 1.0)
fixed = np.zeros((n, n), dtype=bool)
fixed[:5, :5] = True
weights = seen.mean(axis=0)
weights[:5] = 1.0
result = lopro.nearest_correlation(G, weights, fixed, min_eigenvalue=1e-3)
print(f"kept exactly: {np.array_equal(result.x[fixed], G[fixed])}")
print(f"relative gap: {result.certificate.relative_gap:.0e}, {result.status.name}")

# %%
# How good is it? Here the truth is known.
truth = loadings @ loadings.T + np.eye(n)
truth /= np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
for name, matrix in (("pair by pair", G), ("nearest", result.x)):
    print(f"{name:13s} distance from the truth: {np.linalg.norm(matrix - truth):.2f}")
plt.show()
