"""Every solver of linear systems against dense solves, and with changing weights against fresh ones."""

import numpy as np
import pytest
import scipy.sparse
from support.newton_examples import differences

from lopro.core.deadline import Deadline, OutOfTime
from lopro.linalg.sparse import gram
from lopro.newton.curvature import ConstantMatrix, Diagonal, Gram, Product, apply
from lopro.newton.systems import (
    ConjugateGradients,
    DenseSystem,
    RowSpaceSystem,
    SingularSystem,
    SparseSystem,
    choose_system,
)


def dense(pieces, shift, n):
    return np.array([apply(pieces, e) for e in np.eye(n)]) + shift * np.eye(n)


def solution(pieces, shift, rhs):
    return np.linalg.solve(dense(pieces, shift, len(rhs)), rhs)


def random_pieces(rng, n=12, sparse=False):
    B = rng.standard_normal((20, n)) * (rng.uniform(size=(20, n)) < (0.3 if sparse else 2.0))
    P = B.T @ B
    wrap = scipy.sparse.csr_array if sparse else np.asarray
    weights = rng.uniform(0.5, 2.0, 20) * (rng.uniform(size=20) < 0.6)
    return [ConstantMatrix(wrap(P)), Gram(wrap(B), weights), Diagonal(rng.uniform(0.0, 1.0, n))]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "cg"])
def test_agrees_with_a_dense_solve(rng, kind, sparse):
    pieces, rhs = random_pieces(rng, sparse=sparse or kind == "sparse"), rng.standard_normal(12)
    system = {
        "dense": lambda: DenseSystem(12),
        "sparse": lambda: SparseSystem(12, pieces),
        "cg": lambda: ConjugateGradients(12),
    }[kind]()
    expected = solution(pieces, 0.1, rhs)
    np.testing.assert_allclose(system.solve(pieces, 0.1, rhs, 1e-13), expected, rtol=1e-9)


def test_row_space_agrees_with_a_dense_solve_even_with_large_weights(rng):
    B, rhs = rng.standard_normal((5, 40)), rng.standard_normal(40)
    for weight in (1.0, 1e8):
        pieces = [
            Diagonal(rng.uniform(0.5, 2.0, 40)),
            Gram(B, np.array([weight, 0.0, 1.0, 2.0, weight])),
        ]
        x = RowSpaceSystem(40).solve(pieces, 0.0, rhs)
        np.testing.assert_allclose(apply(pieces, x), rhs, atol=1e-7 * np.linalg.norm(rhs))
    with pytest.raises(SingularSystem):
        RowSpaceSystem(40).solve([Gram(B, np.ones(5))], 0.0, rhs)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_updated_factors_agree_with_fresh_ones(rng, kind):
    """Random sequences of changing weights: few rows, many rows, none."""
    pieces = random_pieces(rng, sparse=kind == "sparse")
    system = DenseSystem(12) if kind == "dense" else SparseSystem(12, pieces)
    weights = pieces[1].weights
    for k in range(120):
        changed = rng.uniform(size=20) < (0.05, 0.5, 0.0)[k % 3]
        weights = np.where(
            changed, rng.uniform(0.0, 3.0, 20) * (rng.uniform(size=20) < 0.7), weights
        )
        now = [pieces[0], Gram(pieces[1].B, weights), pieces[2]]
        rhs = rng.standard_normal(12)
        np.testing.assert_allclose(
            system.solve(now, 0.05, rhs, 0.0), solution(now, 0.05, rhs), rtol=1e-8
        )
    assert system.factorisations <= 80  # the third kind changes nothing, and costs no factor


def test_a_matrix_regular_only_by_rounding_is_singular(rng):
    B = rng.standard_normal((5, 8))
    for system in (DenseSystem(8), ConjugateGradients(8)):
        with pytest.raises(SingularSystem):
            system.solve([Gram(B, np.zeros(5))], 0.0, np.ones(8), 0.1)
    with pytest.raises(SingularSystem):
        DenseSystem(8).solve([Gram(B, np.ones(5))], 0.0, np.ones(8), 0.1)
    D = differences(200)
    pieces = [Gram(D, np.ones(199))]
    with pytest.raises(SingularSystem):
        SparseSystem(200, pieces).solve(pieces, 0.0, np.ones(200))


def test_bands_of_every_width_and_any_order(rng):
    n = 300
    for width, shuffled in ((1, False), (2, False), (7, True), (60, False)):
        P = scipy.sparse.diags_array(
            [rng.uniform(-1, 1, n - k) for k in range(width + 1)],
            offsets=list(range(width + 1)),
            shape=(n, n),
        )
        P = P + P.T + (2.0 * width + 4.0) * scipy.sparse.eye_array(n)
        order = rng.permutation(n) if shuffled else np.arange(n)
        P = scipy.sparse.csr_array(P)[order][:, order]
        system = SparseSystem(n, [ConstantMatrix(P)])
        rhs = rng.standard_normal(n)
        np.testing.assert_allclose(P @ system.solve([ConstantMatrix(P)], 0.0, rhs), rhs, atol=1e-10)
        if width < 40:
            assert system.width < 40


def test_choice(rng):
    """The system is chosen by sparsity, number of rows, size, and the kind of the maps."""
    wide, tall = np.ones((3, 400)), np.ones((500, 400))
    narrow = Gram(differences(400), np.ones(399))

    def chosen(n, *pieces):
        return type(choose_system(n, pieces))

    assert chosen(400, Diagonal(np.ones(400)), narrow) is SparseSystem
    assert chosen(400, Diagonal(np.ones(400)), Gram(wide, np.ones(3))) is RowSpaceSystem
    assert chosen(400, Gram(tall, np.ones(500))) is DenseSystem
    assert chosen(400, ConstantMatrix(np.eye(400)), Gram(wide, np.ones(3))) is DenseSystem
    assert chosen(400, Product(lambda s: s, 1.0, 400)) is ConjugateGradients
    assert chosen(40, Product(lambda s: s, 1.0, 40)) is DenseSystem
    rows = Gram(scipy.sparse.csr_array(tall), np.ones(500))
    assert chosen(400, rows) is DenseSystem


def test_operators_are_assembled_where_small(rng):
    M = rng.standard_normal((6, 6))
    H = M @ M.T + np.eye(6)
    rhs = rng.standard_normal(6)
    x = DenseSystem(6).solve([Product(lambda s: H @ s, 1.0, 6)], 0.0, rhs)
    np.testing.assert_allclose(H @ x, rhs, rtol=1e-9)


def test_sparse_matrices_that_fill_up_use_products(rng):
    """The factors of a random graph are almost dense; those of a chain and an arrow are sparse."""
    n = 12000
    entries = (rng.standard_normal(4 * n), (rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)))
    random = scipy.sparse.coo_array(entries, shape=(n, n)).tocsr()
    arrow = scipy.sparse.vstack([differences(n), scipy.sparse.eye_array(n).tocsr()[[0]]])
    ones = Diagonal(np.ones(n))
    chosen = choose_system(n, [ones, Gram(random, np.ones(n))])
    assert isinstance(chosen, ConjugateGradients)
    assert isinstance(choose_system(n, [ones, Gram(arrow.tocsr(), np.ones(n))]), SparseSystem)


@pytest.mark.parametrize("density", [0.003, 0.5])
@pytest.mark.parametrize("signed", [False, True])
def test_gram_matrices_of_sparse_rows_are_those_of_dense_ones(density: float, signed: bool) -> None:
    rng = np.random.default_rng(0)
    B = scipy.sparse.random_array((4000, 60), density=density, rng=rng, format="csr")
    h = rng.standard_normal(4000) if signed else rng.random(4000)
    dense = B.toarray()
    expected = np.einsum("ki,k,kj->ij", dense, h, dense)
    for given in (B, dense):
        np.testing.assert_allclose(gram(given, h), expected, rtol=1e-12, atol=1e-13)


def test_gram_matrices_of_few_entries_never_form_dense_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forbidden(M):
        raise AssertionError(f"{M.shape} made dense")

    monkeypatch.setattr(scipy.sparse.csr_array, "toarray", forbidden)
    B = scipy.sparse.eye_array(5000, 40, format="csr")
    np.testing.assert_array_equal(gram(B, np.ones(5000)), np.eye(40))
    with pytest.raises(AssertionError, match="made dense"):
        gram(scipy.sparse.csr_array(np.ones((50, 40))), np.ones(50))


def test_patterns_that_exceed_the_time_left_are_not_formed():
    """20 rows of 1000 entries have 2e7 pairs: they take seconds, at 1e4 operations each."""
    B = scipy.sparse.random_array(
        (20, 20_000), density=0.05, format="csr", rng=np.random.default_rng(0)
    )
    pieces = [Diagonal(np.ones(20_000)), Gram(B, np.ones(20))]
    with Deadline(1e-3).active(), pytest.raises(OutOfTime):
        choose_system(20_000, pieces)
    chain = [Diagonal(np.ones(200)), Gram(differences(200).tocsr(), np.ones(199))]
    with Deadline(60.0).active():
        assert isinstance(choose_system(200, chain), SparseSystem)
