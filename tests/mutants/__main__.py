"""``python -m mutants``: put each error of the list into a copy of the sources, and list undetected ones."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants.listing import FOLDER, ROOT, Mutant, flaws, load
from mutants.random_errors import random_mutants
from mutants.trial import Outcome, copy_checkout, run_tests, try_mutant

#: Exit statuses.
ALL_WELL, SURVIVORS, BAD_LIST = 0, 1, 2


def main(arguments: list[str] | None = None, root: Path = ROOT, folder: Path = FOLDER) -> int:
    """Run what the arguments select; 1 where an error goes unnoticed, 2 where the list is out of date."""
    options = _parser().parse_args(arguments)
    mutants = load(folder)
    wrong = flaws(mutants, root)
    if wrong:
        print("the list does not fit the sources:", *wrong, sep="\n  ")
        return BAD_LIST
    chosen = [m for m in mutants if options.name in m.name and options.file in m.file]
    if options.random:
        chosen = [*random_mutants(options.random, options.seed, options.file, root, mutants)]
    if options.list or not chosen:
        print(*(f"{m.name}  {m.file}" for m in chosen), f"{len(chosen)} mutants", sep="\n")
        return ALL_WELL if chosen else BAD_LIST
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies = [copy_checkout(root, Path(scratch, str(i))) for i in range(options.jobs)]
        tests = tuple(sorted({test for m in chosen for test in m.tests}))
        print(
            f"{len(chosen)} mutants; first their {len(tests)} test files without mutants",
            flush=True,
        )
        status, output = run_tests(
            copies[0], tests, workers=options.jobs if options.jobs > 1 else 0
        )
        if status != 0:
            print(output, "the tests do not pass as they are", sep="\n")
            return BAD_LIST
        outcomes = _try_all(chosen, copies, options.limit)
    return _summary(outcomes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("-k", "--name", default="", help="only mutants whose name contains this")
    parser.add_argument("--file", default="", help="only mutants of files whose path contains this")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="number of parallel jobs (1)")
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds for one mutant's tests (300)"
    )
    parser.add_argument(
        "--random",
        type=int,
        default=0,
        metavar="N",
        help="this number of random errors, not the list",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random errors (0)")
    parser.add_argument("--list", action="store_true", help="show the list and run nothing")
    return parser


def _try_all(mutants: list[Mutant], copies: list[Path], limit: float) -> list[Outcome]:
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def tried(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            outcome = try_mutant(mutant, copy, limit)
        finally:
            free.put(copy)
        shown = outcome.by.splitlines()[-1] if outcome.by else ""
        mark = "  " if outcome.as_expected else "!!"
        print(f"{mark} {mutant.name:<44} {outcome.verdict:<9}{outcome.seconds:6.1f} s  {shown}")
        sys.stdout.flush()
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(tried, mutants))


def _summary(outcomes: list[Outcome]) -> int:
    real = [o for o in outcomes if not o.mutant.equivalent]
    print(f"\n{'file':<44} {'errors':>7} {'noticed':>8}")
    errors = Counter(o.mutant.file for o in real)
    noticed = Counter(o.mutant.file for o in real if o.as_expected)
    for file in sorted(errors):
        print(f"{file:<44} {errors[file]:>7} {noticed[file]:>8}")
    print(f"{'all':<44} {errors.total():>7} {noticed.total():>8}")
    for o in outcomes:
        if o.mutant.equivalent and o.as_expected:
            print(f"equivalent: {o.mutant.name} ({o.mutant.equivalent})")
        elif o.mutant.equivalent:
            print(f"NOT EQUIVALENT: {o.mutant.name} was noticed by {o.by}")
        elif not o.as_expected:
            print(f"{o.verdict.upper()}: {o.mutant.name} in {o.mutant.file}\n{o.by}".rstrip())
    return ALL_WELL if all(o.as_expected for o in outcomes) else SURVIVORS


if __name__ == "__main__":
    sys.exit(main())
