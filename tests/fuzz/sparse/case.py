"""A call of `bpdn` or `bpdn_path` as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.contract import eps_of
from fuzz.judge.verdict import Class, Verdict, worst
from fuzz.judge.wide import norm
from fuzz.machine.script import Script
from fuzz.sparse.column import Array, Column
from fuzz.sparse.judge import CallOptions, judge_column
from fuzz.sparse.shrink import simpler

__all__ = ["FORMS", "SparseCase"]

#: The form in which the matrix is passed: an expression of the dense matrix ``A``.
FORMS = {
    "dense": "A",
    "fortran": "np.asfortranarray(A)",
    "strided": "np.repeat(A, 2, axis=1)[:, ::2]",
    "frozen": "A.view()\nM.flags.writeable = False",
    "list": "A.tolist()",
    "csr": "scipy.sparse.csr_array(A)",
    "csc": "scipy.sparse.csc_array(A)",
    "coo": "scipy.sparse.coo_array(A)",
    "matrix": "scipy.sparse.csr_matrix(A)",
    "operator": "scipy.sparse.linalg.aslinearoperator(A)",
}

_DEFAULT_TOL = 1e-6


@dataclass(frozen=True)
class SparseCase:
    """``kind`` is bpdn (``y`` a vector), many (``y`` a matrix) or path (several ``sigma``)."""

    kind: str
    A: Array
    y: Array
    sigma: float | tuple[float, ...]
    form: str = "dense"
    weights: Any = None
    nonneg: bool = False
    x0: Array | None = None
    method: str | None = None
    tol: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    #: Points that are feasible by construction, one for each right-hand side.
    planted: Array | None = None
    sane: bool = False

    @property
    def parts(self) -> int:
        """The number of problems that the call solves."""
        if self.kind == "many":
            return int(self.y.shape[1])
        return len(self.sigma) if isinstance(self.sigma, tuple) else 1

    @property
    def limit(self) -> float | None:
        limit = self.options.get("time_limit")
        return None if limit is None else limit * self.parts

    @property
    def tags(self) -> dict[str, Any]:
        return {
            "sane": self.sane,
            "two_seconds": self.options == {"time_limit": 2.0},
            "form": self.form,
            "method": self.method or "default",
        }

    @property
    def dtype(self) -> Any:
        """The dtype that the answer should have."""
        return np.result_type(self.A.dtype, self.y.dtype)

    def script(self) -> Script:
        script = Script()
        script.array(self.A, "A")
        script.array(self.y, "y")
        if self.form != "dense":
            script.data.append(f"M = {FORMS[self.form]}")
        words = ["A" if self.form == "dense" else "M", "y", self._sigma()]
        if self.x0 is not None:
            words.append(f"x0={script.array(self.x0, 'x0')}")
        if isinstance(self.weights, np.ndarray):
            words.append(f"weights={script.array(self.weights, 'weights')}")
        elif self.weights is not None:
            words.append(f"weights={self.weights!r}")
        words += [f"method={self.method}"] if self.method else []
        words += ["nonneg=True"] if self.nonneg else []
        words += [f"tol={self.tol!r}"] if self.tol is not None else []
        words += [f"{name}={value!r}" for name, value in self.options.items()]
        name = "bpdn_path" if self.kind == "path" else "bpdn"
        script.call = f"result = lopro.{name}({', '.join(words)})"
        return script

    def _sigma(self) -> str:
        return repr(list(self.sigma)) if isinstance(self.sigma, tuple) else repr(self.sigma)

    def columns(self) -> list[Column]:
        """Return the problems one by one."""
        d = self.A.shape[1]
        w = np.broadcast_to(np.asarray(1.0 if self.weights is None else self.weights, float), (d,))
        eps = eps_of(self.dtype)
        radii = np.broadcast_to(np.asarray(self.sigma, float), (self.parts,)).tolist()
        right = self.y.T if self.kind == "many" else [self.y] * self.parts
        return [
            Column(self.A, y, radius, w, self.nonneg, eps)
            for y, radius in zip(right, radii, strict=True)
        ]

    def judge(self, outcome: Outcome) -> Verdict:
        columns = self.columns()
        if len(outcome.claims) != len(columns):
            words = f"{len(outcome.claims)} results for {len(columns)} problems"
            return Verdict(Class.WRONG, "results missing", words)
        verdicts = []
        for j, (column, claims) in enumerate(zip(columns, outcome.claims, strict=True)):
            planted = self.planted
            if planted is not None and planted.ndim == 2:
                planted = planted[:, j]
            tol = _DEFAULT_TOL if self.tol is None else self.tol
            call_options = CallOptions(
                tol, self.dtype, names_dual=self.method is None, planted=planted
            )
            verdicts.append(judge_column(column, call_options, claims))
        return worst(verdicts)

    def excuse(self, raised: Raised) -> Verdict | None:
        # A chosen method may report a missing capability in advance; the default method may not.
        if self.method is not None and raised.kind == "MissingCapabilityError":
            return Verdict(Class.REFUSED, raised.message)
        if raised.on_purpose and "must be given in other units" in raised.message:
            return Verdict(Class.REFUSED, raised.message) if self._out_of_range() else None
        return None

    def _out_of_range(self) -> bool:
        """Whether squares of the numbers overflow or underflow, however they are computed."""
        widest = 1e15 if eps_of(self.A.dtype) > 1e-10 else 1e140
        sizes = [float(norm(self.A)), *(float(norm(column)) for column in np.atleast_2d(self.y.T))]
        return any(size > 0.0 and not 1.0 / widest < size < widest for size in sizes)

    def simpler(self) -> Iterator[SparseCase]:
        return simpler(self)

    def with_changes(self, **changes: Any) -> SparseCase:
        """Return the case with other fields."""
        return replace(self, **changes)
