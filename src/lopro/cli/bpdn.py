"""``lopro bpdn``: basis pursuit denoising on data in files."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from lopro.basis_pursuit import bpdn
from lopro.cli.answers import console, print_json, progress_wanted, summary
from lopro.cli.arguments import add_output, add_solver, budget_of, method_named
from lopro.cli.exit_codes import ExitCode, code_of
from lopro.cli.files import check_writable, read_array, read_vector, write_array
from lopro.core.arrays import norm
from lopro.driver.result import Result

__all__ = ["add", "run"]

_SHOWN = 10  # coefficients that are printed


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bpdn",
        help="the vector of least l1 norm that fits the measurements",
        description="min |x|_1 subject to |A x - y| <= sigma, with a certificate.",
        epilog="Files: npy, npz (file.npz:key for one of several arrays), mtx, csv, tsv, txt; "
        "npz and mtx may hold sparse matrices. Several columns of y are several problems.",
    )
    parser.add_argument("A", help="file of the matrix, m x d")
    parser.add_argument("y", help="file of the measurements, m (or m x k)")
    radius = parser.add_mutually_exclusive_group(required=True)
    radius.add_argument("--sigma", type=float, help="bound of |A x - y|; 0 for equations A x = y")
    radius.add_argument(
        "--noise-std",
        type=float,
        metavar="STD",
        help="standard deviation of Gaussian noise: sigma = STD sqrt(m + 2 sqrt(2 m)), two standard "
        "deviations above the mean of the squared norm",
    )
    radius.add_argument(
        "--relative-sigma", type=float, metavar="R", help="sigma = R |y|, e.g. 0.01"
    )
    parser.add_argument("--weights", metavar="FILE", help="positive weights of the entries of x")
    parser.add_argument("--x0", metavar="FILE", help="starting point")
    parser.add_argument("--nonneg", action="store_true", help="require x >= 0")
    add_solver(parser, tol=1e-6)
    add_output(parser, "write x (and, in an npz, the dual solution)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Solve the problem, print and write the answer; return the exit status."""
    check_writable(options.output)
    method = method_named(options.method)
    A, y = read_array(options.A), read_vector(options.y)
    found = bpdn(
        A,
        y,
        _sigma(options, y),
        x0=None if options.x0 is None else read_vector(options.x0),
        weights=None if options.weights is None else read_vector(options.weights),
        nonneg=options.nonneg,
        method=method,
        progress=progress_wanted(options.quiet),
        **budget_of(options),
    )
    results = found if isinstance(found, list) else [found]
    if options.output is not None:
        write_array(options.output, **_arrays(found))
    if options.json:
        print_json(_data(results, found, options))
    else:
        _show(results, options)
    return code_of(results)


def _sigma(options: argparse.Namespace, y: Any) -> Any:
    if options.sigma is not None:
        return options.sigma
    if options.noise_std is not None:
        m = y.shape[0]
        return options.noise_std * math.sqrt(m + 2.0 * math.sqrt(2.0 * m))
    columns = [y] if y.ndim == 1 else list(y.T)
    radii = [options.relative_sigma * norm(column) for column in columns]
    return radii[0] if y.ndim == 1 else radii


def _arrays(found: Any) -> dict[str, Any]:
    if isinstance(found, list):
        return {
            "x": np.column_stack([result.x for result in found]),
            "dual": np.column_stack([result.dual for result in found]),
        }
    return {"x": found.x, "dual": found.dual}


def _data(results: list[Any], found: Any, options: argparse.Namespace) -> Any:
    code = code_of(results)
    summaries = [summary(result) | {"nonzeros": int(result.support.size)} for result in results]
    for data, result in zip(summaries, results, strict=True):
        if options.output is None:
            data["x"] = result.x
        else:
            data["output"] = str(options.output)
    if not isinstance(found, list):
        return summaries[0] | {"exit_code": int(code)}
    return {"results": summaries, "exit_code": int(code)}


def _show(results: list[Any], options: argparse.Namespace) -> None:
    out = console()
    for number, result in enumerate(results, start=1):
        if len(results) > 1:
            out.print(f"column {number} of {len(results)}")
        out.print(str(result), soft_wrap=True)
        out.print(f"  nonzeros     {result.support.size} of {result.x.shape[0]}")
        if options.output is None:
            _show_largest(out, result)
    if options.output is not None:
        out.print(f"  written to   {options.output}", soft_wrap=True)
    if code_of(results) is ExitCode.NOT_CONVERGED:
        out.print("  hint         a larger --tol, --time-limit or --max-iter, or another --method")


def _show_largest(out: Any, result: Result) -> None:
    x = np.asarray(result.x)
    largest = np.argsort(-np.abs(x), kind="stable")[:_SHOWN]
    entries = [f"x[{i}] = {x[i]:.6g}" for i in largest if x[i] != 0]
    if entries:
        out.print(f"  largest      {', '.join(entries)}", soft_wrap=True)
