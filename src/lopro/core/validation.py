"""Checks of arguments: every message names the argument and the value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from array_api_compat import is_dask_array

from lopro.core.arrays import Array, is_array, is_complex, isfinite, namespace, to_numpy

__all__ = [
    "as_float",
    "check_array",
    "check_callable",
    "check_constant",
    "check_count",
    "check_fields",
    "check_number",
    "check_numbers",
    "check_offers",
    "check_seed",
    "check_shape",
    "check_unmasked",
    "checked_shape",
    "host_array",
]


def check_array(
    name: str,
    value: Any,
    *,
    ndim: int | tuple[int, ...] | None = None,
    allow_complex: bool = True,
    allow_empty: bool = False,
    finite: bool = True,
) -> Array:
    """Return ``value`` as a floating array of its own library; lists become NumPy arrays.

    With ``finite=False`` the entries are not read; the caller has to check for NaN and inf later.
    """
    if type(value) is np.ndarray and value.dtype.isnative and value.dtype.char in "fdFD":
        array = value
    else:
        array = _floating(name, _plain(name, value))
    if not allow_complex and is_complex(array):
        raise TypeError(f"{name} must be real, got dtype {array.dtype}")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if allowed is not None and array.ndim not in allowed:
        dimensions = " or ".join(map(str, allowed))
        raise ValueError(
            f"{name} must have {dimensions} dimension(s), got shape {tuple(array.shape)}"
        )
    if not allow_empty and 0 in array.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(array.shape)}")
    if finite and not isfinite(array):
        raise ValueError(f"{name} must be finite, but it contains NaN or inf")
    return array


def _floating(name: str, array: Array) -> Array:
    """Return the array, integers as doubles; raise for a dtype without floating-point numbers."""
    xp = namespace(array)
    if xp.isdtype(array.dtype, ("bool", "integral")):
        array = xp.astype(array, xp.float64)
    if array.dtype not in (xp.float32, xp.float64, xp.complex64, xp.complex128):
        raise TypeError(
            f"{name} must hold float32, float64, complex64 or complex128 numbers, "
            f"got dtype {array.dtype}"
        )
    return array


def _plain(name: str, value: Any) -> Array:
    """Return ``value`` as a plain array, without subclass, mask or automatic differentiation."""
    check_unmasked(name, value)
    if not is_array(value):
        return _from_sequence(name, value)
    if isinstance(value, np.ndarray) or is_dask_array(value):
        # Vectors of distributed data are loaded; np.matrix would change the meaning of operators.
        return np.asarray(value)
    return value.detach() if getattr(value, "requires_grad", False) else value


def check_unmasked(name: str, value: Any) -> None:
    """Raise if ``value`` is a masked array with masked entries; without such entries it is a plain array.

    Masked entries are missing values, and conversions by NumPy would return the numbers under the mask.
    """
    masked = int(np.sum(value.mask)) if isinstance(value, np.ma.MaskedArray) else 0
    if masked:
        raise ValueError(
            f"{name} has {masked} masked of {value.size} entries: fill them (numpy.ma.filled) or drop them"
        )


def host_array(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return an array of any library, or a sequence, as a plain NumPy array of its own dtype."""
    check_unmasked(name, value)
    return np.asarray(to_numpy(value) if is_array(value) else value)


def _from_sequence(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not a regular array: {error}") from None
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must be an array of numbers, got {_described(value)}")
    return array


def _described(value: Any) -> str:
    """Return the repr of a short value, the type of a long one."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"a value of type {type(value).__name__}"


def check_shape(name: str, value: Array, shape: tuple[int, ...]) -> None:
    """Raise unless ``value`` has exactly this shape."""
    if tuple(value.shape) != tuple(shape):
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {tuple(value.shape)}")


def checked_shape(shape: Any) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of positive integers."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise TypeError(f"shape must be a tuple of integers, got {shape!r}")
    return tuple(check_count("shape", size) for size in shape)


def check_number(
    name: str,
    value: Any,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    exclusive: bool = False,
) -> float:
    """Return ``value`` as a finite float in the range; ``exclusive`` excludes the end points."""
    number = value if type(value) is float else as_float(name, value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    inside = minimum < number < maximum if exclusive else minimum <= number <= maximum
    if not inside:
        bracket = "()" if exclusive else "[]"
        raise ValueError(
            f"{name} must be in {bracket[0]}{minimum:g}, {maximum:g}{bracket[1]}, got {number:g}"
        )
    return number


def check_numbers(name: str, values: Any, *, exclusive: bool = False) -> list[float]:
    """Return a nonempty sequence of nonnegative (with ``exclusive`` positive) numbers as floats."""
    if not hasattr(values, "__iter__") or isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of numbers, got {values!r}")
    found = [
        check_number(f"{name}[{i}]", value, minimum=0.0, exclusive=exclusive)
        for i, value in enumerate(values)
    ]
    if not found:
        raise ValueError(f"{name} must not be empty")
    return found


def as_float(name: str, value: Any) -> float:
    """Return a real number as a float, finite or not."""
    # float() also accepts strings, booleans, arrays with one entry, and NumPy's complex numbers, whose
    # imaginary part it drops.
    check_unmasked(name, value)
    wrong = isinstance(value, (str, bytes, bool, np.bool_, np.complexfloating))
    if is_array(value):
        wrong = value.ndim > 0 or is_complex(value)
    if not wrong:
        try:
            return float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"{name} must be a real number, got {_described(value)}")


def check_constant(name: str, value: Any, *, minimum: float = 0.0) -> float:
    """Return ``value`` as a float of at least ``minimum``; inf means that it is not known."""
    number = as_float(name, value)
    if not number >= minimum:
        raise ValueError(f"{name} must be at least {minimum:g} and not NaN, got {number}")
    return number


def check_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """Return ``value`` as an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {_described(value)}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_fields(
    owner: Any, *, counts: tuple[str, ...] = (), positive: tuple[str, ...] = ()
) -> None:
    """Raise unless fields of a dataclass are integers from 1 on (counts) and numbers above 0 (positive).

    A field with the default None may be None.
    """
    for name in (*counts, *positive):
        value = getattr(owner, name)
        if value is None and owner.__dataclass_fields__[name].default is None:
            continue
        if name in counts:
            check_count(name, value)
        else:
            check_number(name, value, minimum=0.0, exclusive=True)


def check_callable(name: str, value: Any) -> None:
    """Raise unless ``value`` can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {value!r}")


def check_offers(name: str, value: Any, *methods: str) -> None:
    """Raise unless ``value`` is an object with these methods."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        needed = ", ".join(f"{method}()" for method in methods)
        raise TypeError(f"{name} must be an object with {needed}, got {_described(value)}")


def check_seed(name: str, value: Any) -> np.random.Generator:
    """Return the random generator of ``value``: None, an integer seed or a Generator."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be an integer or a Generator: {error}") from None
