"""
A photograph without forming a matrix
=====================================

A third of the scrambled cosine transform of an image is enough to recover it. As a matrix, the measurement
would fill gigabytes; `lopro.bpdn` uses only products with it. The functions come from
``examples/image.py``, which is also a script and explains more.
"""

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import lopro

sys.path.append(str(Path(sys.argv[0]).resolve().parents[1]))  # where image.py is
from image import Scrambler, Wavelets, adjoint_error, operator, photograph, print_table, psnr

rng = np.random.default_rng(2017)
image = photograph(128)
wavelets, device = Wavelets(128), Scrambler(128, rng)
A = operator(device, wavelets)
print(type(A).__name__, A.shape)

# %%
# The certificate is valid only if ``rmatvec`` is the adjoint of ``matvec``. Test it once, with random
# vectors:
print(f"|<A x, v> - <x, A' v>| = {adjoint_error(A, rng):.1e}")

# %%
clean = device.measure(image)
std = 0.01 * np.linalg.norm(clean) / np.sqrt(device.m)
y = clean + std * rng.standard_normal(device.m)
sigma = std * np.sqrt(device.m + 2.0 * np.sqrt(2.0 * device.m))

result = lopro.bpdn(A, y, sigma, tol=1e-4)
naive, recovered = device.adjoint(y), wavelets.synthesise(result.x)
print_table(A, (psnr(image, naive), psnr(image, recovered)), result)

# %%
fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
pictures = {"original": image, "A' y": naive, "lopro.bpdn": recovered}
for ax, (title, picture) in zip(axes, pictures.items(), strict=True):
    ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
