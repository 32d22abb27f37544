"""Joint sparsity: several right-hand sides whose coefficients are zero together, row by row."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.blocks import Repeated
from lopro.basis_pursuit.result import BPDNResult
from lopro.core.arrays import Array, to_numpy
from lopro.core.validation import check_array, check_number, check_shape
from lopro.driver.options import Options
from lopro.driver.result import Iterate
from lopro.errors import MissingCapabilityError
from lopro.protocol import Method

__all__ = ["solve_joint"]


def solve_joint(
    data: ProblemData, y: Any, sigma: Any, x0: Any, method: Method | None, options: Options
) -> BPDNResult:
    """Solve ``min sum_i w_i |X_i|  s.t. |A X - Y| <= sigma`` as a problem on long vectors.

    ``X`` and ``Y`` are their entries row by row; the blocks are rows, or the rows of a group.
    """
    Y = check_array("y", y, ndim=(1, 2))
    if not isinstance(data.A.like, np.ndarray):
        raise MissingCapabilityError(
            "joint=True needs data on the host: pass NumPy arrays, or solve one column at a time"
        )
    rows, d = data.A.shape
    check_shape("y", Y, (rows, *Y.shape[1:]))
    k = 1 if Y.ndim == 1 else int(Y.shape[1])
    sigma = check_number("sigma", sigma, minimum=0.0)
    groups = np.arange(d) if data.groups is None else to_numpy(check_array("groups", data.groups))
    check_shape("groups", groups, (d,))
    shape = (d,) if Y.ndim == 1 else (d, k)
    if x0 is not None:
        x0 = check_array("x0", x0)
        check_shape("x0", x0, shape)
        x0 = x0.reshape(-1)
    A = data.A if k == 1 else Repeated(data.A, k)
    long = ProblemData(A, data.weights, data.nonneg, np.repeat(groups, k))
    problem = long.problem(to_numpy(Y).reshape(-1), sigma)
    found: BPDNResult = solve_one(problem, x0, method, _with_shape(options, shape))
    dual = None if found.dual is None else found.dual.reshape(Y.shape)
    return dataclasses.replace(found, x=found.x.reshape(shape), dual=dual)


def _with_shape(options: Options, shape: tuple[int, ...]) -> Options:
    """Return options whose callback and stopping function see points as users know them."""

    def seen(iterate: Iterate) -> Iterate:
        x: Array = iterate.x.reshape(shape)
        return dataclasses.replace(iterate, x=x)

    callback, rule = options.callback, options.rule
    if callback is not None:
        options = dataclasses.replace(options, callback=lambda iterate: callback(seen(iterate)))
    if rule is not None:
        options = dataclasses.replace(options, stop=lambda iterate: rule.met(seen(iterate)))
    return options
