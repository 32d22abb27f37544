"""A fuzzer with an independent judge: ``python -m fuzz``, or ``make fuzz``.

Cases are made from a kind and a seed alone. `machine` runs them in worker processes under a watchdog,
the judges decide what was claimed and whether it is true, and failures are reduced to small programs.
The judges do not import the library, which a test verifies.
"""
