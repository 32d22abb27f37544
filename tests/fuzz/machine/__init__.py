"""How cases are run: scripts, worker processes, the watchdog, shrinking, the summary."""
