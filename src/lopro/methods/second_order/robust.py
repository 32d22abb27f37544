"""Huber's function as second-order methods take it."""

from __future__ import annotations

import math

import numpy as np
import scipy  # parts of it load when first used

from lopro.errors import MissingCapabilityError
from lopro.methods.second_order.forms import smooth_form
from lopro.newton.smooth import Smooth
from lopro.newton.smooth.huber import Huber as Kernel
from lopro.objectives import Huber

__all__: list[str] = []


@smooth_form.register
def _(f: Huber, factor: float) -> Smooth:
    if f.D is not None and not f.D.explicit:
        raise MissingCapabilityError("D is an operator: its entries are needed")
    if f.shape is None:
        raise MissingCapabilityError("second-order methods take vectors of a known size")
    size = math.prod(f.shape)
    D = scipy.sparse.eye_array(size, format="csr") if f.D is None else f.D.matrix
    b = np.zeros(D.shape[0]) if f.b is None else np.asarray(f.b, dtype=np.float64)
    return Kernel(D, b, f.delta, factor)
