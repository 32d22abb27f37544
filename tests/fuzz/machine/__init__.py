"""Runs of cases: scripts, worker processes, the watchdog, shrinking, the summary."""
