"""Pictures of two recipes of docs/guide/recipes.md, made by the code on that page.

python benchmarks/figure_recipes.py [--docs]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from _style import BLUE, GREEN, ORANGE, save
from matplotlib.figure import Figure

matplotlib.use("Agg")

RECIPES = Path(__file__).parents[1] / "docs" / "guide" / "recipes.md"


def recipe(title: str) -> dict[str, Any]:
    """Run the code of a recipe and return its variables."""
    text = RECIPES.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2]
    code = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert code, f"there is no recipe {title!r}"
    variables: dict[str, Any] = {}
    exec(compile(code[1], str(RECIPES), "exec"), variables)
    return variables


def deblurred() -> Figure:
    import matplotlib.pyplot as plt

    found = recipe("Total variation with an operator")
    pictures = {"image": found["image"], "data": found["y"], "answer": found["result"].x}
    figure, axes = plt.subplots(1, 3, figsize=(6.0, 2.2))
    for place, (name, picture) in zip(axes, pictures.items(), strict=True):
        place.imshow(np.reshape(picture, (16, 16)), cmap="gray", vmin=0.0, vmax=1.0)
        place.set(title=name, xticks=[], yticks=[])
    return figure


def control() -> Figure:
    import matplotlib.pyplot as plt

    found = recipe("A control loop")
    states, forces, dt = np.array(found["states"]), np.array(found["forces"]), found["dt"]
    times = dt * np.arange(len(states))
    figure, axes = plt.subplots(figsize=(5.5, 2.8))
    axes.plot(times, states[:, 0], color=BLUE, label="position")
    axes.plot(times, states[:, 1], color=GREEN, label="velocity")
    axes.step(times[:-1], forces, where="post", color=ORANGE, label="force")
    axes.set(xlabel="seconds")
    axes.legend(frameon=False)
    return figure


def main() -> None:
    """Draw both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="renew the figures in docs/images")
    options = parser.parse_args()
    for draw in (deblurred, control):
        print(save(draw(), draw.__name__, docs=options.docs))


if __name__ == "__main__":
    main()
