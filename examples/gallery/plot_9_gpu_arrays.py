"""
GPU arrays, and any other array library
=======================================

Points may be arrays of NumPy, PyTorch, CuPy or any other library that follows the array API standard.
Results have the library, device and precision of the data.
"""

# %%
# Use PyTorch on a GPU, PyTorch on the CPU, or the reference implementation of the standard, which refuses
# everything outside the standard, whichever is available first.
import numpy as np

import lopro


def library():
    """Return a namespace, keyword arguments for the device, and a description."""
    try:
        import torch
    except ImportError:
        import array_api_strict

        return array_api_strict, {}, "PyTorch is not installed: array_api_strict, on the CPU"
    if torch.cuda.is_available():
        return torch, {"device": "cuda"}, f"PyTorch on {torch.cuda.get_device_name()}"
    return torch, {}, "PyTorch on the CPU: no GPU was found"


xp, place, found = library()
print(found)

# %%
# A problem with its data on that device:
rng = np.random.default_rng(0)
A_host = rng.standard_normal((60, 200))
y_host = A_host[:, 3] - 2 * A_host[:, 70]
A, y = (xp.asarray(part, **place) for part in (A_host, y_host))
problem = lopro.Problem(lopro.objectives.L1Norm(), lopro.constraints.ResidualBall(A, y, sigma=0.1))

result = lopro.solve(problem, method=lopro.LoPNAG(), tol=1e-6)
print(result.status.name, type(result.x).__module__.partition(".")[0], result.x.dtype)

# %%
# The same run with NumPy, for comparison. Iterates agree up to rounding; so do the counts.
on_host = lopro.solve(
    lopro.Problem(
        lopro.objectives.L1Norm(), lopro.constraints.ResidualBall(A_host, y_host, sigma=0.1)
    ),
    method=lopro.LoPNAG(),
    tol=1e-6,
)
print(f"f = {result.fun:.9f} there, {on_host.fun:.9f} with NumPy")
print(f"projections: {result.counts.projections} there, {on_host.counts.projections} with NumPy")

# %%
# Single precision is kept as well. A certificate then has single precision too: choose a tolerance that
# allows for it.
A32, y32 = (xp.asarray(part.astype(np.float32), **place) for part in (A_host, y_host))
single = lopro.solve(
    lopro.Problem(lopro.objectives.L1Norm(), lopro.constraints.ResidualBall(A32, y32, sigma=0.1)),
    method=lopro.LoPNAG(),
    tol=1e-3,
)
print(single.status.name, single.x.dtype, f"f = {single.fun:.5f}")
