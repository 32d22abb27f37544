"""Data of sparse logistic regression, and the bound of a dual point."""

import numpy as np


def instance(m=80, d=120, seed=0, shift=0.8):
    rng = np.random.default_rng([m, d, seed])
    A = rng.standard_normal((m, d))
    truth = np.zeros(d)
    truth[:5] = [3.0, -2.0, 1.0, 1.0, -1.0]
    labels = np.where(A @ truth + shift + rng.standard_normal(m) > 0.0, 1.0, -1.0)
    return A, labels, rng.integers(0, 4, m).astype(float)


def entropy_bound(labels, s, u):
    """Minus the conjugate at ``-u``, in the formula of books, with more digits."""
    a = (labels * u / np.where(s > 0.0, s, 1.0)).astype(np.longdouble)
    assert (a >= 0.0).all() and (a <= 1.0).all()

    def entropy(q):
        return np.where(q > 0.0, q * np.log(np.where(q > 0.0, q, 1.0)), 0.0)

    return -float(np.sum(s * (entropy(a) + entropy(1.0 - a))))
