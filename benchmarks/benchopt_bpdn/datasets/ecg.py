"""A real electrocardiogram, sparse in a wavelet basis, from half as many random measurements."""

import numpy as np
import pywt
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """PyWavelets' ECG in a db4 basis, Gaussian sensing, 1 % of noise."""

    name = "ecg"
    requirements = ["pip::pywavelets"]
    parameters = {"samples": [1024], "seed": [0]}
    test_parameters = {"samples": [128]}

    def get_data(self):
        """Return random measurements of the electrocardiogram."""
        signal = pywt.data.ecg().astype(float)[: self.samples]
        d, m = signal.size, signal.size // 2
        rng = np.random.default_rng(self.seed)
        level = pywt.dwt_max_level(d, "db4")
        # Periodic extension makes the transform orthogonal: its inverse is its transpose.
        parts = pywt.wavedec(np.eye(d), "db4", mode="periodization", level=level, axis=0)
        sensing = rng.standard_normal((m, d)) / np.sqrt(m)
        noise = rng.standard_normal(m)
        noise *= 0.01 * np.linalg.norm(sensing @ signal) / np.linalg.norm(noise)
        y = sensing @ signal + noise
        return {"A": sensing @ np.vstack(parts).T, "y": y, "sigma": float(np.linalg.norm(noise))}
