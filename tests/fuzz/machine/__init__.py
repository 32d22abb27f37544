"""Running cases: scripts, worker processes, the watchdog, shrinking, the summary."""
