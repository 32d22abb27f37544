"""The first features of the paper's colon-cancer data; only where the file is available."""

import os

from benchopt import BaseDataset

from paper.experiments.colon import ENVIRONMENT_VARIABLE, cache_folder, load_colon


class Dataset(BaseDataset):
    """The first 40 samples; simulated data would make results misleading, so there are none."""

    name = "colon"
    parameters = {"features": [200]}
    test_parameters = {"features": [5]}

    def skip(self):
        """Skip the data if there is no file, and name the places that are searched."""
        given = os.environ.get(ENVIRONMENT_VARIABLE)
        there = bool(given) or (cache_folder() / "colon-cancer.libsvm").is_file()
        return not there, None if there else f"set {ENVIRONMENT_VARIABLE} to the LIBSVM file"

    def get_data(self):
        """Read the file."""
        samples = load_colon(download=False)
        return {"X": samples.X[:40, : self.features], "labels": samples.labels[:40]}
