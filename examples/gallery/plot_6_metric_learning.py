r"""
A sparse metric for nearest neighbours
======================================

The accuracy of nearest neighbours depends on the metric. `lopro.learn_metric` learns one from labelled
samples: a positive semidefinite matrix ``A``, with few entries off its diagonal, such that

.. math:: (x - x')^\top A\, (x - x') \approx 0 \text{ within a class, and} \approx 2 \text{ between classes}.
"""

# %%
# The wine data have thirteen measurements; thirteen columns of pure noise are added. The Euclidean metric
# treats all columns alike.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lopro
from lopro.sklearn import SparseMetricLearner

wine = load_wine()
rng = np.random.default_rng(0)
X = np.hstack([StandardScaler().fit_transform(wine.data), rng.standard_normal((178, 13))])
y = wine.target

result = lopro.learn_metric(X, y, l1=0.01, tol=1e-4)
print(result)

# %%
# All 15753 pairs of samples were used, but not as a list of vectors: the work per step grows with the
# number of samples. The certificate says that no other semidefinite matrix has an objective smaller by more
# than the gap.
#
# The matrix shows which columns matter, and which pairs of them belong together:
A = result.x
size = np.abs(A).max()
fig, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
shown = ax.imshow(A, cmap="RdBu_r", vmin=-size, vmax=size)
ax.set(title="learned metric: measurements, then noise", xlabel="column", ylabel="column")
ax.axhline(12.5, color="0.5", lw=0.8)
ax.axvline(12.5, color="0.5", lw=0.8)
fig.colorbar(shown)
weight = np.diag(A)
print(f"share of the diagonal on the measurements: {weight[:13].sum() / weight.sum():.0%}")

# %%
# ``result.factor`` is ``L`` with ``A = L'L``; in coordinates ``X L'`` the new metric is the Euclidean one.
Z = X @ result.factor.T
order = np.argsort(-Z.var(axis=0))[:2]
fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
for kind, marker in zip(np.unique(y), "os^", strict=True):
    ax.plot(*Z[y == kind][:, order].T, marker, ms=4, alpha=0.8, label=wine.target_names[kind])
ax.set(title="samples in the learned metric", xlabel="first coordinate", ylabel="second coordinate")
ax.legend(frameon=False)

# %%
# In a pipeline
# -------------
#
# `lopro.sklearn.SparseMetricLearner` does the same as a transformer, so that the learning of the metric is
# cross-validated as well.
neighbours = KNeighborsClassifier(5)
plain = cross_val_score(neighbours, X, y, cv=5)
learned = cross_val_score(make_pipeline(SparseMetricLearner(l1=0.01), neighbours), X, y, cv=5)
print(f"accuracy of 5 neighbours: Euclidean {plain.mean():.3f}, learned {learned.mean():.3f}")
plt.show()
