"""Multipliers that a user supplies as a start."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.constraints import Constraint
from lopro.core.arrays import Array, asarray_like
from lopro.core.validation import check_array, check_shape
from lopro.functions import Image

__all__ = ["checked_multipliers"]


def checked_multipliers(constraint: Constraint, start: Array, given: Any) -> Image | None:
    """Return the multipliers in the library and precision of the start, or raise an error.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.driver.multipliers import checked_multipliers
    >>> rows = lopro.constraints.Affine(np.eye(2), lower=0.0, upper=1.0)
    >>> checked_multipliers(rows, np.zeros(2), [[1.0, -2.0]])
    (array([ 1., -2.]),)
    """
    if given is None:
        return None
    if not all(member.has_image_set for member in constraint.members()):
        raise ValueError(f"multipliers0 are for sets given by linear maps, not for {constraint!r}")
    images = constraint.multipliers_of(tuple(0.0 * z for z in constraint.image(start)))
    if isinstance(given, np.ndarray) or len(given) != len(images):
        raise ValueError(
            f"multipliers0 must be a sequence of {len(images)} arrays, one for each set, got {given!r}"
        )
    found = []
    for k, (v, image) in enumerate(zip(given, images, strict=True)):
        array = check_array(f"multipliers0[{k}]", v)
        check_shape(f"multipliers0[{k}]", array, tuple(image.shape))
        found.append(asarray_like(array, image))
    return tuple(found)
