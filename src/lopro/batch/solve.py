"""The loop over a batch: steps until every answer is proved, given up, or out of time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import device

from lopro.batch.interior_point import Iterates, Settings, advance, complementarity, start
from lopro.batch.programs import QuadraticPrograms, double, taken, times
from lopro.batch.proofs import Certificates, Proofs
from lopro.batch.scaled import ScaledPrograms
from lopro.core.arrays import Array, is_single, namespace, to_numpy
from lopro.core.deadline import Deadline

__all__ = ["Answers", "solve_batch"]

#: Share of the tolerance that complementarity may use up before a proof is tried: rounding and residuals
#: need the rest.
_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Answers:
    """What became of the programs of a batch, where their data are; the problems are the first axis."""

    x: Array
    rows: Array
    box: Array | None
    certificates: Certificates
    steps: Array

    def joined(self, others: list[Answers]) -> Answers:
        """Return these answers followed by others."""
        return _concatenated([self, *others])  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _Active:
    """The programs that are not done, with their places in the batch."""

    places: Array
    scaled: ScaledPrograms
    proofs: Proofs
    at: Iterates
    #: Steps since complementarity was small enough.
    ready: Array
    #: What complementarity may be.
    allowed: Array


def solve_batch(
    programs: QuadraticPrograms,
    tol: float,
    deadline: Deadline,
    max_steps: int | None = None,
    settings: Settings | None = None,
) -> Answers:
    """Solve programs of one shape together; see what became of each in its certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.batch import QuadraticPrograms
    >>> from lopro.batch.solve import solve_batch
    >>> from lopro.core.deadline import Deadline
    >>> programs = QuadraticPrograms(-np.ones((2, 1)), np.array([[[1.0]], [[2.0]]]))
    >>> answers = solve_batch(programs, 1e-6, Deadline())
    >>> answers.x.round(6), bool((answers.certificates.relative_gap <= 1e-6).all())
    (array([[1. ],
           [0.5]]), True)
    """
    settings = settings or Settings()
    wide = _in_double(programs)
    with np.errstate(all="ignore"):
        parts: list[tuple[Array, Answers]] = []
        active, steps = _begin(wide, programs.like, tol, settings), 0
        limit = settings.steps if max_steps is None else min(max_steps, settings.steps)
        while True:
            last = steps >= limit or deadline.passed
            going, done = _prove(active, programs, tol, settings, steps, last)
            parts += done
            if going is None:
                break
            steps += 1
            moved = advance(going.scaled, going.at, going.allowed, settings)
            active = replace(going, at=moved)
    places = namespace(programs.q).concat([place for place, _ in parts])
    joined = parts[0][1].joined([answers for _, answers in parts[1:]])
    return taken(joined, namespace(places).argsort(places))  # type: ignore[no-any-return]


def _in_double(programs: QuadraticPrograms) -> QuadraticPrograms:
    names = ("q", "P", "A", "lower", "upper", "least", "most", "constant")
    wide = {k: double(a) for k in names if (a := getattr(programs, k)) is not None}
    squares = tuple(
        replace(
            t,
            D=None if t.D is None else double(t.D),
            b=None if t.b is None else double(t.b),
            scale=double(t.scale),
        )
        for t in programs.squares
    )
    return replace(programs, **wide, squares=squares, checked=True)


def _begin(wide: QuadraticPrograms, like: Array, tol: float, settings: Settings) -> _Active:
    xp = namespace(wide.q)
    scaled = ScaledPrograms.of(wide)
    proofs = Proofs.of(wide, scaled.columns, like, tol)
    places = xp.arange(len(wide), device=device(wide.q))
    at = start(scaled, settings)
    return _Active(places, scaled, proofs, at, xp.zeros_like(places), xp.zeros_like(at.x[:, 0]))


def _prove(
    active: _Active,
    programs: QuadraticPrograms,
    tol: float,
    settings: Settings,
    steps: int,
    last: bool,
) -> tuple[_Active | None, list[tuple[Array, Answers]]]:
    """Return what goes on, and the answers that are proved or given up, with their places."""
    xp, scaled = namespace(active.at.x), active.scaled
    x = active.at.x
    allowed = _SHARE * tol * (_size(active) + active.proofs.scale * scaled.cost)
    small = complementarity(active.at) <= allowed
    ready = active.ready + xp.astype(small, active.ready.dtype)
    active = replace(active, ready=ready, allowed=allowed)
    count, longest = to_numpy(xp.stack([xp.sum(xp.astype(ready > 0, ready.dtype)), xp.max(ready)]))
    if not last and 2 * count < x.shape[0] and longest < 3:
        return active, []
    answers = _answers(active, programs, steps)
    over = (answers.certificates.relative_gap <= tol) | (ready > settings.attempts)
    if last or bool(xp.all(over)):
        return None, [(active.places, answers)]
    if not bool(xp.any(over)):
        return active, []
    (ended,), (going,) = xp.nonzero(over), xp.nonzero(~over)
    rest = taken(active, going)
    return rest, [(xp.take(active.places, ended), taken(answers, ended))]


def _size(active: _Active) -> Array:
    """Return about what gaps are relative to, in the units of the batch."""
    xp, p, x = namespace(active.at.x), active.scaled, active.at.x
    half, linear = 0.5 * xp.sum(x * times(p.P, x), axis=1), p.q * x
    if active.proofs.programs.squares:
        return abs(half + xp.sum(linear, axis=1) + p.constant)
    return abs(half) + xp.sum(abs(linear), axis=1) + abs(p.constant)


def _answers(active: _Active, programs: QuadraticPrograms, steps: int) -> Answers:
    """Return points, multipliers and certificates in the units and the precision of the user."""
    xp, scaled = namespace(active.at.x), active.scaled
    z = scaled.user_point(active.at.x)
    box = active.proofs.programs.box
    if box is not None:
        z = xp.minimum(xp.maximum(z, box[0]), box[1])
    rows, bounds = scaled.user_multipliers(active.at.y, active.at.z, programs.equations)
    x = z
    if is_single(programs.like):
        x = double(xp.astype(z, programs.like.dtype))
    certificates = active.proofs.certify(x, rows, z)
    count = xp.full(x.shape[0], steps, dtype=active.places.dtype, device=device(x))
    return Answers(x, rows, bounds, certificates, count)


def _concatenated(parts: list[Any]) -> Any:
    """Return one dataclass of arrays for several, one after the other."""
    first = parts[0]
    if first is None:
        return None
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [f.name for f in dataclasses.fields(first)]
        joined = {k: _concatenated([getattr(part, k) for part in parts]) for k in names}
        return replace(first, **joined)
    return first if len(parts) == 1 else namespace(first).concat(parts, axis=0)
