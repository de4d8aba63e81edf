"""Paths of equilibria with contacts against closed forms, complementarity problems and the laws of friction."""

import math

import numpy as np
import pytest

import nsds
from tests.analysis.models import buck

HEIGHT, FOOT = 0.2, math.sqrt(1.04)  # of the truss: its apex, and the length of its bars where they are free


def strut(t, q, v, z, out):
    """A shallow truss of two bars of stiffness z[0] and half span z[1], under the load z[2] z[0] at the height q z[1]."""
    height = q[0] / z[1]
    length = math.sqrt(1.0 + height**2)
    out[0] = z[0] * ((length - math.sqrt(1.04)) * height / length + z[2])


def load_at(height):
    """Load at which a truss of stiffness and half span 1 rests at this height."""
    return (FOOT / math.sqrt(1.0 + height**2) - 1.0) * height


def truss(stop, load=-0.005, stiffness=100.0, span=1.0):
    """With a stop below at -stop."""
    return nsds.system(
        truss=nsds.lagrangian([1.0], fint=strut, q=[HEIGHT * span], v=[0.0], z=[stiffness, span, load]),
        stop=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], b=[stop * span]), nsds.newton_impact(0.0), on="truss"),
    )


@pytest.mark.parametrize(("stiffness", "span"), [(100.0, 1.0), (1e-6, 1e6), (1e6, 1e-6)])
def test_a_truss_snaps_onto_a_stop(stiffness, span):
    """It folds where ``L^3 = L_0``, and turns on the stop, which carries what the bars do not."""
    path = nsds.continue_equilibrium(truss(0.1, stiffness=stiffness, span=span), parameter="truss.z[2]", until=0.01)
    assert path["kind"][path["kind"] != ""].tolist() == ["fold", "closes", "until"]
    fold, closes = path[path["kind"] == "fold"][0], path[path["kind"] == "closes"][0]
    height = math.sqrt(FOOT ** (2 / 3) - 1.0)
    assert fold["parameter"] == pytest.approx(load_at(height), rel=1e-11)
    assert fold["q"][0] == pytest.approx(height * span, rel=1e-6)  # as the root of what is square
    assert closes["parameter"] == pytest.approx(load_at(-0.1), rel=1e-11)
    assert (str(closes["contact"]), bool(closes["turns"])) == ("stop", True)
    assert path["lambda"][-1, 0] == pytest.approx(stiffness * (0.01 - load_at(-0.1)), rel=1e-11)
    np.testing.assert_allclose(
        [load_at(q / span) for q in path["q"][:, 0]], path["parameter"] - path["lambda"][:, 0] / stiffness, atol=1e-12
    )
    at = np.flatnonzero(path["kind"] == "fold")[0]
    assert (path["stiffness"][:at] > 0.0).all()
    assert (path["stiffness"][at + 1 : np.flatnonzero(path["kind"] == "closes")[0]] < 0.0).all()
    assert np.isinf(path["stiffness"][-1])


def test_a_stop_that_is_touched_in_passing_is_left_where_it_was_met():
    """Pressed down, and then lifted by a load that is a parabola of the parameter: the contact closes, and opens at the same load."""

    def lifted(t, q, v, z, out):
        out[0] = 2.0 * q[0] + z[0] * (4.0 - z[0])

    system = nsds.system(
        mass=nsds.lagrangian([1.0], fint=lifted, q=[0.0], v=[0.0], z=[0.0]),
        floor=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], b=[0.5]), nsds.newton_impact(0.3), on="mass"),
    )
    path = nsds.continue_equilibrium(system, parameter="mass.z[0]", until=4.0)
    special = path[path["kind"] != ""]
    assert special["kind"].tolist() == ["closes", "opens", "until"]
    np.testing.assert_allclose(special["parameter"][:2], 2.0 + np.array([-1, 1]) * math.sqrt(3.0), atol=1e-12)
    assert not special["turns"].any()
    assert path["lambda"].max() == pytest.approx(3.0, abs=0.1)


def test_friction_slips_sticks_and_slips_back():
    """``K q = f - s limit`` where it slips up to the largest load; it sticks until the load has fallen by twice the limit."""
    K, limit = 50.0, 3.0

    def drawn(t, q, v, z, out):
        out[0] = 50.0 * q[0] - 2.5 * z[0] * (4.0 - z[0])

    system = nsds.system(
        mass=nsds.lagrangian([1.0], fint=drawn, q=[0.0], v=[0.0], z=[0.0]),
        drag=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(limit), on="mass"),
    )
    path = nsds.continue_equilibrium(system, parameter="mass.z[0]", until=4.0)
    special = path[path["kind"] != ""]
    assert special["kind"].tolist() == ["slips", "sticks", "slips", "until"]
    load = lambda z: 2.5 * z * (4.0 - z)  # noqa: E731
    np.testing.assert_allclose(load(special["parameter"][[0, 2]]), [limit, load(2.0) - 2 * limit], atol=1e-10)
    assert special["parameter"][1] == pytest.approx(2.0, abs=1e-9)
    np.testing.assert_allclose(special["q"][:, 0], np.array([0.0, 7.0, 7.0, 3.0]) / K, atol=1e-10)
    np.testing.assert_allclose(special["lambda"][:, 0], [-limit, -limit, limit, limit], atol=1e-9)


def test_a_block_slips_where_it_is_drawn_harder_than_friction_holds():
    """By mu times its weight, which a parameter may be, too."""
    block = nsds.system(
        block=nsds.lagrangian_linear(M=np.eye(2), K=np.diag([40.0, 0.0]), fext=[2.0, -10.0], q=[0.0, 0.0], v=[0.0, 0.0]),
        floor=nsds.interaction(
            nsds.lagrangian_linear_relation(H=[[0.0, 1.0], [1.0, 0.0]]), nsds.newton_impact_friction(e_n=0.0, mu=0.3), on="block"
        ),
    )
    for parameter, until, wanted in (("block.fext[0]", 9.0, 3.0), ("block.fext[1]", -4.0, -2 / 0.3), ("floor.mu", 0.1, 0.2)):
        path = nsds.continue_equilibrium(block, parameter=parameter, until=until)
        (slips,) = path[path["kind"] == "slips"]
        assert slips["parameter"] == pytest.approx(wanted, abs=1e-11)
        assert path["kind"][-1] == "until"


@pytest.mark.parametrize("seed", range(6))
def test_paths_end_at_solutions_of_complementarity_problems(seed):
    """Of convex problems, which have one; no gap, and no force, is below 0 on the way, nor are both above."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 7), rng.integers(2, 6)
    root, H, load, b = rng.normal(size=(n, n)), rng.normal(size=(m, n)), rng.normal(size=n), rng.uniform(0.05, 1.0, m)
    K, k = root @ root.T + 0.5 * np.eye(n), np.argmax(abs(load))
    system = nsds.system(
        body=nsds.lagrangian_linear(M=np.eye(n), K=K, fext=load, q=np.zeros(n), v=np.zeros(n)),
        walls=nsds.interaction(nsds.lagrangian_linear_relation(H=H, b=b), nsds.newton_impact(0.0), on="body"),
    )
    path = nsds.continue_equilibrium(system, parameter=f"body.fext[{k}]", until=-20.0 * load[k])
    y, lam = path["y"], path["lambda"]
    assert path["kind"][-1] == "until"
    assert min(y.min(), lam.min()) > -1e-9
    assert abs(y * lam).max() < 1e-9
    load[k] *= -20.0
    wanted = nsds.solvers.solve_lcp(H @ np.linalg.solve(K, H.T), H @ np.linalg.solve(K, load) + b).z
    np.testing.assert_allclose(lam[-1], wanted, atol=1e-9 * (1.0 + wanted.max()))
    closed = (lam > 0).sum(axis=1)
    assert np.ptp(closed) > 0


@pytest.mark.parametrize("seed", range(5))
def test_friction_acts_against_slip_along_paths(seed):
    """In its cone, at its limit where something slips, and doing work on nothing."""
    rng = np.random.default_rng(1000 + seed)
    n, m, mu = int(rng.integers(2, 5)), int(rng.integers(1, 4)), rng.uniform(0.05, 0.6)
    root, H, load = rng.normal(size=(n, n)), rng.normal(size=(m, 2, n)), rng.normal(size=n)
    walls = {
        f"wall_{i}": nsds.interaction(
            nsds.lagrangian_linear_relation(H=H[i], b=[rng.uniform(0, 0.5), 0.0]), nsds.newton_impact_friction(e_n=0.0, mu=mu), on="body"
        )
        for i in range(m)
    }
    body = nsds.lagrangian_linear(M=np.eye(n), K=root @ root.T + 0.5 * np.eye(n), fext=load, q=np.zeros(n), v=np.zeros(n))
    path = nsds.continue_equilibrium(nsds.system(body=body, **walls), parameter="body.fext[0]", until=-8.0 * load[0])
    y, lam = path["y"].reshape(-1, m, 2), path["lambda"].reshape(-1, m, 2)
    left = mu * lam[..., 0] - abs(lam[..., 1])
    assert path["kind"][-1] == "until"
    assert min(y[..., 0].min(), lam[..., 0].min(), left.min()) > -1e-9
    assert abs(y[..., 0] * lam[..., 0]).max() < 1e-9
    way, pressed = np.diff(y[..., 1], axis=0), (lam[1:, :, 0] > 1e-7) & (lam[:-1, :, 0] > 1e-7)
    assert (way * lam[1:, :, 1]).max() < 1e-9
    assert (np.maximum(left[1:], left[:-1])[pressed & (abs(way) > 1e-9)] < 1e-8).all()


def test_a_load_that_nothing_holds_ends_the_path():
    """A mass without a spring is held by friction until the load is its limit."""
    system = nsds.system(
        mass=nsds.lagrangian_linear(M=[[1.0]], fext=[0.5], q=[0.0], v=[0.0]),
        drag=nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.dry_friction(2.0), on="mass"),
    )
    path = nsds.continue_equilibrium(system, parameter="mass.fext[0]", until=5.0, max_points=40)
    assert path["parameter"].max() == pytest.approx(2.0, abs=1e-12)
    assert "until" not in path["kind"]


def test_what_is_refused_is_named():
    held = truss(0.1)
    with pytest.raises(ValueError, match="until must differ from the value"):
        nsds.continue_equilibrium(held, parameter="truss.z[2]", until=-0.005)
    with pytest.raises(ValueError, match=r"'truss' has .*z"):
        nsds.continue_equilibrium(held, parameter="truss.load", until=1.0)
    with pytest.raises(ValueError, match=r"stop\.e must be in \[0, 1\], got 2"):
        nsds.continue_equilibrium(held, parameter="stop.e", until=2.0)
    with pytest.raises(ValueError, match="expected a record of Lagrangian systems"):
        nsds.continue_equilibrium(buck(15.0, 11.9, 0.56), parameter="plant.x[0]", until=1.0)
    floor = nsds.interaction(
        nsds.lagrangian_linear_relation(H=np.eye(3)[[2, 0, 1]]), nsds.newton_impact_friction(e_n=0.0, mu=0.3, dimension=3), on="mass"
    )
    mass = nsds.lagrangian_linear(M=np.eye(3), K=np.eye(3), fext=[0.0, 0.0, -1.0], q=np.zeros(3), v=np.zeros(3))
    with pytest.raises(ValueError, match="'floor': friction in space is not treated"):
        nsds.continue_equilibrium(nsds.system(mass=mass, floor=floor), parameter="mass.fext[2]", until=-2.0)
