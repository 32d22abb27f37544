"""`lopro.solve` on a GPU: Newton's method where the data are, beside the host and first-order multipliers.

python -m benchmarks.scale.gpu_solve [--logistic 100000x50 1000000x200 4000000x500]
                                     [--rows 500x5000 2000x20000] [--repeats 3] [--host 2000000000]

Logistic regression with 20 rows bounded on both sides, with a ridge and without; least squares over random
half-spaces (variables x rows). Everything but the making of the data is inside the clock; ``extra`` is the
largest device memory beside the data. The host, with all its threads, solves what has at most so many bytes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import lopro
from benchmarks._report import write_json
from benchmarks.scale.gpu import Torch
from lopro.constraints import Affine, Polyhedron
from lopro.objectives import LeastSquares, Logistic

#: From what converts the arrays (to the host, or not at all) to the problem.
Posed = Callable[[Callable[[Any], Any]], lopro.Problem]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logistic", nargs="*", default=["100000x50", "1000000x200", "4000000x500"]
    )
    parser.add_argument("--rows", nargs="*", default=["500x5000", "2000x20000"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--host", type=float, default=2e9)
    options = parser.parse_args()
    device, records = Torch(), []
    for size in options.logistic:
        samples, features = (int(n) for n in size.split("x"))
        for ridge in (1e-3, 0.0):
            posed = logistic(device, samples, features, ridge)
            name = f"logistic {samples} x {features}, ridge {ridge:g}"
            records.append(measure(device, name, posed, 8.0 * samples * features, options))
    for size in options.rows:
        variables, rows = (int(n) for n in size.split("x"))
        name = f"{variables} variables, {rows} half-spaces"
        posed = half_spaces(device, variables, rows)
        records.append(measure(device, name, posed, 8.0 * variables * rows, options))
    print(write_json("scale_gpu_solve", {"device": device.name(), "runs": records}))


def logistic(device: Torch, samples: int, features: int, ridge: float) -> Posed:
    torch = device.torch
    X = device.normal(samples, features, "float64")
    C = torch.randn(20, features, dtype=torch.float64, device="cuda")
    noise = torch.randn(samples, dtype=torch.float64, device="cuda")
    labels = torch.sign(X @ C[0] / features**0.5 + noise)
    return lambda of: lopro.Problem(
        Logistic(of(X), of(labels), l2=ridge), Affine(of(C), -0.05, 0.05)
    )


def half_spaces(device: Torch, variables: int, rows: int) -> Posed:
    torch = device.torch
    G = device.normal(rows, variables, "float64")
    A = torch.randn(3 * variables // 2, variables, dtype=torch.float64, device="cuda")
    b = 10.0 * torch.randn(len(A), dtype=torch.float64, device="cuda")
    h = torch.rand(rows, dtype=torch.float64, device="cuda")
    return lambda of: lopro.Problem(LeastSquares(of(A), of(b)), Polyhedron(of(G), of(h)))


def measure(
    device: Torch, name: str, posed: Posed, nbytes: float, options: argparse.Namespace
) -> dict[str, Any]:
    """Solve there some times, on the host once, and there by first-order multipliers once."""
    seconds = []
    for _ in range(options.repeats):
        device.forget_peak()
        result, elapsed = timed(device, posed(lambda array: array), options.tol)
        seconds.append(elapsed)
    record = {
        "name": name,
        "gigabytes": nbytes / 1e9,
        "status": result.status.name,
        "method": str(result.method),
        "gap": result.certificate.relative_gap,
        "seconds": median(seconds),
        "extra": device.peak() / 1e9,
    }
    if nbytes <= options.host:
        here = posed(lambda array: array.cpu().numpy())
        record["host"] = timed(device, here, options.tol)[1]
        first_order, elapsed = timed(
            device, posed(lambda array: array), options.tol, method=lopro.MultiplierMethod()
        )
        record["first order"] = elapsed if first_order.success else None
    print({k: round(v, 4) if isinstance(v, float) and v > 1e-3 else v for k, v in record.items()})
    return record


def timed(device: Torch, problem: lopro.Problem, tol: float, **options: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = lopro.solve(problem, tol=tol, time_limit=60.0, **options)
    device.wait()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    main()
