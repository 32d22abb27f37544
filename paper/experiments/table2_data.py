"""The data of Table 2: the paper's numbers, settings, trials of step sizes, and rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from paper.experiments.table2_text import verdict

__all__ = ["DEFAULT", "FULL", "PAPER", "QUICK", "Printed", "Row", "Settings", "Table2", "Trial"]


@dataclass(frozen=True)
class Printed:
    """The paper's numbers of a row (its start, its 40 examples and its machine are not known)."""

    objective: float
    hours: float


#: The paper's Table 2 by method and iterations.
PAPER = {
    ("LoPGD", 1000): Printed(0.0953, 0.22),
    ("LoPGD", 2000): Printed(0.0695, 0.43),
    ("LoPGD", 4000): Printed(0.0494, 0.87),
    ("LoPGD", 6000): Printed(0.0428, 1.33),
    ("LoPGD", 8000): Printed(0.0405, 1.89),
    ("OPGD", 1000): Printed(0.1707, 0.20),
    ("OPGD", 2000): Printed(0.1583, 0.40),
    ("OPGD", 4000): Printed(0.1469, 0.80),
    ("OPGD", 6000): Printed(0.1398, 1.22),
    ("OPGD", 8000): Printed(0.1343, 1.64),
    ("PGD", 1000): Printed(0.1491, 7.97),
    ("PGD", 2000): Printed(0.1278, 15.46),
    ("PGD", 4000): Printed(0.1072, 29.39),
    ("PGD", 6000): Printed(0.0957, 43.36),
    ("PGD", 8000): Printed(0.0879, 57.43),
}


@dataclass(frozen=True)
class Settings:
    """Sizes and lengths of the runs."""

    #: The number of features, and the number of samples.
    features: int = 2000
    samples: int = 40
    l1: float = 1e-3
    #: Weight of the hinge, and iterations of an epoch of LoPGD, as in the paper.
    lam: float = 10.0
    steps: int = 1000
    #: The iterations after which a row is written.
    checkpoints: tuple[int, ...] = (1000, 2000, 4000, 6000, 8000)
    #: Features and iterations of the tuning; steps are in units of 1 / L_f.
    tuning_features: int = 200
    tuning_iterations: int = 1000
    #: The relative gap required of the default method, and its time limit in seconds.
    tol: float = 1e-4
    time_limit: float = 1200.0

    def up_to(self, iterations: int) -> Settings:
        """Return the settings without the rows after a number of iterations."""
        kept = tuple(n for n in self.checkpoints if n <= iterations)
        if not kept:
            raise ValueError(f"iterations must be at least {self.checkpoints[0]}, got {iterations}")
        return replace(self, checkpoints=kept)


FULL = Settings()
DEFAULT = replace(
    FULL, features=200, checkpoints=(1000, 2000), tuning_iterations=300, time_limit=60.0
)
QUICK = Settings(20, 12, 1e-3, 10.0, 100, (100, 200), 20, 50, 1e-3, 20.0)


@dataclass(frozen=True)
class Trial:
    """One trial of the tuning: a step in units of ``1 / L_f``, and its objective."""

    method: str
    multiple: float
    objective: float


@dataclass(frozen=True)
class Row:
    """One row: the result of a method after a number of iterations and projections."""

    method: str
    iterations: int
    projections: int
    objective: float
    seconds: float
    #: Of the optimal value, proved by the run so far.
    lower_bound: float
    printed: Printed | None = None


@dataclass(frozen=True)
class Table2:
    """The rows, the tuning, and the data common to all rows."""

    settings: Settings
    data: str
    origin: str
    device: str
    rows: tuple[Row, ...]
    trials: tuple[Trial, ...]
    #: ``L_f`` of the loss.
    smoothness: float

    @property
    def lower_bound(self) -> float:
        """The best bound that any of the methods has proved: it holds for all rows."""
        return max(row.lower_bound for row in self.rows)

    def relative_gap(self, row: Row) -> float:
        """Return a certified bound of ``(objective - f_*) / objective``."""
        return max(0.0, row.objective - self.lower_bound) / row.objective

    def of(self, method: str) -> list[Row]:
        """Return the rows of one method."""
        return [row for row in self.rows if row.method == method]

    def best_multiple(self, method: str) -> float:
        """Return the step chosen by the tuning, in units of ``1 / L_f``."""
        tried = [trial for trial in self.trials if trial.method == method]
        return min(tried, key=lambda trial: trial.objective).multiple

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; numbers that are not finite become None."""
        plain = asdict(self)
        for row, data in zip(self.rows, plain["rows"], strict=True):
            data["relative_gap"] = self.relative_gap(row)
        for data in plain["rows"] + plain["trials"]:
            for name, value in data.items():
                if isinstance(value, float) and not math.isfinite(value):
                    data[name] = None
        return plain | {"lower_bound": self.lower_bound, "verdict": verdict(self)}
