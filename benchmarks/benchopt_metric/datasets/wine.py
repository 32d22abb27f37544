"""The wine data of scikit-learn: chemical analyses of wines from three growers."""

from benchopt import BaseDataset
from sklearn.datasets import load_wine


class Dataset(BaseDataset):
    """178 samples, 13 features, standardised; all 15753 pairs."""

    name = "wine"
    requirements = ["pip::scikit-learn"]
    parameters = {"samples": [178]}
    test_parameters = {"samples": [60]}

    def get_data(self):
        """Return evenly spaced samples, standardised."""
        X, labels = load_wine(return_X_y=True)
        step = max(1, len(X) // self.samples)
        X, labels = X[::step][: self.samples], labels[::step][: self.samples]
        return {"X": (X - X.mean(axis=0)) / X.std(axis=0), "labels": labels}
