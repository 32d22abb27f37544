"""A run on stored data that was killed resumes where it stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.maps import StoredMap, called_between_blocks

RNG = np.random.default_rng(0)
A = RNG.standard_normal((80, 2000)) / 80**0.5
E = 0.01 * RNG.standard_normal(80)
Y = A[:, :12] @ RNG.uniform(1.0, 2.0, 12) + E
SIGMA = float(np.linalg.norm(E))


class Killed(BaseException):
    """An exception that no handler catches, as for a signal that ends the process."""


def passes_until(killed_after: int, method: Any) -> None:
    """Solve in a process that is killed after a number of passes."""
    passes = 0

    def count() -> None:
        nonlocal passes
        passes += 1
        if passes == killed_after:
            raise Killed

    with called_between_blocks(count), pytest.raises(Killed):
        lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9, method=method)


@pytest.mark.parametrize("killed_after", [1, 2, 5, 8])
def test_completed_rounds_are_not_repeated(killed_after: int, tmp_path: Path) -> None:
    undisturbed = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9)
    method = lopro.WorkingSet(checkpoint=tmp_path / "state.npz")
    passes_until(killed_after, method)
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9, method=method)
    assert found.success and found.fun == pytest.approx(undisturbed.fun, rel=1e-12)
    # Two passes until the first state, two for each round; resuming takes one pass to read the columns.
    rounds = max(0, (killed_after - 3) // 2)
    done = 0 if killed_after <= 2 else 2 + 2 * rounds - 1
    assert found.counts.passes == undisturbed.counts.passes - done
    assert undisturbed.counts.passes > 8


def test_the_file_is_small_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, method=lopro.WorkingSet(checkpoint=str(path)))
    assert found.success
    assert [p.name for p in tmp_path.iterdir()] == ["state.npz"]
    assert path.stat().st_size < 8 * (A.shape[0] + 2 * A.shape[1]) + 20_000
    again = lopro.bpdn(StoredMap(A), Y, SIGMA, method=lopro.WorkingSet(checkpoint=path))
    assert again.success and again.counts.passes == 2, (
        "a pass for its columns, and one for the correlations of all"
    )


def test_the_file_of_another_problem_is_refused(tmp_path: Path) -> None:
    method = lopro.WorkingSet(checkpoint=tmp_path / "state.npz")
    lopro.bpdn(StoredMap(A), Y, SIGMA, method=method)
    for other in (
        lambda: lopro.bpdn(StoredMap(A), 2.0 * Y, SIGMA, method=method),
        lambda: lopro.bpdn(StoredMap(A), Y, 2.0 * SIGMA, method=method),
        lambda: lopro.bpdn(StoredMap(A), Y, SIGMA, nonneg=True, method=method),
        lambda: lopro.bpdn(StoredMap(A), Y, SIGMA, weights=np.arange(1.0, 2001.0), method=method),
        lambda: lopro.bpdn(StoredMap(A[:, :1999]), Y, SIGMA, method=method),
    ):
        with pytest.raises(ValueError, match=r"checkpoint .* belongs to another problem"):
            other()


def test_the_file_of_another_matrix_is_refused(tmp_path: Path) -> None:
    """Same shape and y: products with y, in the pass that reads the columns, show the difference."""
    path = tmp_path / "state.npz"
    method = lopro.WorkingSet(checkpoint=path)
    lopro.bpdn(StoredMap(A), Y, SIGMA, method=method)
    saved = path.read_bytes()
    other = A.copy()
    other[:, 1999] *= -1.0
    for matrix in (other, A[:, ::-1].copy(), 1.001 * A):
        with pytest.raises(ValueError, match=r"checkpoint .* belongs to another problem"):
            lopro.bpdn(StoredMap(matrix), Y, SIGMA, method=method)
    assert path.read_bytes() == saved
    blocks = StoredMap(A, block_bytes=2**14)  # the same matrix, summed in another order
    assert lopro.bpdn(blocks, Y, SIGMA, method=method).success


def broken(saved: bytes, path: Path) -> list[bytes]:
    """Return invalid files: truncated, of another format, without an array, with a wrong index."""
    with np.load(path) as file:
        state = {name: file[name] for name in file.files}
    contents = [saved[: len(saved) // 2], b"", b"no archive", saved[:200] + saved[-200:]]
    for change in ({"signs": None}, {"problem": None}, {"in_use": state["in_use"] + 2000}):
        named = {name: v for name, v in {**state, **change}.items() if v is not None}
        np.savez(path, **named)
        contents.append(path.read_bytes())
    with open(path, "wb") as other:
        np.save(other, state["signs"])
    return [*contents, path.read_bytes()]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    method = lopro.WorkingSet(checkpoint=path)
    lopro.bpdn(StoredMap(A), Y, SIGMA, method=method)
    for content in broken(path.read_bytes(), path):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"checkpoint .*state.npz' .*remove it, or name"
        ) as caught:
            lopro.bpdn(StoredMap(A), Y, SIGMA, method=method)
        assert "another problem" not in str(caught.value)


def test_a_full_disk_stops_checkpoints_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.npz"

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(
        RuntimeWarning, match=r"checkpoint .* cannot be written .*No space"
    ) as caught:
        found = lopro.bpdn(
            StoredMap(A), Y, SIGMA, tol=1e-9, method=lopro.WorkingSet(checkpoint=path)
        )
    undisturbed = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9)
    assert len(caught) == 1 and list(tmp_path.iterdir()) == []
    assert found.success and found.counts.passes == undisturbed.counts.passes


@pytest.mark.slow
def test_a_process_that_is_killed(tmp_path: Path) -> None:
    """A process that ends in the middle of a pass, without any clean-up."""
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "y.npy", Y)
    code = f"""
import os, numpy as np, lopro
from lopro.maps import StoredMap, called_between_blocks
A = StoredMap(np.load("A.npy", mmap_mode="r"), block_bytes=2**18)
blocks = 0
def die():
    global blocks
    blocks += 1
    if blocks == 33:
        os._exit(9)  # at once, as killed: nothing is cleaned up
with called_between_blocks(die):
    lopro.bpdn(A, np.load("y.npy"), {SIGMA!r}, tol=1e-9, method=lopro.WorkingSet(checkpoint="state.npz"))
"""
    source = str(Path(lopro.__file__).parent.parent)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}
    )
    assert ended.returncode == 9
    method = lopro.WorkingSet(checkpoint=tmp_path / "state.npz")
    found = lopro.bpdn(
        np.load(tmp_path / "A.npy", mmap_mode="r"), Y, SIGMA, tol=1e-9, method=method
    )
    undisturbed = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9)
    assert found.success and found.fun == pytest.approx(undisturbed.fun, rel=1e-12)
    assert found.counts.passes < undisturbed.counts.passes
