"""Positive parts and their Jacobians: against differences, on either side of the spectrum."""

import numpy as np
import pytest

from lopro.newton.spectral import Spectrum


def symmetric(rng, n):
    M = rng.standard_normal((n, n))
    return M + M.T


@pytest.mark.parametrize("shift", [-6.0, 0.0, 6.0, -100.0, 100.0])
def test_positive_part_and_jacobian(rng, shift):
    n = 9
    M, S = symmetric(rng, n) + shift * np.eye(n), symmetric(rng, n)
    spectrum = Spectrum(M)
    positive = spectrum.positive_part()
    assert np.linalg.eigvalsh(positive)[0] >= -1e-12
    np.testing.assert_allclose(positive @ (positive - M), 0.0, atol=1e-10)  # complementarity
    h = 1e-6
    ahead, behind = Spectrum(M + h * S).positive_part(), Spectrum(M - h * S).positive_part()
    np.testing.assert_allclose(spectrum.jacobian(S), (ahead - behind) / (2 * h), atol=1e-7)


def test_jacobian_is_symmetric_and_between_zero_and_one(rng):
    spectrum = Spectrum(symmetric(rng, 8))
    basis = [S for S in (symmetric(rng, 8) for _ in range(36))]
    for S in basis:
        image = spectrum.jacobian(S)
        np.testing.assert_allclose(image, image.T, atol=1e-12)
        assert 0.0 <= np.sum(S * image) <= np.sum(S * S)
    a, b = basis[:2]
    assert np.sum(a * spectrum.jacobian(b)) == pytest.approx(np.sum(b * spectrum.jacobian(a)))


@pytest.mark.parametrize("shift", [-6.0, 0.0, 6.0, -100.0, 100.0])
def test_diagonal_derivatives_are_the_diagonal_of_the_jacobian(rng, shift):
    n = 9
    spectrum = Spectrum(symmetric(rng, n) + shift * np.eye(n))
    expected = [spectrum.jacobian(np.diag(e))[i, i] for i, e in enumerate(np.eye(n))]
    np.testing.assert_allclose(spectrum.diagonal_derivatives(), expected, atol=1e-12)
