"""A sample of the recorded calls is repeated and compared by status, counts and values."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from traces.record import flat
from traces.reference import FIELDS, FOLDER, agreement, differences, summary
from traces.sections import SECTIONS

#: The stride with which calls of a section are repeated; 41 covers each of the 38 methods of `paper`.
STRIDES = {
    "paper": 41, "catalogue": 13, "fuzz": 4, "bpdn": 3, "metric": 5, "correlation": 1, "cvxpy": 1
}  # fmt: skip


def stored(section: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{section}.json").read_text(encoding="utf-8"))
    return found


def known(reference: dict[str, Any], trace: str) -> bool:
    """Whether anything is known of a call: nothing is where a time limit ended it."""
    kept = [v for name, v in reference.items() if name == trace or name.startswith(f"{trace} [")]
    return not kept or any(value is not None for v in kept for value in v)


@pytest.mark.parametrize("section", STRIDES)
def test_a_sample_does_what_it_did(section):
    reference, lines, compared = stored(section), [], 0
    if section == "cvxpy":
        pytest.importorskip("cvxpy")
    for i, (trace, call) in enumerate(SECTIONS[section]()):
        if i % STRIDES[section] or not known(reference, trace):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entries = flat(trace, call())
        for name, entry in entries.items():
            compared += 1
            words = differences(reference.get(name, ["new"] * len(FIELDS)), summary(entry))
            lines += [f"{section}: {name}: {', '.join(words)}"] if words else []
    assert compared >= len(reference) // STRIDES[section] // 2
    assert not lines, (
        "\n".join(lines) + "\nIf this is intended, say why in the commit and record again: "
        f"PYTHONPATH=src:tests python -m traces reference --only {section}"
    )


def test_every_difference_is_seen():
    old = ["CONVERGED", 5, 2, 9, 1.25, 1.0]
    assert differences(old, list(old)) == []
    for i, other in enumerate(["STALLED", 6, 3, 8, 1.25 + 3e-9, 1.0 - 3e-9]):
        new = [*old[:i], other, *old[i + 1 :]]
        assert differences(old, new) == [f"{FIELDS[i]} {old[i]} -> {other}"]
        assert differences([*old[:i], None, *old[i + 1 :]], new) == []
    assert differences(old, [*old[:5], None]) == ["lower_bound 1.0 -> None"]
    assert differences(old, [*old[:4], 1.25 + 1e-10, 1.0]) == []


def test_the_reference_keeps_what_all_kernels_agree_on():
    first = ["CONVERGED", 5, 2, 9, 1.25, 1.0]
    second = ["CONVERGED", 5, 3, 9, 1.25 + 1e-12, 1.0 + 1e-6]
    assert agreement([first, second]) == ["CONVERGED", 5, None, 9, 1.25, None]


def test_a_summary_counts_products_and_leaves_out_what_time_decides():
    counts = {"projections": 2, "matvecs": 4, "rmatvecs": 5}
    entry = {"status": "CONVERGED", "iterations": 3, "counts": counts, "fun": "1.5"}
    entry["lower_bound"] = "-inf"
    assert summary(entry) == ["CONVERGED", 3, 2, 9, 1.5, None]
    assert summary(entry | {"status": "TIME_LIMIT"}) == [None] * 6
    assert summary({"status": "ValueError"}) == ["ValueError", 0, 0, 0, None, None]
