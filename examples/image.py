"""Recover a photograph from a third of its scrambled cosine transform, without forming a matrix.

The problem
-----------
The image ``u`` has n = 256 x 256 pixels. A measurement flips the signs of the pixels at random, takes
the two-dimensional cosine transform, and keeps 35 % of its coefficients, chosen at random; noise of 1 %
is added. The flips spread every pixel over all frequencies, so that all measurements are equally
important, as is desirable for an optical or a radar device that cannot record everything.

Photographs have few large wavelet coefficients. With ``u = W' x`` for an orthogonal wavelet transform
W, take the coefficients of least l1 norm among those that explain the measurements:

    minimise |x|_1   subject to   |A x - y|_2 <= sigma,   A = (keep) (cosine transform) (signs) W'.

The call
--------
As a matrix, A would have 22,937 x 65,536 entries: 12 GB. But A x takes two fast transforms, and products
are all that lopro needs: a `scipy.sparse.linalg.LinearOperator` with ``matvec`` and ``rmatvec``, then
``lopro.bpdn(A, y, sigma, tol=1e-6)``. For the picture alone, ``tol=1e-3`` would do: it takes about half
the products, and the PSNR is the same to a tenth of a decibel.

``rmatvec`` must be the adjoint of ``matvec``; the certificate depends on it. Test it by
comparing ``<A x, v>`` with ``<x, A' v>`` for random x and v, as `adjoint_error` does below.

How to read the certificate
---------------------------
The answer is feasible, and ``certificate.lower_bound <= optimum <= result.fun``. So a relative gap of
1e-6 says: no image that explains the measurements has a wavelet l1 norm smaller by more than a
millionth, so more iterations do not help. The remaining artefacts are due to the model (few
measurements, noise, this wavelet).

For comparison the table and the figure show ``A' y``, the naive reconstruction. As the rows of A are
orthonormal, this is also the least-squares solution of least energy: same data, l2 in place of l1.

Run
---
    python examples/image.py                  # the table
    python examples/image.py --save           # and examples/figures/image.png
    python examples/image.py --save my.png    # or a file of your choice
    python examples/image.py --quick          # 64 x 64 pixels

It needs ``pip install "lopro[examples]"`` (PyWavelets includes the image) and takes a few seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pywt
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import LinearOperator

import lopro

FIGURE = Path(__file__).parent / "figures" / "image.png"
WAVELET = "db4"
FRACTION = 0.35  # of the coefficients are measured
NOISE = 0.01  # norm of the noise relative to that of the clean measurements
TOL = 1e-6
SEED = 2017


class Wavelets:
    """The orthogonal wavelet transform of square images, with coefficients as one vector."""

    def __init__(self, side: int) -> None:
        self.side = side
        self._level = min(4, pywt.dwt_max_level(side, WAVELET))
        _, self._layout = pywt.coeffs_to_array(self._decompose(np.zeros((side, side))))

    def _decompose(self, image: np.ndarray) -> list:
        # Periodic extension makes the transform orthogonal: the synthesis is its adjoint. That is
        # true of orthogonal wavelets only (dbN, symN, coifN), not of biorthogonal ones.
        return pywt.wavedec2(image, WAVELET, mode="periodization", level=self._level)

    def analyse(self, image: np.ndarray) -> np.ndarray:
        """Return the coefficients of an image."""
        return pywt.coeffs_to_array(self._decompose(image))[0].ravel()

    def synthesise(self, x: np.ndarray) -> np.ndarray:
        """Return the image that has these coefficients."""
        square = x.reshape(self.side, self.side)
        parts = pywt.array_to_coeffs(square, self._layout, output_format="wavedec2")
        return pywt.waverec2(parts, WAVELET, mode="periodization")


class Scrambler:
    """The device: signs flipped at random, cosine transform, some coefficients kept."""

    def __init__(self, side: int, rng: np.random.Generator) -> None:
        n = side * side
        self.m = int(FRACTION * n)
        self.signs = rng.choice([-1.0, 1.0], (side, side))
        self.kept = np.sort(rng.permutation(n)[: self.m])

    def measure(self, image: np.ndarray) -> np.ndarray:
        """Return the measurements of an image."""
        return dctn(self.signs * image, norm="ortho").ravel()[self.kept]

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """Return the adjoint of `measure` at ``v``: the inverse transform, zero at missing coefficients."""
        spectrum = np.zeros(self.signs.shape)
        spectrum.ravel()[self.kept] = v
        return self.signs * idctn(spectrum, norm="ortho")


def operator(device: Scrambler, wavelets: Wavelets) -> LinearOperator:
    """Return A, which maps wavelet coefficients to measurements."""
    return LinearOperator(
        shape=(device.m, wavelets.side**2),
        matvec=lambda x: device.measure(wavelets.synthesise(x)),
        rmatvec=lambda v: wavelets.analyse(device.adjoint(v)),
        dtype=np.float64,
    )


def adjoint_error(A: LinearOperator, rng: np.random.Generator) -> float:
    """Return the difference of ``<A x, v>`` and ``<x, A' v>`` for random unit vectors."""
    v, x = (z / np.linalg.norm(z) for z in map(rng.standard_normal, A.shape))
    return float(abs(A.matvec(x) @ v - x @ A.rmatvec(v)))


def photograph(side: int) -> np.ndarray:
    """Return PyWavelets' camera man with values in [0, 1], averaged down to ``side`` pixels."""
    image = pywt.data.camera() / 255.0
    block = image.shape[0] // side
    return image.reshape(side, block, side, block).mean(axis=(1, 3))


@dataclass(frozen=True)
class Observation:
    """A device and a wavelet basis, their operator, and measurements."""

    device: Scrambler
    wavelets: Wavelets
    A: LinearOperator
    y: np.ndarray
    sigma: float


def observe(image: np.ndarray) -> Observation:
    """Take noisy measurements of a square image."""
    rng = np.random.default_rng(SEED)
    wavelets, device = Wavelets(len(image)), Scrambler(len(image), rng)
    A = operator(device, wavelets)
    assert adjoint_error(A, rng) < 1e-12

    clean = device.measure(image)
    std = NOISE * np.linalg.norm(clean) / np.sqrt(device.m)
    y = clean + std * rng.standard_normal(device.m)
    # The norm of the noise is at most this with high probability: see ecg.py.
    sigma = std * np.sqrt(device.m + 2.0 * np.sqrt(2.0 * device.m))
    return Observation(device, wavelets, A, y, float(sigma))


def psnr(image: np.ndarray, estimate: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio in decibels, for a peak of 1."""
    return float(-10.0 * np.log10(np.mean((estimate - image) ** 2)))


def print_table(A: LinearOperator, psnrs: tuple[float, float], result: lopro.BPDNResult) -> None:
    """Print the quality of the answer, its certificate, and its cost."""
    c, counts = result.certificate, result.counts
    m, n = A.shape
    rows = [
        ("measurements", f"{m} for {n} pixels, {NOISE:.0%} noise"),
        ("PSNR of A' y", f"{psnrs[0]:.1f} dB"),
        ("PSNR of lopro.bpdn", f"{psnrs[1]:.1f} dB"),
        ("l1 norm of the answer", f"{result.fun:.4f}"),
        ("certified lower bound", f"{c.lower_bound:.4f}"),
        ("relative gap", f"{c.relative_gap:.1e} (tolerance: {TOL:.0e})"),
        ("violation", f"{c.violation:.1e}"),
        ("products with A, A'", f"{counts.matvecs}, {counts.rmatvecs}"),
        ("projections", f"{counts.projections}"),
        ("time", f"{result.seconds:.1f} s"),
        ("status", result.status.name),
    ]
    for name, value in rows:
        print(f"{name:<24}{value}")


def draw(images: list[tuple[str, np.ndarray]], path: Path) -> None:
    """Draw the images side by side, all on the grey scale of the original."""
    from matplotlib.figure import Figure  # without pyplot, so that no window opens

    figure = Figure(figsize=(12.0, 4.3), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    axes = figure.subplots(1, len(images))
    for ax, (title, image) in zip(axes, images, strict=True):
        ax.imshow(image, cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_title(title, fontsize=11)
        ax.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    print(f"figure: {path}")


def main(arguments: list[str] | None = None) -> int:
    """Run the example; the exit status is 0 if the answer is certified."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="use 64 x 64 pixels")
    parser.add_argument(
        "--save", nargs="?", type=Path, const=FIGURE, metavar="PNG", help="write the figure"
    )
    options = parser.parse_args(arguments)
    image = photograph(64 if options.quick else 256)
    seen = observe(image)
    result = lopro.bpdn(seen.A, seen.y, seen.sigma, tol=TOL)
    naive, recovered = seen.device.adjoint(seen.y), seen.wavelets.synthesise(result.x)
    psnrs = psnr(image, naive), psnr(image, recovered)
    print_table(seen.A, psnrs, result)
    if options.save is not None:
        titles = (
            f"original, {len(image)} × {len(image)} pixels",
            f"A' y, naive: PSNR {psnrs[0]:.1f} dB",
            f"lopro.bpdn, {FRACTION:.0%} measured: PSNR {psnrs[1]:.1f} dB",
        )
        draw(list(zip(titles, (image, naive, recovered), strict=True)), options.save)
    return 0 if result.success else 1


if __name__ == "__main__":
    raise SystemExit(main())
