"""Two classes that differ in a tenth of the features; the rest is noise."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Gaussian samples, one class moved along the first features."""

    name = "planted"
    parameters = {"d": [50, 200], "samples": [100], "seed": [0]}
    test_parameters = {"d": [6], "samples": [20]}

    def get_data(self):
        """Draw samples and classes."""
        rng = np.random.default_rng(self.seed)
        labels = rng.integers(0, 2, self.samples)
        X = rng.standard_normal((self.samples, self.d))
        X[:, : max(1, self.d // 10)] += 2.0 * labels[:, None]
        return {"X": X, "labels": labels}
