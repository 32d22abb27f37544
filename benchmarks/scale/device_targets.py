"""Problems for one GPU with their target times: seconds, status, gap and memory, proof included.

python -m benchmarks.scale.device_targets [TARGET ...] [--device cuda] [--scale full] [--limit 60]
                                          [--repeats 2] [--library torch] [--profile]

Data are made on the device before the timing starts. "first" is the first call, including what PyTorch loads
and compiles; "s" is the median of the calls after it. ``--scale small`` runs the same calls at toy sizes,
on a CPU with ``--device cpu``. Table 2 reads the colon-cancer file that LOPRO_COLON names, or a stand-in.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import math
import pstats
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from types import FrameType
from typing import Any

import torch

from benchmarks._report import write_json
from benchmarks.scale import device_convex, device_sparse
from benchmarks.scale.devices import Case, Place
from lopro.batch import Results

#: The functions that yield the cases of each target.
TARGETS: dict[str, Callable[[Place, float], Iterator[Case]]] = {
    "batches": device_convex.batches,
    "steps": device_convex.steps,
    "logistic": device_convex.logistic,
    "rows": device_convex.half_spaces,
    "correlation": device_convex.correlation,
    "maxcut": device_convex.max_cut,
    "metric": device_convex.metric,
    "many": device_sparse.many_right_hand_sides,
    "bpdn": device_sparse.basis_pursuit,
    "large": device_sparse.large,
    "polynomial": device_sparse.polynomial,
    "variation": device_convex.total_variation,
}


def main() -> None:
    """Run the targets that are named, or all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--device", default="cuda", help="device of PyTorch")
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--limit", type=float, default=60.0, help="time limit of a call, seconds")
    parser.add_argument("--repeats", type=int, default=2, help="calls after the first one")
    parser.add_argument("--profile", action="store_true", help="profile a call")
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(
            f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}"
        )
    place = Place(options.device, options.library, options.scale == "small")
    print(f"{place.name}, PyTorch {torch.__version__}", flush=True)
    records: list[dict[str, Any]] = []
    for name in options.targets or TARGETS:
        records += _target(name, place, options)
    print(f"numbers in {write_json('device_targets', {'device': place.name, 'runs': records})}")


def _target(name: str, place: Place, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the cases of a target; an error ends this target alone."""
    records = []
    try:
        for case in TARGETS[name](place, options.limit):
            records.append({"target": name, **_measure(case, place, options)})
            del case
            gc.collect()  # free cyclic references
    except Exception:
        print(f"{name}: the problem could not be made\n{traceback.format_exc()}", flush=True)
        records.append({"target": name, "error": traceback.format_exc()})
    return records


@dataclass
class _Overrun:
    """A watchdog that ends a call which exceeds its time limit."""

    seconds: float

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._late)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _late(self, number: int, frame: FrameType | None) -> None:
        raise RuntimeError(f"not ended after {self.seconds:g} s, in\n" + "".join(
            traceback.format_stack(frame)[-6:]
        ))  # fmt: skip


def _measure(case: Case, place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Run the calls of a case; print and return their times and proofs."""
    record: dict[str, Any] = {"case": case.label, "goal": case.goal}
    seconds, answer = [], None
    try:
        place.forget_peak()
        for _ in range(1 + options.repeats):
            answer = None
            with _Overrun(2.0 * options.limit + 30.0):
                place.wait()
                begin = time.perf_counter()
                answer = case.call()
                place.wait()
                seconds.append(time.perf_counter() - begin)
            if seconds[-1] > 0.3 * options.limit:
                break  # too long to repeat
        warm = median(seconds[1:] or seconds)
        record |= {"first": seconds[0], "seconds": warm, "peak_gigabytes": place.peak() / 1e9}
        record |= proofs(answer) | ({} if case.more is None else case.more(answer, warm))
    except Exception:
        record["error"] = traceback.format_exc()
    error = record.get("error")
    if options.profile and error is None:
        _profile(case)
    shown = {k: v for k, v in record.items() if k not in ("case", "goal", "error")}
    line = "  ".join(f"{k} {_short(v)}" for k, v in shown.items())
    print(
        f"{case.label}: {line}  [goal: {case.goal}]" + (f"\n{error}" if error else ""),
        flush=True,
    )
    return record


def _profile(case: Case) -> None:
    """Profile one more call: print the kernels and the functions of the host that take most of the time."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    activities += [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
    with profile(activities=activities) as seen:
        case.call()
    by = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    print(seen.key_averages().table(sort_by=by, row_limit=16, max_name_column_width=60))
    host = cProfile.Profile()
    host.runcall(case.call)
    pstats.Stats(host).sort_stats("tottime").print_stats(16)


def proofs(answer: Any) -> dict[str, Any]:
    """Return status, gap and counts of a result, or of several."""
    results = list(answer[:1]) if isinstance(answer, Results) else answer
    results = results if isinstance(results, list) else [results]
    counts = results[0].counts
    nonzeros = getattr(results[0], "support", None)
    return {
        "status": ",".join(sorted({r.status.name for r in results})),
        "gap": max(float(r.certificate.relative_gap) for r in results),
        "method": str(results[0].method)[:40],
        "passes": max(r.counts.passes for r in results),
        "eigh": counts.eigendecompositions,
        "transfers": counts.transfers,
        **({} if nonzeros is None else {"nonzeros": len(nonzeros)}),
    }


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return str(value)


if __name__ == "__main__":
    main()
