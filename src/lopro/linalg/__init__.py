"""Linear algebra with error bounds: outward rounding, Cholesky factors, proved eigenvalues."""
