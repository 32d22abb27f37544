"""What constants change: each is divided and multiplied by a factor, and Newton's work is counted.

    python -m benchmarks.constants newton [--factor 10] [--only NAME] [--skip NAME]

For every numeric constant of the modules of a package: the factorisations and iterations of some problems
relative to those with its own value (the ratio of the sums, and the largest ratio of one problem), and the
problems that are not certified any more. A constant that changes
nothing at either end is a candidate for removal, with the branch that it steers.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from lopro.constraints import Affine, Box, Intersection, Polyhedron, ResidualBall
from lopro.methods.semidefinite import semidefinite_form
from lopro.newton.sdp import solve
from lopro.objectives import HingeLoss, L1Norm, LeastSquares, Linear, Logistic, Quadratic

#: What a problem took: factorisations and steps, and whether it was certified.
Work = tuple[float, bool]


def problems(package: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls that run a package on small problems, from fixed seeds."""
    return over_matrices() if package == "newton.sdp" else over_vectors()


def over_matrices() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield semidefinite programs and nearest matrices."""
    rng, n = np.random.default_rng(1), 24
    C, G = rng.standard_normal((n, n)), np.corrcoef(rng.standard_normal((n, 12)))
    C, G = C + C.T, G + 0.3 * (np.triu(C, 1) + np.triu(C, 1).T) / n
    cone, at = lopro.constraints.PSDCone(n), np.arange(n)
    ones = Affine.entries((at, at), 1.0, 1.0, shape=(n, n))
    i, j = np.triu_indices(n, 1)
    zero = Affine.entries((i[::9], j[::9]), 0.0, 0.0, shape=(n, n))
    trace = Affine(np.eye(n).reshape(1, -1), 1.0, 1.0, shape=(n, n))
    rows = np.stack([M + M.T for M in rng.standard_normal((10, n, n))])
    inside = np.einsum("kij,ij->k", rows, np.eye(n))
    dense = Affine(rows.reshape(10, -1), inside, inside, shape=(n, n))
    W = scipy.sparse.random_array((60, 60), density=0.1, rng=rng).toarray()
    near = lopro.objectives.SquaredDistance(C)
    sets = {
        "diagonal": (Linear(C), Intersection(cone, ones), None),
        "entries of zero": (
            Linear(C),
            Intersection(cone, trace, zero),
            None,
        ),
        "dense rows": (Linear(C @ C / n), Intersection(cone, dense), None),
        "nearest, diagonal": (near, Intersection(cone, ones), lopro.NearestSemidefinite()),
        "nearest, dense rows": (near, Intersection(cone, dense), lopro.NearestSemidefinite()),
    }
    for name, (f, c, method) in sets.items():
        problem = lopro.Problem(f, c)
        if method is None:
            program = semidefinite_form(problem).program
            yield name, lambda program=program: solve(program, engines=("newton",), seconds=10.0)
        else:
            yield name, lambda p=problem, m=method: lopro.solve(p, method=m)
    yield "low rank", lambda: lopro.fixed_diagonal((W + W.T) / 4)
    yield "correlation", lambda: lopro.nearest_correlation(G)
    yield "correlation, far", lambda: lopro.nearest_correlation(np.clip(2.0 * C, -1.0, 1.0))


def over_vectors() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems of each of the kinds of Newton's method for vectors."""
    rng = np.random.default_rng(0)
    newton = lopro.NewtonMultipliers()
    X, y = rng.standard_normal((200, 20)), np.sign(rng.standard_normal(200))
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    G = rng.standard_normal((40, 20))
    rows = Polyhedron(G, 0.1 + rng.random(40))
    n, m = 30, 60
    C = rng.standard_normal((m, n))
    side = C @ rng.standard_normal(n) + rng.random(m)
    sides = Polyhedron(
        np.vstack([C, np.eye(n), -np.eye(n)]), np.concatenate([side, np.full(2 * n, 5.0)])
    )
    D = scipy.sparse.diags_array(
        [-np.ones(199), np.ones(199)], offsets=[0, 1], shape=(199, 200)
    ).tocsr()
    eye, cube = scipy.sparse.eye_array(200, format="csr"), Box(-np.ones(80), np.ones(80))
    wide = rng.standard_normal((30, 80))
    found = {
        "least squares, rows": (LeastSquares(A, b), rows),
        "logistic, rows": (Logistic(X, y), rows),
        "logistic, box": (Logistic(X, y), Box(-np.full(20, 0.05), np.full(20, 0.05))),
        "logistic, columns 1e-6 to 1e6": (Logistic(X * np.logspace(-6, 6, 20), y), None),
        "quadratic, equations": (Quadratic(A.T @ A), Affine(G[:8], lower=1.0, upper=1.0)),
        "linear, many rows": (Linear(rng.standard_normal(n)), sides),
        "linear, degenerate": (Linear(np.ones(n)), Polyhedron(np.vstack([C, C, -np.eye(n)]), np.zeros(150))),
        "sparse differences": (Quadratic(eye, -rng.standard_normal(200)), Affine(D, lower=-0.1, upper=0.1)),
        "wide least squares, box": (LeastSquares(wide, rng.standard_normal(30)), cube),
        "l1, rows": (L1Norm(shape=(20,)), Polyhedron(-G, -np.abs(G @ rng.standard_normal(20)))),
        "hinge, ridge": (HingeLoss(X, y) + 0.5 * Quadratic(np.eye(20)), None),
        "ball and rows": (Linear(rng.standard_normal(20)), Intersection(rows, ResidualBall(A, b, 8.0))),
        "a callable, box": (
            lopro.objectives.FunctionObjective(
                lambda x: float(np.sum(np.cosh(x - b[:20]))),
                gradient=lambda x: np.sinh(x - b[:20]), shape=(20,), smoothness=20.0,
            ),
            Box(-np.ones(20), np.ones(20)),
        ),
        "empty": (LeastSquares(A, b), Intersection(rows, Polyhedron(-G[:1], np.array([-50.0])))),
    }  # fmt: skip
    for name, (f, c) in found.items():
        problem = lopro.Problem(f) if c is None else lopro.Problem(f, c)
        yield name, lambda problem=problem: lopro.solve(problem, method=newton, max_iter=300)


def measure(package: str) -> dict[str, Work]:
    """Return the work of all problems."""
    found = {}
    for name, call in problems(package):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
        certified = result.status.name in ("CONVERGED", "INFEASIBLE")
        found[name] = _work(result), certified
    return found


def _work(result: Any) -> float:
    if not hasattr(result, "counts"):
        return float(result.steps)
    counts = result.counts
    return float(result.iterations + counts.factorizations + counts.eigendecompositions)


def constants(package: str) -> Iterator[tuple[str, float, Callable[[Any], None]]]:
    """Yield the numeric constants of a package: full name, value, and what sets another one.

    Fields of classes called Settings count as well: what is set is their default.
    """
    home = importlib.import_module(f"lopro.{package}")
    for info in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
        module = importlib.import_module(info.name)
        name = info.name.removeprefix("lopro.")
        with open(str(module.__file__), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in tree.body:
            if isinstance(node, ast.Assign):
                targets = [t for top in node.targets for t in ast.walk(top)]
                for key in [t.id for t in targets if isinstance(t, ast.Name)]:
                    if type(getattr(module, key)) in (int, float):
                        setter = functools.partial(setattr, module, key)
                        yield f"{name}.{key}", getattr(module, key), setter
            if isinstance(node, ast.ClassDef) and node.name == "Settings":
                kind = getattr(module, node.name)
                for i, field in enumerate(dataclasses.fields(kind)):
                    if type(field.default) in (int, float):
                        yield (
                            f"{name}.{field.name}",
                            field.default,
                            functools.partial(_default, kind, i),
                        )


def _default(kind: Any, i: int, value: Any) -> None:
    """Set the default of the field i of a dataclass all of whose fields have one."""
    found = list(kind.__init__.__defaults__)
    found[i] = value
    kind.__init__.__defaults__ = tuple(found)


def compare(base: dict[str, Work], now: dict[str, Work]) -> str:
    """Return the largest change, the change of the sum, and what is lost, in words."""
    ratios = {k: (now[k][0] + 1.0) / (base[k][0] + 1.0) for k in base}
    worst = max(ratios, key=lambda k: abs(np.log(ratios[k])))
    whole = sum(w for w, _ in now.values()) / sum(w for w, _ in base.values())
    lost = [k for k in base if base[k][1] and not now[k][1]]
    changed = sum(r != 1.0 for r in ratios.values())
    said = f"{whole:5.2f} in all, {ratios[worst]:5.2f} at most ({worst}), {changed} changed"
    return said + (f", lost: {', '.join(lost)}" if lost else "")


def main() -> None:
    """Print a line for each constant and end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", help="of lopro: newton, for instance")
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--skip", help="names that contain this are left out")
    options = parser.parse_args()
    base = measure(options.package)
    for name, (work, certified) in base.items():
        print(f"{name:32s} {work:6.0f} {'certified' if certified else 'not certified'}", flush=True)
    for name, own, setter in constants(options.package):
        if options.only not in name or (options.skip and options.skip in name):
            continue
        for factor in (1.0 / options.factor, options.factor):
            setter(type(own)(own * factor))
            said = compare(base, measure(options.package))
            setter(own)
            print(f"{name + f' = {own:g}':48s} x {factor:<5g} {said}", flush=True)


if __name__ == "__main__":
    main()
