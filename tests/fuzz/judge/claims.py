"""The claims of a call as plain numbers: judges use these and no object of the library."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Claims", "Outcome", "Raised", "claims_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Claims:
    """The fields of one result."""

    status: str
    success: bool
    x: Array
    fun: float
    lower_bound: float
    gap: float
    relative_gap: float
    violation: float
    #: The bound is claimed for points within this distance of ``x``.
    radius: float = math.inf
    dual: Array | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Raised:
    """An exception that a call ended with."""

    kind: str
    message: str
    #: File and line inside the library where it came from.
    place: str
    #: Names of its classes, by which a judge distinguishes intended errors from defects.
    bases: tuple[str, ...] = ()

    @property
    def on_purpose(self) -> bool:
        """Whether the exception is of a kind that describes the input."""
        return bool({"ValueError", "TypeError"} & set(self.bases))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: results or an exception, the seconds it took, and the inputs it changed."""

    claims: tuple[Claims, ...] = ()
    #: What a call gave back that is not a result, e.g. a projected point.
    value: Any = None
    raised: Raised | None = None
    seconds: float = 0.0
    #: Names of inputs that were changed.
    changed: tuple[str, ...] = ()
    #: Names of inputs whose memory the results share.
    shared: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def claims_of(result: Any) -> Claims:
    """Read a result by the names of its public fields."""
    certificate = result.certificate
    dual = getattr(result, "dual", None)
    extra = {name: getattr(result, name) for name in ("loss", "factor") if hasattr(result, name)}
    return Claims(
        status=result.status.name,
        success=bool(result.success),
        x=np.asarray(result.x),
        fun=_number(result.fun),
        lower_bound=_number(certificate.lower_bound),
        gap=_number(certificate.gap),
        relative_gap=_number(certificate.relative_gap),
        violation=_number(certificate.violation),
        radius=_number(certificate.radius),
        dual=None if dual is None else np.asarray(dual),
        extra=extra,
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
