"""Facial reduction: rows ``<A_k, X> = 0`` with a semidefinite ``A_k`` restrict X to a face of the cone.

Every feasible X then vanishes on the range of ``A_k``, so there is no interior point and multipliers need not
exist. Writing ``X = Q X' Q'`` with the null space Q of ``A_k`` gives an equivalent program with fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.dense import EPS, Array
from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram

__all__ = ["ConeFace", "reduced"]


@dataclass(frozen=True)
class ConeFace:
    """A program on a face of the cone, with the maps back to the original program.

    Attributes
    ----------
    program : SemidefiniteProgram
        The reduced program.
    bases : tuple
        For each block the orthonormal columns Q of ``X = Q X' Q'``, or None if it is not reduced.
    kept : array of int
        The rows that remain.
    dropped : tuple
        ``(row, block, sign)`` of the rows that define the face; the matrix of the row times the sign is
        positive semidefinite.
    """

    program: SemidefiniteProgram
    bases: tuple[Array | None, ...]
    kept: Array
    dropped: tuple[tuple[int, int, float], ...]

    def matrices(self, X: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the X of the original program."""
        pairs = zip(X, self.bases, strict=True)
        return tuple(x if Q is None else np.asarray(Q @ x @ Q.T) for x, Q in pairs)

    def multipliers(self, original: SemidefiniteProgram, y: Array, loss: float) -> Array:
        """Return multipliers of the original program that lower eigenvalues of the slack by about ``loss``.

        On the face the slack ``S`` is that of the reduced program. On the complement the dropped row adds
        ``t A_k``; the coupling ``S_12`` lowers the least eigenvalue by ``|S_12|^2 / (t l)``, with the least
        positive eigenvalue l of ``A_k``.
        """
        full = np.zeros(len(original.b))
        full[self.kept] = y
        slack = original.slack(full)
        for row, which, sign in self.dropped:
            block, Q = original.blocks[which], self.bases[which]
            assert Q is not None
            A = sign * block.A[[row]].toarray().reshape(block.shape)
            values, vectors = np.linalg.eigh(A)
            P = vectors[:, Q.shape[1] :]
            S = slack[which]
            coupling, own = float(np.linalg.norm(P.T @ S @ Q, 2)), np.linalg.eigvalsh(P.T @ S @ P)
            needed = coupling**2 / loss if loss > 0.0 else 0.0
            t = max(0.0, needed - float(own[0])) / float(values[Q.shape[1]])
            full[row] = -sign * t
        return full


def reduced(program: SemidefiniteProgram) -> ConeFace:
    """Return the program on the smallest face that is defined by single rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.faces import reduced
    >>> program = SemidefiniteProgram.dense(np.eye(3), [np.ones((3, 3)), np.eye(3)], [0.0, 1.0])
    >>> face = reduced(program)
    >>> face.program.blocks[0].size, len(face.program.b)
    (2, 1)
    """
    bases: list[Array | None] = [None] * len(program.blocks)
    dropped: list[tuple[int, int, float]] = []
    counts = np.array([np.diff(p.A.indptr) > 0 for p in program.blocks])
    for k in np.flatnonzero((program.b == 0.0) & (counts.sum(axis=0) == 1)):
        which = int(np.flatnonzero(counts[:, k])[0])
        block = program.blocks[which]
        if block.diagonal or bases[which] is not None or not _may_be_semidefinite(block, int(k)):
            continue
        Q, sign = _null_space(block.A[[k]].toarray().reshape(block.shape))
        if Q is not None:
            bases[which] = Q
            dropped.append((int(k), which, sign))
    kept = np.setdiff1d(np.arange(len(program.b)), [k for k, _, _ in dropped])
    blocks = tuple(_on_face(p, Q, kept) for p, Q in zip(program.blocks, bases, strict=True))
    reduced_program = SemidefiniteProgram(program.b[kept], blocks)
    return ConeFace(reduced_program, tuple(bases), kept, tuple(dropped))


def _may_be_semidefinite(block: SemidefiniteBlock, k: int) -> bool:
    """Return whether a row may be semidefinite: a diagonal of one sign, nonzero in the row of each entry."""
    places = block.A.indices[block.A.indptr[k] : block.A.indptr[k + 1]]
    values = block.A.data[block.A.indptr[k] : block.A.indptr[k + 1]]
    places, values = places[values != 0.0], values[values != 0.0]
    i, j = places // block.size, places % block.size
    own = values[i == j]
    one_sign = bool(np.all(own > 0.0) or np.all(own < 0.0))
    return one_sign and bool(np.isin(i, i[i == j]).all())


def _null_space(A: Array) -> tuple[Array | None, float]:
    """Return the null space of a matrix that is semidefinite up to rounding (else None), and its sign.

    Conclusions are proved with the original rows, so that a wrong result only takes time.
    """
    values, vectors = np.linalg.eigh(A)
    rounding = 8.0 * len(A) * EPS * float(np.abs(values).max(initial=0.0))
    semidefinite = values[0] >= -rounding or values[-1] <= rounding
    null = np.abs(values) <= rounding
    sign = 1.0 if values[0] >= -rounding else -1.0
    if not semidefinite or not 0 < null.sum() < len(A):
        return None, sign
    return np.asarray(vectors[:, null]), sign


def _on_face(block: SemidefiniteBlock, Q: Array | None, kept: Array) -> SemidefiniteBlock:
    if Q is None:
        return SemidefiniteBlock(block.size, block.diagonal, block.C, block.A[kept])
    m, n, r = len(kept), block.size, Q.shape[1]
    half = np.asarray(block.A[kept].reshape(m * n, n) @ Q).reshape(m, n, r)
    rows = np.matmul(Q.T, half)
    rows = 0.5 * (rows + rows.transpose(0, 2, 1))
    C = Q.T @ block.C @ Q
    return SemidefiniteBlock(
        r, False, 0.5 * (C + C.T), scipy.sparse.csr_array(rows.reshape(m, r * r))
    )
