"""Random rows of an orthonormal cosine transform: an operator, not a matrix."""

import numpy as np
import scipy.fft
from benchopt import BaseDataset
from scipy.sparse.linalg import LinearOperator


class Dataset(BaseDataset):
    """A quarter of the cosine coefficients of a sparse signal, in Gaussian noise."""

    name = "cosine"
    parameters = {"d": [2**14], "seed": [0]}
    test_parameters = {"d": [2**8]}

    def get_data(self):
        """Draw the rows, the signal and the noise."""
        d, m = self.d, self.d // 4
        rng = np.random.default_rng(self.seed)
        rows = np.sort(rng.choice(d, m, replace=False))

        def rmatvec(v):
            spectrum = np.zeros(d)
            spectrum[rows] = v.ravel()
            return scipy.fft.idct(spectrum, norm="ortho")

        A = LinearOperator(
            (m, d),
            matvec=lambda x: scipy.fft.dct(x.ravel(), norm="ortho")[rows],
            rmatvec=rmatvec,
            dtype=np.float64,
        )
        x = np.zeros(d)
        support = rng.choice(d, m // 10, replace=False)
        x[support] = rng.uniform(-1, 1, m // 10)
        noise = 1e-3 * rng.standard_normal(m)
        return {"A": A, "y": A @ x + noise, "sigma": float(np.linalg.norm(noise))}
