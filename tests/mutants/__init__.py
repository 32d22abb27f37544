"""Deliberate errors: a list of single mistakes in the mathematics, and whether a test detects them.

Run it by ``make mutants``, or by ``python -m mutants --help`` with ``tests`` on the path. The list is in the
``*.toml`` files here; `mutants.listing` says what an entry holds.
"""
