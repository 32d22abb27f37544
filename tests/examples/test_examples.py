"""The examples at reduced size: certified answers, the claims of their texts, files only on request."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lopro

INSTALL = 'the examples need matplotlib and PyWavelets: pip install "lopro[examples]"'
pytest.importorskip("pywt", reason=INSTALL)
pytest.importorskip("matplotlib", reason=INSTALL)

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["ecg", "image"]
PNG = b"\x89PNG\r\n\x1a\n"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up by name.
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ecg(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("ecg", monkeypatch)


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("image", monkeypatch)


@pytest.fixture(params=NAMES)
def example(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> ModuleType:
    module = load(request.param, monkeypatch)
    monkeypatch.setattr(module, "FIGURE", tmp_path / "figures" / "default.png")
    return module


def decibels(table: str, row: str) -> float:
    found = re.search(rf"^{re.escape(row)} +(-?[\d.]+) dB", table, re.MULTILINE)
    assert found is not None, table
    return float(found[1])


def test_every_example_is_tested_here() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == NAMES


def test_without_save_there_is_a_table_and_no_file(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example.main(["--quick"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^status +CONVERGED$", shown, re.MULTILINE)
    assert "relative gap" in shown and "projections" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", [None, "mine.png"])
def test_save_writes_a_png(example: ModuleType, tmp_path: Path, where: str | None) -> None:
    path = example.FIGURE if where is None else tmp_path / where
    assert example.main(["--quick", "--save", *([] if where is None else [str(path)])]) == 0
    assert path.read_bytes().startswith(PNG)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_an_answer_without_certificate_gives_status_1(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lopro, "bpdn", functools.partial(lopro.bpdn, max_iter=1))
    assert example.main(["--quick"]) == 1
    assert "MAX_ITER" in capsys.readouterr().out


def test_sparsity_beats_least_squares_on_the_ecg(
    ecg: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    ecg.main(["--quick"])
    shown = capsys.readouterr().out
    assert (
        decibels(shown, "SNR of lopro.bpdn") > 20.0 > 10.0 > decibels(shown, "SNR of least squares")
    )


def test_sparsity_beats_the_adjoint_on_the_image(
    image: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    image.main(["--quick"])
    shown = capsys.readouterr().out
    assert decibels(shown, "PSNR of lopro.bpdn") > 20.0 > 10.0 > decibels(shown, "PSNR of A' y")


def test_the_dual_point_of_the_ecg_proves_a_bound_as_its_text_states(ecg: ModuleType) -> None:
    e = ecg.measure(ecg.pywt.data.ecg()[:256].astype(float), 128)
    result = lopro.bpdn(e.A, e.y, e.sigma, tol=ecg.TOL)
    nu = result.dual
    assert np.abs(e.A.T @ nu).max() <= 1.0 + 1e-12
    bound = e.y @ nu - e.sigma * np.linalg.norm(nu)
    assert (
        0.0 < bound <= result.certificate.lower_bound * (1.0 + 1e-12) <= result.fun * (1.0 + 2e-12)
    )
    assert result.certificate.relative_gap <= ecg.TOL
    truth = e.W @ e.signal
    assert np.linalg.norm(e.A @ truth - e.y) <= e.sigma
    assert np.abs(truth).sum() > result.fun


def test_the_wavelet_matrix_of_the_ecg_is_orthogonal(ecg: ModuleType) -> None:
    W, scales = ecg.wavelet_matrix(256)
    assert sum(scales) == 256
    np.testing.assert_allclose(W @ W.T, np.eye(256), atol=1e-12)


def test_the_operator_of_the_image_has_orthonormal_rows(
    image: ModuleType, rng: np.random.Generator
) -> None:
    A = image.operator(image.Scrambler(64, rng), image.Wavelets(64))
    assert image.adjoint_error(A, rng) < 1e-12
    v = rng.standard_normal(A.shape[0])
    np.testing.assert_allclose(A.matvec(A.rmatvec(v)), v, atol=1e-12)
