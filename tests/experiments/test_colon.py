"""The colon-cancer loader: the order of its sources, the checksum, and random data that are named as such."""

from __future__ import annotations

import bz2
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest

from paper.experiments import colon
from paper.experiments.colon import load_colon, parse_libsvm, stand_in

TEXT = b"-1 1:0.5 3:-2\n+1 2:1 # a remark\n\n-1 1:1 2:1 3:1e-3\n"
SMALL = np.array([[0.5, 0.0, -2.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1e-3]])


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, no environment, and a network that answers with an error."""
    monkeypatch.delenv(colon.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(colon, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(colon, "urlopen", unreachable)
    return tmp_path


def unreachable(url: str, timeout: float) -> None:
    raise OSError("no route")


def serve(monkeypatch: pytest.MonkeyPatch, text: bytes, published: bytes = TEXT) -> list[str]:
    """Let the network answer with a text; return the list of what is requested."""
    requests = []

    def answer(url: str, timeout: float) -> io.BytesIO:
        requests.append(url)
        return io.BytesIO(bz2.compress(text))

    monkeypatch.setattr(colon, "urlopen", answer)
    monkeypatch.setattr(colon, "SHA256", hashlib.sha256(published).hexdigest())
    return requests


def test_lines_become_a_matrix_and_labels():
    X, labels = parse_libsvm(TEXT.decode().splitlines())
    np.testing.assert_array_equal(X, SMALL)
    np.testing.assert_array_equal(labels, [-1.0, 1.0, -1.0])
    assert parse_libsvm(["1 2:3"], columns=5)[0].shape == (1, 5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:3:4", "line 1 is not of the form"),
        ("1 x:3", "line 1 is not of the form"),
        ("tumour 1:3", "line 1 is not of the form"),
        ("1 0:3", "one below 1"),
        ("1 2:3 2:4", "names a feature twice"),
        ("1 7:3", "index 7, but there are 5 columns"),
        ("# nothing", "no sample"),
    ],
)
def test_broken_lines_are_named(line, message):
    with pytest.raises(ValueError, match=message):
        parse_libsvm([line], columns=5)


def test_numbers_without_indices_are_no_samples():
    with pytest.raises(ValueError, match="no entry index:value"):
        parse_libsvm(["1.5", "2.5"])


@pytest.mark.parametrize("pack", [bytes, bz2.compress], ids=["plain", "bzip2"])
def test_a_path_takes_precedence_over_the_environment(elsewhere, monkeypatch, pack):
    here, there = elsewhere / "here", elsewhere / "there"
    here.write_bytes(pack(TEXT))
    there.write_bytes(b"1 1:9\n")
    monkeypatch.setenv(colon.ENVIRONMENT_VARIABLE, str(there))
    np.testing.assert_array_equal(load_colon(here).X, SMALL)
    assert load_colon().X.shape == (1, 1)
    assert load_colon(here).name == "here (NOT the published colon-cancer)"
    monkeypatch.setattr(colon, "SHA256", hashlib.sha256(TEXT).hexdigest())
    assert load_colon(here).name == "colon-cancer"


def test_a_path_that_is_wrong_is_an_error_and_not_a_stand_in(elsewhere):
    with pytest.raises(FileNotFoundError):
        load_colon(elsewhere / "nowhere")


def test_a_download_is_checked_kept_and_not_repeated(elsewhere, monkeypatch):
    requests = serve(monkeypatch, TEXT)
    first, second = load_colon(), load_colon()
    assert requests == [colon.URL]
    assert first.name == second.name == "colon-cancer"
    assert first.origin.startswith("downloaded") and second.origin.startswith("file")
    np.testing.assert_array_equal(second.X, SMALL)
    assert [p.name for p in (elsewhere / "cache").iterdir()] == ["colon-cancer.libsvm"]


def test_a_download_with_the_wrong_checksum_is_refused(elsewhere, monkeypatch):
    serve(monkeypatch, TEXT + b"1 1:1\n")
    data = load_colon()
    assert data.name.startswith("STAND-IN") and "checksum" in data.origin
    assert not (elsewhere / "cache").exists()


def test_a_damaged_cache_is_not_read(elsewhere, monkeypatch):
    requests = serve(monkeypatch, TEXT)
    (elsewhere / "cache").mkdir()
    (elsewhere / "cache" / "colon-cancer.libsvm").write_bytes(TEXT[:-5])
    np.testing.assert_array_equal(load_colon().X, SMALL)
    assert len(requests) == 1


def test_a_cache_that_cannot_be_written_is_no_obstacle(elsewhere, monkeypatch):
    serve(monkeypatch, TEXT)
    (elsewhere / "cache").write_text("a file where the folder should be", encoding="utf-8")
    np.testing.assert_array_equal(load_colon().X, SMALL)


def test_without_any_source_there_is_a_stand_in_that_says_what_to_do():
    data = load_colon()
    assert data.name.startswith("STAND-IN")
    assert "no route" in data.origin and colon.ENVIRONMENT_VARIABLE in data.origin
    assert "downloads are off" in load_colon(download=False).origin


def test_the_stand_in_is_seeded_and_scaled_like_the_original():
    one, same, other = stand_in(), stand_in(), stand_in(seed=1)
    np.testing.assert_array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)
    assert one.X.shape == colon.SHAPE and (one.labels == 1.0).sum() == 22
    np.testing.assert_allclose(one.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(one.X.std(axis=0), 1.0)


def test_the_published_file():
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / "colon-cancer.libsvm"
    if not path.is_file():
        pytest.skip("the colon-cancer file is not on this machine")
    data = load_colon(path)
    assert data.name == "colon-cancer" and data.X.shape == colon.SHAPE
    assert (data.labels == -1.0).sum() == 40 and set(data.labels) == {-1.0, 1.0}
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, atol=0.02)
    assert data.X[0, 0] == 2.08075 and data.X[-1, -1] == 0.06415


@pytest.mark.parametrize(
    ("platform", "variable"), [("win32", "LOCALAPPDATA"), ("linux", "XDG_CACHE_HOME")]
)
def test_the_cache_follows_the_system(monkeypatch, platform, variable):
    monkeypatch.undo()
    monkeypatch.setattr(colon.sys, "platform", platform)
    monkeypatch.setenv(variable, "/some/place")
    assert colon.cache_folder() == Path("/some/place/lopro")
    monkeypatch.delenv(variable)
    assert colon.cache_folder().is_relative_to(Path.home())
