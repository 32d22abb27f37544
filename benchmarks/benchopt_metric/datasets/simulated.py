"""Gaussian samples whose class shows in few features; more samples than features, or the reverse."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Two classes, three features that separate them, correlated noise in the others."""

    name = "simulated"
    parameters = {"samples,features": [(100, 10), (40, 60)], "seed": [0]}
    test_parameters = {"samples,features": [(16, 4)]}

    def get_data(self):
        """Draw the samples and standardise them."""
        rng = np.random.default_rng(self.seed)
        labels = np.arange(self.samples) % 2
        common = rng.standard_normal((self.samples, 3))
        X = common @ rng.standard_normal((3, self.features))
        X += rng.standard_normal((self.samples, self.features))
        X[:, :3] += 2.0 * labels[:, None]
        return {"X": (X - X.mean(axis=0)) / X.std(axis=0), "labels": labels}
