"""The parts of the report, one per file: each has its parameters, a run, and a section of the page."""
