"""What is described is what is there, for systems of all kinds, ensembles and rows."""

import pickle

import numpy as np
import pytest

import nsds
from nsds.examples import EXAMPLES
from nsds.results.description import result_dtype


def cells(described):
    """{(part, field): value}, whose part stands in the first of its rows."""
    result, part = {}, ""
    for name, _, field, value in described.rows:
        part = name or part
        result[part, field] = value
    return result


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_fits_a_screen(name):
    system = EXAMPLES[name].build()
    text = repr(nsds.describe(system))
    assert len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) < 220
    assert all(part in text for part in system.dtype.names[7:])


def test_values_are_those_of_the_record():
    system = nsds.examples.cam_follower(rpm=358.0, e=0.25)
    found = cells(nsds.describe(system))
    assert found["follower", "M"] == "1.221"
    assert found["follower", "fext"] == "cam_force(t, z, out)"
    assert found["follower", "z"] == "[358 1.221 0 1430.8]"
    assert found["contact", "e"] == "0.25"
    assert ("contact", "lambda") not in found


def test_an_ensemble_shows_what_differs():
    members = np.repeat(nsds.examples.cam_follower(), 3)
    members["contact"]["e"] = [0.5, 0.75, 1.0]
    described = nsds.describe(members)
    assert described.title == "ensemble of 3 systems, each of 2 parts, Lagrangian, at t = 0 s"
    assert cells(described)["contact", "e"] == "0.5 to 1"
    assert cells(described)["follower", "q"] == "0.1"


def test_rows_are_described_by_their_ranges():
    system = nsds.examples.bouncing_ball()
    rows = nsds.simulate(system, t_end=1.0, h=1e-2)
    described = nsds.describe(rows)
    assert described.title == "trajectory of 101 rows, t = 0 to 1 s, none failed"
    assert ("floor", "y", "1", f"{rows['floor']['y'].min():.6g}", f"{rows['floor']['y'].max():.6g}") in described.rows
    rows["status"][7] = 1
    assert "1 failed, the first: iteration limit" in nsds.describe(rows).title
    assert nsds.describe(rows[3]).title.startswith("row, t = 0.03 s")


def test_in_a_notebook_it_is_a_table_without_markup_of_its_own():
    page = nsds.describe(nsds.examples.bouncing_ball())._repr_html_()
    assert page.count("<tr>") == 7
    assert page.count("<td") == 4 * 6


def test_text_of_a_record_is_no_markup():
    circuit = nsds.circuit([("V<b>", "a", 0, 1.0), ("R1", "a", 0, 1.0)])
    assert "<b>" not in nsds.describe(circuit)._repr_html_()


@pytest.mark.parametrize(
    ("what", "title", "cell"),
    [
        (nsds.moreau_jean(theta=0.75), "scheme moreau_jean", ("theta", "0.75")),
        (nsds.solvers.solver("lemke", tol=1e-8), "method lemke", ("tol", "1e-08")),
        (nsds.newton_impact_friction(e_n=0.5, mu=0.3), "newton_impact_friction", ("mu", "0.3")),
        (nsds.shapes.box([1.0, 2.0, 3.0]), "box", ("size", "[1 2 3]")),
        (nsds.joints.hinge([0, 0, 0], [0, 1, 0]), "joint", ("axis", "[0 1 0]")),
        (nsds.lagrangian_linear(M=[2.0], q=[1.0], v=[0.0]), "lagrangian_linear", ("M", "2")),
        (nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(0.5), on="m"), "interaction", ("law.e", "0.5")),
        (nsds.solvers.solve_lcp(np.eye(2), np.array([-1.0, 1.0])), "Solution", ("z", "[1 0]")),
        (nsds.orbit(nsds.iterated_map(lambda x, p, out: out.fill(0.5 * x[0]), x=[0.1])), "result", ("residual", "0")),
    ],
)
def test_parts_schemes_and_results_are_described(what, title, cell):
    described = nsds.describe(what)
    assert described.title == title
    assert cell in described.rows
    assert all(name in repr(described) for name in cell)


def test_results_of_analysis_print_their_names():
    """A single result, and a row of a table; the dtype equals the plain one, and copies and pickles print alike."""
    rows = np.zeros(2, result_dtype([("x", "<f8", (2,)), ("status", "<i8")]))
    assert rows.dtype == np.dtype([("x", "<f8", (2,)), ("status", "<i8")])
    assert str(rows[0]) == repr(pickle.loads(pickle.dumps(rows[0]))) == "result\nfield   value\nx       [0 0]\nstatus  0"
    oscillator = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], K=[1.0], C=[0.5], q=[0.1], v=[0.0]))
    for found in (
        nsds.orbit(oscillator, period=1.0),
        nsds.floquet(oscillator, period=1.0),
        nsds.lyapunov(oscillator, period=1.0, n_periods=20),
        nsds.sensitivity(oscillator, t_end=1.0),
    ):
        assert str(found).startswith("result\nfield")
        assert all(f"\n{name} " in str(found) for name in found.dtype.names)
