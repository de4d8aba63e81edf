"""Members side by side: the bits of an ensemble are those of its members one by one, whatever the tiles, threads and ways of recording."""

import os

import numpy as np
import pytest

import nsds
from nsds.schemes.run import cores, simulation, tiles

H = 5e-3
EULER = nsds.euler_moreau


@pytest.fixture(autouse=True)
def of_short_runs(monkeypatch):
    monkeypatch.setattr(tiles, "WORTH", 0)
    monkeypatch.setattr(tiles, "WORTH_COMPILING", 0)


def balls(n):
    """Bouncing balls, some of which come to rest."""
    systems = np.repeat(nsds.examples.bouncing_ball(), n)
    systems["floor"]["e"] = np.linspace(0.0, 1.0, n)
    systems["ball"]["q"][:, 0] = np.linspace(0.0, 1.0, n)
    return systems


def oscillators(n):
    """Two masses on springs and dampers between three stops, in a box so small that two stops are often closed at once."""
    rng, relation = np.random.default_rng(n), nsds.lagrangian_linear_relation
    systems = []
    for _ in range(n):
        A, B = rng.normal(size=(2, 2, 2))
        oscillator = nsds.lagrangian_linear(
            M=A @ A.T + np.eye(2), K=50 * np.eye(2), C=0.1 * (B @ B.T), fext=rng.normal(size=2), q=rng.normal(size=2), v=rng.normal(size=2)
        )
        free = nsds.lagrangian_linear(M=2.0, C=[0.3], K=[4.0], q=[0.5], v=[-1.0])
        stop = nsds.newton_impact(rng.uniform(0.0, 1.0))
        systems.append(
            nsds.system(
                pair=oscillator,
                free=free,
                stops=nsds.interaction(relation(H=np.eye(2), b=rng.uniform(0.0, 0.2, 2)), stop, on="pair"),
                between=nsds.interaction(relation(H=[[-1.0, 0.5, 1.0]], b=[0.1]), stop, on=("pair", "free")),
            )
        )
    return np.stack(systems)


def cams(n):
    """A user's force, another speed for each."""
    systems = np.repeat(nsds.examples.cam_follower(), n)
    systems["follower"]["z"][:, 0] = np.linspace(300, 1500, n)
    return systems


def bridges(n):
    """Diodes that switch, now one member, now another."""
    systems = np.repeat(nsds.examples.diode_bridge(), n)
    systems["plant"]["x"] *= np.linspace(-2.0, 2.0, n)[:, None]
    return systems


def relays(n):
    """Two states that slide on two relays in the end."""
    system = nsds.linear_complementarity_system(np.zeros((2, 2)), 2 * np.eye(2), np.eye(2), x=[1.0, -1.0], law=nsds.relay())
    systems = np.repeat(system, n)
    systems["plant"]["x"] *= np.linspace(0.1, 2.0, n)[:, None]
    return systems


CASES = {
    "balls": (balls, H, 400, None),
    "oscillators": (oscillators, 1e-2, 300, None),
    "oscillators, theta = 1": (oscillators, 1e-2, 100, nsds.moreau_jean(theta=1.0, gamma=1.0)),
    "cams": (cams, 1e-4, 400, None),
    "bridges": (bridges, 1e-6, 300, None),
    "bridges, trapezoidal": (bridges, 1e-6, 300, EULER(theta=0.5)),
    "bridges, weighted": (bridges, 1e-6, 100, EULER(theta=0.7, gamma=0.6)),
    "bridges, exact": (bridges, 1e-6, 100, nsds.zero_order_hold()),
    "relays": (relays, 1e-2, 200, EULER(theta=0.5)),
}
PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"


def counted(monkeypatch):
    """A list that collects how many steps the tiles took, and how many some member took alone."""
    found, tiles_of = [], simulation.tiles_of

    def counting(run, n_steps, march):
        advance = tiles_of(run, n_steps, march)
        found.append(advance is not None)
        return advance

    monkeypatch.setattr(simulation, "tiles_of", counting)
    return found


def one_by_one(systems, **how):
    return np.stack([nsds.simulate(system, progress=False, **how) for system in systems])


@pytest.mark.parametrize("name", CASES)
def test_an_ensemble_has_the_bits_of_its_members(name, monkeypatch):
    make, h, n_steps, scheme = CASES[name]
    n, n_steps = (9, 25) if PLAIN else (27, n_steps)
    systems, found = make(n), counted(monkeypatch)
    with cores.on_one_core():
        rows = nsds.simulate(systems, t_end=n_steps * h, h=h, scheme=scheme, progress=False)
    assert any(found)
    assert rows.tobytes() == one_by_one(systems, t_end=n_steps * h, h=h, scheme=scheme).tobytes()


@pytest.mark.parametrize(("name", "width"), [("balls", 4), ("oscillators", 2), ("bridges", 4)] if PLAIN else [("balls", 4)])
def test_the_size_of_tiles_does_not_matter(name, width, monkeypatch):
    make, h, n_steps, scheme = CASES[name]
    n, n_steps = (9, 25) if PLAIN else (27, n_steps)
    rows = nsds.simulate(make(n), t_end=n_steps * h, h=h, scheme=scheme)
    monkeypatch.setattr(tiles, "WIDTH", width)
    found = counted(monkeypatch)
    assert nsds.simulate(make(n), t_end=n_steps * h, h=h, scheme=scheme).tobytes() == rows.tobytes()
    assert any(found)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_the_number_of_cores_does_not_matter(cores, monkeypatch):
    systems, how = balls(30), {"t_end": 20 * H, "h": H}
    expected = one_by_one(systems, **how)
    monkeypatch.setattr(simulation, "cores", lambda: cores)
    assert nsds.simulate(systems, **how).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["balls", "bridges"])
def test_the_way_of_recording_does_not_matter(name, tmp_path):
    make, h, n_steps, scheme = CASES[name]
    n_steps = 25 if PLAIN else n_steps
    systems, how = make(19), {"t_end": n_steps * h, "h": h, "scheme": scheme}
    every, part = nsds.simulate(systems, **how), systems.dtype.names[-1]
    nsds.stream(systems, tmp_path / "rows.h5", **how)
    assert nsds.read_trajectory(tmp_path / "rows.h5").tobytes() == every.tobytes()
    assert nsds.simulate(systems, out=np.empty_like(every), **how).tobytes() == every.tobytes()
    assert (nsds.simulate(systems, fields=[part], **how)[part] == every[part]).all()
    assert (nsds.simulate(systems, t_eval=np.arange(1, n_steps, 5) * h, **how)[part][:, 1:-1] == every[part][:, 1:n_steps:5]).all()
    some = nsds.simulate(systems, save_every=7, **how)
    assert some.tobytes() == one_by_one(systems, save_every=7, **how).tobytes()
    assert some["n_iter"].sum() == every["n_iter"].sum()


def test_the_state_at_the_end_is_that_of_the_members_alone():
    systems, half = balls(16), {"t_end": 10 * H, "h": H}
    rows = nsds.simulate(systems, t_end=20 * H, h=H)
    ends = [nsds.restart(systems, nsds.simulate(systems, **half)[:, -1]), None]
    ends[1] = np.stack([nsds.restart(system, nsds.simulate(system, **half)[-1]) for system in systems])
    assert ends[0].tobytes() == ends[1].tobytes()
    assert (nsds.simulate(ends[0], t_end=20 * H, h=H)["ball"]["q"][:, -1] == rows["ball"]["q"][:, -1]).all()


@pytest.mark.parametrize("on_failure", ["continue", "raise"])
def test_a_member_that_fails_does_so_as_if_alone(on_failure):
    systems = balls(11)
    systems["ball"]["v"][4, 1] = 1e308
    systems["ball"]["q"][4, 1] = 1.7e308
    how = {"t_end": 30.0, "h": 1.0, "on_failure": on_failure}
    if on_failure == "raise":
        with pytest.raises(nsds.SimulationError) as caught:
            nsds.simulate(systems, **how)
        with pytest.raises(nsds.SimulationError) as alone:
            nsds.simulate(systems[4], **how)
        assert (caught.value.member, caught.value.step, caught.value.status) == (4, alone.value.step, alone.value.status)
    else:
        assert nsds.simulate(systems, **how).tobytes() == one_by_one(systems, **how).tobytes()


def test_members_that_end_by_a_condition_end_where_they_would_alone():
    systems, how = balls(17), {"t_end": 100 * H, "h": H, "until": "ball.v[0] > 0.5"}
    rows = nsds.simulate(systems, **how)
    for system, row in zip(systems, rows, strict=True):
        alone = nsds.simulate(system, **how)
        assert row[row["status"] != nsds.status.NOT_COMPUTED].tobytes() == alone.tobytes()


def test_what_tiles_do_not_know_is_left_to_the_time_loop(monkeypatch):
    found = counted(monkeypatch)
    systems = np.repeat(nsds.examples.double_pendulum(), 9)
    nsds.simulate(systems, t_end=5e-3, h=1e-3)
    ball = nsds.lagrangian_linear(M=np.eye(3), q=[0.0, 0, 0], v=[1.0, 0, 0], fext=[0, 0, -9.81])
    friction = nsds.interaction(
        nsds.lagrangian_linear_relation(H=np.eye(3)[[2, 0, 1]]), nsds.newton_impact_friction(0.0, 0.3, dimension=3), on="ball"
    )
    nsds.simulate(np.repeat(nsds.system(ball=ball, floor=friction), 9), t_end=5 * H, h=H)
    assert not any(found)
