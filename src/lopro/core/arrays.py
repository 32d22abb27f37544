"""Functions of arrays of any library: reductions to Python floats, conversions between libraries.

The remaining arithmetic uses operators (``+ - * @``), which NumPy, PyTorch, CuPy and other array-API
libraries share. The inner product is the real one, ``Re <x, y>``: complex arrays of length n are treated as
elements of R^(2n).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_jax_array
from array_api_compat import device as _device
from array_api_compat import numpy as numpy_namespace

#: An array of any library.
Array: TypeAlias = Any
#: NumPy arrays of one and of two dimensions, of any dtype.
Vector: TypeAlias = "np.ndarray[Any, Any]"
Matrix: TypeAlias = "np.ndarray[Any, Any]"

__all__ = [
    "Array",
    "Companion",
    "Matrix",
    "Vector",
    "as_complex",
    "asarray_like",
    "copy",
    "eps",
    "equal",
    "from_numpy",
    "inner",
    "is_array",
    "is_complex",
    "is_single",
    "isfinite",
    "namespace",
    "nonnegative",
    "norm",
    "on_host",
    "take",
    "to_numpy",
    "widest",
    "zeros",
]

# Finding the namespace takes about ten times as long as these operations on a small NumPy array, so NumPy is
# a special case in the functions that inner loops call.


def is_array(x: object) -> bool:
    """Whether ``x`` is an array of some array-API library (scalars and lists are not)."""
    if isinstance(x, np.ndarray):
        return True
    return not isinstance(x, np.generic) and bool(is_array_api_obj(x))


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace of ``arrays``, which must all come from one library."""
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray and arrays[0].dtype.kind in "fc":
        return numpy_namespace
    return array_namespace(*arrays)


def inner(x: Array, y: Array) -> float:
    """Return the real inner product ``Re sum(conj(x) * y)`` over arrays of any shape."""
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return float(np.vdot(x, y).real)
    if x.ndim == 1 and x.dtype == y.dtype and not is_complex(x):
        return float(x @ y)  # one kernel and no temporary array on a device
    xp = namespace(x, y)
    product = (xp.conj(x) if is_complex(x) else x) * y
    return float(xp.sum(xp.real(product) if is_complex(product) else product))


def norm(x: Array) -> float:
    """Return the Euclidean (Frobenius) norm, safe against overflow of the squares."""
    square = inner(x, x) if isinstance(x, np.ndarray) else _square(x)
    # A sum of squares in the first range has lost no significant term to overflow or underflow in single
    # precision (numbers from 1e-38 to 3e38); in the second range this holds in double precision.
    if 1e-20 < square < 1e30 or (1e-280 < square < 1e280 and not is_single(x)):
        return math.sqrt(square)
    if 0 in x.shape:
        return 0.0
    xp = namespace(x)
    scale = float(xp.max(xp.abs(x)))
    if scale == 0.0 or not math.isfinite(scale):
        return scale
    scaled = x / scale
    return scale * math.sqrt(inner(scaled, scaled))


def _square(x: Array) -> float:
    # NumPy's BLAS products overflow without a warning; libraries built on its ufuncs would warn.
    with np.errstate(over="ignore", under="ignore"):
        return inner(x, x)


def is_single(x: Array) -> bool:
    """Whether the dtype is float32 or complex64."""
    if isinstance(x, np.ndarray):
        return bool(x.dtype.char in "fF")
    xp = namespace(x)
    return bool(x.dtype in (xp.float32, xp.complex64))


def isfinite(x: Array) -> bool:
    """Whether no entry is NaN or infinite."""
    if isinstance(x, np.ndarray):
        # A finite sum has finite terms and needs no temporary array; below 2^16 entries that array is small.
        if x.size > 2**16:
            with np.errstate(all="ignore"):
                if np.isfinite(np.add.reduce(x, axis=None)):
                    return True
        return bool(np.logical_and.reduce(np.isfinite(x), axis=None))
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def equal(x: Array, y: Array) -> bool:
    """Whether two arrays of one shape agree in every entry."""
    return bool(namespace(x, y).all(x == y))


def nonnegative(x: Array) -> Array:
    """Return ``x`` with zeros in place of its negative entries."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, 0.0)
    xp = namespace(x)
    return xp.where(x > 0.0, x, xp.zeros_like(x))


def is_complex(x: Array) -> bool:
    """Whether the dtype of ``x`` is complex."""
    if isinstance(x, np.ndarray):
        return bool(x.dtype.kind == "c")
    return bool(namespace(x).isdtype(x.dtype, "complex floating"))


def as_complex(x: Array) -> Array:
    """Return ``x`` with the complex dtype of its precision."""
    xp = namespace(x)
    return xp.astype(x, xp.complex64 if is_single(x) else xp.complex128)


def eps(x: Array) -> float:
    """Return the rounding unit of the dtype of ``x``."""
    if isinstance(x, np.ndarray):
        return _eps_of(x.dtype)
    return float(namespace(x).finfo(x.dtype).eps)


_eps_of = functools.cache(lambda dtype: float(np.finfo(dtype).eps))


def copy(x: Array) -> Array:
    """Return an independent copy, detached from automatic differentiation."""
    if isinstance(x, np.ndarray):
        return _copy_of_rows(x) if x.ndim == 2 and x.nbytes > _LARGE_BYTES else np.array(x)
    if hasattr(x, "detach"):
        x = x.detach()
    return namespace(x).asarray(x, copy=True)


#: Bytes above which a copy looks for rows of zeros: copying 1e8 bytes takes a tenth of a second.
_LARGE_BYTES = 1e8


def _copy_of_rows(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of a large matrix; memory for rows of zeros is reserved and not written.

    A sample of the rows shows whether most of them are zero; otherwise all entries are copied.
    """
    sample = x[:: max(1, len(x) // 64)]
    if 2 * np.count_nonzero(sample.any(axis=1)) > len(sample):
        return np.array(x)
    found = np.zeros(x.shape, dtype=x.dtype)
    used = np.flatnonzero(x.any(axis=1))
    found[used] = x[used]
    return found


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Return zeros of the library, dtype and device of ``like``."""
    if isinstance(like, np.ndarray):
        return np.zeros(shape, dtype=like.dtype)
    return namespace(like).zeros(shape, dtype=like.dtype, device=_device(like))


def to_numpy(x: Array) -> np.ndarray[Any, Any]:
    """Return ``x`` as a NumPy array on the host, without a copy where possible."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach"):
        # NumPy has no counterpart of PyTorch's lazy conjugate and negative.
        return np.asarray(x.detach().cpu().resolve_conj().resolve_neg().numpy())
    if hasattr(x, "get"):
        return np.asarray(x.get())
    if is_jax_array(x):
        # JAX's dlpack exchange does not accept arrays on a GPU.
        return np.asarray(x)
    return np.asarray(np.from_dlpack(x))


def on_host(x: Array) -> bool:
    """Whether ``x`` is in host memory, for any library."""
    return isinstance(x, np.ndarray) or "cpu" in str(_device(x)).lower()


def asarray_like(values: Any, like: Array) -> Array:
    """Return ``values`` in the library, dtype and device of ``like``; a copy only where needed."""
    return _convert(values, like, like.dtype)


def _convert(values: Any, like: Array, dtype: Any) -> Array:
    if isinstance(like, np.ndarray):
        return np.asarray(to_numpy(values) if is_array(values) else values, dtype=dtype)
    if is_array(values) and not isinstance(values, type(like)):
        values = to_numpy(values)
    if isinstance(values, np.ndarray):
        # PyTorch does not accept negative strides and warns of read-only memory: pass a contiguous copy.
        values = np.array(values, order="C")
    return namespace(like).asarray(values, dtype=dtype, device=_device(like))


def from_numpy(values: np.ndarray[Any, Any], like: Array) -> Array:
    """Return ``values`` in the library and on the device of ``like``, with their own dtype."""
    if isinstance(like, np.ndarray):
        return values
    return namespace(like).asarray(np.array(values, order="C"), device=_device(like))


def take(array: Array, indices: np.ndarray[Any, Any]) -> Array:
    """Return the entries (rows) of ``array`` with these indices."""
    if isinstance(array, np.ndarray):
        return array[indices]
    return namespace(array).take(array, from_numpy(indices, array), axis=0)


def widest(arrays: Iterable[Array]) -> Array | None:
    """Return the array whose dtype holds all others: complex before real, double before single."""
    return max(arrays, key=lambda a: 2 * is_complex(a) + (not is_single(a)), default=None)


class Companion:
    """A constant array that is converted to the library, dtype and device of the points it is combined with.

    Weights given as Python numbers can be combined with float32 points without widening them, and with
    PyTorch points without mixing libraries. Complex data stay complex beside real points.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.arrays import Companion
    >>> weights = Companion(np.array([1.0, 2.0]))
    >>> weights.beside(np.zeros(2, dtype=np.float32)).dtype
    dtype('float32')
    """

    def __init__(self, array: Array, *, real: bool = False) -> None:
        self.array = array
        #: Whether to stay real beside complex points (weights of moduli, for example).
        self._real = real
        self._latest = (self._kind(array), array)

    @property
    def latest(self) -> Array:
        """The form that was used last."""
        return self._latest[1]

    @staticmethod
    def _kind(x: Array) -> tuple[Any, ...]:
        if isinstance(x, np.ndarray):
            return np.ndarray, x.dtype
        return type(x), x.dtype, _device(x)

    def beside(self, x: Array) -> Array:
        """Return the array in a form that can be combined with ``x``; it must not be modified."""
        if type(x) is np.ndarray and self._latest[0] == (np.ndarray, x.dtype):
            return self._latest[1]
        kind = self._kind(x)
        if kind != self._latest[0]:
            self._latest = (kind, _convert(self.array, x, self._dtype_beside(x)))
        return self._latest[1]

    def _dtype_beside(self, x: Array) -> Any:
        xp = namespace(x)
        complex_result = is_complex(self.array) or (is_complex(x) and not self._real)
        if complex_result == is_complex(x) and xp.isdtype(
            x.dtype, ("real floating", "complex floating")
        ):
            return x.dtype
        if complex_result:
            return xp.complex64 if is_single(x) else xp.complex128
        return xp.float32 if is_single(x) else xp.float64
