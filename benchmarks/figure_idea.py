"""The picture of the idea: steps without constraint on F = f + h, and a few projections.

    python benchmarks/figure_idea.py [--docs]

Left, a slice: the objective, the penalty, their sum. Right, the iterates of a one-projection method in
the plane, as computed. ``--docs`` also renews the figure of the documentation.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from _style import BLUE, GREEN, GREY, VERMILION, save
from matplotlib.axes import Axes

import lopro
from lopro.constraints import ResidualBall
from lopro.methods.inner import AcceleratedGradient
from lopro.objectives import Linear
from lopro.penalties import Softplus

matplotlib.use("Agg")

SHADE = "#E9EEF2"


@dataclass(frozen=True)
class Recorded(AcceleratedGradient):
    """Accelerated gradient that keeps its iterates."""

    path: list[Any] = field(default_factory=list)

    def step(self, F: Any, state: Any) -> Any:
        state = super().step(F, state)
        self.path.append(state.x)
        return state


def draw_slice(ax: Axes) -> None:
    """Draw f, h and F for min -x s.t. x <= 0, where everything is known (T1)."""
    x = np.linspace(-1.0, 0.72, 400)
    penalty, f = Softplus(2.4, 0.12), -x
    h = np.array([penalty.phi(c) for c in x])
    ax.axvspan(x[0], 0.0, color=SHADE, lw=0)
    curves = {
        "$f$": (f, GREY),
        "$h$": (h, GREEN),
        "$F = f + h$": (f + h, BLUE),
    }
    for name, (values, colour) in curves.items():
        ax.plot(x, values, color=colour, lw=2.0)
        ax.text(x[-1] + 0.03, values[-1], name, color=colour, va="center", fontsize=11)
    i = int(np.argmin(f + h))
    ax.plot(x[i], (f + h)[i], "o", color=BLUE, ms=6)
    ax.annotate(
        "minimum of $F$:\nnear the boundary", (x[i], (f + h)[i]), color=BLUE, fontsize=9,
        xytext=(-0.93, -0.42), arrowprops={"arrowstyle": "-", "color": BLUE, "lw": 0.8},
        va="center",
    )  # fmt: skip
    ax.text(-0.97, 1.58, "feasible:  $c(x) \\leq 0$", color=GREY, fontsize=9)
    ax.set(title="A penalty instead of the constraint", xlim=(-1.0, 0.72), ylim=(-0.75, 1.75))
    ax.set(xticks=[], yticks=[], xlabel="$x$")


def walk(steps: int) -> tuple[lopro.Problem, Any, Any]:
    """Return a problem, the iterates of a one-projection method, and the projected point."""
    matrix = np.array([[1.0, 0.25], [0.0, 2.0]])
    problem = lopro.Problem(Linear(np.array([-0.35, -1.0])), ResidualBall(matrix, np.zeros(2), 1.0))
    inner, start = Recorded(), np.array([-0.85, 0.12])
    # A weight between the multiplier and its double: the minimum of F is outside the set.
    method = lopro.OneProjection(inner, Softplus(lam=0.36, gamma=0.5), iterations=steps)
    result = lopro.solve(problem, start, method, tol=0)
    return problem, np.array([start, *inner.path]), result.x


def draw_plane(ax: Axes) -> None:
    problem, path, projected = walk(14)
    u, v = np.meshgrid(np.linspace(-1.2, 1.5, 200), np.linspace(-0.7, 0.95, 200))
    points = np.stack([u.ravel(), v.ravel()], axis=1)
    c = np.array([problem.constraint.value(p) for p in points]).reshape(u.shape)
    f = np.array([problem.objective.value(p) for p in points]).reshape(u.shape)
    ax.contour(u, v, f, levels=12, colors="#D5D5D5", linewidths=0.7, linestyles="-")
    ax.contourf(u, v, c, levels=[-9.0, 0.0], colors=[SHADE])
    ax.contour(u, v, c, levels=[0.0], colors=[GREY], linewidths=1.2)
    ax.plot(path[:, 0], path[:, 1], "-o", color=BLUE, ms=3.5, lw=1.2)
    arrow = {"arrowstyle": "-|>", "color": VERMILION, "lw": 2.2, "shrinkA": 0, "shrinkB": 4}
    ax.annotate("", projected, path[-1], arrowprops=arrow)
    ax.plot(*projected, "*", color=VERMILION, ms=13, mec="white", mew=0.8, zorder=5)
    ax.text(*(path[len(path) // 4] + (0.0, 0.07)), "walk on $F$", color=BLUE, fontsize=10)
    ax.text(*(path[-1] + (0.05, -0.02)), "project", color=VERMILION, fontsize=10)
    ax.text(-0.83, -0.62, "level lines of $f$", color="#8A8A8A", fontsize=9)
    ax.set(title=f"{len(path) - 1} steps without constraint, one projection", aspect="equal")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="renew the figure in docs/images")
    docs = parser.parse_args().docs
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.0, 3.9), layout="constrained", width_ratios=[1.0, 1.35]
    )
    draw_slice(left)
    draw_plane(right)
    for path in save(figure, "idea", docs=docs):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
