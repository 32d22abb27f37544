"""The paper's experiments and the report about them: what `make reproduce` runs."""
