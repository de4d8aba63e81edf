"""Circuits and mechanisms in one record: a charge is a coordinate, its current a velocity, an inductance a mass."""

import numpy as np
import pytest

import nsds
from tests.paths import MACHINES

STOP = 12.0  # rad


def reference(name):
    path = MACHINES / name / "ref.npz"
    if not path.is_file():
        pytest.skip("the collection of machines is not part of the package")
    with np.load(path) as stored:
        return dict(stored)


def chopped(t, z, out):
    """12 V in the first 0.4 of each 10 ms; z[0] is half a step, so that a step has the voltage of its middle."""
    within = (t - z[0]) % 0.01
    out[0] = 12.0 if within < 0.004 else 0.0


def dc_motor(h):
    """Coordinates (charge, angle): ``L i' + R i + K omega = u``, a diode, ``J omega' = K i - ...`` with dry friction and a stop."""
    L, R, K, J = 5e-3, 1.2, 0.08, 2e-4
    row = nsds.lagrangian_linear_relation
    return nsds.system(
        motor=nsds.lagrangian_linear(np.diag([L, J]), C=[[R, K], [-K, 1e-4]], fext=chopped, z=[h / 2], q=[0, 0], v=[0, 0]),
        diode=nsds.interaction(row([[1, 0]]), nsds.relay(0.0, np.inf), on="motor"),
        friction=nsds.interaction(row([[0, 1]]), nsds.dry_friction(0.02), on="motor"),
        stop=nsds.interaction(row([[0, -1]], b=[STOP]), nsds.newton_impact(0.0), on="motor"),
    )


def test_a_motor_on_a_chopped_supply_runs_into_a_stop():
    """Exact exponentials (dc_motor_freewheel_jam). With gamma = 0 the stop acts where it is reached, and no way to it is left."""
    h = 1e-5
    rows = nsds.simulate(dc_motor(h), t_end=0.4, h=h, scheme=nsds.moreau_jean(theta=1.0, gamma=0.0))
    assert (rows["status"] == 0).all()
    i, omega = rows["motor"]["v"].T
    assert i.min() > -1e-12
    hit = rows["stop"]["lambda"] > 1e-3
    assert rows["t"][hit][0] == pytest.approx(0.19837366071849, abs=10 * h)
    assert rows["stop"]["lambda"][hit][0] == pytest.approx(0.017920587742, rel=2e-3)
    assert abs(omega[rows["t"] > 0.199]).max() < 1e-12
    assert omega[rows["t"] < 0.198][-1] == pytest.approx(89.6, rel=1e-2)
    assert i[-1] == pytest.approx(1.60796978145, abs=5e-3)


def test_a_motor_follows_its_reference_to_first_order():
    r, far = reference("dc_motor_freewheel_jam"), []
    for h in (4e-5, 2e-5):
        rows = nsds.simulate(dc_motor(h), t_end=0.19, h=h, scheme=nsds.moreau_jean(theta=1.0), save_every=round(2e-4 / h))
        n = len(rows)
        far.append(max(abs(rows["motor"]["q"][:, 1] - r["theta"][:n]).max() / STOP, abs(rows["motor"]["v"][:, 0] - r["i"][:n]).max() / 7))
    assert far[1] < 2e-3
    assert far[0] / far[1] == pytest.approx(2.0, abs=0.5)


def inductance(x):
    return 5e-3 + 45e-3 * 1e-3 / (1e-3 + x)


def mass(q, z, out):
    out[0, 0], out[0, 1], out[1, 0], out[1, 1] = 5e-3 + 45e-3 * 1e-3 / (1e-3 + q[1]), 0.0, 0.0, 0.05


def induction(q, v, z, out):
    slope = -45e-3 * 1e-3 / (1e-3 + q[1]) ** 2
    out[0], out[1] = slope * v[1] * v[0], -slope * v[0] * v[0] / 2


def springs(t, q, v, z, out):
    voltage = 12.0 if t - z[0] < 0.15 else 0.0
    out[0], out[1] = 8.0 * v[0] - voltage, -400.0 * (4e-3 - q[1]) - 0.5 + 0.2 * v[1]


def solenoid(h):
    """Coordinates (charge, gap): ``(L(x) i)' + 8 i = u``, ``m x'' - i^2 L'/2 = ...`` between two stops."""
    row = nsds.lagrangian_linear_relation
    return nsds.system(
        core=nsds.lagrangian(mass, fgyr=induction, fint=springs, q=[0, 4e-3], v=[0, 0], z=[h / 2]),
        closed=nsds.interaction(row([[0, 1]]), nsds.newton_impact(0.0), on="core"),
        open=nsds.interaction(row([[0, -1]], b=[4e-3]), nsds.newton_impact(0.4), on="core"),
    )


def test_a_solenoid_closes_and_opens():
    """Times and speeds of its events: two programs, to 5e-12 (solenoid_core_stops)."""
    h = 1e-5
    rows = nsds.simulate(solenoid(h), t_end=0.2, h=h)
    assert (rows["status"] == 0).all()
    t, (i, v) = rows["t"], rows["core"]["v"].T
    closes = int(np.argmax(rows["closed"]["lambda"] > 1e-3))
    assert t[closes] == pytest.approx(0.0178931959, abs=3 * h)
    assert v[closes - 1] == pytest.approx(-0.7812757164, rel=5e-3)
    leaves = np.flatnonzero((t > 0.15) & (rows["closed"]["lambda"] == 0))[0]
    assert t[leaves] == pytest.approx(0.159945338063, abs=5 * h)
    assert i[leaves] == pytest.approx(0.3055050463, abs=1e-3)
    bumps = t[(t > 0.16) & (rows["open"]["lambda"] > 1e-3)]
    assert bumps[0] == pytest.approx(0.177742850253, abs=5 * h)
