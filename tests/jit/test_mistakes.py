"""Mistakes in users' functions: each is answered in at most three lines, with what is wrong, where, and what to write instead."""

import datetime
import functools
import math
import random

import numpy as np
import pytest
import scipy.special
from scipy.interpolate import interp1d

import nsds
from nsds import solvers
from nsds.__main__ import main

OBJECTS, RANDOM = np.array([1, "a"], dtype=object), np.random.default_rng(0)
TABLE, LIST, CURVE, count = {"a": 1.0}, [1.0, 2.0], interp1d([0, 1], [0, 1]), 0


class Motor:
    torque = 1.0

    def __call__(self, t, z, out):
        out[0] = self.torque

    def push(self, t, z, out):
        out[0] = self.torque


MOTOR = Motor()


def returns(t, z, out):
    return np.cos(t)


def yields(t, z, out):
    yield t


def never_writes(t, z, out):
    math.cos(t)


def binds(t, z, out):
    out = np.array([t])  # noqa: F841


def reads_dict(t, z, out):
    out[0] = TABLE["a"]


def reads_list(t, z, out):
    out[0] = LIST[0]


def reads_curve(t, z, out):
    out[0] = CURVE(t)


def reads_object(t, z, out):
    out[0] = MOTOR.torque


def reads_nothing(t, z, out):
    out[0] = undefined  # noqa: F821


def closure():
    held = {"k": 1.0}

    def of_a_dict(t, z, out):
        out[0] = held["k"]

    return of_a_dict


def formats(t, z, out):
    print(f"{t:.3f}")
    out[0] = t


def percent(t, z, out):
    print("%g" % t)  # noqa: UP031
    out[0] = t


def appends(t, z, out):
    out.append(t)


def writes_list(t, z, out):
    out[0] = [1.0, 2.0]


def writes_text(t, z, out):
    out[0] = "1.0"


def writes_complex(t, z, out):
    out[0] = complex(t, 1.0)


def two_indices(t, z, out):
    out[0, 0] = t


def beyond(t, z, out):
    out[3] = t


def catches(t, z, out):
    try:
        out[0] = 1.0 / t
    except ZeroDivisionError:
        out[0] = 0.0


def imports(t, z, out):
    from math import cos

    out[0] = cos(t)


def opens(t, z, out):
    with open("x") as file:
        out[0] = float(file.read())


def bessel(t, z, out):
    out[0] = scipy.special.jv(0, t)


def sums(t, z, out):
    out[0] = sum(x * t for x in (1.0, 2.0))


def counts(t, z, out):
    global count
    count = count + 1
    out[0] = count


def whole_numbers(t, z, out):
    out[:] = np.array([[1]]) @ z


def by_axis(t, z, out):
    out[:] = np.linalg.norm([1.0, t], axis=0)


def measured(t, z, out):
    out[0] = float(f"{t:.1f}")


def by_name(t, z, out):
    out[0] = getattr(MOTOR, "torque")  # noqa: B009


def remembers(t, z, out):
    TABLE["a"] = t
    out[0] = t


def raises(t, z, out):
    raise ValueError("no")


def plain(x):
    return x**2


def calls_plain(t, z, out):
    out[0] = plain(t)


def draws(t, z, out):
    out[0] = RANDOM.random()


def takes_by_name(t, z, out):
    out[0] = z["k"]


def writes_by_name(t, z, out):
    out["k"] = t


def writes_none(t, z, out):
    out[0] = None


def writes_objects(t, z, out):
    out[0] = OBJECTS[0]


def calls_a_number(t, z, out):
    out[0] = t.real()


def deletes(t, z, out):
    del out


def asserts(t, z, out):
    if t <= 0.0:
        raise AssertionError("too early")
    out[0] = t


def unbound(t, z, out):
    if t > 0.0:
        pull = 1.0
    out[0] = pull


def measures_time(t, z, out):
    out[0] = datetime.datetime.now().second


def nan(t, z, out):
    out[0] = math.nan


WRITE = "out[0] = ..."
Z = "pass what changes in z"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (returns, ["it returns a value", WRITE, "test_mistakes.py, line", "def returns(t, z, out):"]),
        (yields, ["it yields", WRITE]),
        (never_writes, ["never does", WRITE]),
        (binds, ["'out = ...' is lost", WRITE]),
        (reads_dict, ["it reads TABLE, a dict", Z]),
        (reads_list, ["it reads LIST, a list", Z]),
        (reads_curve, ["it reads CURVE", "interp1d", "np.interp"]),
        (reads_object, ["it reads MOTOR", "Motor", Z]),
        (reads_nothing, ["undefined is not defined"]),
        (closure(), ["it reads held, a dict", Z]),
        (formats, ["it formats text", 'print(f"{t:.3f}")']),
        (percent, ["it formats text", "print("]),
        (measured, ["it formats text", "after the run"]),
        (by_name, ["MOTOR", Z]),
        (remembers, ["it reads TABLE, a dict", Z]),
        (lambda t, z, out: np.cos(t), ["into its last argument", "return nothing"]),
        (lambda t, z, out: None, ["never does", WRITE]),
        (appends, ["it uses .append", "out.append(t)"]),
        (writes_list, ["it writes a list", "one number", "out[0] = [1.0, 2.0]"]),
        (writes_text, ["it writes text", 'out[0] = "1.0"']),
        (writes_complex, ["complex number", "out[0] = complex(t, 1.0)"]),
        (two_indices, ["1 dimensions at 2 indices", "out[0, 0] = t"]),
        (beyond, ["index 3 is out of bounds", "out (1,)"]),
        (catches, ["it catches errors", "if t != 0.0"]),
        (imports, ["it imports", "top of the module"]),
        (opens, ["with block"]),
        (bessel, ["scipy.special.jv", "np.interp"]),
        (sums, ["generator", "write a loop"]),
        (counts, ["changes a global", "nsds.sampled_control"]),
        (whole_numbers, ["whole numbers with floats", "np.array([[1]]) @ z"]),
        (by_axis, ["no compiled function takes norm(", "axis"]),
        (calls_plain, ["it calls plain, which is not compiled", "write @numba.njit"]),
        (draws, ["it draws random numbers", "before the run"]),
        (takes_by_name, ["an index that is text", 'z["k"]']),
        (writes_by_name, ["an index that is text", 'out["k"]']),
        (writes_none, ["what is not a number", "out[0] = None"]),
        (writes_objects, ["what is not a number", "OBJECTS[0]"]),
        (calls_a_number, ["as a function", "leave out the brackets"]),
        (deletes, ["it deletes a variable"]),
        (asserts, ["fails at the start", "too early"]),
        (unbound, ["fails at the start", "pull"]),
        (measures_time, ["datetime.datetime, which numba does not compile"]),
        (raises, ["fails at the start", "no"]),
        (nan, ["NaN"]),
        (lambda t, out: None, ["(t, out)"]),
        (MOTOR, ["plain function", "in z"]),
        (MOTOR.push, ["plain function", "in z"]),
        (functools.partial(returns, 1.0), ["plain function", "in z"]),
        (Motor, ["expected an array or a function"]),
        (np.cos, ["expected an array or a function", "cos"]),
        ("push", ["array of real numbers", "'push'"]),
    ],
)
def test_forces(function, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=function, q=[0.1], v=[0.0], z=[2.0]))
    said = str(caught.value)
    assert "fext" in said
    assert all(word in said for word in words), said
    assert len(said.splitlines()) <= 3, said
    assert caught.value.__cause__ is None or caught.value.__suppress_context__  # no page of a compiler before it


def test_maps_and_surfaces():
    def step(x, p, out):
        return p[0] * x[0]

    with pytest.raises((TypeError, ValueError), match="return nothing"):
        nsds.iterated_map(step, x=[0.5], p=[1.0])

    def by_table(x, p, out):
        out[0] = TABLE["a"] * x[0]

    with pytest.raises(TypeError, match=r"by_table does not compile as f\(x, p, out\): it reads TABLE, a dict"):
        nsds.iterated_map(by_table, x=[0.5], p=[1.0])


def test_what_numba_cannot_compile_runs_in_python_for_single_problems():
    def residual(z, out):
        out[0] = z[0] ** 3 - float(f"{2.0:.1f}") + 0.0 * random.Random(0).random()

    assert solvers.solve_ncp(residual, z0=np.ones(1)).z[0] == pytest.approx(2 ** (1 / 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nsds.newton_impct, ["newton_impct", "did you mean 'newton_impact'?"]),
        (lambda: nsds.analysis.orbits_of, ["orbits_of", "did you mean 'orbit'?"]),
        (lambda: nsds.moreau_jean(theta1=0.5), ["moreau_jean", "'theta1'", "did you mean 'theta'?"]),
        (lambda: nsds.zero_order_hold(theta=0.5), ["zero_order_hold: has no options", "'theta'"]),
        (lambda: solvers.solver("lemke", max_itr=3), ["'max_itr'", "did you mean 'max_iter'?"]),
        (lambda: solvers.solve_lcp(np.eye(2), np.ones(2), method="lemk"), ["'lemk'", "did you mean 'lemke'?"]),
        (lambda: solvers.solve_lcp(np.eye(2), np.ones(2), method="psor", weights=1.2), ["'weights'", "did you mean 'weight'?"]),
        (lambda: nsds.interaction(nsds.scleronomous(returns, m=1), nsds.newton_impact(0.5), on=3), ["on"]),
        (lambda: nsds.circuit("title\nV1 a 0 PULSES(0 1 1)\nR1 a 0 1\n"), ["'PULSES'", "did you mean 'PULSE'?"]),
        (lambda: nsds.simulate(ball(), t_end=1.0, h=0.1, fields=["bal"]), ["'bal'", "did you mean 'ball'?"]),
        (lambda: nsds.simulate(ball(), t_end=1.0, h=0.1, fields=["floor.lambd"]), ["'lambd'", "did you mean 'lambda'?"]),
        (lambda: nsds.simulate(ball(), t_end=1.0, h=0.1, on_failure="warm"), ["'warm'", "did you mean 'warn'?"]),
        (lambda: nsds.simulate(ball(), t_end=1.0, h=0.1, scheme=nsds.moreau_jean), ["scheme: expected the result of", "nsds.moreau_jean"]),
        (lambda: nsds.plotting.values(nsds.simulate(ball(), t_end=0.1, h=0.1), "floor.lambd"), ["did you mean 'floor.lambda'?"]),
        (
            lambda: nsds.system(
                ball=nsds.lagrangian_linear(M=[1.0], q=[0.0], v=[0.0]),
                floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="bal"),
            ),
            ["no part 'bal'", "did you mean 'ball'?"],
        ),
    ],
)
def test_names(call, words):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


def ball():
    return nsds.examples.bouncing_ball()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["run", "bouncing_bal"], "did you mean 'bouncing_ball'?"),
        (["rum", "bouncing_ball"], "did you mean 'run'?"),
        (["run", "bouncing_ball", "--heigt", "2"], "did you mean '--height'?"),
        (["run", "bouncing_ball", "--t_end=2"], "did you mean '--t-end'?"),
    ],
)
def test_command_line(words, answer, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    said = capsys.readouterr().err
    assert answer in said
    assert len(said.splitlines()) == 1
