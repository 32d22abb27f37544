"""The problems, one seeded function each: ``min |x|_1  s.t.  |A x - y|_2 <= sigma``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft
from scipy.sparse.linalg import LinearOperator

__all__ = ["PROBLEMS", "CountedOperator", "Instance", "toy"]

#: Above this number of rows, methods that project get an operator: factorising A A' takes too long.
FACTORISED_ROWS = 2000


class CountedOperator(LinearOperator):
    """A matrix or operator that counts the products of another solver."""

    def __init__(self, A: Any) -> None:
        self.A, self.forward, self.adjoint = A, 0, 0
        super().__init__(dtype=A.dtype, shape=A.shape)

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        self.forward += 1
        return self.A @ x.ravel()

    def _rmatvec(self, y: np.ndarray) -> np.ndarray:
        self.adjoint += 1
        y = y.ravel()
        if not isinstance(self.A, np.ndarray):
            return self.A.rmatvec(y)
        # The vectors are conjugated, not the matrix, which would be copied.
        return self.A.T @ y if np.isrealobj(self.A) else np.conj(self.A.T @ np.conj(y))


@dataclass(frozen=True)
class Instance:
    """One problem; ``tight_frame`` is c where ``A A^H = c I``."""

    name: str
    A: Any
    y: np.ndarray
    sigma: float
    tight_frame: float | None = None

    @property
    def explicit(self) -> bool:
        """Whether A is an explicit matrix."""
        return isinstance(self.A, np.ndarray)

    @property
    def is_complex(self) -> bool:
        """Whether the data are complex."""
        return np.iscomplexobj(self.y)

    @property
    def entries(self) -> int:
        """Rows times columns."""
        return int(self.A.shape[0]) * int(self.A.shape[1])

    @cached_property
    def for_projections(self) -> Any:
        """A in the form that methods with projections receive."""
        return self.A if self.A.shape[0] <= FACTORISED_ROWS else CountedOperator(self.A)


def sparse_signal(rng: np.random.Generator, d: int, nonzeros: int) -> np.ndarray:
    """Return a vector with uniform nonzeros at random positions."""
    x = np.zeros(d)
    support = rng.choice(d, nonzeros, replace=False)
    x[support] = rng.uniform(-1, 1, nonzeros)
    return x


def uniform_recipe(name: str, m: int, d: int, nonzeros: int, seed: int) -> Instance:
    """The paper's recipe: uniform matrix, signal and noise; sigma is the norm of the noise."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (m, d))
    x = sparse_signal(rng, d, nonzeros)
    noise = rng.uniform(-0.01, 0.01, m)
    return Instance(name, A, A @ x + noise, float(np.linalg.norm(noise)))


def paper(quick: bool) -> Instance:
    return uniform_recipe("paper", *((100, 400, 8) if quick else (1000, 5000, 100)), seed=0)


def large(quick: bool) -> Instance:
    return uniform_recipe("large", *((150, 600, 12) if quick else (4000, 20000, 400)), seed=1)


def hard(quick: bool) -> Instance:
    """The paper's instance with a tenth of the radius: the noise has to be fitted too."""
    easy = paper(quick)
    return Instance("hard", easy.A, easy.y, easy.sigma / 10.0)


def dct(quick: bool) -> Instance:
    """Random rows of an orthonormal cosine transform."""
    d = 2**10 if quick else 2**18
    m = d // 4
    rng = np.random.default_rng(2)
    rows = np.sort(rng.choice(d, m, replace=False))

    def matvec(x: np.ndarray) -> np.ndarray:
        return scipy.fft.dct(x.ravel(), norm="ortho")[rows]

    def rmatvec(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(d)
        spectrum[rows] = y.ravel()
        return scipy.fft.idct(spectrum, norm="ortho")

    A = LinearOperator((m, d), matvec=matvec, rmatvec=rmatvec, dtype=np.float64)
    noise = 1e-3 * rng.standard_normal(m)
    y = A @ sparse_signal(rng, d, m // 10) + noise
    return Instance("dct", A, y, float(np.linalg.norm(noise)), tight_frame=1.0)


def fourier(quick: bool) -> Instance:
    """Random rows of a unitary Fourier transform, complex signal."""
    d = 2**9 if quick else 2**16
    m = d // 4
    rng = np.random.default_rng(3)
    rows = np.sort(rng.choice(d, m, replace=False))

    def matvec(x: np.ndarray) -> np.ndarray:
        return scipy.fft.fft(x.ravel(), norm="ortho")[rows]

    def rmatvec(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(d, dtype=np.complex128)
        spectrum[rows] = y.ravel()
        return scipy.fft.ifft(spectrum, norm="ortho")

    A = LinearOperator((m, d), matvec=matvec, rmatvec=rmatvec, dtype=np.complex128)
    phases = np.exp(2j * np.pi * rng.uniform(size=d))
    noise = 1e-3 * (rng.standard_normal(m) + 1j * rng.standard_normal(m))
    y = A @ (sparse_signal(rng, d, m // 10) * phases) + noise
    return Instance("fourier", A, y, float(np.linalg.norm(noise)), tight_frame=1.0)


def ecg(quick: bool) -> Instance:
    """The electrocardiogram of PyWavelets in a db4 basis, Gaussian sensing, noise of 40 dB."""
    import pywt

    signal = pywt.data.ecg().astype(float)[: 256 if quick else 1024]
    d = signal.size
    m = d // 2
    rng = np.random.default_rng(4)
    sensing = rng.standard_normal((m, d)) / np.sqrt(m)
    # The rows of the analysis matrix are the wavelets: the basis is orthogonal.
    level = 4 if quick else 6
    analysed = [
        np.concatenate(pywt.wavedec(e, "db4", mode="periodization", level=level)) for e in np.eye(d)
    ]
    A = sensing @ np.array(analysed)
    clean = sensing @ signal
    noise = rng.standard_normal(m)
    noise *= 0.01 * np.linalg.norm(clean) / np.linalg.norm(noise)
    return Instance("ecg", A, clean + noise, float(np.linalg.norm(noise)))


def ill_conditioned(quick: bool) -> Instance:
    """Singular values spread evenly on a logarithmic scale over four decades."""
    m, d, nonzeros = (60, 200, 5) if quick else (500, 2000, 25)
    rng = np.random.default_rng(5)
    U, _ = np.linalg.qr(rng.standard_normal((m, m)))
    V, _ = np.linalg.qr(rng.standard_normal((d, m)))
    A = (U * np.geomspace(1.0, 1e-4, m)) @ V.T
    clean = A @ sparse_signal(rng, d, nonzeros)
    noise = rng.standard_normal(m)
    noise *= 1e-3 * np.linalg.norm(clean) / np.linalg.norm(noise)
    return Instance("ill-conditioned", A, clean + noise, float(np.linalg.norm(noise)))


def toy() -> Instance:
    """A small problem on which every package imports and compiles what it needs."""
    return uniform_recipe("toy", 20, 60, 3, seed=0)


PROBLEMS: dict[str, Callable[[bool], Instance]] = {
    "paper": paper,
    "large": large,
    "dct": dct,
    "ecg": ecg,
    "fourier": fourier,
    "ill-conditioned": ill_conditioned,
    "hard": hard,
}
