"""Splitting methods: ADMM on the terms of a problem, and alternating directions."""

from lopro.methods.splitting.admm import ADMM, admm_reason, is_explicit, is_norm_of_image

__all__ = ["ADMM", "admm_reason", "is_explicit", "is_norm_of_image"]
