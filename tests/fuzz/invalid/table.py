"""Calls that must be refused, each with words of which the message must contain one."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TABLE", "Bad"]


@dataclass(frozen=True)
class Bad:
    """A call and its invalid argument.

    Names: ``A`` (m, d), ``y`` (m,), ``Y`` (m, 2), ``X`` (N, p), ``labels`` (N,), ``f``, ``box``, ``problem``.
    """

    call: str
    words: tuple[str, ...]


_SPARSE = [
    Bad("lopro.bpdn(A * np.nan, y, 0.1)", ("A",)),
    Bad("lopro.bpdn(scipy.sparse.csr_array(A * np.nan), y, 0.1)", ("A",)),
    Bad("lopro.bpdn(y, y, 0.1)", ("A",)),
    Bad("lopro.bpdn(A[:0], y[:0], 0.1)", ("A",)),
    Bad("lopro.bpdn(A.astype(object), y, 0.1)", ("A",)),
    Bad("lopro.bpdn(A.astype(np.float16), y, 0.1)", ("A",)),
    Bad("lopro.bpdn(None, y, 0.1)", ("A",)),
    Bad("lopro.bpdn('A', y, 0.1)", ("A",)),
    Bad("lopro.bpdn(A, np.append(y, 1.0), 0.1)", ("y",)),
    Bad("lopro.bpdn(scipy.sparse.linalg.aslinearoperator(A), np.append(y, 1.0), 0.1)", ("y",)),
    Bad("lopro.bpdn(A, y * np.inf, 0.1)", ("y",)),
    Bad("lopro.bpdn(A, Y[:, :, None], 0.1)", ("y",)),
    Bad("lopro.bpdn(A, y, -0.1)", ("sigma",)),
    Bad("lopro.bpdn(A, y, np.nan)", ("sigma",)),
    Bad("lopro.bpdn(A, y, None)", ("sigma",)),
    Bad("lopro.bpdn(A, y, [0.1, 0.2])", ("sigma",)),
    Bad("lopro.bpdn(A, Y, [0.1, 0.2, 0.3])", ("sigma",)),
    Bad("lopro.bpdn(A, Y, [0.1, -0.2])", ("sigma",)),
    Bad("lopro.bpdn(A, Y, np.ones((2, 2)))", ("sigma",)),
    Bad("lopro.bpdn(A, Y, ['a', 'b'])", ("sigma",)),
    Bad("lopro.bpdn(A, y, 0.1, x0=np.ones(A.shape[1] + 1))", ("x0",)),
    Bad("lopro.bpdn(A, y, 0.1, x0=np.full(A.shape[1], np.nan))", ("x0",)),
    Bad("lopro.bpdn(A, Y, 0.1, x0=np.zeros(A.shape[1]))", ("x0",)),
    Bad("lopro.bpdn(A, Y, 0.1, x0=np.zeros((A.shape[1], 3)))", ("x0",)),
    Bad("lopro.bpdn(A, Y, 0.1, x0=np.zeros((A.shape[1] + 1, 2)))", ("x0",)),
    Bad("lopro.bpdn(A, y, 0.1, weights=0.0)", ("weights",)),
    Bad("lopro.bpdn(A, y, 0.1, weights=-np.ones(A.shape[1]))", ("weights",)),
    Bad("lopro.bpdn(A, y, 0.1, weights=np.ones(A.shape[1] + 1))", ("weights",)),
    Bad("lopro.bpdn(A, y, 0.1, weights=np.full(A.shape[1], np.inf))", ("weights",)),
    Bad("lopro.bpdn(A + 0j, y, 0.1, nonneg=True)", ("nonneg", "real")),
    Bad("lopro.bpdn(A, y, 0.1, method=lopro.WorkingSet)", ("method",)),
    Bad("lopro.bpdn(A, y, 0.1, method='auto')", ("method",)),
    Bad("lopro.bpdn(A, y, 0.1, tol=-1.0)", ("tol",)),
    Bad("lopro.bpdn(A, y, 0.1, tol='small')", ("tol",)),
    Bad("lopro.bpdn(A, y, 0.1, time_limit=0.0)", ("time_limit",)),
    Bad("lopro.bpdn(A, y, 0.1, max_iter=0)", ("max_iter",)),
    Bad("lopro.bpdn(A, y, 0.1, maxiter=5)", ("maxiter",)),
    Bad("lopro.bpdn(A, Y, 0.1, tol=-1.0)", ("tol",)),
    Bad("lopro.bpdn_path(A, Y, [0.1, 0.2])", ("y",)),
    Bad("lopro.bpdn_path(A, y, [])", ("sigmas",)),
    Bad("lopro.bpdn_path(A, y, 0.1)", ("sigmas",)),
    Bad("lopro.bpdn_path(A, y, [0.1, -1.0])", ("sigmas",)),
    Bad("lopro.bpdn_path(A, y, [0.1], method=lopro.WorkingSet)", ("method",)),
]

_METRIC = [
    Bad("lopro.learn_metric(X * np.nan, labels)", ("X",)),
    Bad("lopro.learn_metric(X[:, 0], labels)", ("X",)),
    Bad("lopro.learn_metric(X + 0j, labels)", ("X",)),
    Bad("lopro.learn_metric(X, labels[:-1])", ("labels",)),
    Bad("lopro.learn_metric(X, labels[:, None])", ("labels",)),
    Bad("lopro.learn_metric(X, np.full(len(X), np.nan))", ("labels",)),
    Bad(
        "lopro.learn_metric(X, np.array([None, 'a'] * len(X), dtype=object)[:len(X)])", ("labels",)
    ),
    Bad("lopro.learn_metric(X)", ("labels", "pairs")),
    Bad("lopro.learn_metric()", ("X",)),
    Bad("lopro.learn_metric(X, labels, l1=-1.0)", ("l1",)),
    Bad("lopro.learn_metric(X, labels, l1=np.inf)", ("l1",)),
    Bad("lopro.learn_metric(X, pairs=[[0, len(X)]], targets=[1.0])", ("pairs",)),
    Bad("lopro.learn_metric(X, pairs=[[0, -1]], targets=[1.0])", ("pairs",)),
    Bad("lopro.learn_metric(X, pairs=[[0, 0.5]], targets=[1.0])", ("pairs",)),
    Bad("lopro.learn_metric(X, pairs=[[0, 1]], targets=[-1.0])", ("targets",)),
    Bad("lopro.learn_metric(X, pairs=[[0, 1]], targets=[1.0, 2.0])", ("targets",)),
    Bad("lopro.learn_metric(X, pairs=[[0, 1]])", ("targets",)),
    Bad("lopro.learn_metric(X, labels, targets=[1.0])", ("targets",)),
    Bad("lopro.learn_metric(X, labels, A0=np.triu(np.ones((X.shape[1],) * 2)))", ("A0",)),
    Bad("lopro.learn_metric(X, labels, A0=np.eye(X.shape[1] + 1))", ("A0",)),
    Bad("lopro.learn_metric(X, labels, method=lopro.FeatureWorkingSet)", ("method",)),
    Bad("lopro.learn_metric(X, labels, max_pairs=0)", ("max_pairs",)),
    Bad("lopro.learn_metric(X, labels, seed='a')", ("seed",)),
]

_GENERAL = [
    Bad("lopro.solve(problem, np.ones(A.shape[1] + 1))", ("x0",)),
    Bad("lopro.solve(problem, np.full(A.shape[1], np.inf))", ("x0",)),
    Bad("lopro.solve(problem, method=lopro.LoPGD)", ("method",)),
    Bad("lopro.solve(problem, tol=np.nan)", ("tol",)),
    Bad("lopro.solve(problem, time_limit=-1.0)", ("time_limit",)),
    Bad("lopro.solve(f)", ("problem",)),
    Bad("lopro.Problem(f, lc.Simplex(A.shape[1] + 1))", ("shape",)),
    Bad("lopro.Problem(box, f)", ("objective", "constraint")),
    Bad("lc.Polyhedron(A, np.append(y, 1.0))", ("b",)),
    Bad("lc.Polyhedron(A * np.nan, y)", ("C",)),
    Bad("lc.Polyhedron.box(np.ones(3), np.zeros(3))", ("lower", "upper")),
    Bad("lc.Simplex(0)", ("dim",)),
    Bad("lc.Simplex(3, -1.0)", ("total",)),
    Bad("lc.L1Ball(3, 0.0)", ("size",)),
    Bad("lc.PSDCone(-1)", ("dim",)),
    Bad("lc.PSDCone(2).project(np.triu(np.ones((2, 2))))", ("symmetric",)),
    Bad("lc.ResidualBall(A, y, -1.0)", ("sigma",)),
    Bad("lo.Quadratic(-np.eye(3))", ("P",)),
    Bad("lo.Logistic(A, np.full(len(A), 3))", ("labels",)),
    Bad("lopro.minimize(None, np.zeros(2), constraint=box)", ("fun",)),
    Bad("lopro.minimize(np.sum, np.zeros(2), jac=3, constraint=box)", ("jac",)),
]

_CORRELATION = [
    Bad("lopro.nearest_correlation(A[:2, :3])", ("G",)),
    Bad("lopro.nearest_correlation(np.triu(np.ones((3, 3))))", ("G",)),
    Bad("lopro.nearest_correlation(np.full((3, 3), np.nan))", ("G",)),
    Bad("lopro.nearest_correlation(1j * np.eye(3))", ("G",)),
    Bad("lopro.nearest_correlation(scipy.sparse.eye_array(3))", ("G",)),
    Bad("lopro.nearest_correlation(np.eye(3), weights=[1.0, 1.0])", ("weights",)),
    Bad("lopro.nearest_correlation(np.eye(3), weights=[1.0, 1.0, 0.0])", ("weights",)),
    Bad("lopro.nearest_correlation(np.eye(3), fixed=np.eye(3))", ("fixed",)),
    Bad("lopro.nearest_correlation(np.eye(3), fixed=np.tri(3, dtype=bool))", ("fixed",)),
    Bad("lopro.nearest_correlation(2 * np.ones((3, 3)), fixed=np.ones((3, 3), bool))", ("fixed",)),
    Bad("lopro.nearest_correlation(np.eye(3), min_eigenvalue=1.0)", ("min_eigenvalue",)),
    Bad("lopro.nearest_correlation(np.eye(3), min_eigenvalue=-0.1)", ("min_eigenvalue",)),
    Bad("lopro.nearest_correlation(np.eye(3), tol=-1.0)", ("tol",)),
    Bad("lopro.nearest_correlation(np.eye(3), time_limit=0.0)", ("time_limit",)),
]

#: All rows; seeds select them in this order.
TABLE: tuple[Bad, ...] = (*_SPARSE, *_METRIC, *_GENERAL, *_CORRELATION)
