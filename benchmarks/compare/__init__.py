"""Every method of lopro on the same five problems: gap against time, gradients and projections."""
