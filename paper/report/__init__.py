"""The report: what ``make reproduce`` runs, draws and writes into one page."""
