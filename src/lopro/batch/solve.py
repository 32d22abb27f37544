"""The loop over a batch: steps until every problem is proved, has used up its attempts, or time is up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from array_api_compat import device

from lopro.batch.interior_point import Iterates, Settings, advance, complementarity, start
from lopro.batch.programs import in_double
from lopro.batch.scaled import ScaledPrograms, chosen
from lopro.certificates import feasibility_tolerance
from lopro.certificates.batched import Proofs
from lopro.certificates.batched_programs import Programs
from lopro.core.arrays import Array, is_array, is_single, namespace, to_numpy
from lopro.core.deadline import Deadline
from lopro.linalg.batched import times

__all__ = ["solve_batch"]

#: Share of the allowed gap that complementarity may take when a proof is attempted; the rest is left for
#: residuals and rounding. A tenth takes 1 % more steps in ``python -m benchmarks.constants batch``, ten times
#: as much 4 % fewer.
_SHARE = 0.3

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Remaining:
    """The programs that are not solved yet, with their places in the batch."""

    places: Array
    scaled: ScaledPrograms
    proofs: Proofs
    at: Iterates
    #: Number of steps at which complementarity was small enough.
    ready: Array
    #: Complementarity that is allowed.
    allowed: Array


def solve_batch(
    programs: Programs,
    like: Array,
    tol: float,
    deadline: Deadline,
    max_steps: int | None = None,
) -> dict[str, Array]:
    """Solve programs of one shape together.

    The result holds points ``x`` in the precision of ``like``, multipliers of ``rows`` and ``box``, numbers
    of ``steps``, and the certificates of the points (`lopro.certificates.batched.Proofs.certify`), each with
    the problems as its first axis.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.batch import QuadraticPrograms
    >>> from lopro.batch.solve import solve_batch
    >>> from lopro.core.deadline import Deadline
    >>> q = -np.ones((2, 1))
    >>> programs = QuadraticPrograms(q, np.array([[[1.0]], [[2.0]]])).subset(slice(0, 2))
    >>> answers = solve_batch(programs, q, 1e-6, Deadline())
    >>> answers["x"].round(6), bool((answers["relative_gap"] <= 1e-6).all())
    (array([[1. ],
           [0.5]]), True)
    """
    settings, xp = Settings(), namespace(programs.q)
    limit = settings.steps if max_steps is None else min(max_steps, settings.steps)
    done: list[dict[str, Array]] = []
    with np.errstate(all="ignore"):
        scaled = ScaledPrograms.of(programs)
        proofs = Proofs.of(programs, scaled.columns, tol, feasibility_tolerance(like[:0, ...]))
        places, at = xp.arange(programs.q.shape[0], device=device(like)), start(scaled, settings)
        nothing = xp.zeros_like(places)
        active: _Remaining | None = _Remaining(places, scaled, proofs, at, nothing, scaled.cost)
        steps = 0
        while active is not None:
            last = steps >= limit or deadline.passed
            active, ended = _prove(active, like, tol, settings, steps, last)
            done += ended
            if active is not None:
                steps += 1
                moved = advance(active.scaled, active.at, active.allowed, settings)
                active = replace(active, at=moved)
    if len(done) == 1:
        return done[0]
    joined = {name: xp.concat([part[name] for part in done]) for name in done[0]}
    return _taken(joined, xp.argsort(joined["places"]))


def _prove(
    active: _Remaining, like: Array, tol: float, settings: Settings, steps: int, last: bool
) -> tuple[_Remaining | None, list[dict[str, Array]]]:
    """Attempt proofs; return the problems that remain, and the answers that are final."""
    xp, scaled = namespace(active.at.x), active.scaled
    allowed = _SHARE * tol * (_size(active) + active.proofs.scale * scaled.cost)
    small = complementarity(active.at) <= allowed
    ready = active.ready + xp.astype(small, active.ready.dtype)
    active = replace(active, ready=ready, allowed=allowed)
    count, longest = to_numpy(xp.stack([xp.sum(xp.astype(ready > 0, ready.dtype)), xp.max(ready)]))
    if not last and 2 * count < active.places.shape[0] and longest < 3:
        return active, []
    answers = _answers(active, like, steps)
    final = (answers["relative_gap"] <= tol) | (ready > settings.attempts)
    if last or bool(xp.all(final)):
        return None, [answers]
    if not bool(xp.any(final)):
        return active, []
    (ended,), (remaining,) = xp.nonzero(final), xp.nonzero(~final)
    return _taken(active, remaining), [_taken(answers, ended)]


def _size(active: _Remaining) -> Array:
    """Return an estimate of the values that gaps are relative to, in the units of the batch."""
    xp, p, x = namespace(active.at.x), active.scaled, active.at.x
    half, linear = 0.5 * xp.sum(x * times(p.P, x), axis=1), p.q * x
    if active.proofs.programs.squares:
        return abs(half + xp.sum(linear, axis=1) + p.constant)
    return abs(half) + xp.sum(abs(linear), axis=1) + abs(p.constant)


def _answers(active: _Remaining, like: Array, steps: int) -> dict[str, Array]:
    """Return points, multipliers and certificates in the units and the precision of the user."""
    xp, scaled, programs = namespace(active.at.x), active.scaled, active.proofs.programs
    z = xp.minimum(xp.maximum(scaled.columns * active.at.x, programs.least), programs.most)
    x = in_double(xp.astype(z, like.dtype)) if is_single(like) else z
    multipliers = scaled.user_multipliers(active.at.y, active.at.z)
    return {
        "places": active.places, "x": x, "steps": xp.zeros_like(active.places) + steps,
        **multipliers, **active.proofs.certify(x, multipliers["rows"], z),
    }  # fmt: skip


def _taken(data: T, index: Array) -> T:
    """Restrict arrays, and containers of arrays, to some of the problems, their first axis."""
    taken: Any = data
    if is_array(data):
        taken = chosen(data, index)
    elif isinstance(data, dict):
        taken = {name: chosen(array, index) for name, array in data.items()}
    elif isinstance(data, tuple):
        taken = tuple(_taken(each, index) for each in data)
    elif dataclasses.is_dataclass(data) and not isinstance(data, type):
        fields = ((f.name, getattr(data, f.name)) for f in dataclasses.fields(data))
        taken = type(data)(**{name: _taken(value, index) for name, value in fields})
    return taken  # type: ignore[no-any-return]
