r"""
Basis pursuit denoising
=======================

Of all vectors that explain the measurements up to the noise, find the one of least l1 norm:

.. math:: \min \|x\|_1 \quad\text{subject to}\quad \|Ax - y\|_2 \le \sigma.
"""

# %%
# Two hundred measurements of a vector with a thousand entries, of which twenty are not zero:
import matplotlib.pyplot as plt
import numpy as np

import lopro

rng = np.random.default_rng(1)
m, d, k = 200, 1000, 20
A = rng.standard_normal((m, d)) / np.sqrt(m)
truth = np.zeros(d)
truth[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
noise = 0.01 * rng.standard_normal(m)
y = A @ truth + noise

# %%
# ``sigma`` bounds the *norm* of the residual. For Gaussian noise of a known standard deviation the norm
# of the noise rarely exceeds this bound:
sigma = 0.01 * np.sqrt(m + 2 * np.sqrt(2 * m))
result = lopro.bpdn(A, y, sigma, tol=1e-8)
print(result)
print(f"recovery error {np.linalg.norm(result.x - truth):.4f}, {result.support.size} nonzeros")

# %%
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.stem(
    np.flatnonzero(truth),
    truth[truth != 0],
    linefmt="0.7",
    markerfmt="o",
    basefmt=" ",
    label="true",
)
ax.plot(result.support, result.x[result.support], "x", color="#D55E00", label="recovered")
ax.axhline(0, color="0.8", lw=0.8)
ax.set(xlabel="entry", title=f"{m} measurements, {d} unknowns")
ax.legend(frameon=False)

# %%
# The proof
# ---------
#
# ``result.dual`` is a vector ``nu`` with :math:`\|A^\top\nu\|_\infty \le 1`. Every such vector proves that
# no feasible ``x`` has an l1 norm below :math:`\langle y,\nu\rangle - \sigma\|\nu\|`. Two lines of NumPy
# check it:
nu = result.dual
print(f"|A' nu|_inf = {np.abs(A.T @ nu).max():.12f}")
print(f"bound {y @ nu - sigma * np.linalg.norm(nu):.9f} <= optimum <= {result.fun:.9f}")

# %%
# A whole path of radii
# ---------------------
#
# When the noise is not known, compute several radii. `lopro.bpdn_path` starts each from the last solution.
radii = np.linalg.norm(y) * np.geomspace(0.5, 0.02, 8)
path = lopro.bpdn_path(A, y, radii)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.semilogx(radii, [np.linalg.norm(r.x - truth) for r in path], "o-", label="recovery error")
ax.axvline(sigma, color="0.6", ls=":", label="sigma from the noise")
ax.set(xlabel="sigma", ylim=(0, None))
ax.legend(frameon=False)
print("products with A and A':", [r.counts.matvecs + r.counts.rmatvecs for r in path])
plt.show()
