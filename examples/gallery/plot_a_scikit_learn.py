"""
In a scikit-learn pipeline
==========================

`lopro.sklearn.BasisPursuitDenoising` is a regressor for pipelines, grid searches and
cross-validation. The Lasso has a weight between norm and residual; here the bound of the residual is given,
which is often known.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lopro.sklearn import BasisPursuitDenoising

rng = np.random.default_rng(3)
n, d, std = 120, 300, 0.5
X = rng.standard_normal((n, d))
truth = np.zeros(d)
truth[:6] = [3.0, -2.0, 1.5, 1.0, -1.0, 2.0]
y = X @ truth + 4.0 + std * rng.standard_normal(n)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %%
# The noise is known
# ------------------
#
# Then ``sigma`` is known, and nothing needs tuning.
m = len(y_train)
model = BasisPursuitDenoising(sigma=std * np.sqrt(m + 2 * np.sqrt(2 * m))).fit(X_train, y_train)
print(f"test R^2 {model.score(X_test, y_test):.3f}, {np.count_nonzero(model.coef_)} features")
print(f"l1 norm {np.abs(model.coef_).sum():.6f}, at most {model.dual_gap_:.0e} above the optimum")

# %%
# The noise is not known
# ----------------------
#
# ``relative_sigma`` is the share of the explainable part of ``y`` that may remain as residual. It means the
# same in every fold, so it can be chosen by a grid search.
pipeline = make_pipeline(StandardScaler(), BasisPursuitDenoising(tol=1e-4))
grid = {"basispursuitdenoising__relative_sigma": np.geomspace(0.01, 0.5, 12)}
search = GridSearchCV(pipeline, grid, cv=4).fit(X_train, y_train)
best = search.best_estimator_
print(f"best relative_sigma {search.best_params_['basispursuitdenoising__relative_sigma']:.2f}")
print(f"test R^2 {best.score(X_test, y_test):.3f}, {np.count_nonzero(best[-1].coef_)} features")

lasso = make_pipeline(StandardScaler(), LassoCV(cv=4)).fit(X_train, y_train)
print(f"LassoCV: {lasso.score(X_test, y_test):.3f}, {np.count_nonzero(lasso[-1].coef_)} features")

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.semilogx(
    grid["basispursuitdenoising__relative_sigma"], search.cv_results_["mean_test_score"], "o-"
)
ax.set(xlabel="relative_sigma", ylabel="cross-validated R$^2$")
plt.show()
