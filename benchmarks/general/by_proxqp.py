"""ProxQP: an augmented Lagrangian method for dense and sparse quadratic programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import Answer, AnswerStatus, QuadraticProgram, normalised
from lopro.linalg.dense import Array

__all__ = ["solve_by_proxqp"]

#: ProxQP's value for infinite bounds.
_NONE = 1e20


def solve_by_proxqp(program: QuadraticProgram, tol: float = 1e-9, max_iter: int = 2000) -> Answer:
    """Solve a quadratic program by ProxQP, which has no time limit: iterations are limited instead.

    Parameters
    ----------
    program : QuadraticProgram
        Dense or sparse.
    tol : float
        Absolute residuals, in normalised units.
    max_iter : int
        The largest number of outer iterations.
    """
    import proxsuite

    p, units = normalised(program)
    equal = p.lower == p.upper
    n = len(p.q)
    A = scipy.sparse.csr_array(p.A) if p.sparse else _dense(p.A)
    eye = scipy.sparse.eye_array(n, format="csr") if p.sparse else np.eye(n)
    stack = scipy.sparse.vstack if p.sparse else np.vstack
    C = stack([A[~equal], eye]) if p.boxed else A[~equal]
    low = np.concatenate([p.lower[~equal], p.least]) if p.boxed else p.lower[~equal]
    high = np.concatenate([p.upper[~equal], p.most]) if p.boxed else p.upper[~equal]
    kind = proxsuite.proxqp.sparse if p.sparse else proxsuite.proxqp.dense
    wrap = scipy.sparse.csc_matrix if p.sparse else np.ascontiguousarray
    P = np.zeros((n, n)) if p.P is None else p.P
    qp = kind.QP(n, int(equal.sum()), C.shape[0])
    qp.settings.eps_abs, qp.settings.eps_rel, qp.settings.max_iter = tol, 0.0, max_iter
    qp.settings.verbose = False
    limits = {"l": np.maximum(low, -_NONE), "u": np.minimum(high, _NONE)}
    qp.init(
        H=wrap(P if p.sparse else _dense(P)), g=p.q,
        A=wrap(A[equal]) if equal.any() else None,
        b=p.lower[equal] if equal.any() else None,
        C=wrap(C) if C.shape[0] else None, **(limits if C.shape[0] else {}),
    )  # fmt: skip
    qp.solve()
    return units.back(_answer(p, equal, qp.results))


def _dense(M: Any) -> Array:
    return np.asarray(M if isinstance(M, np.ndarray) else M.toarray())


def _answer(p: QuadraticProgram, equal: Any, results: Any) -> Answer:
    names = {
        "PROXQP_SOLVED": AnswerStatus.SOLVED,
        "PROXQP_SOLVED_CLOSEST_PRIMAL_FEASIBLE": AnswerStatus.INACCURATE,
        "PROXQP_MAX_ITER_REACHED": AnswerStatus.TIME,
        "PROXQP_PRIMAL_INFEASIBLE": AnswerStatus.EMPTY,
        "PROXQP_DUAL_INFEASIBLE": AnswerStatus.UNBOUNDED,
    }
    rows = np.zeros(len(p.lower))
    z = np.asarray(results.z)
    others = int((~equal).sum())
    rows[equal], rows[~equal] = results.y, z[:others]
    box = np.array(z[others:]) if p.boxed else np.zeros(len(p.q))
    status = names.get(results.info.status.name, AnswerStatus.FAILED)
    return Answer(status, np.array(results.x), rows, box, int(results.info.iter))
