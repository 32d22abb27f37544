"""Bad input to whole runs: `solve`, `iterate`, `minimize`, `Problem`, and methods that do not fit."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint
from support.bad_input_data import INF, NAN, Case, flat

import lopro
from lopro import MissingCapabilityError, Problem, inner, penalties, theorems
from lopro.constraints import FunctionConstraint, PSDCone, ResidualBall
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.objectives import L1Norm, SquaredDistance

SOLVE: list[Case] = [
    ("x0-nan", lambda d: lopro.solve(d.problem, [NAN, 0.0]), ValueError, "x0 must be finite"),
    ("x0-inf", lambda d: lopro.solve(d.problem, [INF, 0.0]), ValueError, "x0 must be finite"),
    ("x0-shape", lambda d: lopro.solve(d.problem, np.zeros(3)), ValueError, r"x0 .*shape \(2,\)"),
    ("x0-column", lambda d: lopro.solve(d.problem, np.zeros((2, 1))), ValueError, "x0 must have"),
    ("x0-empty", lambda d: lopro.solve(d.problem, np.zeros(0)), ValueError, "x0 .*empty"),
    ("x0-text", lambda d: lopro.solve(d.problem, "start"), TypeError, "x0 .*'start'"),
    ("x0-ragged", lambda d: lopro.solve(d.problem, [[1.0], [1, 2]]), ValueError, "x0 is not a reg"),
    (
        "x0-object",
        lambda d: lopro.solve(d.problem, d.zero.astype(object)),
        TypeError,
        "x0 .*object",
    ),
    ("x0-half", lambda d: lopro.solve(d.problem, d.zero.astype(np.float16)), TypeError, "x0 .*16"),
    (
        "x0-masked",
        lambda d: lopro.solve(d.problem, np.ma.array([1.0, 2.0], mask=[0, 1])),
        ValueError,
        "x0 .*masked",
    ),
    ("x0-complex", lambda d: lopro.solve(d.problem, d.zero + 1j), TypeError, "x0 must be real"),
    (
        "x0-skew",
        lambda d: lopro.solve(Problem(L1Norm(), PSDCone(2)), d.skew, lopro.LoPGD()),
        ValueError,
        "symmetric",
    ),
    (
        "x0-needed",
        lambda d: lopro.solve(Problem(L1Norm(), FunctionConstraint(flat, np.sign))),
        ValueError,
        "x0 is needed",
    ),
    ("problem", lambda d: lopro.solve(None), TypeError, "problem must be a lopro.Problem"),
    ("method-text", lambda d: lopro.solve(d.problem, method="auto"), TypeError, "method .*'auto'"),
    ("method-class", lambda d: lopro.solve(d.problem, method=lopro.Auto), TypeError, "method must"),
    ("tol-negative", lambda d: lopro.solve(d.problem, tol=-1e-6), ValueError, "tol must be in"),
    ("tol-nan", lambda d: lopro.solve(d.problem, tol=NAN), ValueError, "tol must be finite"),
    ("tol-text", lambda d: lopro.solve(d.problem, tol="1e-6"), TypeError, "tol .*'1e-6'"),
    ("max-iter-0", lambda d: lopro.solve(d.problem, max_iter=0), ValueError, "max_iter .*got 0"),
    ("max-iter-float", lambda d: lopro.solve(d.problem, max_iter=1e3), TypeError, "max_iter .*int"),
    ("max-iter-bool", lambda d: lopro.solve(d.problem, max_iter=True), TypeError, "max_iter"),
    (
        "max-projections",
        lambda d: lopro.solve(d.problem, max_projections=0),
        ValueError,
        "max_projections",
    ),
    ("time-negative", lambda d: lopro.solve(d.problem, time_limit=-1.0), ValueError, "time_limit"),
    ("time-zero", lambda d: lopro.solve(d.problem, time_limit=0.0), ValueError, "time_limit"),
    ("time-inf", lambda d: lopro.solve(d.problem, time_limit=INF), ValueError, "time_limit"),
    ("callback", lambda d: lopro.solve(d.problem, callback=3), TypeError, "callback .*callable"),
    ("seed-text", lambda d: lopro.solve(d.problem, seed="abc"), TypeError, "seed must"),
    ("seed-negative", lambda d: lopro.solve(d.problem, seed=-1), ValueError, "seed must"),
    ("option", lambda d: lopro.solve(d.problem, maxiter=3), TypeError, "maxiter"),
    ("iterate-x0", lambda d: lopro.iterate(d.problem, np.zeros(3)), ValueError, "x0 must have"),
    ("iterate-tol", lambda d: lopro.iterate(d.problem, tol=-1), ValueError, "tol must be in"),
    ("iterate-problem", lambda d: lopro.iterate("P"), TypeError, "problem must be"),
    ("iterate-method", lambda d: lopro.iterate(d.problem, method=3), TypeError, "method must be"),
]

PROBLEM: list[Case] = [
    ("objective", lambda d: Problem(np.sum, d.box), TypeError, "objective .*FunctionObjective"),
    ("constraint", lambda d: Problem(L1Norm(), np.sum), TypeError, "constraint .*FunctionConstr"),
    ("constraints", lambda d: Problem(L1Norm(), [d.box]), TypeError, "constraint .*Intersection"),
    (
        "shapes",
        lambda d: Problem(SquaredDistance(np.zeros(3)), d.box),
        ValueError,
        r"\(3,\).*\(2,\)",
    ),
    ("norm-negative", lambda d: Problem(L1Norm(), d.box, -1.0), ValueError, "solution_norm"),
    ("norm-nan", lambda d: Problem(L1Norm(), d.box, NAN), ValueError, "solution_norm"),
]

MINIMIZE: list[Case] = [
    ("fun", lambda d: lopro.minimize(3, d.zero, constraint=d.box), TypeError, "fun must be call"),
    ("jac", lambda d: lopro.minimize(flat, d.zero, 3, constraint=d.box), TypeError, "jac must be"),
    (
        "jac-true",
        lambda d: lopro.minimize(flat, d.zero, True, constraint=d.box),
        TypeError,
        r"\(value, gradient\) with jac=True",
    ),
    ("minimize-x0", lambda d: lopro.minimize(flat, [NAN], constraint=d.box), ValueError, "x0 must"),
    ("x0-none", lambda d: lopro.minimize(flat, None, constraint=d.box), TypeError, "x0 must be an"),
    (
        "maxiter",
        lambda d: lopro.minimize(flat, d.zero, constraint=d.box, maxiter=3),
        TypeError,
        "maxi",
    ),
    *(
        (
            f"constraint-{name}",
            lambda d, bad=bad: lopro.minimize(flat, d.zero, constraint=bad),
            error,
            message,
        )
        for name, bad, error, message in [
            ("text", "box", TypeError, "constraint must be .*'box'"),
            ("dict", {"type": "ineq", "fun": abs}, TypeError, "constraint must be"),
            ("nan-bound", Bounds(NAN, 1.0), ValueError, "bounds must not be NaN"),
            ("no-bound", Bounds(), ValueError, "no finite bound"),
            ("crossed", Bounds([2.0, 2.0], [1.0, 1.0]), ValueError, "lower must not exceed"),
            ("long-bounds", Bounds([0.0] * 3, 1.0), ValueError, "Bounds must fit x0"),
            ("inf-lower", Bounds(INF, INF), ValueError, "no feasible point"),
            ("wide-rows", LinearConstraint(np.eye(3), 0, 1), ValueError, r"\(2,\).*\(3,\)"),
            ("nan-row", LinearConstraint(np.eye(2), NAN, 1), ValueError, "must not be NaN"),
            ("lower", NonlinearConstraint(np.square, 0.0, 1.0), ValueError, "lb must be -inf"),
            ("nan-lower", NonlinearConstraint(np.square, NAN, 1.0), ValueError, "lb must be -inf"),
            ("no-upper", NonlinearConstraint(np.square, -INF, INF), ValueError, "ub must have"),
            ("nan-upper", NonlinearConstraint(np.square, -INF, [1, NAN]), ValueError, "ub must be"),
            ("minus-inf", NonlinearConstraint(np.square, -INF, -INF), ValueError, "ub must be"),
            ("long", NonlinearConstraint(np.square, -INF, [1.0] * 3), ValueError, r"ub has shape"),
        ]
    ),
]


def accelerated() -> lopro.OneProjection:
    return lopro.OneProjection(inner.AcceleratedGradient(), penalties.Softplus(1.0, 1.0))


def stochastic() -> lopro.OneProjection:
    rule = inner.StochasticSubgradient(inner.ConstantStep(0.1))
    return lopro.OneProjection(rule, penalties.Hinge(1.0))


CAPABILITIES: list[Case] = [
    (name, run, MissingCapabilityError, message)
    for name, run, message in [
        (
            "lopnag-polyhedron",
            lambda d: lopro.solve(d.problem, method=lopro.LoPNAG()),
            "LoPNAG .Theorem 3. needs a smooth constraint",
        ),
        (
            "stochastic",
            lambda d: lopro.solve(d.problem, method=stochastic()),
            "StochasticSubgradient needs an objective with stochastic_subgradient",
        ),
        (
            "accelerated-subgradients",
            lambda d: lopro.solve(Problem(d.rough, d.box), method=accelerated()),
            "AcceleratedGradient .* smooth, has a prox",
        ),
        (
            "lopnag-subgradients",
            lambda d: lopro.solve(Problem(d.rough, d.ball), method=lopro.LoPNAG()),
            "smooth, has a prox",
        ),
        (
            "multipliers-rough-constraint",
            lambda d: lopro.solve(
                Problem(L1Norm(), FunctionConstraint(flat, np.sign)),
                d.zero,
                lopro.MultiplierMethod(),
            ),
            "MultiplierMethod needs constraints that are smooth",
        ),
        (
            "lbfgsb-rough",
            lambda d: lopro.solve(
                Problem(L1Norm(), d.ball),
                method=lopro.OneProjection(inner.LBFGSB(), penalties.Softplus(1.0, 1.0)),
            ),
            "LBFGSB needs a smooth objective; L1Norm",
        ),
        (
            "theorem-2",
            lambda d: lopro.solve(
                d.problem,
                method=lopro.LoPGD(
                    theorems.Theorem2(ProblemConstants(1.0, INF, 1.0), 1.0, 0.1, 1.0, 1.0)
                ),
            ),
            "Theorem 2 needs a finite Lipschitz constant Gc",
        ),
        (
            "theorem-3",
            lambda d: lopro.solve(
                Problem(SquaredDistance(d.one), d.ball),
                method=lopro.LoPNAG(
                    theorems.Theorem3(ProblemConstants(1.0, 1.0, 1.0), 1.0, 0.1, 1.0, 1.0)
                ),
            ),
            "Theorem 3 needs smoothness constants",
        ),
        ("constants-of", lambda d: constants_of(d.problem), "Assumption 1 needs"),
        (
            "cor-1",
            lambda d: lopro.theorems.corollary_1(d.constants, 10),
            "Cor 1 needs a strongly convex",
        ),
        (
            "cor-2a",
            lambda d: lopro.theorems.corollary_2a(ProblemConstants(1, 1, 1), 10, 1.0),
            "Cor 2a needs smoothness constants",
        ),
        ("p4", lambda d: lopro.theorems.balanced(d.constants, 99), "P4 needs a strongly"),
        (
            "operator-without-adjoint",
            lambda d: ResidualBall(
                type("Half", (), {"matvec": np.sum, "shape": (2, 2)})(), d.zero, 1.0
            ),
            "A has matvec but not both rmatvec",
        ),
    ]
]

RUNS = SOLVE + PROBLEM + MINIMIZE + CAPABILITIES
