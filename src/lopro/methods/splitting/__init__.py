"""ADMM on terms: linear systems by products, proxes of images, bounds from the multipliers of all terms."""

from lopro.methods.splitting.admm import ADMM, admm_reason, is_explicit, is_norm_of_image

__all__ = ["ADMM", "admm_reason", "is_explicit", "is_norm_of_image"]
