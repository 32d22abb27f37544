"""Old names work for one release and say where they have gone; names that users know stay silent."""

from __future__ import annotations

import importlib
import sys
import warnings

import pytest

import lopro
from lopro._moved import MOVED, PLACES, MovedFunction, install


@pytest.fixture(params=sorted(MOVED))
def old(request: pytest.FixtureRequest) -> str:
    """A name that has moved, as if it had never been imported."""
    for name in [n for n in sys.modules if n == request.param or n.startswith(request.param + ".")]:
        del sys.modules[name]
    return str(request.param)


def test_an_old_name_warns_and_is_the_module_under_its_new_name(old: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "." in old.removeprefix("lopro."):
            importlib.import_module(old.rpartition(".")[0])
    with pytest.warns(DeprecationWarning) as told:
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])
    (said,) = {str(w.message) for w in told if old in str(w.message)}
    assert said == f"{old} is now {MOVED[old]}; the old name goes with the next release"


@pytest.mark.parametrize("place", sorted(PLACES))
def test_places_are_silent(place: str) -> None:
    sys.modules.pop(place, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert importlib.import_module(place) is importlib.import_module(PLACES[place])
        assert getattr(lopro, place.removeprefix("lopro.")) is sys.modules[PLACES[place]]


def test_names_that_were_in_the_old_modules_are_still_there() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, name in (
            ("lopro.result", "Result"),
            ("lopro.oracles", "Counts"),
            ("lopro.penalised", "Penalised"),
            ("lopro.applications.compressive_sensing", "bpdn"),
            ("lopro.applications.metric_learning", "learn_metric"),
            ("lopro.schemes", "Auto"),
        ):
            assert hasattr(importlib.import_module(module), name), (module, name)


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lopro.nowhere")


def test_installing_twice_leaves_one_finder() -> None:
    before = len(sys.meta_path)
    install()
    assert len(sys.meta_path) == before


def test_pair_loss_under_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match="lopro.metric"):
        old = lopro.objectives.PairLoss
    assert old is lopro.metric.PairLoss


def test_a_method_that_became_a_function() -> None:
    class Owner:
        explain = MovedFunction("lopro.explaining", "explain")

    with pytest.warns(DeprecationWarning, match=r"Owner.explain is now lopro.explaining.explain"):
        assert Owner.explain is lopro.explain
