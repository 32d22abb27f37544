"""metric-learn in a separate environment: its last release does not run with current scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["Environment", "environment_at"]

REQUIREMENTS = ("metric-learn", "scikit-learn<1.8")
WORKER = Path(__file__).with_name("foreign_worker.py")
#: Seconds for the installation.
PATIENCE = 600.0


class Environment:
    """A virtual environment that is created on first use; failures are stored as messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failure: str | None = None
        self.versions = ""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"

    def make(self) -> None:
        """Make the environment unless it is there, and list its packages."""
        try:
            if not self.python.exists():
                _called([sys.executable, "-m", "venv", str(self.folder)])
            show = [str(self.python), "-c", _VERSIONS]
            try:
                self.versions = _called(show)
            except RuntimeError:
                _called([str(self.python), "-m", "pip", "install", "--quiet", *REQUIREMENTS])
                self.versions = _called(show)
        except RuntimeError as error:
            self.failure = f"no environment: {error}"

    def fit(
        self,
        name: str,
        X: np.ndarray,
        y: np.ndarray,
        trains: list[np.ndarray],
        limit: float,
    ) -> tuple[dict[str, np.ndarray], str]:
        """Fit one class on every split within a time limit; return the results and the error messages."""
        if self.failure is not None:
            return {}, self.failure
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
            parts = {f"train_{k}": train for k, train in enumerate(trains)}
            np.savez(source, X=X, y=y, splits=np.array(len(trains)), **parts)
            trouble = ""
            try:
                _called([str(self.python), str(WORKER), name, str(source), str(target)], limit)
            except RuntimeError as error:
                trouble = f"{error}, all splits together"
            if not target.exists():
                return {}, trouble
            with np.load(target) as found:
                return dict(found), trouble


_VERSIONS = (
    "import metric_learn, sklearn; from importlib.metadata import version; "
    "print('metric-learn', version('metric-learn') + ', scikit-learn', sklearn.__version__)"
)


def _called(command: list[str], limit: float = PATIENCE) -> str:
    """Return the output of a command; raise with the end of its error message if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {limit:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise RuntimeError(f"exit status {done.returncode}: {lines[-1]}")
    return done.stdout.strip()


@contextmanager
def environment_at(folder: Path | None) -> Iterator[Environment]:
    """Yield the environment in a folder, or in a temporary one that is removed afterwards."""
    if folder is not None:
        yield Environment(folder)
        return
    with tempfile.TemporaryDirectory(prefix="metric-learn-") as temporary:
        yield Environment(Path(temporary))
