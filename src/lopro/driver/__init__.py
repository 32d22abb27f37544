"""The one loop around every method: status, budget, records, and the certificate of the best point."""
