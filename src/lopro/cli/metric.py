"""``lopro metric``: a sparse Mahalanobis metric from labelled samples in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from lopro.cli.answers import console, print_json, progress_wanted, summary
from lopro.cli.arguments import add_output, add_solver, budget_of, method_named
from lopro.cli.exit_codes import BadInput, code_of
from lopro.cli.files import (
    Samples,
    check_writable,
    read_array,
    read_samples,
    read_vector,
    write_array,
)
from lopro.metric import learn_metric

__all__ = ["add", "run"]

_SHOWN = 5  # pairs of features that are printed
_NEGLIGIBLE = 1e-6  # entries below this share of the largest one do not count as nonzero


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "metric",
        help="a sparse metric in which samples of one class are close to each other",
        description="A positive semidefinite matrix with few off-diagonal entries, learned from "
        "pairs of labelled samples.",
    )
    parser.add_argument(
        "data",
        help="csv, tsv or txt with column names in the first line; or an array, see --labels",
    )
    labels = parser.add_mutually_exclusive_group(required=True)
    labels.add_argument("--label", metavar="COLUMN", help="name or number of the column of labels")
    labels.add_argument("--labels", metavar="FILE", help="labels of the rows of an array in DATA")
    parser.add_argument(
        "--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave out"
    )
    parser.add_argument(
        "--standardize", action="store_true", help="centre features and scale them to variance 1"
    )
    parser.add_argument(
        "--l1", type=float, default=1e-3, help="weight of the off-diagonal l1 norm (%(default)g)"
    )
    parser.add_argument("--seed", type=int, help="seed of the random numbers")
    add_solver(parser, tol=1e-3)
    add_output(parser, "write the matrix (and, in an npz, its factor L and the features)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Learn the metric, print and write it; return the exit status."""
    check_writable(options.output)
    method = method_named(options.method)
    samples = _samples(options)
    result = learn_metric(
        _scaled(samples.X) if options.standardize else samples.X,
        samples.labels,
        l1=options.l1,
        method=method,
        seed=options.seed,
        progress=progress_wanted(options.quiet),
        **budget_of(options),
    )
    A = np.asarray(result.x)
    if options.output is not None:
        features = np.array(samples.features)
        # The time limit may have been reached before the factor was computed.
        factor = {} if result.factor is None else {"L": np.asarray(result.factor)}
        write_array(options.output, A=A, **factor, features=features)
    if options.json:
        data = summary(result) | {"features": samples.features, "exit_code": int(code_of([result]))}
        matrix = {"A": A} if options.output is None else {"output": str(options.output)}
        print_json(data | _sparsity(A) | matrix)
    else:
        _show(result, A, samples.features, options.output)
    return code_of([result])


def _samples(options: argparse.Namespace) -> Samples:
    if options.label is not None:
        return read_samples(Path(options.data), options.label, options.ignore)
    if options.ignore:
        raise BadInput("--ignore names columns of a table and requires --label")
    X, labels = read_array(options.data), read_vector(options.labels)
    if getattr(X, "ndim", 0) != 2:
        raise BadInput(f"{options.data} must hold a matrix, one row for each sample")
    X = X.toarray() if hasattr(X, "toarray") else X
    return Samples(X, labels, [f"x{j}" for j in range(X.shape[1])])


def _scaled(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    # Constant features are centred, not scaled.
    return np.asarray((X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def _sparsity(A: np.ndarray) -> dict[str, Any]:
    off = A[~np.eye(len(A), dtype=bool)]
    eigenvalues = np.linalg.eigvalsh(A)
    return {
        "off_diagonal_nonzeros": int(np.count_nonzero(np.abs(off) > _NEGLIGIBLE * np.abs(A).max())),
        "off_diagonal_entries": int(off.size),
        "rank": int((eigenvalues > 1e-9 * max(eigenvalues[-1], 1e-300)).sum()),
    }


def _show(result: Any, A: np.ndarray, features: list[str], output: Path | None) -> None:
    out, facts = console(), _sparsity(A)
    out.print(str(result), soft_wrap=True)
    out.print(
        f"  metric       {len(A)} x {len(A)}, rank {facts['rank']}, "
        f"{facts['off_diagonal_nonzeros']} of {facts['off_diagonal_entries']} off-diagonal entries nonzero"
    )
    i, j = np.triu_indices(len(A), 1)
    order = np.argsort(-np.abs(A[i, j]), kind="stable")[:_SHOWN]
    for k in order:
        if abs(A[i[k], j[k]]) > _NEGLIGIBLE * np.abs(A).max():
            out.print(
                f"  {A[i[k], j[k]]:>+12.4g} {features[i[k]]} x {features[j[k]]}", soft_wrap=True
            )
    if output is not None:
        out.print(f"  written to   {output}", soft_wrap=True)
