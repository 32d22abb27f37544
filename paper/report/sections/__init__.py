"""The parts of the report, one per file: each says what it depends on, runs, and writes its section."""
