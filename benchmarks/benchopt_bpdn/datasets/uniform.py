"""The paper's recipe: uniform matrix, signal and noise; sigma is the norm of the noise."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Uniform entries in [-1, 1], few of the signal nonzero, noise of one hundredth."""

    name = "uniform"
    parameters = {"m,d,nonzeros": [(200, 1000, 20), (1000, 5000, 100)], "seed": [0]}
    test_parameters = {"m,d,nonzeros": [(20, 60, 3)]}

    def get_data(self):
        """Draw matrix, signal and noise."""
        rng = np.random.default_rng(self.seed)
        A = rng.uniform(-1, 1, (self.m, self.d))
        x = np.zeros(self.d)
        support = rng.choice(self.d, self.nonzeros, replace=False)
        x[support] = rng.uniform(-1, 1, self.nonzeros)
        noise = rng.uniform(-0.01, 0.01, self.m)
        return {"A": A, "y": A @ x + noise, "sigma": float(np.linalg.norm(noise))}
