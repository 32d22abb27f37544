"""Total variation with a blur operator: `lopro.solve` against a primal-dual method (PDHG).

    python -m benchmarks.general.imaging [--sides N ...] [--small]

Least variation over a residual ball, and penalised least squares. The other solver is Chambolle and Pock's
method with 3,000 fixed steps in the same process, without a proof; lopro proves gaps of 1e-3 and 1e-4.
Processor time; the ratio is that of lopro to the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from scipy.sparse.linalg import LinearOperator

import lopro
from benchmarks._report import write_json

STEPS = 3000
#: The steps in all, and the number that is timed, since all take the same time.
TIMED = 300
TOLERANCES = (1e-3, 1e-4)
#: Width of the blur in pixels, standard deviation of the noise, weight of the variation.
BLUR, NOISE, WEIGHT = 2.0, 0.01, 0.005
LIMIT = 300.0


@dataclass(frozen=True)
class Blurred:
    """A blurred and noisy image of rectangles and discs."""

    side: int
    kernel: Any
    y: Any

    @staticmethod
    def of(side: int) -> Blurred:
        rng = np.random.default_rng(0)
        down, right = np.mgrid[:side, :side] / side
        image = np.zeros((side, side))
        image[(down > 0.2) & (down < 0.6) & (right > 0.3) & (right < 0.8)] = 0.7
        image[(down - 0.65) ** 2 + (right - 0.4) ** 2 < 0.03] = 1.0
        image[(down - 0.3) ** 2 + (right - 0.6) ** 2 < 0.01] = 0.3
        waves = np.fft.fftfreq(side)[:, None] ** 2 + np.fft.rfftfreq(side)[None, :] ** 2
        kernel = np.exp(-2.0 * (np.pi * BLUR) ** 2 * waves)
        clean = Blurred(side, kernel, None).apply(image.ravel())
        return Blurred(side, kernel, clean + NOISE * rng.standard_normal(side * side))

    @property
    def radius(self) -> float:
        """The expected length of the noise."""
        return NOISE * self.side

    def apply(self, x: Any) -> Any:
        """Blur an image; the operator is symmetric."""
        shape = (self.side, self.side)
        return scipy.fft.irfft2(scipy.fft.rfft2(x.reshape(shape)) * self.kernel, s=shape).ravel()

    def problem(self, form: str) -> lopro.Problem:
        """Return the problem as a user writes it."""
        size = self.side**2
        A = LinearOperator((size, size), matvec=self.apply, rmatvec=self.apply, dtype=float)
        variation = lopro.objectives.TotalVariation((self.side, self.side))
        if form == "ball":
            ball = lopro.constraints.ResidualBall(A, self.y, self.radius)
            return lopro.Problem(variation, ball)
        return lopro.Problem(lopro.objectives.LeastSquares(A, self.y) + WEIGHT * variation)


def primal_dual(data: Blurred, form: str, steps: int) -> Any:
    """Make Chambolle and Pock's steps; the norms of differences and blur are at most sqrt(8) and 1."""
    shape, y = (data.side, data.side), data.y
    size = 0.3 / 3.0, 1.0 / (0.3 * 3.0)
    bound = 1.0 if form == "ball" else WEIGHT
    x, ahead = np.zeros(shape), np.zeros(shape)
    w, u = np.zeros((2, *shape)), np.zeros(data.side**2)
    for _ in range(steps):
        w[0, :-1] += size[1] * np.diff(ahead, axis=0)
        w[1, :, :-1] += size[1] * np.diff(ahead, axis=1)
        w /= np.maximum(1.0, np.sqrt(w[0] ** 2 + w[1] ** 2) / bound)
        u = u + size[1] * (data.apply(ahead) - y)
        if form == "ball":
            u *= max(0.0, 1.0 - size[1] * data.radius / np.linalg.norm(u))
        else:
            u /= 1.0 + size[1]
        pulled = data.apply(u).reshape(shape)
        pulled[:-1] -= w[0, :-1]
        pulled[1:] += w[0, :-1]
        pulled[:, :-1] -= w[1, :, :-1]
        pulled[:, 1:] += w[1, :, :-1]
        new = x - size[0] * pulled
        x, ahead = new, 2.0 * new - x
    return x.ravel()


def seconds_of_peer(data: Blurred, form: str) -> float:
    """Return the processor time of all primal-dual steps."""
    begin = time.process_time()
    primal_dual(data, form, TIMED)
    return (time.process_time() - begin) * STEPS / TIMED


def measure(side: int, form: str) -> list[dict[str, Any]]:
    """Return the ratios for one problem."""
    data = Blurred.of(side)
    runs = []
    for tol in TOLERANCES:
        # Before and after lopro, since other processes share the memory bandwidth.
        before = seconds_of_peer(data, form)
        begin = time.process_time()
        result = lopro.solve(data.problem(form), tol=tol, time_limit=LIMIT)
        spent = time.process_time() - begin
        peer = 0.5 * (before + seconds_of_peer(data, form))
        runs.append(
            {
                "problem": f"{form} {side} x {side}", "tol": tol, "seconds": spent, "peer": peer,
                "ratio": spent / peer, "fun": result.fun, "gap": result.certificate.relative_gap,
                "success": result.success, "method": result.method,
                "products": result.counts.matvecs + result.counts.rmatvecs,
            }
        )  # fmt: skip
        print(
            f"{form:>9} {side:4} x {side:<4} tol {tol:.0e}: {spent:7.2f} s, {spent / peer:5.2f} times "
            f"{STEPS} steps, gap {result.certificate.relative_gap:.1e}, {result.status.name}",
            flush=True,
        )
    return runs


def entries(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs in the format of the common table; the other solver proves no gap."""
    found = []
    for run in runs:
        problem, status = (
            f"{run['problem']} {run['tol']:.0e}",
            "CONVERGED" if run["success"] else "",
        )
        ours = {"peer": "lopro", "seconds": run["seconds"], "status": status}
        peer = {"peer": "primal-dual", "seconds": run["peer"], "status": "not proved"}
        found += [{"problem": problem, **each} for each in (ours, peer)]
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--small", action="store_true", help="toy sizes, as a test")
    options = parser.parse_args(arguments)
    sides = [16] if options.small else options.sides
    runs = [run for side in sides for form in ("ball", "penalised") for run in measure(side, form)]
    if not options.small:
        write_json("imaging", {"runs": runs})
        write_json("general_imaging", {"runs": entries(runs)})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
