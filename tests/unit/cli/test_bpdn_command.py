"""``lopro bpdn``: every file format, both outputs, and an exit status for every outcome."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import lopro
from lopro.cli import bpdn as command
from lopro.cli import main
from lopro.cli.files import read_array
from lopro.driver.result import Status


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Return a small problem; its files are A.* and y.* of the working directory."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 50))
    y = A[:, 3] - 2 * A[:, 40]
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.save("y.npy", y)
    return A, y


def answer(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_json_is_the_answer_of_the_library(data, capsys):
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", "--json"]) == 0
    printed, expected = answer(capsys), lopro.bpdn(*data, sigma=0.1)
    assert printed["status"] == "CONVERGED" and printed["exit_code"] == 0
    np.testing.assert_array_equal(printed["x"], expected.x)
    assert printed["fun"] == expected.fun
    assert printed["counts"] == expected.counts.to_dict()
    assert printed["certificate"]["lower_bound"] == expected.certificate.lower_bound


def write_npz(A, y):
    np.savez("A.npz", matrix=A, other=y)
    np.savez("y.npz", y)
    return "A.npz:matrix", "y.npz"


def write_sparse_npz(A, y):
    scipy.sparse.save_npz("A.npz", scipy.sparse.csr_array(A))
    return "A.npz", "y.npy"


def write_mtx(A, y):
    scipy.io.mmwrite("A.mtx", scipy.sparse.coo_array(A))
    scipy.io.mmwrite("y.mtx", y[:, None])
    return "A.mtx", "y.mtx"


def write_csv(A, y):
    np.savetxt("A.csv", A, delimiter=",", fmt="%.17g")
    np.savetxt("y.csv", y, header="measured", comments="", fmt="%.17g")
    return "A.csv", "y.csv"


def write_txt(A, y):
    np.savetxt("A.txt", A, fmt="%.17g")
    np.savetxt("y.tsv", y[None, :], delimiter="\t", fmt="%.17g")
    return "A.txt", "y.tsv"


@pytest.mark.parametrize("write", [write_npz, write_sparse_npz, write_mtx, write_csv, write_txt])
def test_every_format_gives_the_same_answer(data, capsys, write):
    files = write(*data)
    assert main(["bpdn", *files, "--sigma", "0.1", "--json"]) == 0
    np.testing.assert_allclose(answer(capsys)["x"], lopro.bpdn(*data, sigma=0.1).x, atol=1e-9)


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.mtx", "new/x.txt"])
def test_the_output_file_holds_the_solution(data, capsys, name):
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", "--json", "-o", name]) == 0
    printed = answer(capsys)
    assert "x" not in printed and printed["output"] == name
    found = read_array(name)
    found = found.toarray().ravel() if scipy.sparse.issparse(found) else found
    np.testing.assert_allclose(found, lopro.bpdn(*data, sigma=0.1).x, rtol=1e-15)


def test_an_npz_file_contains_the_dual_solution(data):
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", "-o", "x.npz"]) == 0
    with np.load("x.npz") as found:
        A, y = data
        nu = found["dual"]
        assert np.abs(A.T @ nu).max() <= 1 + 1e-12
        assert y @ nu - 0.1 * np.linalg.norm(nu) == pytest.approx(np.abs(found["x"]).sum(), 1e-6)


def test_complex_solutions_are_printed_as_two_parts(data, capsys):
    A, y = data
    np.savetxt("Ac.csv", A * (1 + 1j), delimiter=",")
    np.save("yc.npy", y * (1 - 1j))
    assert main(["bpdn", "Ac.csv", "yc.npy", "--sigma", "0.1", "--json"]) == 0
    x = answer(capsys)["x"]
    assert np.abs(np.array(x["imag"])).max() > 0.1 and len(x["real"]) == 50


def test_each_column_of_y_is_a_separate_problem(data, capsys):
    _, y = data
    np.save("Y.npy", np.column_stack([y, 2 * y]))
    assert main(["bpdn", "A.npy", "Y.npy", "--relative-sigma", "0.01", "--json"]) == 0
    first, second = answer(capsys)["results"]
    assert second["fun"] == pytest.approx(2 * first["fun"], rel=1e-5)
    assert main(["bpdn", "A.npy", "Y.npy", "--sigma", "0.1", "-o", "X.npy"]) == 0
    assert read_array("X.npy").shape == (50, 2)
    assert "column 2 of 2" in capsys.readouterr().out


def test_the_radius_from_the_noise(data, capsys):
    main(["bpdn", "A.npy", "y.npy", "--noise-std", "0.05", "--json"])
    sigma = 0.05 * np.sqrt(20 + 2 * np.sqrt(40))
    assert answer(capsys)["fun"] == pytest.approx(lopro.bpdn(*data, sigma=sigma).fun, rel=1e-6)


def test_weights_start_sign_and_method(data, capsys):
    np.save("w.npy", np.linspace(1, 2, 50))
    np.save("x0.npy", np.ones(50))
    argv = ["--weights", "w.npy", "--x0", "x0.npy", "--method", "lopro.multipliermethod"]
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "2.5", "--nonneg", "--json", *argv]) == 0
    printed = answer(capsys)
    assert "MultiplierMethod" in printed["method"] and min(printed["x"]) >= -1e-9


def test_the_default_output_is_a_few_lines(data, capsys):
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""  # no progress in a pipe
    assert shown.out.startswith("CONVERGED")
    assert "2 of 50" in shown.out and "x[40] = -1.9" in shown.out


def test_an_iteration_limit_that_is_too_small_is_not_converged(data, capsys):
    argv = ["--method", "LoPGD", "--max-iter", "3"]
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", *argv]) == 1
    assert "MAX_ITER" in capsys.readouterr().out


def test_a_missing_gap_is_null_and_not_inf(data, capsys):
    # Nothing is within 0.5 of both measurements, so there is no value and no gap.
    np.save("A.npy", np.array([[1.0], [1.0]]))
    np.save("y.npy", np.array([1.0, -1.0]))
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.5", "--json"]) == 1
    text = capsys.readouterr().out
    printed = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert printed["status"] == "INFEASIBLE" and printed["fun"] is None
    for name in ("gap", "relative_gap", "violation"):
        assert printed["certificate"][name] is None


def test_one_column_that_fails_is_not_success(data, capsys):
    # The first column is zero, and so is its solution; the second needs more than an iteration.
    _, y = data
    np.save("Y.npy", np.column_stack([0.0 * y, y]))
    argv = ["--sigma", "0.1", "--max-iter", "1", "--tol", "1e-12", "--method", "LoPGD", "--json"]
    assert main(["bpdn", "A.npy", "Y.npy", *argv]) == 1
    assert [r["success"] for r in answer(capsys)["results"]] == [True, False]


def test_an_interrupted_run_still_writes_its_point(data, monkeypatch):
    def interrupted(*args, **options):
        return dataclasses.replace(lopro.bpdn(*args, **options), status=Status.INTERRUPTED)

    monkeypatch.setattr(command, "bpdn", interrupted)
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", "-o", "x.npy"]) == 130
    assert read_array("x.npy").shape == (50,)


@pytest.mark.parametrize(
    ("watched", "quiet", "shown"), [(1, 0, True), (1, 1, False), (0, 0, False)]
)
def test_progress_is_shown_on_terminals_only(data, monkeypatch, watched, quiet, shown):
    seen = {}

    def spy(*args, progress, **options):
        seen["progress"] = progress
        return lopro.bpdn(*args, **options)

    monkeypatch.setattr(command, "bpdn", spy)
    monkeypatch.setattr("sys.stderr.isatty", lambda: bool(watched))
    main(["bpdn", "A.npy", "y.npy", "--sigma", "0.1", *(["--quiet"] * quiet)])
    assert seen == {"progress": shown}
