"""Every public function says what is wrong with what it is given: one table of arguments, one of values that they must refuse."""

import inspect
import io
import os
import tempfile
import traceback
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp

import nsds

mpl.use("agg")
relation = nsds.lagrangian_linear_relation


class Odd:
    """Nothing that anything could do with."""

    def __repr__(self):
        return "Odd()"


class Mute:
    """What cannot even be shown."""

    def __repr__(self):
        raise RuntimeError("no repr")


ODD, MUTE = Odd(), Mute()
ARRAYS = [np.array(1.0), np.array([1.0, 2.0]), np.zeros((0, 3)), sp.csr_array(np.eye(2)), np.ma.masked]  # where none is wanted


def force(t, z, out):
    out[0] = -9.81


def internal(t, q, v, z, out):
    out[0] = q[0]


def pull(t, y, ydot, z, out):
    out[0] = -y[0]


def at_q(q, z, out):
    out[0] = 1.0


def rate(t, x, z, out):
    out[0] = -x[0]


def at_lam(t, lam, z, out):
    out[0] = lam[0]


def full(t, x, lam, z, out):
    out[0] = x[0] + lam[0]


def at_q_lam(q, lam, z, out):
    out[0] = q[0] + lam[0]


def at_t_q(t, q, z, out):
    out[0] = q[0]


def control(t, x, state, z, u):
    u[0] = -x[0]


def gap(t, q, z, out):
    out[0], out[6] = q[2], 1.0


LONG, NONE_AT_ALL = np.arange(1.0, 10.0), range(0)
NOT_NUMBERS = ["a", "", b"1", {}, {"a": 1}, [], (), 1j, ODD, object, np.array([1.0, ODD], object), [[1.0], [1.0, 2.0]], np.array("x"),
               np.datetime64("2020-01-01"), np.nan, [np.nan], NONE_AT_ALL, 10**400, LONG, np.float64, MUTE,
               np.zeros((2, 3, 4, 5)), True, np.ma.masked, np.ma.array([1.0, 2.0], mask=[0, 1])]  # fmt: skip
NUMBER = [*NOT_NUMBERS, [1.0, 2.0], np.inf, -np.inf, np.array([0.5]), force]
# kind of argument -> values that it refuses
REFUSED = {
    "number": [None, *NUMBER],
    "number or none": NUMBER,
    "positive": [None, *NUMBER, 0, -1.0, -1e-300],
    "step": [None, *NUMBER, 0, -1.0, 1e-300, 5e-324],
    "positive or inf": [value for value in [None, *NUMBER, 0, -1.0] if value is not np.inf],
    "positive or none": [*NUMBER, 0, -1.0],
    "not negative": [None, *NUMBER, -1.0],
    "not negative or inf": [value for value in [None, *NUMBER, -1.0] if value is not np.inf],
    "within 0 and 1": [None, *NUMBER, -0.1, 1.1, 7],
    "within 0 and 1 or none": [*NUMBER, -0.1, 1.1, 7],
    "within -1 and 1": [None, *NUMBER, -1.1, 1.1],
    "whole": [None, *NUMBER, 1.5, np.float64(2.0), 0, -1, 2**31, 2**63, "3"],
    "few": [None, *NUMBER, 1.5, np.float64(2.0), 0, -1, 2**31],
    "whole or none": [*NUMBER, 1.5, np.float64(2.0), 0, -1, 2**31, 2**63],
    "dimension or none": [*NUMBER, 1, 4, 0, -2, 2.5, "3"],
    "natural": [None, *NUMBER, 1.5, -1, 2**63],
    "flags or none": ["yes", 2, 0.5, {}, [], ODD, [0.5], [True] * 9, np.nan, "1"],
    "flag": [None, "yes", 2, 0.5, {}, ODD, np.array([True, False])],
    "folder or none": [3, {}, [], ODD, True, force, "", "a\0b", *ARRAYS],
    "client": [3, {}, "cluster", [], ODD, True, force],
    "flag or none": ["yes", 2, 0.5, {}, ODD, np.array([True, False])],
    "word": [None, 3, "", "no such word", {}, [], ODD, b"all", True, np.nan, MUTE, *ARRAYS],
    "vector": [None, *NOT_NUMBERS, [1.0, np.inf], force],
    "vector or none": [*NOT_NUMBERS, [1.0, np.inf], force],
    "vector or function": [None, *NOT_NUMBERS, [1.0, np.inf], internal.__code__, np.sin, lambda: None],
    "vector, function or none": [*NOT_NUMBERS, [1.0, np.inf], np.sin, lambda: None],
    "parameters": ["a", {}, 1j, ODD, np.nan, [[1.0], [1.0, 2.0]], 10**400, True, force],
    "function": [None, 3, "force", {}, ODD, np.sin, lambda: None, lambda a: None, [force], print],
    "function or none": [3, "force", {}, ODD, np.sin, lambda: None, [force], print],
    "mass": [None, *NOT_NUMBERS, -1.0, [-1.0], [[-1.0]], sp.csr_array([[-1.0]]), [[1.0, 2.0]], np.inf],
    "matrix or none": [*NOT_NUMBERS, [[1.0, 2.0]], np.inf],
    "matrix": [None, *NOT_NUMBERS, [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], np.inf],
    "name": [None, 3, "", "no such part", "a b", {}, [], ODD, b"ball", True],
    "on": [None, 3, "", "no such part", "ball[", "ball[0", "ball[0]", {}, [], ODD, b"ball", ("ball", "ball", "ball"), ("ball", [0.5]),
        ("ball", "q!"),
           ("ball", [[0]]), ("ball", 99), True, ("ball", ODD), ("ball", [0, 0], "ball"), (3, [0]), "ball.q"],
    "relation": [None, 3, "relation", {}, [], ODD, {"relation": "joint"}, {"relation": "no such"}, {"law": "equality"}, nsds.equality(),
        force],
    "law": [None, 3, "equality", {}, [], ODD, {"law": "newton_impact"}, {"law": "no such"}, {"relation": 1}, {"law": []}, force,
        nsds.equality],
    "law or none": [3, "equality", {}, [], ODD, {"law": "relay"}, {"law": "no such"}, {"law": []}, force, nsds.equality],
    "record": [None, 3, "ball", {}, [], ODD, np.zeros(3), np.zeros(3, [("t", "f8")]), np.zeros(2, [("model", "S8")]),
               np.zeros((), [("model", "f8")]), {"kind": "lagrangian"}, [1, 2], [[1.0], [1.0, 2.0]], (np.eye(2), [1.0]), force],
    "record of bodies": [None, 3, "ball", {}, [], ODD, np.zeros(3), force],
    "record or none": [3, "ball", {}, [], ODD, np.zeros(3), np.zeros(3, [("t", "f8")]), np.zeros(2, [("model", "S8")]), force],
    "part": [None, 3, "ball", {}, [], ODD, {"kind": "no such"}, {"kind": "interaction"}, {"kind": "lagrangian_linear"}, {"kind": []},
             {"kind": "collisions"}, {"kind": "sampled_control"}, {"kind": "lagrangian_linear", "record": 3}, force,
             {"kind": "lagrangian_linear", "record": np.zeros(3)}],
    "trajectory": [None, 3, "rows", {}, [], ODD, np.zeros(3), np.zeros(3, [("t", "f8")]), np.zeros((2, 2, 2)), force, np.ma.masked],
    "scheme": [3, "moreau_jean", {}, [], ODD, np.zeros(3), nsds.euler_moreau(), nsds.moreau_jean, {"no such": None}, {"ball": 3}, {3: None},
               np.zeros(1, nsds.moreau_jean().dtype), np.repeat(nsds.moreau_jean(), 2), np.zeros((), [("scheme", "f8")]),
               np.zeros((), [("a", "i8")]), nsds.solvers.solver(), (np.eye(2), [1.0]), (sp.csr_array(np.eye(2)),), *ARRAYS],
    "solver": [3, "no such", "", {}, [], ODD, np.zeros(3), b"auto", np.repeat(nsds.solvers.solver(), 2), print,
               nsds.moreau_jean(), (np.eye(2), [1.0]), (sp.csr_array(np.eye(2)),), *ARRAYS],
    "fields": ["no such", ["ball.no"], 3, {}, ODD, [3], ["ball."], [None], b"ball", ["ball.q.x"], True, ARRAYS[0], ARRAYS[1],
               *ARRAYS[3:]],
    "functions": [3, "force", {}, ODD, [3], [np.sin], ["force"]],
    "shape": [None, 3, "sphere", {}, [], ODD, {"shape": "sphere"}, {"shape": "no such"}, {"shape": []}, force],
    "solid": [None, 3, "sphere", {}, [], ODD, {"shape": "sphere"}, {"shape": []}, nsds.shapes.plane(), nsds.shapes.tube(1.0), force],
    "shapes of parts": [None, 3, "sphere", {}, [], ODD, {"ball": 3}, {"ball": {}}, {3: nsds.shapes.sphere(1.0)}, {"ball": [3]},
        {"ball": [[3]]},
                        {"no such": nsds.shapes.sphere(1.0)}, {"world": nsds.shapes.sphere(1.0)}, {"ball": None},
                            {"ball": {"shape": "sphere"}},
                        {"ball": nsds.shapes.plane()}, {"ball": []}],
    "world": [None, 3, "plane", {}, ODD, [3], [[3]], {"shape": "plane"}, [None], True],
    "pairs": [3, "ball", ["bb"], [("ball",)], [("ball", "no such")], [3], [("ball", 3)], ODD, {"ball": "world"}, [("ball", "world",
        "ball")], True,
              ["ball"], [("ball", [])]],
    "names": [None, 3, "", {}, [], ODD, [3], ["plant", 3], "no such part", True, b"plant"],
    "dofs": [None, *NOT_NUMBERS, -1, [0, 0], 0.5, [0.0], 99, [[0]]],
    "coordinate": [None, 3, "angle", {}, [], ODD, ("angle",), ("no such", [0, 0, 1]), ("angle", [0, 0, 0]), ("angle", 3), ([], [0, 0, 1])],
    "unit 3": [None, *NOT_NUMBERS, [0, 0, 0], [1, 0], [[1, 0, 0]], [np.inf, 0, 0], 3.0],
    "unit 2": [None, *NOT_NUMBERS, [0, 0], [1, 0, 0], [[1, 0]], [np.inf, 0], 3.0],
    "2": [None, *NOT_NUMBERS, [1, 0, 0], [[1, 0]], [np.inf, 0], 3.0],
    "2 or none": [*NOT_NUMBERS, [1, 0, 0], [[1, 0]], [np.inf, 0], 3.0],
    "points of a plane": [None, *NOT_NUMBERS, [[1, 0], [2, 0], [3, 0]], [[0, 0], [1, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]], 3.0],
    "3": [None, *NOT_NUMBERS, [1, 0], [[1, 0, 0]], [np.inf, 0, 0], 3.0],
    "3 or none": [*NOT_NUMBERS, [1, 0], [[1, 0, 0]], [np.inf, 0, 0], 3.0],
    "quaternion": [None, *NOT_NUMBERS, [1, 0], [0, 0, 0, 0], [np.inf, 0, 0, 0], 1.0],
    "bounds": [None, "a", {}, 1j, ODD, np.nan, [np.nan], [[1.0], [1.0, 2.0]], [[1.0]], True],
    "points": [None, *NOT_NUMBERS, [[0, 0, 0]], [[1, 0], [2, 0], [0, 3]], [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, np.inf]]],
    "triangles": [None, "a", {}, [], ODD, 3, [0, 1, 2], [[0, 1]], [[0, 1, 9]], [[0, 1, -1]], [[0.0, 1.0, 2.0]], [[0, 1, 1]], np.nan, 1j,
                  [[0, 1], [0, 1, 2]], [[True, False, True]]],
    "parameter": [None, 3, "", "q", "p", "p[9]", "p[-1]", {}, [], ODD, True],
    "rows of 3": [None, *NOT_NUMBERS, [1, 0], [[[1, 0, 0]]], [np.inf, 0, 0], 3.0],
    "directions of rays": [None, *NOT_NUMBERS, [1, 0], [0, 0, 0], [[[1, 0, 0]]], [np.inf, 0, 0], 3.0],
    "name or none": [3, "", "no such part", "a b", {}, [], ODD, b"ball", True],
    "bodies": [None, 3, -1, 0.5, "", "no such part", {}, ODD, [3], [None], ["no such part"], b"ball", True, np.array(5),
               np.array("no"), np.ma.masked, sp.csr_array(np.eye(2))],
    "two texts": [None, 3, "p[0]", (), ("p[0]",), ("p[0]", "p[0]"), ("p[0]", "q"), ("p[0]", 3), ("p[9]", "p[0]"), {}, ODD, True,
                  [[1.0], [1.0, 2.0]], [np.eye(2), np.eye(2)], ("p[0]", "p[" + "9" * 5000 + "]")],
    "list of texts": [None, 3, "floor.e", {}, ODD, [3], ["no.such"], ["floor.no"], ["floor"], ["floor.e[1]"], ["t"], True, [[1.0]]],
    "varied": [None, 3, "a", [], {}, ODD, {"p[0]": "a"}, {"p[0]": []}, {"p[0]": [np.nan]}, {"p[0]": 1.0}, {"q": [1.0]}, {3: [1.0]},
               {"p[0]": [1.0], "p[1]": [1.0], "p[2]": [1.0]}],
    "axes of states": [None, 3, "a", [], {}, ODD, {"x[0]": "a"}, {"x[0]": []}, {"x[0]": [np.nan]}, {"x[0]": 1.0}, {"x[1]": [1.0]},
                       {3: [1.0]}],
    "direction": [0, 2, "up", True, [0], [], {}, ODD, 1.5, [1, 3], [True]],
    "period": ["a", {}, [], ODD, np.nan, 1j, True, 0.0, -1.0, 1.0],
    "row": [None, 3, "row", {}, [], ODD, np.zeros(3), np.zeros((), [("t", "f8")])],
    "status": [None, 3.5, "converged", {}, [], ODD, 99, -5, np.nan, True, [0]],
    "4 numbers": [None, 3.0, "abcd", {}, [], np.zeros(3), np.zeros(5), np.zeros((4, 1)), np.zeros(4, np.float32), np.zeros(4, int), ODD,
                  np.zeros(8)[::2], [1.0, 0, 0, 0]],
    "frames a second": [None, *NUMBER, 0, -1.0, 1e-300, 100.0, 1e300],
    "column": [None, 3, "", "ball", "ball.", "no such.q", "ball.no", "ball.q[9]", "ball.q[-1]", {}, [], ODD, b"ball.q", "ball.q[]"],
    "axes": [3, "ax", {}, [], ODD],
    "index": [None, "a", 1.5, -1, 9, {}, [], ODD, np.nan, True],
    "times": [*NOT_NUMBERS, 0.01, [0.02, 0.01], [-1.0, 0.01], [0.01, 1.0], [np.inf], force],
    "of no function": [[1.0], "z", {}, np.nan, np.zeros((2, 2))],
    "callable or none": [3, "callback", {}, [], True, np.zeros(3), [print], lambda: None, lambda a, b, c, d, e: None, *ARRAYS],
    "condition or none": [3, "ball.q[0] < nan", "ball.q[0] < 1e400", "ball.q[0]", "ball.q[" + "9" * 5000 + "] < 1", {}, [], True, [print],
                          lambda: None, lambda a, b: None, *ARRAYS],
    "time": ["a", {}, [], ODD, np.nan, 1j, [1.0, 2.0], None, True],
    "times of an end": ["a", {}, [], ODD, np.nan, 1j, None, True, 0.0, -1.0, np.inf, [[1.0]], [0.1, np.nan]],
    "objective": [3, "x", {}, [], ODD, True, np.zeros(3), lambda: 0.0, lambda x, y: 0.0, lambda x: None, lambda x: "a", lambda x: np.nan,
                  lambda x: x],
    "netlist": [None, 3, "no such file", "", {}, [], ODD, [3], [()], ["title"], [("R1",)], [("R1", "a", 0, None)], b"R1 a 0 1", True,
                force],
    "values by name": [3, "load", [], ODD, {"load": "a"}, {3: 1.0}, {"no such": 1.0}, force],
    "readings": [3, "v", "v(q)", ["i(q)"], [3], ["v()"], ODD, force, ["i(R1,0)"]],
    "node": [None, 3.0, "", "q", [], {}, ODD, 7, True],
    "element": [None, 3, "", "q", [], {}, ODD, True],
    "file": [3, "report.txt", {}, [], ODD, Path("a"), io.BytesIO()],
}  # fmt: skip


def ball():
    return nsds.lagrangian_linear(M=[1.0], fext=[-9.81], q=[1.0], v=[0.0])


def bouncing(**more):
    return nsds.system(ball=ball(), floor=nsds.interaction(relation(H=[[1.0]]), nsds.newton_impact(0.9), on="ball"), **more)


def rigid(**more):
    return nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 1, 1, 0, 0, 0], v=[0] * 6, **more)


def flat(**more):
    return nsds.planar_bodies(1.0, 0.1, q=[0] * 3, v=[0] * 3, **more)


def on_a_plane(shapes, law, **arguments):
    given = {"world": nsds.shapes.plane(), **arguments}
    return nsds.system(ball=rigid(), contacts=nsds.collisions(shapes, law, **given))


def resting():
    return on_a_plane({"ball": nsds.shapes.sphere(0.5)}, nsds.newton_impact(0.0))


def pressed():
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[0.1]), nsds.newton_impact(0.0), on="mass")
    return nsds.system(mass=nsds.lagrangian_linear(M=[[1.0]], K=[[4.0]], fext=[0.0], q=[0.0], v=[0.0]), stop=stop)


def interaction_on_ball(relation, law, on):
    return nsds.system(ball=ball(), floor=nsds.interaction(relation, law, on))


def hinged(enabled):
    pivot = nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="body", enabled=enabled)
    return nsds.system(body=rigid(), pivot=pivot)


def controlled(control, **arguments):
    plant = nsds.first_order_linear(A=[[-1.0]], x=[1.0], u=[0.0])
    return nsds.system(plant=plant, loop=nsds.sampled_control(control, **arguments))


def prescribed(dofs, velocity=0.0, amplitude=None, omega=None, phase=0.0, z=None):
    drive = nsds.prescribed_velocity(dofs, velocity, amplitude=amplitude, omega=omega, phase=phase, z=z)
    return nsds.system(ball=ball(), drive=nsds.interaction(drive, nsds.equality(), on="ball"))


def circuit():
    return nsds.linear_complementarity_system(A=[[-1.0]], B=[[1.0]], C=[[1.0]], D=[[1.0]], x=[-2.0])


_rows = {}


def rows():
    if "ball" not in _rows:
        _rows["ball"] = nsds.simulate(bouncing(), t_end=0.5, h=0.01)
    return _rows["ball"]


SLIDER = """<robot name="r"><link name="base"/><link name="cart"><inertial><mass value="1"/><inertia/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
    <joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><limit lower="-9" upper="9"/></joint></robot>"""


def triangle():
    """Name of a file with a mesh."""
    path = Path(tempfile.gettempdir()) / "triangle.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    return path


def halved(x, p, out):
    out[0] = p[0] * x[0]


def both_halved(x, p, out):
    out[0], out[1] = 0.5 * x[0], 0.5 * x[1]


AXES = {"x[0]": [0.5, 0.6], "x[1]": [0.5]}


def table():
    return nsds.iterated_map(halved, x=[1.0], p=[0.5])


def cubic(x, p, out):
    out[0] = x[0] + p[0] + p[1] * x[0] - x[0] ** 3


def folding():
    """Its fixed points fold where 27 p[0]**2 = 4 p[1]**3."""
    return nsds.iterated_map(cubic, x=[3**-0.5], p=[-2 / 27**0.5, 1.0])


def beating(t, z, out):
    out[0] = z[0] * np.cos(t)


def striking():
    """A driven mass that strikes a stop, whose motion is followed event by event where no h is given."""
    mass = nsds.lagrangian_linear([[1.0]], K=[[2.0]], C=[[0.5]], fext=beating, q=[0.2], v=[0.0], z=[0.5])
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[-1.0]], b=[0.25]), nsds.newton_impact(0.6), on="mass")
    return nsds.system(mass=mass, stop=stop)


def swept():
    return nsds.sweep(table(), vary={"p[0]": [0.5, 0.6]}, transient=5, keep=4, progress=False)


def followed():
    return nsds.continue_orbit(table(), parameter="p[0]", until=0.6)


def square():
    """Basins over two initial values."""
    return nsds.basins(nsds.iterated_map(both_halved, x=[1.0, 1.0]), grid=AXES, transient=5, progress=False)


REFUSED["record of bodies"] += [bouncing(), circuit()]


def step_of(system, **more):
    return nsds.simulate(system, **{"t_end": 0.02, "h": 0.01} | more)


def divider():
    return nsds.circuit([("V1", "a", 0, 1.0), ("R1", "a", "b", "load"), ("C1", "b", 0, 1.0), ".param load=1"], integrals="v(b)")


def rows_of_divider():
    if "divider" not in _rows:
        _rows["divider"] = nsds.simulate(divider(), t_end=0.1, h=0.01)
    return _rows["divider"]


def lying():
    """Rows as a run would give them, of which pictures read the time and q."""
    result = np.zeros(2, [*((name, "f8") for name in ("t", "step", "status", "n_iter", "residual")), ("ball", [("q", "f8", 7)])])
    result["t"], result["ball"]["q"][:, 3] = [0.0, 1.0], 1.0
    return result


PROFILE = [("problem", "S8"), ("method", "S8"), ("time", "f8"), ("n_iter", "f8"), ("residual", "f8"), ("status", "i8")]
FIRST = {"q": [1.0], "v": [0.0]}
SCHEME_NUMBERS = {"newton_tol": "positive or inf", "newton_max_iter": "whole"}
PROJECTION = {"theta": "within 0 and 1", "gamma": "not negative", "q_star": "within 0 and 1", "constraint_tol": "positive",
    "max_rounds": "whole",
              "metric": "word"} | SCHEME_NUMBERS  # fmt: skip
JOINT = {"point": [0, 0, 1], "axis": [0, 1, 0]}
OF_JOINT = {"point": "3", "axis": "unit 3", "frame": "word"}
Q = [0.0, 0, 0, 1.0, 0, 0, 0]
# name -> (function, arguments that are good, kinds of arguments)
CALLS = {
    "iterated_map": (nsds.iterated_map, lambda: {"f": halved, "x": [1.0], "p": [0.5]}, {
        "f": "function", "x": "state of any length", "p": "parameters", "jac": "function or none", "modulo": "vector or none",
        "border": "function or none"}),
    "floquet": (nsds.floquet, lambda: {"system": table()}, {
        "system": "record", "period": "period", "n_periods": "whole", "scheme": "scheme", "h": "positive or none",
        "n_multipliers": "whole or none"}),
    "floquet, of a system": (nsds.floquet, lambda: {"system": pressed(), "period": 1.0}, {
        "period": "step", "n_periods": "whole", "scheme": "scheme"}),
    "orbit": (nsds.orbit, lambda: {"system": table()}, {
        "system": "record", "period": "period", "free_period": "flag", "n_periods": "whole", "settle": "natural",
        "tol": "positive", "max_iter": "whole",
        "scheme": "scheme", "h": "positive or none", "n_multipliers": "whole or none"}),
    "floquet, by events": (nsds.floquet, lambda: {"system": striking(), "period": 2 * np.pi}, {
        "system": "record", "period": "step", "n_periods": "whole", "scheme": "scheme", "h": "positive or none"}),
    "orbit, by events": (nsds.orbit, lambda: {"system": striking(), "period": 2 * np.pi, "settle": 4}, {
        "period": "step", "free_period": "flag", "n_periods": "whole", "settle": "natural", "tol": "positive", "max_iter": "whole",
        "scheme": "scheme", "h": "positive or none"}),
    "continue_orbit, by events": (
        nsds.continue_orbit,
        lambda: {"system": striking(), "parameter": "mass.z[0]", "until": 0.51, "period": 2 * np.pi, "max_points": 2}, {
        "parameter": "parameter", "until": "number", "period": "period of a drive", "n_periods": "whole", "tol": "positive",
        "step": "within 0 and 1", "smallest_step": "positive", "max_points": "whole", "corners": "state of any length",
        "switch": "natural", "scheme": "scheme"}),
    "lyapunov, by events": (nsds.lyapunov, lambda: {"system": striking(), "period": 6.0, "n_periods": 20, "transient": 2}, {
        "period": "step", "n_periods": "whole", "transient": "natural", "n_exponents": "whole or none", "blocks": "whole",
        "scheme": "scheme", "h": "positive or none"}),
    "gradient, by events": (nsds.gradient, lambda: {"system": striking(), "t_end": 3.0, "objective": lambda x: x[0]}, {
        "system": "record", "t_end": "time", "objective": "objective", "parameters": "list of texts", "rows": "whole", "scheme": "scheme",
        "h": "positive or none"}),
    "sensitivity, by events": (nsds.sensitivity, lambda: {"system": striking(), "t_end": 3.0, "parameters": ["stop.e"]}, {
        "t_end": "times of an end", "parameters": "list of texts", "objective": "objective", "rows": "whole or none", "scheme": "scheme",
        "h": "positive or none"}),
    "basins, by events": (
        nsds.basins,
        lambda: {"system": striking(), "grid": {"mass.q[0]": [0.1]}, "period": 2 * np.pi, "transient": 2, "progress": False}, {
        "grid": "axes of states", "period": "step", "transient": "natural", "keep": "whole", "tol": "positive", "scheme": "scheme",
        "h": "positive or none", "progress": "flag or none"}),
    "equilibrium": (nsds.equilibrium, lambda: {"system": resting()}, {
        "system": "record", "tol": "positive", "max_iter": "whole", "h": "positive or none", "solver": "solver", "on_failure": "word",
        "functions": "functions"}),
    "continue_equilibrium": (
        nsds.continue_equilibrium, lambda: {"system": pressed(), "parameter": "mass.fext[0]", "until": 0.9, "max_points": 3}, {
        "system": "record", "parameter": "parameter", "until": "number", "tol": "positive", "step": "within 0 and 1",
        "smallest_step": "positive", "max_points": "whole"}),
    "continue_orbit": (nsds.continue_orbit, lambda: {"system": table(), "parameter": "p[0]", "until": 0.9}, {
        "system": "record", "parameter": "parameter", "until": "number", "period": "period", "n_periods": "whole", "tol": "positive",
        "step": "within 0 and 1", "smallest_step": "positive", "max_points": "whole", "corners": "state of any length",
        "switch": "natural", "scheme": "scheme"}),
    "continue_bifurcation": (
        nsds.continue_bifurcation,
        lambda: {"system": folding(), "kind": "fold", "parameters": ("p[0]", "p[1]"), "until": 1.5, "max_points": 3}, {
        "system": "record", "kind": "word", "parameters": "two texts", "until": "number", "period": "period", "n_periods": "whole",
        "tol": "positive", "step": "within 0 and 1", "smallest_step": "positive", "max_points": "whole", "scheme": "scheme"}),
    "lyapunov": (nsds.lyapunov, lambda: {"system": table(), "n_periods": 20, "transient": 2}, {
        "system": "record", "period": "period", "n_periods": "whole", "transient": "natural", "n_exponents": "whole or none",
        "blocks": "whole", "scheme": "scheme", "h": "positive or none"}),
    "sensitivity": (nsds.sensitivity, lambda: {"system": bouncing(), "t_end": 0.1, "parameters": ["floor.e"]}, {
        "system": "record", "t_end": "times of an end", "parameters": "list of texts", "objective": "objective", "rows": "whole or none",
        "scheme": "scheme", "h": "positive or none"}),
    "gradient": (nsds.gradient, lambda: {"system": bouncing(), "t_end": 0.1, "objective": lambda x: x[0]}, {
        "system": "record", "t_end": "time", "objective": "objective", "parameters": "list of texts", "rows": "whole", "scheme": "scheme",
        "h": "positive or none"}),
    "basins": (nsds.basins, lambda: {"system": table(), "grid": {"x[0]": [0.5]}, "progress": False}, {
        "system": "record", "grid": "axes of states", "period": "period", "transient": "natural", "keep": "whole", "tol": "positive",
        "scheme": "scheme", "h": "positive or none", "progress": "flag or none"}),
    "sweep": (nsds.sweep, lambda: {"system": table(), "vary": {"p[0]": [0.5]}, "progress": False}, {
        "system": "record", "vary": "varied", "period": "period", "record": "word", "crossing": "direction",
        "transient": "natural", "keep": "whole", "direction": "direction", "tol": "positive", "scheme": "scheme",
        "store": "folder or none", "client": "client", "mapped": "flag", "progress": "flag or none"}),
    "lagrangian_linear": (nsds.lagrangian_linear, lambda: {"M": [[1.0]], **FIRST}, {
        "M": "mass", "K": "matrix or none", "C": "matrix or none", "fext": "vector, function or none", "q": "vector", "v": "vector",
        "z": "parameters", "count": "whole or none"}),
    "lagrangian": (nsds.lagrangian, lambda: {"mass": [[1.0]], **FIRST}, {
        "mass": "mass", "fint": "function or none", "fgyr": "function or none", "fext": "vector, function or none",
        "jac_q": "function or none", "jac_v": "function or none", "q": "vector", "v": "vector", "z": "parameters", "n_u": "whole or none",
        "u": "vector, function or none", "count": "whole or none"}),
    "lagrangian_modal": (nsds.lagrangian_modal, lambda: {"omega": [1.0], **FIRST}, {
        "omega": "vector", "sigma": "vector", "mass": "vector", "fext": "vector, function or none", "q": "vector", "v": "vector",
        "z": "parameters", "count": "whole or none"}),
    "first_order_linear": (nsds.first_order_linear, lambda: {"A": [[1.0]], "x": [1.0]}, {
        "A": "matrix", "b": "vector, function or none", "M": "matrix or none", "x": "vector", "z": "parameters", "n_u": "whole or none",
        "u": "vector, function or none", "count": "whole or none"}),
    "first_order": (nsds.first_order, lambda: {"f": rate, "x": [1.0]}, {
        "f": "function", "jac_f": "function or none", "M": "matrix or none", "x": "linear", "z": "parameters", "n_u": "whole or none",
        "u": "vector, function or none", "count": "whole or none"}),
    "rigid_bodies": (nsds.rigid_bodies, lambda: {"mass": 1.0, "inertia": 0.1, "q": Q, "v": [0] * 6}, {
        "mass": "positive or inf", "inertia": "vector", "q": "vector", "v": "vector", "fext": "vector, function or none",
        "mext": "vector, function or none", "frame": "word", "fint": "function or none", "mint": "function or none",
        "C": "matrix or none", "K": "matrix or none", "alive": "flags or none", "z": "parameters", "count": "whole or none"}),
    "rigid_bodies, control": (rigid, lambda: {"T": [[1.0]] * 6, "u": [0.0]}, {
        "T": "matrix", "u": "vector or none", "u_frame": "word"}),
    "planar_bodies": (nsds.planar_bodies, lambda: {"mass": 1.0, "inertia": 0.1, "q": [0] * 3, "v": [0] * 3}, {
        "mass": "positive or inf", "inertia": "vector", "q": "vector", "v": "vector", "fext": "vector, function or none",
        "mext": "vector, function or none", "alive": "flags or none", "z": "parameters", "count": "whole or none"}),
    "planar_bodies, control": (flat, lambda: {"T": [[1.0]] * 3, "u": [0.0]}, {
        "T": "matrix", "u": "vector or none", "u_frame": "word"}),
    "in_plane": (nsds.in_plane, lambda: {"bodies": flat()["record"]}, {"bodies": "record"}),
    "lagrangian_linear_relation": (relation, lambda: {"H": [[1.0]]}, {
        "H": "linear", "b": "vector or none", "D": "matrix or none"}),
    "scleronomous": (nsds.scleronomous, lambda: {"h": at_q, "m": 1}, {
        "h": "function", "H": "function or none", "m": "whole", "z": "parameters"}),
    "rheonomous": (nsds.rheonomous, lambda: {"h": at_t_q, "m": 1}, {
        "h": "function", "H": "function or none", "h_t": "function or none", "m": "whole", "z": "parameters"}),
    "compliant": (nsds.compliant, lambda: {"h": at_q_lam, "m": 1}, {
        "h": "function", "H": "function or none", "D": "function or none", "m": "whole", "z": "parameters"}),
    "lagrangian_relation": (nsds.lagrangian_relation, lambda: {"h": full, "g": full, "m": 1}, {
        "h": "function", "g": "function", "H": "function or none", "D": "function or none", "B": "function or none", "m": "whole",
        "z": "parameters"}),
    "prescribed_velocity": (prescribed, lambda: {"dofs": [0]}, {
        "dofs": "dofs", "velocity": "vector or function", "z": "parameters"}),
    "prescribed_velocity, waves": (prescribed, lambda: {"dofs": [0], "amplitude": 1.0, "omega": 1.0}, {
        "velocity": "vector", "amplitude": "vector or none", "omega": "vector or none", "phase": "vector"}),
    "newton_euler_relation": (nsds.newton_euler_relation, lambda: {"h": at_t_q, "m": 1}, {
        "h": "function", "jac": "function or none", "h_t": "function or none", "m": "whole", "z": "parameters"}),
    "contact_point": (nsds.contact_point, lambda: {"gap": gap}, {"gap": "function", "z": "parameters"}),
    "first_order_linear_relation": (nsds.first_order_linear_relation, lambda: {"C": [[1.0]], "B": [[1.0]]}, {
        "C": "linear", "B": "linear", "D": "matrix or none", "e": "vector, function or none", "m": "whole or none"}),
    "first_order_linear_relation, F": (nsds.first_order_linear_relation, lambda: {"C": [[1.0]], "B": [[1.0]], "F": [[1.0]], "z": [1.0]}, {
        "F": "matrix or none", "z": "vector"}),
    "type1_relation": (nsds.type1_relation, lambda: {"h": rate, "g": at_lam, "m": 1}, {
        "h": "function", "g": "function", "C": "function or none", "B": "function or none", "m": "whole", "z": "parameters"}),
    "type2_relation": (nsds.type2_relation, lambda: {"h": full, "g": at_lam, "m": 1}, {
        "h": "function", "g": "function", "C": "function or none", "D": "function or none", "B": "function or none", "m": "whole",
        "z": "parameters"}),
    "first_order_relation": (nsds.first_order_relation, lambda: {"h": full, "g": full, "m": 1}, {
        "h": "function", "g": "function", "C": "function or none", "D": "function or none", "K": "function or none",
        "B": "function or none", "m": "whole", "z": "parameters"}),
    "interaction": (interaction_on_ball, lambda: {"relation": relation(H=[[1.0]]), "law": nsds.equality(), "on": "ball"}, {
        "relation": "relation", "law": "law", "on": "on"}),
    "interaction, switched": (hinged, lambda: {"enabled": True}, {"enabled": "flags or none"}),
    "newton_impact": (nsds.newton_impact, lambda: {"e": 0.5}, {"e": "parameter within 0 and 1"}),
    "newton_impact_friction": (nsds.newton_impact_friction, lambda: {"e_n": 0.5, "mu": 0.1}, {
        "e_n": "parameter within 0 and 1", "mu": "parameter", "e_t": "parameter", "dimension": "dimension or none"}),
    "newton_impact_rolling_friction": (nsds.newton_impact_rolling_friction, lambda: {"e_n": 0.5, "mu": 0.1, "mu_r": 0.1}, {
        "e_n": "parameter within 0 and 1", "mu": "parameter", "mu_r": "parameter", "e_t": "parameter", "dimension": "dimension or none"}),
    "newton_impact_spinning_friction": (nsds.newton_impact_spinning_friction, lambda: {"e_n": 0.5, "mu": 0.1, "mu_s": 0.1}, {
        "e_n": "parameter within 0 and 1", "mu": "parameter", "mu_s": "parameter", "e_t": "parameter"}),
    "multiple_impact": (nsds.multiple_impact, lambda: {"e": 0.5}, {
        "e": "parameter within 0 and 1", "stiffness": "parameter", "exponent": "parameter"}),
    "multiple_impact_friction": (nsds.multiple_impact_friction, lambda: {"e": 0.5, "mu": 0.1}, {
        "e": "parameter within 0 and 1", "mu": "parameter", "stiffness": "parameter", "exponent": "parameter",
        "dimension": "dimension or none"}),
    "poisson_impact": (nsds.poisson_impact, lambda: {"e": 0.5}, {"e": "parameter within 0 and 1"}),
    "poisson_impact_friction": (nsds.poisson_impact_friction, lambda: {"e": 0.5, "mu": 0.1}, {
        "e": "parameter within 0 and 1", "mu": "parameter", "dimension": "dimension or none"}),
    "spring_damper": (nsds.spring_damper, lambda: {"stiffness": 1.0}, {"stiffness": "linear", "damping": "linear"}),
    "force_law": (nsds.force_law, lambda: {"force": pull}, {"force": "function", "z": "parameters"}),
    "dry_friction": (nsds.dry_friction, lambda: {"limit": 1.0}, {"limit": "parameter"}),
    "fremond_impact": (nsds.fremond_impact, lambda: {"e": 0.5, "mu": 0.1}, {
        "e": "parameter within 0 and 1", "mu": "parameter", "dimension": "dimension or none"}),
    "mixed_complementarity": (nsds.mixed_complementarity, lambda: {"n_equalities": 0}, {"n_equalities": "natural"}),
    "relay": (nsds.relay, lambda: {"lower": -1.0, "upper": 1.0}, {"lower": "bounds", "upper": "bounds"}),
    "normal_cone": (nsds.normal_cone, lambda: {"G": [[1.0]], "g": [0.0]}, {"G": "linear", "g": "vector"}),
    "linear_complementarity_system": (nsds.linear_complementarity_system, lambda: {
        "A": [[-1.0]], "B": [[1.0]], "C": [[1.0]], "D": [[1.0]], "x": [1.0]}, {
        "A": "matrix", "B": "linear", "C": "linear", "D": "matrix or none", "x": "vector", "b": "vector, function or none",
        "e": "vector, function or none", "M": "matrix or none", "law": "law or none", "t": "number"}),
    "circuit": (nsds.circuit, lambda: {"netlist": [("V1", "a", 0, 1.0), ("R1", "a", 0, "load"), ".param load=1"]}, {
        "netlist": "netlist", "params": "values by name", "integrals": "readings", "t": "number"}),
    "robot": (nsds.robot, lambda: {"urdf": SLIDER, "law": nsds.newton_impact(0.0)}, {
        "urdf": "description", "q": "values of joints", "v": "values of joints", "position": "3", "orientation": "quaternion",
        "fixed": "flag", "motors": "laws of joints", "e": "within 0 and 1", "law": "law or none", "world": "world", "self_contacts": "flag",
        "folder": "folder or none"}),
    "robot, without contacts": (nsds.robot, lambda: {"urdf": SLIDER}, {"world": "world"}),
    "circuits.voltage": (nsds.circuits.voltage, lambda: {"system": divider(), "trajectory": rows_of_divider(), "node": "a"}, {
        "system": "record", "trajectory": "trajectory", "node": "node", "reference": "node"}),
    "circuits.current": (nsds.circuits.current, lambda: {"system": divider(), "trajectory": rows_of_divider(), "element": "R1"}, {
        "system": "record", "trajectory": "trajectory", "element": "element"}),
    "circuits.mean": (nsds.circuits.mean, lambda: {
        "system": divider(), "trajectory": rows_of_divider(), "reading": "v(b)", "start": 0.0, "end": 0.1}, {
        "system": "record", "trajectory": "trajectory", "reading": "node", "start": "time", "end": "time"}),
    "circuits.energy": (nsds.circuits.energy, lambda: {"system": divider(), "trajectory": rows_of_divider()}, {
        "system": "record", "trajectory": "trajectory", "theta": "within 0 and 1"}),
    "circuits.events": (nsds.circuits.events, lambda: {"system": divider(), "trajectory": rows_of_divider()}, {
        "system": "record", "trajectory": "trajectory"}),
    "sampled_control": (controlled, lambda: {"control": control, "reads": "plant", "writes": "plant"}, {
        "control": "function", "reads": "names", "writes": "names", "start": "function or none", "period": "positive or none",
        "state": "state of any length", "z": "state of any length"}),
    "collisions": (on_a_plane, lambda: {"shapes": {"ball": nsds.shapes.sphere(0.1)}, "law": nsds.newton_impact(0.0)}, {
        "shapes": "shapes of parts", "law": "law", "world": "world", "pairs": "pairs", "margin": "not negative",
        "capacity": "whole or none", "enabled": "flags or none", "on_contact": "callable or none", "z": "of no function"}),
    "system": (nsds.system, lambda: {"ball": ball()}, {"t": "number", "other": "part"}),
    "system, gravity": (nsds.system, lambda: {"box": rigid(), "gravity": [0, 0, -9.81]}, {"gravity": "vector or none"}),
    "simulate": (step_of, lambda: {"system": bouncing()}, {
        "system": "record", "t_end": "positive", "h": "step", "scheme": "scheme", "solver": "solver", "save_every": "whole",
        "t_eval": "times", "fields": "fields", "progress": "flag or none", "on_failure": "word",
        "until": "condition or none", "callback": "callable or none",
        "callback_every": "whole", "out": "rows of this run", "check": "flag", "functions": "functions",
        "store": "folder or none", "client": "client", "mapped": "flag"}),
    "step": (nsds.step, lambda: {"system": bouncing(), "h": 0.01}, {
        "system": "record", "h": "step", "scheme": "scheme", "solver": "solver", "on_failure": "word", "check": "flag",
        "functions": "functions"}),
    "stepper": (nsds.stepper, lambda: {"system": bouncing(), "h": 0.01}, {
        "system": "record", "h": "step", "scheme": "scheme", "solver": "solver", "on_failure": "word", "functions": "functions"}),
    "one_step_problems": (lambda **given: list(nsds.one_step_problems(**given)), lambda: {"system": bouncing(), "t_end": 0.05, "h": 0.01}, {
        "system": "record", "t_end": "positive", "h": "step", "scheme": "scheme", "solver": "solver", "every": "whole",
        "functions": "functions"}),
    "restart": (nsds.restart, lambda: {"system": bouncing(), "row": rows()[5]}, {"system": "record", "row": "row"}),
    "relative_degree": (nsds.relative_degree, lambda: {"system": circuit()}, {"system": "record"}),
    "report": (nsds.report, lambda: {"system": bouncing(), "trajectory": rows(), "file": io.StringIO()}, {
        "system": "record", "trajectory": "trajectory", "theta": "within 0 and 1 or none", "file": "file",
        "functions": "functions"}),
    "energy": (nsds.energy, lambda: {"system": bouncing(), "trajectory": rows()}, {
        "system": "record", "trajectory": "trajectory", "theta": "within 0 and 1", "functions": "functions"}),
    "to_pandas": (nsds.to_pandas, lambda: {"trajectory": rows()}, {"trajectory": "trajectory"}),
    "to_xarray": (nsds.to_xarray, lambda: {"trajectory": rows()}, {"trajectory": "trajectory"}),
    "describe": (nsds.describe, lambda: {"what": bouncing(), "h": 0.01}, {
        "what": "record", "h": "positive or none", "scheme": "scheme", "solver": "solver"}),
    "contact_intervals": (nsds.contact_intervals, lambda: {"system": bouncing(), "trajectory": rows(), "name": "floor"}, {
        "system": "record", "trajectory": "trajectory", "name": "name"}),
    "rays": (nsds.rays, lambda: {"system": resting(), "origins": [[0, 0, 9.0]], "directions": [[0, 0, -1.0]]}, {
        "system": "record", "origins": "rows of 3", "directions": "directions of rays", "name": "name or none",
        "reach": "not negative or inf", "ignore": "bodies"}),
    "advice": (nsds.advice, lambda: {"status": 0}, {"status": "status"}),
    "moreau_jean": (nsds.moreau_jean, dict, {
        "theta": "within 0 and 1", "gamma": "not negative", "q_star": "within 0 and 1", "form": "word", "update": "word",
        "pre_impact": "word"} | SCHEME_NUMBERS),
    "moreau_jean_exact": (nsds.moreau_jean_exact, dict, {"gamma": "not negative"}),
    "d1_minus_linear": (nsds.d1_minus_linear, dict, {"level": "word"}),
    "generalised_alpha": (nsds.generalised_alpha, dict, {
        "rho": "within 0 and 1", "newton_tol": "positive", "newton_max_iter": "whole", "constraint_tol": "positive",
            "max_rounds": "whole"}),
    "rattle": (nsds.rattle, dict, {"newton_tol": "positive", "newton_max_iter": "whole"}),
    "event_driven": (nsds.event_driven, dict, {
        "rtol": "positive", "atol": "not negative", "flow": "word", "accumulation": "within 0 and 1", "max_events": "whole",
        "time_events": "state of any length", "hybrid": "flag or none"}),
    "schatzman_paoli": (nsds.schatzman_paoli, dict, {"theta": "within 0 and 1", "gamma": "not negative or inf"} | SCHEME_NUMBERS),
    "moreau_jean_direct_projection": (nsds.moreau_jean_direct_projection, dict, PROJECTION | {"contacts": "word"}),
    "moreau_jean_combined_projection": (nsds.moreau_jean_combined_projection, dict, PROJECTION),
    "euler_moreau": (nsds.euler_moreau, dict, {
        "theta": "within 0 and 1", "gamma": "within 0 and 1", "gamma_for_relation": "flag", "midpoint": "flag", "newton_tol": "positive",
        "newton_max_iter": "whole"}),
    "joints.ball_joint": (nsds.joints.ball_joint, lambda: {"point": [0, 0, 1]}, {"point": "3", "frame": "word"}),
    "joints.universal": (nsds.joints.universal, lambda: JOINT | {"second_axis": [0, 0, 1]}, OF_JOINT | {"second_axis": "unit 3"}),
    "joints.hinge": (nsds.joints.hinge, lambda: JOINT, OF_JOINT),
    "joints.cylindrical": (nsds.joints.cylindrical, lambda: JOINT, OF_JOINT),
    "joints.planar": (nsds.joints.planar, lambda: JOINT, OF_JOINT),
    "joints.prismatic": (nsds.joints.prismatic, lambda: {"axis": [0, 1, 0]}, {"axis": "unit 3", "frame": "word"}),
    "joints.hinge_angle": (nsds.joints.hinge_angle, lambda: {"axis": [0, 1, 0]}, {
        "axis": "unit 3", "lower": "number or none", "upper": "number or none", "frame": "word"}),
    "joints.slide_along": (nsds.joints.slide_along, lambda: {"axis": [0, 1, 0]}, {
        "axis": "unit 3", "lower": "number or none", "upper": "number or none", "point": "3 or none", "frame": "word"}),
    "joints.distance": (nsds.joints.distance, lambda: {"point": [0, 0, 1], "second": [0, 0, 0]}, {
        "point": "3", "second": "3", "length": "number or none", "frame": "word"}),
    "joints.gear": (nsds.joints.gear, lambda: {"axis": [0, 1, 0], "radius": 1.0, "second_radius": 2.0}, {
        "axis": "unit 3", "radius": "number", "second_radius": "number", "frame": "word"}),
    "joints.coupler": (nsds.joints.coupler, lambda: {"first": ("angle", [0, 0, 1]), "second": ("angle", [0, 0, 1]), "ratio": 1.0}, {
        "first": "coordinate", "second": "coordinate", "ratio": "not zero"}),
    "joints.resolve": (nsds.joints.resolve, lambda: {"relation": nsds.joints.fixed_joint(), "q_a": Q}, {
        "relation": "relation", "q_a": "vector", "q_b": "vector or none"}),
    "shapes.sphere": (nsds.shapes.sphere, lambda: {"radius": 1.0}, {"radius": "positive", "position": "3"}),
    "shapes.box": (nsds.shapes.box, lambda: {"lengths": [1.0, 1, 1]}, {
        "lengths": "positive 3", "position": "3", "orientation": "quaternion"}),
    "shapes.capsule": (nsds.shapes.capsule, lambda: {"radius": 1.0, "length": 1.0}, {
        "radius": "positive", "length": "positive", "position": "3", "orientation": "quaternion"}),
    "shapes.cylinder": (nsds.shapes.cylinder, lambda: {"radius": 1.0, "length": 1.0}, {
        "radius": "positive", "length": "positive", "position": "3", "orientation": "quaternion"}),
    "shapes.cone": (nsds.shapes.cone, lambda: {"radius": 1.0, "height": 1.0}, {
        "radius": "positive", "height": "positive", "position": "3", "orientation": "quaternion"}),
    "shapes.tube": (nsds.shapes.tube, lambda: {"radius": 1.0}, {
        "radius": "positive", "length": "positive or none", "position": "3", "orientation": "quaternion"}),
    "shapes.plane": (nsds.shapes.plane, dict, {"normal": "unit 3", "offset": "number", "point": "3 or none"}),
    "shapes.convex": (nsds.shapes.convex, lambda: {"vertices": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]}, {
        "vertices": "points", "position": "3", "orientation": "quaternion"}),
    "shapes.mesh": (nsds.shapes.mesh, lambda: {"vertices": [[0, 0, 0], [1, 0, 0], [0, 1, 0]], "triangles": [[0, 1, 2]]}, {
        "vertices": "points", "triangles": "triangles", "position": "3", "orientation": "quaternion"}),
    "shapes.from_file": (nsds.shapes.from_file, lambda: {"path": triangle()}, {
        "path": "file of a mesh", "scale": "one or three", "hull": "flag", "position": "3", "orientation": "quaternion"}),
    "shapes.height_map": (nsds.shapes.height_map, lambda: {"heights": np.eye(3), "lengths": [1.0, 2.0]}, {
        "heights": "heights", "lengths": "positive 2", "position": "3", "orientation": "quaternion"}),
    "shapes.disk": (nsds.shapes.disk, lambda: {"radius": 1.0}, {"radius": "positive", "position": "2"}),
    "shapes.stadium": (nsds.shapes.stadium, lambda: {"radius": 1.0, "length": 1.0}, {
        "radius": "positive", "length": "positive", "position": "2", "angle": "number"}),
    "shapes.rectangle": (nsds.shapes.rectangle, lambda: {"lengths": [1.0, 2.0]}, {
        "lengths": "positive 2", "position": "2", "angle": "number"}),
    "shapes.polygon": (nsds.shapes.polygon, lambda: {"vertices": [[0, 0], [1, 0], [0, 1]]}, {
        "vertices": "points of a plane", "position": "2", "angle": "number"}),
    "shapes.half_plane": (nsds.shapes.half_plane, dict, {"normal": "unit 2", "offset": "number", "point": "2 or none"}),
    "joints.in_plane": (nsds.joints.in_plane, lambda: {"relation": nsds.joints.fixed_joint()}, {"relation": "relation"}),
    "shapes.volume": (nsds.shapes.volume, lambda: {"shape": nsds.shapes.sphere(1.0)}, {"shape": "solid"}),
    "shapes.centre_of_mass": (nsds.shapes.centre_of_mass, lambda: {"shape": nsds.shapes.sphere(1.0)}, {"shape": "solid"}),
    "shapes.inertia": (nsds.shapes.inertia, lambda: {"shape": nsds.shapes.sphere(1.0), "mass": 1.0}, {
        "shape": "solid", "mass": "positive"}),
    "plotting.figure": (nsds.plotting.figure, dict, {"rows": "few", "sharex": "flag", "height": "positive"}),
    "plotting.values": (nsds.plotting.values, lambda: {"trajectory": rows(), "name": "ball.q"}, {
        "trajectory": "trajectory", "name": "column"}),
    "plotting.time_series": (lambda trajectory, name, ax=None: nsds.plotting.time_series(trajectory, name, ax=ax),
                             lambda: {"trajectory": rows(), "name": "ball.q"}, {
        "trajectory": "trajectory", "name": "column", "ax": "axes"}),
    "plotting.phase_plane": (nsds.plotting.phase_plane, lambda: {"trajectory": rows(), "part": "ball"}, {
        "trajectory": "trajectory", "part": "name", "coordinate": "index", "after": "time", "ax": "axes"}),
    "plotting.stroboscopic_points": (nsds.plotting.stroboscopic_points, lambda: {"trajectory": rows(), "part": "ball", "period": 0.1}, {
        "trajectory": "trajectory", "part": "name", "period": "positive", "after": "time"}),
    "plotting.impact_points": (nsds.plotting.impact_points, lambda: {"trajectory": rows(), "part": "ball", "contact": "floor"}, {
        "trajectory": "trajectory", "part": "name", "contact": "name", "after": "time"}),
    "plotting.map_points": (nsds.plotting.map_points, lambda: {"points": rows()["ball"]}, {"points": "map", "coordinate": "index",
        "ax": "axes"}),
    "plotting.bifurcation": (nsds.plotting.bifurcation, lambda: {"parameter": [1.0, 2.0], "points": [[1.0], [2.0]]}, {
        "parameter": "vector", "points": "columns", "ax": "axes"}),
    "plotting.diagram": (nsds.plotting.diagram, lambda: {"rows": swept()}, {
        "rows": "rows of analysis", "coordinate": "index", "ax": "axes"}),
    "plotting.bifurcation_curve": (
        nsds.plotting.bifurcation_curve,
        lambda: {"rows": nsds.continue_bifurcation(folding(), kind="fold", parameters=("p[0]", "p[1]"), until=1.5, max_points=3)},
        {"rows": "rows of analysis", "ax": "axes"}),
    "plotting.branch": (nsds.plotting.branch, lambda: {"rows": followed()}, {
        "rows": "rows of analysis", "coordinate": "index", "ax": "axes"}),
    "plotting.multipliers": (nsds.plotting.multipliers, lambda: {"rows": followed()}, {"rows": "rows of analysis", "ax": "axes"}),
    "plotting.basin_map": (nsds.plotting.basin_map, lambda: {"found": square(), "grid": AXES}, {
        "found": "rows of analysis", "grid": "axes of a map", "ax": "axes"}),
    "plotting.performance_ratios": (nsds.plotting.performance_ratios, lambda: {"profile": np.ones((1, 1), PROFILE)}, {
        "profile": "trajectory", "measure": "word"}),
    "plotting.performance_profile": (nsds.plotting.performance_profile, lambda: {"profile": np.ones((1, 1), PROFILE)}, {
        "profile": "trajectory", "measure": "word", "ax": "axes"}),
    "plotting.scene": (nsds.plotting.scene, lambda: {"system": resting()}, {
        "system": "record of bodies", "shapes": "shapes of pictures", "ax": "axes", "box": "box", "elev": "number or none",
        "azim": "number or none"}),
    "plotting.snapshots": (nsds.plotting.snapshots, lambda: {"system": resting(), "trajectory": lying(), "count": 1}, {
        "system": "record of bodies", "trajectory": "trajectory", "count": "few"}),
    "plotting.animate": (nsds.plotting.animate, lambda: {"system": resting(), "trajectory": lying(), "path": os.devnull + ".gif"}, {
        "system": "record of bodies", "trajectory": "trajectory", "path": "gif", "fps": "frames a second", "speed": "positive",
        "inches": "positive", "dpi": "positive", "shapes": "shapes of pictures", "box": "box", "elev": "number or none",
        "azim": "number or none"}),
    "plotting.animate_plane": (nsds.plotting.animate_plane, lambda: {
        "trajectory": rows(), "lines": lambda row: [np.eye(2)], "path": os.devnull + ".gif"}, {
        "trajectory": "trajectory", "path": "gif", "fps": "frames a second", "speed": "positive", "inches": "positive",
        "dpi": "positive"}),
    "consistent": (nsds.consistent, lambda: {"system": resting()}, {"system": "record", "functions": "functions"}),
}  # fmt: skip
# laws take vectors, whose lengths interactions check; also one of no contacts
_TWO_OR_MORE = [
    value for value in NUMBER if value is not NONE_AT_ALL and not (isinstance(value, (list, tuple)) and list(value) in ([], [1.0, 2.0]))
    and not isinstance(value, np.ndarray)
]  # fmt: skip
REFUSED |= {
    "linear": [None, *(value for value in NOT_NUMBERS if value is not LONG), [[np.inf]], []],
    "parameter within 0 and 1": [None, *_TWO_OR_MORE, -0.1, 1.1],
    "parameter": [None, *_TWO_OR_MORE, -2.0],
    "not zero": [None, *NUMBER, 0],
    "heights": [None, *NOT_NUMBERS, [[1.0, 2.0]], [[1.0], [2.0]], [[np.inf, 1.0], [1.0, 1.0]]],
    "positive 2": [None, *NOT_NUMBERS, [0, 1], [1, -1], [1, 1, 1], 1.0],
    "one or three": [None, *NOT_NUMBERS, 0, [1, 0, 1], [1, 1], np.inf, force],
    "description": [None, 3, "", "no such file", "<robot", "<model/>", {}, [], ODD, b"<robot/>", True, force],
    "values of joints": [3, "rail", [], ODD, {"rail": "a"}, {3: 1.0}, {"no such": 1.0}, {"rail": np.nan}, force],
    "laws of joints": [3, "rail", [], ODD, {"rail": "a"}, {"rail": {}}, {3: nsds.spring_damper(1.0)}, {"no such": nsds.relay()}, force],
    "file of a mesh": [None, 3, "", "no such file.stl", "a\0.stl", {}, [], ODD, True, os.devnull, __file__],
    "positive 3": [None, *NOT_NUMBERS, [1, 0, 1], [1, -1, 1], [1, 1], 1.0],
    "box": ["a", {}, [], ODD, np.zeros(3), [[0, 0, 0], [1, 1, np.nan]]],
    "gif": [None, 3, "picture.png", {}, ODD, MUTE, "", "a\0.gif"],
    "shapes of pictures": [
        3,
        "sphere",
        ODD,
        {"ball": 3},
        {"ball": {}},
        {"no such": nsds.shapes.sphere(1.0)},
        {"ball": {"shape": "sphere"}},
    ],
    "map": [None, 3, "points", {}, [], ODD, np.zeros(3), np.zeros(3, [("q", "f8")]), np.zeros(3, [("q", "f8"), ("v", "f8")])],
    "rows of this run": [3, "out", {}, [], ODD, np.zeros(3), np.zeros(3, [("t", "f8")]), True],
    "rows of analysis": [None, 3, "rows", {}, [], ODD, np.zeros(3), np.zeros(3, [("x", "f8")]), (), True],
    "axes of a map": [None, 3, "x", {}, [], ODD, {"x[0]": [0.5]}, {"x[0]": [0.5], "x[1]": [0.5]}, {"x[0]": "a", "x[1]": [0.5]}, ["x[0]"]],
    "columns": [None, 3, "a", {}, ODD, ARRAYS[0], *ARRAYS[2:], [[1.0]], [[1.0], ["a"]], [[1.0], None], [[np.nan], [1.0]], [[[1.0]], [1.0]]],
    "period of a drive": [None, *(value for value in NUMBER if not callable(value)), 0, -1.0, 1e-300, 5e-324],  # or a function
    "state of any length": [
        value
        for value in NOT_NUMBERS
        if value is not LONG and value is not NONE_AT_ALL and not (isinstance(value, (list, tuple)) and not value)
    ],
}
# Functions that other tests give bad inputs, or that have no arguments.
ELSEWHERE = {"circuits", "solvers", "analysis", "io", "laws", "relations", "schemes", "status",
             "examples", "joints", "shapes", "rotations", "plotting", "SimulationError", "SimulationInterrupted", "energy",
    "resume", "read_system", "read_trajectory", "stream", "to_vtkhdf", "view", "complementarity", "equality", "zero_order_hold",
             "higher_order_sweeping"}  # fmt: skip


def what_is_wrong(function, arguments, argument):
    """Why a call with a bad argument is not refused as it should be; None where it is."""
    try:
        result = function(**arguments)
    except (TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        ours = Path(last.filename).is_relative_to(Path(nsds.__file__).parents[1]) and (last.line or "").startswith("raise")
        if not ours:
            return f"{type(error).__name__} from {last.filename}:{last.lineno}: {error}"
        is_named = any(name in str(error) for name in (*arguments, *argument.split(), "record", "scheme", "solver"))
        return None if is_named else f"the message does not name {argument}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"accepted, {str(result)[:60]!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_bad_is_refused_by_name(name):
    function, good, kinds = CALLS[name]
    wrong = []
    for argument, kind in kinds.items():
        for value in REFUSED[kind]:
            why = what_is_wrong(function, good() | {argument: value}, argument)
            wrong += [f"{argument}={nsds._checks.shortened(value)}: {why}"] if why else []
    plt.close("all")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(8))
def test_two_arguments_that_are_bad_are_refused(seed):
    """One of them by name, whatever the other is: no check of one argument relies on another that is not checked yet."""
    rng, names, wrong = np.random.default_rng(seed), sorted(CALLS), []
    for _ in range(60):
        function, good, kinds = CALLS[names[rng.integers(len(names))]]
        if len(kinds) < 2:
            continue
        chosen = rng.choice(sorted(kinds), 2, replace=False).tolist()
        values = {name: REFUSED[kinds[name]][rng.integers(len(REFUSED[kinds[name]]))] for name in chosen}
        why = what_is_wrong(function, good() | values, " ".join(chosen))
        wrong += [f"{function.__name__}({', '.join(f'{a}={nsds._checks.shortened(v)}' for a, v in values.items())}): {why}"] if why else []
    plt.close("all")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name", [name for name, (call, *_) in CALLS.items() if {"system", "trajectory"} <= {*inspect.signature(call).parameters}]
)
def test_a_trajectory_before_its_system_is_refused(name):
    """The record comes first in every function that takes both."""
    function, good, _ = CALLS[name]
    swapped = good()
    swapped["system"], swapped["trajectory"] = swapped["trajectory"], swapped["system"]
    assert list(swapped)[:2] == ["system", "trajectory"]
    with pytest.raises(TypeError, match="comes first"):
        function(**swapped)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"consistent", "plotting.animate", "plotting.animate_plane"}))
def test_what_is_good_is_taken(name):
    function, good, _ = CALLS[name]
    function(**good())
    plt.close("all")


def test_the_table_has_all_public_functions_and_their_arguments():
    known = {name.partition(",")[0] for name in CALLS}
    assert set(nsds.__all__) - ELSEWHERE <= known, set(nsds.__all__) - ELSEWHERE - known
    for module in (nsds.circuits, nsds.joints, nsds.shapes, nsds.plotting):
        prefix = module.__name__.rpartition(".")[2]
        public = {f"{prefix}.{name}" for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")}
        own = {name for name in public if vars(module)[name.partition(".")[2]].__module__ in (module.__name__, "nsds.pictures.scenes")}
        missing = own - known - NOT_TABLED
        assert not missing, missing


NOT_TABLED = {"joints.fixed_joint", "shapes.require_shape", "plotting.require_matplotlib", "plotting.legend_beside"}


@pytest.mark.parametrize("name", [name for name, value in vars(nsds.rotations).items() if hasattr(value, "sizes")])
def test_rotations_refuse_arrays_of_other_lengths(name):
    """They are kernels, which would read and write beyond a short array."""
    kernel = getattr(nsds.rotations, name)
    good = [np.eye(3).reshape(-1) if size == 9 else np.eye(size)[0] for size in kernel.sizes.values()]
    kernel(*good)
    for i, argument in enumerate(kernel.sizes):
        for value in [
            good[i][:-1],
            np.append(good[i], 0.0),
            good[i].astype(np.float32),
            np.repeat(good[i], 2)[::2],
            list(good[i]),
            None,
            "p",
            1.0,
        ]:
            with pytest.raises(TypeError, match=f"{name}: {argument} must be"):
                kernel(*good[:i], value, *good[i + 1 :])
    fixed = good[-1].copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(*good[:-1], fixed)
    with pytest.raises(TypeError, match=name):
        kernel(*good, good[0])
    with pytest.raises(TypeError, match=name):
        kernel(*good[1:])
