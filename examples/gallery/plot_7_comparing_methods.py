"""
Comparing methods
=================

All methods run on one driver, with the same counters, certificates and history, so that a comparison is a
loop. Here basis pursuit denoising is solved by five methods of `lopro` and two baselines.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import lopro
from lopro.methods.baselines import NESTA, ProjectedSubgradient
from paper.experiments.instances import compressive_sensing

problem = compressive_sensing(m=100, d=400, nonzeros=10)
methods = {
    "WorkingSet": lopro.WorkingSet(),
    "MatrixFree": lopro.MatrixFree(),
    "MultiplierMethod": lopro.MultiplierMethod(),
    "LoPNAG": lopro.LoPNAG(),
    "LoPGD": lopro.LoPGD(),
    "NESTA": NESTA(1e-5, stages=1, variation=None, max_iter=2000, report=20),
    "ProjectedSubgradient": ProjectedSubgradient(iterations=2000, report=20),
}
results = {
    name: lopro.solve(problem, method=method, tol=1e-8, time_limit=2.0)
    for name, method in methods.items()
}
optimum = max(result.certificate.lower_bound for result in results.values())

# %%
# Gaps are certified by each run itself; the error is measured against the best lower bound that any run has
# proved, so it is an upper bound of the true error.
head = f"{'method':<22}{'status':<16}{'error':>9}{'own gap':>9}{'proj.':>7}{'products':>10}{'s':>7}"
print(head + "\n" + "-" * len(head))
for name, r in results.items():
    products = r.counts.matvecs + r.counts.rmatvecs
    print(
        f"{name:<22}{r.status.name:<16}{max(r.fun - optimum, 0):>9.0e}{r.certificate.relative_gap:>9.0e}"
        f"{r.counts.projections:>7}{products:>10}{r.seconds:>7.2f}"
    )

# %%
# The same as a picture: error against projections.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for (name, r), marker in zip(results.items(), "osD^vP*", strict=True):
    errors = np.maximum(np.minimum.accumulate(r.history["fun"]) - optimum, 1e-9)
    axes[0].semilogy(r.history["projections"], errors, marker=marker, ms=4, label=name)
    axes[1].loglog(np.maximum(r.history["seconds"], 1e-4), errors, marker=marker, ms=4, label=name)
axes[0].set_xscale("symlog", linthresh=1)  # the fastest method makes none
axes[0].set(xlabel="projections", ylabel="error, at most")
axes[1].set(xlabel="seconds")
axes[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))

# %%
# A baseline that projects in every iteration needs thousands of projections for an accuracy that the others
# reach with a handful. Whether that matters depends on what a projection costs: see the next example.
plt.show()
