"""
An electrocardiogram from half the measurements
===============================================

A heartbeat is sparse in a wavelet basis, so half as many random measurements as samples are enough. The
functions come from ``examples/ecg.py``, which is also a script and explains more.
"""

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pywt

import lopro

sys.path.append(str(Path(sys.argv[0]).resolve().parents[1]))  # where ecg.py is
from ecg import NOISE, TOL, draw_scales, draw_signals, measure, print_table, snr

experiment = measure(pywt.data.ecg().astype(float), 512)
m, n = experiment.A.shape
print(f"{m} measurements of {n} samples, {NOISE:.0%} noise")

# %%
# The measurements are ``A x`` with ``x`` the wavelet coefficients; ``A`` is an explicit matrix, so
# `lopro.bpdn` can read single columns of it.
result = lopro.bpdn(experiment.A, experiment.y, experiment.sigma, tol=TOL)
print_table(experiment, result)

# %%
# The gap shows that the solver is done: the remaining error is due to noise and missing measurements, and no
# other solver of this problem would have a smaller one.
estimate = experiment.W.T @ result.x
fig, axes = plt.subplots(3, 1, figsize=(7.5, 5), layout="constrained")
draw_signals(list(axes), experiment, estimate)

# %%
# Few coefficients carry the signal, most of the others are exactly zero in the answer.
fig, ax = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
draw_scales(ax, experiment, result.x)

# %%
# How does quality depend on the number of measurements?
for rows in (256, 384, 512, 640):
    e = measure(pywt.data.ecg().astype(float), rows)
    r = lopro.bpdn(e.A, e.y, e.sigma, tol=1e-4)
    print(
        f"{rows:4d} measurements: {snr(e.signal, e.W.T @ r.x):5.1f} dB, {np.count_nonzero(r.x)} nonzeros"
    )
plt.show()
