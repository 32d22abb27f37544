"""
Sharpening an image, with a proof
=================================

A blurred and noisy image is sharpened by total variation: the image with the least variation among those
whose blurred copy differs from the data by no more than the noise. The blur is an operator, a product in
Fourier space; `lopro.solve` needs products only, and proves how far its answer is from the optimum.
"""

# %%
# The data: rectangles and a disc, blurred over about two pixels, with noise.
import matplotlib.pyplot as plt
import numpy as np
import scipy.fft
from scipy.sparse.linalg import LinearOperator

import lopro

n, noise = 48, 0.02
down, right = np.mgrid[:n, :n] / n
image = np.zeros((n, n))
image[(down > 0.2) & (down < 0.6) & (right > 0.3) & (right < 0.8)] = 0.7
image[(down - 0.65) ** 2 + (right - 0.4) ** 2 < 0.03] = 1.0
waves = np.fft.fftfreq(n)[:, None] ** 2 + np.fft.rfftfreq(n)[None, :] ** 2
kernel = np.exp(-2.0 * (np.pi * 1.5) ** 2 * waves)


def blur(x: np.ndarray) -> np.ndarray:
    return scipy.fft.irfft2(scipy.fft.rfft2(x.reshape(n, n)) * kernel, s=(n, n)).ravel()


A = LinearOperator((n * n, n * n), matvec=blur, rmatvec=blur, dtype=float)
y = blur(image) + noise * np.random.default_rng(0).standard_normal(n * n)

# %%
# The problem: the variation, a ball around the data, and pixels between 0 and 1.
pixels = lopro.constraints.Box(np.zeros(n * n), np.ones(n * n))
near = lopro.constraints.ResidualBall(A, y, noise * n)
problem = lopro.Problem(
    lopro.objectives.TotalVariation((n, n)), lopro.constraints.Intersection(near, pixels)
)
result = lopro.solve(problem, tol=1e-3)
print(result)

# %%
# If the weight of the variation is known rather than the noise level, use the penalised form.
penalised = lopro.objectives.LeastSquares(A, y) + 0.01 * lopro.objectives.TotalVariation((n, n))
other = lopro.solve(lopro.Problem(penalised), tol=1e-3)
print(other.status.name, f"{other.certificate.relative_gap:.1e}")

# %%
# The data, the answer of the first problem, and the truth.
figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.7))
pictures = {"blurred and noisy": y, "least variation": result.x, "truth": image}
for axis, (name, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture.reshape(n, n), cmap="gray", vmin=0.0, vmax=1.0)
    axis.set_title(name, fontsize=9)
    axis.set_axis_off()
figure.tight_layout()
