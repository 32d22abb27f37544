"""A matrix or operator that counts its products."""

import numpy as np
from scipy.sparse.linalg import LinearOperator


class Counted(LinearOperator):
    """Counts ``A x`` and ``A' y`` in ``products``."""

    def __init__(self, A):
        self.A, self.products = A, 0
        super().__init__(dtype=A.dtype, shape=A.shape)

    def _matvec(self, x):
        self.products += 1
        return self.A @ x.ravel()

    def _rmatvec(self, y):
        self.products += 1
        explicit = isinstance(self.A, np.ndarray)
        return self.A.T @ y.ravel() if explicit else self.A.rmatvec(y.ravel())
