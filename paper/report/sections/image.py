"""The section on the photograph, recovered from a third of its scrambled cosine transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro import bpdn
from paper.report.blocks import Table
from paper.report.draft import Draft, Drawing
from paper.report.examples import example
from paper.report.order import Order

__all__ = ["parameters", "run"]


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return {"side": order.of(64, 256, 256)}


def run(order: Order) -> Draft:
    """Measure and recover the picture of ``examples/image.py``."""
    example_image = example("image")
    side = order.of(64, 256, 256)
    image = example_image.photograph(side)
    seen = example_image.observe(image)
    order.say(f"lopro.bpdn, {seen.A.shape[0]} measurements of {side} × {side} pixels")
    result = bpdn(seen.A, seen.y, seen.sigma, tol=example_image.TOL)
    naive = seen.device.adjoint(seen.y)
    recovered = seen.wavelets.synthesise(result.x)
    psnrs = example_image.psnr(image, naive), example_image.psnr(image, recovered)
    draft = Draft(
        "A recovered image", {"seed": str(example_image.SEED), "wavelet": example_image.WAVELET}
    )
    m, n = seen.A.shape
    draft.paragraph(
        f"{m:,} of {n:,} scrambled cosine coefficients with {example_image.NOISE:.0%} noise; the matrix "
        f"would take {m * n * 8 / 2**30:.2g} GiB and is never formed. lopro.bpdn works with products alone."
    )
    draft.pictures(
        [
            Drawing("original", image, "The photograph: a man with a camera.", "Original."),
            Drawing(
                "naive",
                np.clip(naive, 0.0, 1.0),
                "The adjoint applied to the data: the scene is hardly recognisable.",
                f"The adjoint applied to the data: PSNR {psnrs[0]:.1f} dB.",
            ),
            Drawing(
                "recovered",
                np.clip(recovered, 0.0, 1.0),
                "The reconstruction by lopro: the photograph with slight artefacts.",
                f"lopro.bpdn: PSNR {psnrs[1]:.1f} dB.",
            ),
        ],
        most=3,
    )
    draft.table(_table(result))
    if not result.success:
        draft.failures.append(f"lopro.bpdn: {result.message}")
    return draft


def _table(result: Any) -> Table:
    c = result.certificate
    return Table(
        "The image in numbers",
        ("", "value"),
        (
            ("l1 norm of the answer", f"{result.fun:.4f}"),
            ("certified lower bound", f"{c.lower_bound:.4f}"),
            ("relative gap", f"{c.relative_gap:.1e}"),
            (
                "products with A and its adjoint",
                f"{result.counts.matvecs + result.counts.rmatvecs}",
            ),
            ("projections", f"{result.counts.projections}"),
            ("seconds", f"{result.seconds:.1f}"),
        ),
    )
