"""`lopro.minimize` for callables and SciPy's constraint objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import scipy  # parts of it load when first used
from array_api_compat import is_jax_array, is_torch_array

from lopro.constraints import (
    Affine,
    Constraint,
    FunctionConstraint,
    Intersection,
    Polyhedron,
    WholeSpace,
)
from lopro.core.arrays import Array, asarray_like, copy, is_single, take
from lopro.core.differences import forward_differences
from lopro.core.validation import check_array, check_callable, host_array
from lopro.driver.result import Iterate, Result
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
from lopro.errors import PrecisionWarning
from lopro.maps.algebra import widened
from lopro.objectives import FunctionObjective, Objective
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import run_to_the_end

__all__ = ["as_constraint", "minimize"]


def minimize(
    fun: Callable[..., Any],
    x0: Array,
    jac: Callable[[Array], Array] | bool | str | None = None,
    *,
    constraint: Any = (),
    smooth: bool = True,
    hess: Callable[[Array], Any] | None = None,
    hessp: Callable[[Array, Array], Any] | None = None,
    strong_convexity: float | None = None,
    solution_norm: float | None = None,
    gap_scale: float | None = None,
    method: Method | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    seed: int | np.random.Generator | None = None,
    multipliers0: Sequence[Array] | None = None,
) -> Result:
    """Minimise a convex function given as a callable over a convex set.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> float``; or ``fun(x) -> (float, gradient)`` with ``jac=True``.
    x0 : array
        Start; it need not be feasible.
    jac : callable, True, "autodiff" or None
        The gradient (a subgradient with ``smooth=False``). "autodiff": ``fun`` is written for PyTorch or JAX,
        ``x0`` is an array of that library, and the gradient is its automatic derivative. None: forward
        differences, which limit the accuracy to about 1e-6; a certificate then inherits that error. Where
        backward and forward differences differ by more, as at a kink, bounds are reduced accordingly. Give a
        gradient if you can.
    constraint : Constraint, or a SciPy constraint, or a sequence of them, optional
        A set from `lopro.constraints`; `scipy.optimize.LinearConstraint`, `Bounds`, or a convex
        `NonlinearConstraint` with upper bounds. By default every point is feasible.
    smooth : bool
        Whether ``fun`` is differentiable.
    hess, hessp : callable, optional
        Second derivatives, ``hess(x)`` or ``hessp(x, p)`` as in SciPy: with them, and constraints that are
        bounds or linear, Newton's method is used.
    strong_convexity : float, optional
        ``mu`` such that ``fun - mu/2 |x|^2`` is convex; not checked.
    solution_norm, gap_scale : float, optional
        As in `lopro.Problem`: a bound that certificates of callables may use, and the scale of relative gaps.
    method, tol, max_iter, max_projections, time_limit, stop, callback, progress, seed, multipliers0
        As in `lopro.solve`.

    Returns
    -------
    Result
        As from `solve`.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from scipy.optimize import Bounds
    >>> result = lopro.minimize(
    ...     lambda x: (x[0] - 3) ** 2 + x[1] ** 2,
    ...     np.zeros(2),
    ...     lambda x: 2 * (x - np.array([3.0, 0.0])),
    ...     constraint=Bounds([-1, -1], [1, 1]),
    ... )
    >>> result.x.round(4), round(result.fun, 4)
    (array([1., 0.]), 4.0)
    """
    x0 = check_array("x0", x0)
    more = {"hess": hess, "hessp": hessp, "strong_convexity": strong_convexity}
    objective = _objective(fun, jac, x0, smooth, more)
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, callback, progress, seed, multipliers0
    )
    problem = Problem(objective, as_constraint(constraint, x0), solution_norm, gap_scale)
    return run_to_the_end(problem, x0, method, options)


def _objective(fun: Any, jac: Any, x0: Array, smooth: bool, more: dict[str, Any]) -> Objective:
    check_callable("fun", fun)
    shape = tuple(x0.shape)
    coarse = False
    if isinstance(jac, str):
        value, slope = fun, _autodiff(fun, jac, x0)
    elif jac is True:
        value, slope = (lambda x: _pair(fun(x))[0]), (lambda x: _pair(fun(x))[1])
    elif jac is None:
        differences = forward_differences(fun, x0)
        single = is_single(x0) and not isinstance(x0, np.ndarray)
        coarse = single and not _takes_double(fun, x0)
        at = widened if single and not coarse else copy
        value, slope = (lambda x: fun(at(x))), (lambda x: differences(at(x)))
        more = more | {"slope_error": lambda x: differences.error(at(x))}
    else:
        check_callable("jac", jac)
        value, slope = fun, jac
    # Functions written for tensors receive tensors from methods that compute on the host, too.
    more = more | {"shape": shape, "like": None if isinstance(x0, np.ndarray) else x0}
    more = more | {"gradient" if smooth else "subgradient": slope}
    objective = FunctionObjective(value, **more)
    objective.coarse_slopes = coarse
    return objective


def _takes_double(fun: Any, x0: Array) -> bool:
    """Whether ``fun`` accepts tensors in double precision, because differences lose half of the digits.

    Functions with data in single precision may raise an error, as products of PyTorch do, upon which a
    warning is issued.
    """
    try:
        fun(widened(x0))
    except (TypeError, ValueError, RuntimeError):
        warnings.warn(
            "differences of a function of tensors in single precision alone have about three digits: "
            "a tolerance below 1e-1 will rarely be proved; give jac, or x0 and data in float64",
            PrecisionWarning,
            stacklevel=4,
        )
        return False
    return True


def _autodiff(fun: Any, jac: str, x0: Array) -> Callable[[Array], Array]:
    """Return the gradient by the automatic differentiation of the library of ``x0``."""
    if jac != "autodiff":
        raise ValueError(f'jac must be a callable, True, None or "autodiff", got {jac!r}')
    if is_torch_array(x0):
        import torch

        return cast(Callable[[Array], Array], torch.func.grad(fun))
    if is_jax_array(x0):
        import jax

        return cast(Callable[[Array], Array], jax.grad(fun))
    raise ValueError(
        'x0 must be an array of PyTorch or JAX for jac="autodiff", which differentiates functions '
        f"written for these libraries; got {type(x0).__name__}"
    )


def _pair(result: Any) -> tuple[Any, Any]:
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(f"fun must return (value, gradient) with jac=True, got {result!r}")
    return result


def as_constraint(constraint: Any, x0: Array | None = None) -> Constraint:
    """Return the lopro constraint for a SciPy constraint object, or for a sequence of them.

    A single bound stands for all entries, as in SciPy; ``x0`` determines their number.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import LinearConstraint
    >>> from lopro.minimize import as_constraint
    >>> as_constraint(LinearConstraint([[1.0, 1.0]], ub=[1.0])).value(np.array([1.0, 2.0]))
    2.0
    """
    if isinstance(constraint, Constraint):
        return constraint
    if isinstance(constraint, scipy.optimize.Bounds):
        shape = (1,) if x0 is None else tuple(x0.shape)
        try:
            lower, upper, _ = np.broadcast_arrays(constraint.lb, constraint.ub, np.empty(shape))
        except ValueError:
            raise ValueError(f"Bounds must fit x0, which has shape {shape}") from None
        _check_bounds(lower, upper)
        return Polyhedron.box(_beside(lower, x0), _beside(upper, x0))
    if isinstance(constraint, scipy.optimize.LinearConstraint):
        C = constraint.A
        if scipy.sparse.issparse(C):
            C = C.tocsr()
        else:
            C = np.atleast_2d(host_array("LinearConstraint.A", C).astype(float))
        lower = np.broadcast_to(np.asarray(constraint.lb, float), C.shape[0])
        upper = np.broadcast_to(np.asarray(constraint.ub, float), C.shape[0])
        return _rows(_beside(C, x0), lower, upper)
    if isinstance(constraint, scipy.optimize.NonlinearConstraint):
        return _nonlinear(constraint, x0)
    if constraint is None or (isinstance(constraint, Sequence) and len(constraint) == 0):
        return WholeSpace(None if x0 is None else tuple(x0.shape))
    if isinstance(constraint, Sequence) and not isinstance(constraint, (str, bytes)):
        return Intersection(*(as_constraint(c, x0) for c in constraint))
    raise TypeError(
        f"constraint must be a lopro Constraint, a SciPy LinearConstraint, Bounds or "
        f"NonlinearConstraint, or a sequence of them, got {constraint!r}"
    )


def _check_bounds(lower: Any, upper: Any) -> None:
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError("constraint bounds must not be NaN")
    if np.isposinf(lower).any() or np.isneginf(upper).any():
        raise ValueError(
            "constraint bounds leave no feasible point: a lower bound is +inf or an upper -inf"
        )
    if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        raise ValueError("constraint has no finite bound")


def _rows(C: Any, lower: Any, upper: Any) -> Polyhedron:
    """Return ``lower <= C x <= upper`` without rows that have no finite bound."""
    _check_bounds(lower, upper)
    used = np.flatnonzero(np.isfinite(upper) | np.isfinite(lower))
    rows = C[used] if scipy.sparse.issparse(C) else take(C, used)
    return Affine(rows, lower[used], upper[used])


def _beside(values: Any, x0: Array | None) -> Any:
    """Return NumPy arrays in the library and on the device of the start; sparse matrices unchanged."""
    if x0 is None or isinstance(x0, np.ndarray) or scipy.sparse.issparse(values):
        return values
    return asarray_like(np.asarray(values, dtype=np.float64), x0)


def _nonlinear(constraint: scipy.optimize.NonlinearConstraint, x0: Array | None) -> Constraint:
    """Return ``fun(x) <= ub``; lower bounds of convex functions do not describe convex sets."""
    if not np.isneginf(constraint.lb).all():
        raise ValueError(
            "NonlinearConstraint.lb must be -inf: only fun(x) <= ub is a convex constraint"
        )
    fun, jac, ub = constraint.fun, constraint.jac, constraint.ub
    ub = np.atleast_1d(host_array("NonlinearConstraint.ub", ub).astype(float))
    if np.isnan(ub).any() or np.isneginf(ub).any():
        raise ValueError(f"NonlinearConstraint.ub must be above -inf and not NaN, got {ub}")
    if ub.size == 1 and x0 is not None:
        # A single bound holds for all entries of fun, whose number only fun determines.
        ub = np.broadcast_to(ub, np.shape(np.atleast_1d(fun(copy(x0)))))

    def values(x: Array) -> Any:
        found = np.atleast_1d(fun(x))
        if found.shape != ub.shape:
            raise ValueError(
                f"NonlinearConstraint.ub has shape {ub.shape}, but fun returns {found.shape}"
            )
        return found

    by_differences = forward_differences(
        lambda z: np.atleast_1d(fun(z)), np.zeros(1) if x0 is None else x0
    )

    def slopes(x: Array) -> Any:
        return np.atleast_2d(jac(x) if callable(jac) else by_differences(x))

    def row(i: int) -> FunctionConstraint:
        return FunctionConstraint(
            lambda x: float(values(x)[i] - ub[i]), lambda x: slopes(x)[i], smooth=True
        )

    members = [row(i) for i in range(ub.size) if np.isfinite(ub[i])]
    if not members:
        raise ValueError("NonlinearConstraint.ub must have a finite entry")
    return members[0] if len(members) == 1 else Intersection(*members)
