"""`lopro.nearest_correlation` with tensors and on a device: the answers of NumPy, and transfers counted."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from support.correlation_targets import uniform

import lopro
from lopro.core.arrays import to_numpy


@pytest.mark.parametrize("entries", [False, True])
def test_answers_for_tensors_are_tensors(rng, entries):
    torch = pytest.importorskip("torch")
    G, w = uniform(rng, 12), rng.uniform(0.5, 1.0, 12)
    weights = np.outer(w, w) if entries else w
    expected = lopro.nearest_correlation(G, weights)
    result = lopro.nearest_correlation(torch.asarray(G), torch.asarray(weights))
    assert isinstance(result.x, torch.Tensor) and result.x.dtype == torch.float64
    assert np.array_equal(result.x.numpy(), expected.x) and result.fun == expected.fun


def on_second_device(values):
    return array_api_strict.asarray(np.asarray(values), device=array_api_strict.Device("device1"))


def kept_pair(n):
    fixed = np.zeros((n, n), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = fixed[2, 4] = fixed[4, 2] = True
    return fixed


@pytest.mark.parametrize("kind", ["plain", "weights", "fixed", "single"])
@pytest.mark.parametrize("library", ["strict", "torch"])
def test_only_vectors_are_copied_from_a_device(rng, monkeypatch, library, kind):
    """NumPy's answer, with as many eigendecompositions; matrices stay on the device."""
    n = 30
    G, w = uniform(rng, n), rng.uniform(0.3, 2.0, n)
    G = G.astype(np.float32) if kind == "single" else G
    tol = 1e-4 if kind == "single" else 1e-8
    options = {
        "weights": {"weights": w, "min_eigenvalue": 0.05},
        "fixed": {"weights": w, "fixed": kept_pair(n)},
    }.get(kind, {})
    expected = lopro.nearest_correlation(G, tol=tol, **options)
    if library == "torch":
        # The device of these tests is the host; the code for other devices is forced to run.
        torch = pytest.importorskip("torch")
        there = torch.asarray
        for module in (lopro.correlation, lopro.newton.sdp.correlation_target):
            monkeypatch.setattr(module, "on_host", lambda x: isinstance(x, np.ndarray))
    else:
        there = on_second_device
    left = []
    for module in (lopro.newton.spectral, lopro.newton.sdp.entries, lopro.newton.sdp.hessian):
        real = module.to_numpy
        monkeypatch.setattr(module, "to_numpy", lambda x, f=real: left.append(x.shape) or f(x))
    if "weights" in options:
        options = options | {"weights": there(w)}
    found = lopro.nearest_correlation(there(G), tol=tol, **options)
    assert left and max(len(shape) for shape in left) == 1
    assert max(shape[0] for shape in left) <= n + 4
    assert found.success and found.counts.transfers == 0
    assert found.counts.eigendecompositions == expected.counts.eigendecompositions
    assert found.counts.matvecs == expected.counts.matvecs
    assert type(found.x) is type(there(G)) and found.x.dtype == there(G).dtype
    X = to_numpy(found.x).astype(np.float64)
    np.testing.assert_allclose(X, expected.x, atol=1e-12 if tol < 1e-6 else 1e-5)
    assert found.fun == pytest.approx(expected.fun, rel=1e-12 if tol < 1e-6 else 1e-6)
    assert found.certificate.lower_bound == pytest.approx(
        expected.certificate.lower_bound, rel=1e-12
    )
    assert found.certificate.violation == 0.0
    assert np.linalg.eigvalsh(X)[0] >= options.get("min_eigenvalue", 0.0) - 1e-15
    assert np.array_equal(X, X.T) and np.array_equal(np.diag(X), np.ones(n))


def test_on_a_device_contradictions_are_proved():
    G, fixed = np.eye(3), np.ones((3, 3), dtype=bool)
    for i, j, entry in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        G[i, j] = G[j, i] = entry
    result = lopro.nearest_correlation(on_second_device(G), fixed=fixed)
    assert result.status is lopro.Status.INFEASIBLE
    assert np.array_equal(result.ray, lopro.nearest_correlation(G, fixed=fixed).ray)


def test_on_a_device_weights_of_entries_are_copied_once(rng):
    """The method for them runs on the host: two matrices are copied, and this is counted."""
    n = 12
    G, W = uniform(rng, n), rng.uniform(0.1, 1.0, (n, n))
    W = W + W.T
    expected = lopro.nearest_correlation(G, W)
    found = lopro.nearest_correlation(on_second_device(G), on_second_device(W))
    assert found.success and found.counts.transfers >= 2
    assert found.x.device == array_api_strict.Device("device1")
    assert found.fun == pytest.approx(expected.fun, rel=1e-6)
