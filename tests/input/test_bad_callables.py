"""Bad outputs of user's callables: the error names the callable, and the point is unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.objectives import FunctionObjective

NAN = float("nan")


def smooth(**options):
    """A callable objective on which single arguments are replaced by bad ones."""
    return FunctionObjective(**({"value": lambda x: 0.0, "gradient": lambda x: 0.0 * x} | options))


#: What a callable returns at a point of shape (2,), the error, and what its message has to say.
OUTPUTS = {
    "value-nan": ({"value": lambda x: NAN}, ValueError, r"value\(x\) must be finite"),
    "value-array": ({"value": lambda x: x}, TypeError, r"value\(x\) must be a real number"),
    "value-none": (
        {"value": lambda x: None},
        TypeError,
        r"value\(x\) must be a real number, got No",
    ),
    "value-complex": ({"value": lambda x: 1.0j}, TypeError, r"value\(x\) must be a real number"),
    "gradient-shape": (
        {"gradient": lambda x: x[:1]},
        ValueError,
        r"gradient\(x\) .*\(2,\), got \(1,",
    ),
    "gradient-number": (
        {"gradient": lambda x: 1.0},
        ValueError,
        r"gradient\(x\) must return an array",
    ),
    "gradient-nan": ({"gradient": lambda x: NAN * x}, ValueError, r"gradient\(x\) must .*finite"),
    "gradient-list-nan": ({"gradient": lambda x: [NAN, 1]}, ValueError, r"gradient\(x\) .*finite"),
    "gradient-complex": (
        {"gradient": lambda x: 1j * x},
        TypeError,
        r"gradient\(x\) must return a real",
    ),
    "gradient-none": ({"gradient": lambda x: None}, TypeError, r"gradient\(x\) must be an array"),
    "prox-shape": (
        {"prox": lambda x, step: x[:1]},
        ValueError,
        r"prox\(x, step\) must return an arr",
    ),
    "stochastic-shape": (
        {"stochastic_subgradient": lambda x, rng: np.ones(3)},
        ValueError,
        r"stochastic_subgradient\(x, rng\) must return an array",
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_bad_output_of_a_callable_is_named(name):
    options, error, message = OUTPUTS[name]
    f = smooth(**options)
    x = np.array([1.0, 2.0])
    calls = {
        "value": lambda: f.value(x),
        "gradient": lambda: f.subgradient(x),
        "prox": lambda: f.prox(x, 1.0),
        "stochastic": lambda: f.stochastic_subgradient(x, np.random.default_rng(0)),
    }
    with pytest.raises(error, match=message):
        calls[name.split("-")[0]]()
    np.testing.assert_array_equal(x, [1.0, 2.0])
