"""Instances with operators: random rows of cosine and Fourier transforms, and images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.fft
from scipy.sparse.linalg import LinearOperator

__all__ = ["cosine", "fourier", "image", "mri"]

Instance = tuple[Any, np.ndarray, float]


def measured(A: LinearOperator, x: np.ndarray, noise: float, rng: np.random.Generator) -> Instance:
    """Return measurements with noise of a given share of their norm."""
    clean = A @ x
    e = rng.standard_normal(clean.shape)
    e = e + 1j * rng.standard_normal(clean.shape) if np.iscomplexobj(clean) else e
    e *= noise * np.linalg.norm(clean) / np.linalg.norm(e)
    return A, clean + e, float(np.linalg.norm(e))


def spikes(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k random signs."""
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    return x


def cosine(d: int, seed: int) -> Instance:
    """Return a quarter of the rows of an orthonormal cosine transform."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(d, d // 4, replace=False))

    def adjoint(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(d)
        spectrum[rows] = y.ravel()
        return scipy.fft.idct(spectrum, norm="ortho")

    A = LinearOperator(
        (len(rows), d),
        matvec=lambda x: scipy.fft.dct(x.ravel(), norm="ortho")[rows],
        rmatvec=adjoint,
        dtype=np.float64,
    )
    return measured(A, spikes(d, d // 40, rng), 0.006, rng)


def fourier(d: int, seed: int) -> Instance:
    """Return a quarter of the rows of a unitary Fourier transform, and a complex signal."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(d, d // 4, replace=False))

    def adjoint(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(d, dtype=np.complex128)
        spectrum[rows] = y.ravel()
        return scipy.fft.ifft(spectrum, norm="ortho")

    A = LinearOperator(
        (len(rows), d),
        matvec=lambda x: scipy.fft.fft(x.ravel(), norm="ortho")[rows],
        rmatvec=adjoint,
        dtype=np.complex128,
    )
    phases = np.exp(2j * math.pi * rng.random(d))
    return measured(A, spikes(d, d // 40, rng) * phases, 0.006, rng)


def ellipses(n: int) -> np.ndarray:
    """Return an image of a few ellipses, bright on dark."""
    v, h = np.mgrid[-1.0 : 1.0 : n * 1j, -1.0 : 1.0 : n * 1j]
    picture = np.zeros((n, n))
    for level, cv, ch, a, b in (
        (1.0, 0.0, 0.0, 0.9, 0.7),
        (-0.7, 0.0, 0.0, 0.8, 0.6),
        (0.4, 0.3, 0.2, 0.2, 0.3),
        (0.3, -0.4, -0.2, 0.3, 0.1),
        (-0.2, -0.1, 0.3, 0.1, 0.25),
    ):
        picture[((v - cv) / a) ** 2 + ((h - ch) / b) ** 2 <= 1.0] += level
    return picture


class Wavelets:
    """An orthogonal wavelet basis of square images: coefficients as vectors."""

    def __init__(self, n: int, name: str = "db4") -> None:
        import pywt

        self._pywt, self._name, self._levels = pywt, name, int(math.log2(n)) - 4
        packed = pywt.coeffs_to_array(self._analysed(np.zeros((n, n))))
        self._shape, self._places = packed[0].shape, packed[1]

    def _analysed(self, picture: np.ndarray) -> Any:
        return self._pywt.wavedec2(picture, self._name, mode="periodization", level=self._levels)

    def coefficients(self, picture: np.ndarray) -> np.ndarray:
        return self._pywt.coeffs_to_array(self._analysed(picture))[0].ravel()

    def picture(self, coefficients: np.ndarray) -> np.ndarray:
        parts = self._pywt.array_to_coeffs(
            coefficients.reshape(self._shape), self._places, output_format="wavedec2"
        )
        return self._pywt.waverec2(parts, self._name, mode="periodization")


def mri(n: int, share: float, noise: float, seed: int) -> Instance:
    """Return an MRI-like instance: Fourier coefficients of an image, sampled more densely near zero."""
    rng = np.random.default_rng(seed)
    basis = Wavelets(n)
    distance = np.hypot(*np.meshgrid(*(2 * [np.fft.fftfreq(n)]), indexing="ij"))
    priority = np.exp(-6.0 * distance) * rng.random((n, n))
    mask = priority >= np.quantile(priority, 1.0 - share)

    def adjoint(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros((n, n), dtype=np.complex128)
        spectrum[mask] = y.ravel()
        return basis.coefficients(scipy.fft.ifft2(spectrum, norm="ortho"))

    A = LinearOperator(
        (int(mask.sum()), n * n),
        matvec=lambda x: scipy.fft.fft2(basis.picture(x.ravel()), norm="ortho")[mask],
        rmatvec=adjoint,
        dtype=np.complex128,
    )
    return measured(A, basis.coefficients(ellipses(n).astype(np.complex128)), noise, rng)


def image(n: int, noise: float, seed: int) -> Instance:
    """Return a third of the cosines of an image; the unknowns are wavelet coefficients."""
    rng = np.random.default_rng(seed)
    basis = Wavelets(n)
    rows = np.sort(rng.choice(n * n, n * n // 3, replace=False))
    rows[0] = 0  # the mean is measured

    def adjoint(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(n * n)
        spectrum[rows] = y.ravel()
        return basis.coefficients(scipy.fft.idctn(spectrum.reshape(n, n), norm="ortho"))

    A = LinearOperator(
        (len(rows), n * n),
        matvec=lambda x: scipy.fft.dctn(basis.picture(x.ravel()), norm="ortho").ravel()[rows],
        rmatvec=adjoint,
        dtype=np.float64,
    )
    return measured(A, basis.coefficients(ellipses(n)), noise, rng)
