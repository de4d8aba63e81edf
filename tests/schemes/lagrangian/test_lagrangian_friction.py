"""Friction, rolling friction, dry friction and relays of Lagrangian systems: the laws by definition, rigid bodies, machines, scales."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nsds
from nsds.schemes.problem.kinds import kind_of
from tests.schemes.lagrangian.test_friction_under_schemes import valley, valley_by_q
from tests.strategies import examples, generators

relation, friction = nsds.lagrangian_linear_relation, nsds.newton_impact_friction
GRAVITY = 9.81
SIZES = {"plane": 2, "space": 3, "rolling in the plane": 3, "rolling in space": 5}


# ------------------------------------------------------------------------------------------------- laws by definition
def law_of(kind, rng, n):
    """(law, its parameters) of n contacts of one kind."""
    e_n, e_t, mu = rng.uniform(size=n), rng.uniform(-0.5, 1, size=n), rng.uniform(0, 0.5, size=n)
    mu_r = rng.uniform(0, 0.3, size=n) if kind.startswith("rolling") else np.zeros(n)
    dimension = 2 if kind.endswith("plane") else 3
    if kind.startswith("rolling"):
        law = nsds.newton_impact_rolling_friction(e_n, mu, mu_r, e_t, dimension=dimension)
    else:
        law = friction(e_n, mu, e_t, dimension=dimension)
    return law, {"e_n": e_n, "e_t": e_t, "mu": mu, "mu_r": mu_r}


def swing(t, q, v, z, out):
    out[0] = math.sin(q[0])


def random_system(rng, kinds, others, form="reduced"):
    """A system at rest in its gaps that moves towards them: contacts of these kinds, and other laws on rows of their own.

    A pendulum beside it makes the step Newton's iteration where the form is to be that.
    """
    sizes = {"contacts": 0}
    n = 3 + sum(SIZES[kind] for kind in kinds) + len(others)
    L = rng.normal(size=(n, n))
    M, v = L @ L.T / n + np.eye(n), rng.normal(size=n)
    parts, laws = {"body": nsds.lagrangian_linear(M, q=np.zeros(n), v=v)}, {}
    parts |= {"pendulum": nsds.lagrangian([1.0], fint=swing, q=[1.0], v=[0.0])} if form == "newton" else {}
    for i, kind in enumerate([*kinds, *others]):
        m = SIZES.get(kind, 1)
        H = 0.4 * rng.normal(size=(m, n))
        H[np.arange(m), sizes["contacts"] + np.arange(m)] += 1.0
        sizes["contacts"] += m
        if kind in SIZES:
            law, values = law_of(kind, rng, 1)
            H[0] *= -np.sign(H[0] @ v)  # closes
        else:
            bounds = np.sort(rng.uniform(-0.3, 0.3, size=2))
            law, values = {
                "equality": (nsds.equality(), {}), "impact": (nsds.newton_impact(0.4), {"e_n": 0.4}),
                "dry": (nsds.dry_friction(0.2), {"lower": -0.2, "upper": 0.2}),
                "relay": (nsds.relay(*bounds), {"lower": bounds[0], "upper": bounds[1]}),
            }[kind]  # fmt: skip
            if kind == "impact":
                H[0] *= -np.sign(H[0] @ v)
        parts[f"law{i}"] = nsds.interaction(relation(H), law, on="body")
        laws[f"law{i}"] = (kind, H, values)
    return nsds.system(**parts), M, laws


def opposes(lam, w, bound, tol):
    """``|lam| <= bound``, and where w is not zero ``lam = -bound w / |w|``."""
    size, speed = np.linalg.norm(lam), np.linalg.norm(w)
    assert size <= bound + tol
    assert speed * (bound - size) <= tol
    assert np.linalg.norm(speed * lam + bound * w) <= tol


def require_laws(rows, M, laws, h, tol, before_impact=1.0):
    """The definition of every law in the one step of a trajectory, and the balance of momentum.

    before_impact: of the velocities that restitution sees, against those of the start of the step.
    """
    v0, v1 = rows["body"]["v"]
    total = np.zeros(len(v0))
    for name, (kind, H, values) in laws.items():
        lam = np.atleast_1d(rows[name]["lambda"][1])
        total += H.T @ lam
        before, after = H @ v0, H @ v1
        if kind == "equality":
            assert abs(after[0]) <= tol
        elif kind in ("dry", "relay"):
            lower, upper = h * values["lower"], h * values["upper"]
            assert lower - tol <= lam[0] <= upper + tol
            assert abs(lam[0] - np.clip(lam[0] - after[0], lower, upper)) <= tol
        else:
            w_n = after[0] + before_impact * values["e_n"] * before[0]
            assert min(w_n, lam[0]) > -tol
            assert abs(np.minimum(w_n, lam[0])) <= tol
            if kind in SIZES:
                t = 1 if kind.endswith("plane") else 2
                opposes(lam[1 : 1 + t], after[1 : 1 + t] + values["e_t"] * before[1 : 1 + t], values["mu"] * lam[0], tol)
                opposes(lam[1 + t :], after[1 + t :], values["mu_r"] * lam[0], tol)
    np.testing.assert_allclose(M @ (v1 - v0), total, atol=tol)


@pytest.mark.parametrize("form", ["reduced", "global", "newton"])
@examples(40)
@given(
    rng=generators,
    kinds=st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=3),
    others=st.lists(st.sampled_from(["equality", "impact", "dry", "relay"]), max_size=4),
)
def test_laws_of_all_kinds_hold_side_by_side(form, rng, kinds, others):
    system, M, laws = random_system(rng, kinds, others, form)
    h = 0.5
    rows = nsds.simulate(system, t_end=h, h=h, scheme=nsds.moreau_jean(theta=0.0, form="global" if form == "global" else "reduced"))
    assert rows["status"][1] == 0
    require_laws(rows, M, laws, h, 1e-6)


@pytest.mark.parametrize("scheme", [nsds.generalised_alpha(), nsds.schatzman_paoli()], ids=["alpha", "paoli"])
@examples(30)
@given(
    rng=generators,
    kinds=st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=3),
    others=st.lists(st.sampled_from(["impact", "dry", "relay"]), max_size=4),
)
def test_laws_of_all_kinds_hold_under_other_schemes(scheme, rng, kinds, others):
    """In positions a step reverses ``q_k - q_{k-1}`` from ``y = 0``: as ``y_{k-1}`` is not negative, v_k counts with the other sign."""
    system, M, laws = random_system(rng, kinds, others)
    rows = nsds.simulate(system, t_end=0.5, h=0.5, scheme=scheme, solver=nsds.solvers.solver(tol=1e-10))
    require_laws(rows, M, laws, 0.5, 1e-6, before_impact=-1.0 if scheme["scheme"] == b"schatzman_paoli" else 1.0)


@examples(20)
@given(rng=generators, others=st.lists(st.sampled_from(["equality", "impact", "dry", "relay"]), min_size=1, max_size=5))
def test_bounded_forces_without_friction_are_a_problem_with_bounds(rng, others):
    system, M, laws = random_system(rng, [], others)
    assert kind_of(system) == "relay"
    rows = nsds.simulate(system, t_end=0.5, h=0.5, scheme=nsds.moreau_jean(theta=0.0))
    assert rows["status"][1] == 0
    require_laws(rows, M, laws, 0.5, 1e-8)


@pytest.mark.parametrize("kind", SIZES)
@examples(15)
@given(rng=generators)
def test_friction_dissipates_and_fremonds_law_at_every_restitution(kind, rng):
    system, M, _ = random_system(rng, [kind, kind], ["equality", "dry"])
    for name in ("law0", "law1"):
        system[name]["e_n"], system[name]["e_t"] = 0.0, 0.0
    laws = [system] if kind.startswith("rolling") else [system, system.copy()]
    for name in ("law0", "law1"):
        laws[-1][name]["e_n"], laws[-1][name]["e_t"] = (0.0, 0.0) if len(laws) == 1 else (rng.uniform(), 1.0)
    for one in laws:
        one["law2"]["H"] *= 0.0  # an equality takes energy with a jump of its own
        v0, v1 = nsds.simulate(one, t_end=0.5, h=0.5, scheme=nsds.moreau_jean(theta=0.0))["body"]["v"]
        assert v1 @ M @ v1 <= v0 @ M @ v0 + 1e-9


def thrown_bead(seed, law, pre_impact):
    """Largest gain of kinetic energy in a step of a bead that strikes a valley, and the largest change."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(), 3 * rng.normal(size=2)
    normal = np.array([-x, 1.0]) / math.sqrt(1 + x * x)
    M = np.array([1.0, rng.uniform(0.5, 3.0)])
    ground = nsds.interaction(nsds.scleronomous(valley, valley_by_q, m=2), law, on="bead")
    bead = nsds.lagrangian_linear(M, q=[x, x * x / 2] + 0.02 * normal, v=-np.sign(v @ normal) * v)
    scheme = nsds.moreau_jean(q_star=0.5, newton_tol=1e-13, pre_impact=pre_impact)
    rows = nsds.simulate(nsds.system(bead=bead, ground=ground), t_end=0.5, h=0.02, scheme=scheme, solver=nsds.solvers.solver(tol=1e-13))
    change = np.diff(rows["bead"]["v"] ** 2 @ M) / 2
    return change.max(), abs(change).max()


def test_velocities_before_an_impact_by_h_of_q_star_add_no_energy():
    """``(v + v_k)/2 . M (v - v_k) = (H* v + H* v_k)/2 . p``, which is 0 for e = 1 and not positive under Frémond's law."""
    smooth, rough = nsds.fremond_impact(1.0, 0.0), nsds.fremond_impact(0.9, 0.3)
    assert max(thrown_bead(seed, smooth, "start")[0] for seed in range(20)) > 1e-4
    assert max(thrown_bead(seed, smooth, "q_star")[1] for seed in range(20)) < 1e-9
    assert max(thrown_bead(seed, rough, "q_star")[0] for seed in range(20)) < 1e-9
    assert min(thrown_bead(seed, rough, "q_star")[1] for seed in range(20)) > 1e-3


def test_rigid_bodies_see_velocities_before_an_impact_at_the_start():
    ball = nsds.system(ball=nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6)))
    with pytest.raises(ValueError, match="moreau_jean: pre_impact='q_star' is for Lagrangian systems"):
        nsds.simulate(ball, t_end=0.1, h=0.01, scheme=nsds.moreau_jean(pre_impact="q_star"))


# ------------------------------------------------------------------------------------------------- any method
def sphere(law, v=(1.0, 0.5, 0.0, 0.0, 0.0, 3.0), radius=0.1, scale=1.0):
    """A ball on a plane, q = centre and angles about the axes, of which only the derivatives count."""
    H = np.zeros((5, 6))
    H[0, 2] = H[1, 0] = H[2, 1] = H[3, 3] = H[4, 4] = 1.0
    H[1, 4], H[2, 3] = -radius, radius
    M = scale * np.diag([1.0] * 3 + [0.4 * radius**2] * 3)
    rows = 5 if law["law"] == "newton_impact_rolling_friction" else 3
    return nsds.system(
        ball=nsds.lagrangian_linear(M, fext=scale * np.array([0, 0, -GRAVITY, 0, 0, 0]), q=[0, 0, radius, 0, 0, 0], v=v),
        plane=nsds.interaction(relation(H[:rows], b=[-radius, *[0] * (rows - 1)]), law, on="ball"),
    )


LAWS = {
    "lagrangian_plane": lambda: nsds.examples.spinning_disk(e=0.0, height=0.5),
    "lagrangian_space": lambda: sphere(friction(0.0, 0.3, dimension=3)),
    "lagrangian_rolling": lambda: sphere(nsds.newton_impact_rolling_friction(0.0, 0.3, 0.002)),
}


@pytest.mark.parametrize(("kind", "method"), [(kind, method) for kind in LAWS for method in nsds.solvers.methods(kind)])
def test_any_method_for_contacts_can_be_chosen(kind, method):
    system = LAWS[kind]()
    assert kind_of(system) == kind
    expected = nsds.simulate(system, t_end=0.1, h=0.01)
    rows = nsds.simulate(system, t_end=0.1, h=0.01, solver=nsds.solvers.solver(method, tol=1e-9))
    for part in ("ball", "disk"):
        if part in rows.dtype.names:
            np.testing.assert_allclose(rows[part]["v"], expected[part]["v"], atol=1e-6)


def test_methods_for_rows_with_bounds_are_refused_where_there_is_friction():
    with pytest.raises(ValueError, match=r"solver: method must be one of auto, nsgs, .* got 'pgs', which is for lcp, mlcp, relay, avi"):
        nsds.simulate(nsds.examples.spinning_disk(), t_end=0.1, h=0.01, solver="pgs")


# ------------------------------------------------------------------------------------------------- rigid bodies
def under(t, q, z, out):
    """A sphere of radius z[0] over the plane."""
    out[0] = q[2] - z[0]
    out[1], out[2], out[3] = q[0], q[1], q[2] - z[0]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def balls(mu_r, v, h, scheme):
    """Trajectories (x, velocities in inertial axes, impulses) of a ball as a Lagrangian system and as a rigid body."""
    radius, settings = 0.1, {"t_end": 1.0, "h": h, "scheme": scheme, "solver": nsds.solvers.solver(tol=1e-12)}
    law = friction(0.0, 0.3) if mu_r is None else nsds.newton_impact_rolling_friction(0.0, 0.3, mu_r)
    one = nsds.simulate(sphere(friction(0.0, 0.3, dimension=3) if mu_r is None else law, v), **settings)
    rigid = nsds.system(
        ball=nsds.rigid_bodies(1.0, 0.4 * radius**2, q=[0, 0, radius, 1, 0, 0, 0], v=v, fext=[0, 0, -GRAVITY]),
        plane=nsds.interaction(nsds.contact_point(under, z=[radius]), law, on="ball"),
    )
    other = nsds.simulate(rigid, **settings)
    turned = np.array([_rotated(q[3:], w) for q, w in zip(other["ball"]["q"], other["ball"]["v"][:, 3:], strict=True)])
    velocities = np.hstack([other["ball"]["v"][:, :3], turned])
    return (
        (one["ball"]["q"][:, :3], one["ball"]["v"], one["plane"]["lambda"]),
        (other["ball"]["q"][:, :3], velocities, other["plane"]["lambda"]),
    )


@pytest.mark.parametrize(
    "scheme", [nsds.moreau_jean(), nsds.generalised_alpha(), nsds.d1_minus_linear("velocity")], ids=["moreau_jean", "alpha", "d1"]
)
@pytest.mark.parametrize("mu_r", [None, 0.002, 0.05])
def test_a_ball_slides_and_rolls_as_a_rigid_body_does(mu_r, scheme):
    """About one axis: to the solver's tolerance; with a spin a step turns a rigid body's axes, which is a difference of second order."""
    for found, wanted in zip(*balls(mu_r, [1.0, 0, 0, 0, -2.0, 0], 0.01, scheme), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-8)
    errors = []
    for h in (0.01, 0.005):
        (_, one, _), (_, other, _) = balls(mu_r, [1.0, 0.5, 0, -2.0, 1.0, 3.0], h, scheme)
        errors.append(abs(one - other)[:, :3].max())
    assert errors[0] < 1e-2
    assert errors[1] < max(0.6 * errors[0], 1e-5)
    assert (abs(one[-1, :5]).max() < 1e-10) == (mu_r == 0.05)


def _rotated(p, w):
    """w of a body's axes in inertial ones."""
    return w + 2 * np.cross(p[1:], np.cross(p[1:], w) + p[0] * w)


def feet(q, z, out):
    """Heights of three feet of a disc of radius z[0] that lies flat."""
    for k in range(3):
        out[3 * k], out[3 * k + 1], out[3 * k + 2] = q[2], 0.0, 0.0


def feet_by_q(q, z, out):
    """Velocities (up, x, y) of the feet from those of the centre and angular velocities in inertial axes."""
    for k in range(3):
        x, y = z[0] * math.cos(q[5] + 2 * math.pi * k / 3), z[0] * math.sin(q[5] + 2 * math.pi * k / 3)
        for i in range(3):
            for j in range(6):
                out[3 * k + i, j] = 0.0
        out[3 * k, 2] = out[3 * k + 1, 0] = out[3 * k + 2, 1] = 1.0
        out[3 * k, 3], out[3 * k, 4] = y, -x
        out[3 * k + 1, 5], out[3 * k + 2, 5] = -y, x


def foot(t, q, z, out):
    """A foot at the angle z[1] of the body's axes."""
    x, y = z[0] * math.cos(z[1]), z[0] * math.sin(z[1])
    c, s = 1.0 - 2.0 * q[6] * q[6], 2.0 * q[3] * q[6]
    out[0] = q[2]
    out[1], out[2], out[3] = q[0] + c * x - s * y, q[1] + s * x + c * y, q[2]
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


@pytest.mark.parametrize(
    "scheme", [nsds.moreau_jean(q_star=0.0), nsds.generalised_alpha(), nsds.d1_minus_linear("velocity")], ids=["moreau_jean", "alpha", "d1"]
)
def test_a_disc_on_three_feet_spins_and_slides_as_a_rigid_body_does(scheme):
    radius, v, inertia = 0.2, np.array([0.8, 0.3, 0, 0, 0, 12.0]), np.array([0.01, 0.01, 0.02])
    settings = {"t_end": 0.5, "h": 2e-3, "scheme": scheme, "solver": nsds.solvers.solver(tol=1e-12)}
    lagrangian = nsds.system(
        disc=nsds.lagrangian(np.r_[1, 1, 1, inertia], fext=[0, 0, -GRAVITY, 0, 0, 0], q=np.zeros(6), v=v),
        plane=nsds.interaction(nsds.scleronomous(feet, feet_by_q, m=9, z=[radius]), friction(0.0, 0.5, dimension=3), on="disc"),
    )
    rigid = nsds.system(
        disc=nsds.rigid_bodies(1.0, np.diag(inertia), q=[0, 0, 0, 1, 0, 0, 0], v=v, fext=[0, 0, -GRAVITY]),
        **{
            f"foot{k}": nsds.interaction(nsds.contact_point(foot, z=[radius, 2 * np.pi * k / 3]), friction(0.0, 0.5), on="disc")
            for k in range(3)
        },
    )
    one, other = nsds.simulate(lagrangian, **settings)["disc"], nsds.simulate(rigid, **settings)["disc"]
    np.testing.assert_allclose(one["v"], other["v"], atol=1e-7)
    np.testing.assert_allclose(one["q"][:, :3], other["q"][:, :3], atol=1e-8)
    assert abs(one["v"][-1]).max() < 1e-9 < abs(one["v"][50, [0, 1, 5]]).min()  # has come to rest


# ------------------------------------------------------------------------------------------------- machines with reference solutions
SLOPE, MASS = 0.4, 1.3


def block_on_a_slope(h, form="reduced"):
    """The block of the case incline_curved_stop: normal, downhill, across."""
    block = nsds.lagrangian_linear(
        [MASS] * 3, fext=MASS * GRAVITY * np.array([-np.cos(SLOPE), np.sin(SLOPE), 0]), q=[0, 0, 0], v=[0, 4 * np.cos(2), 4 * np.sin(2)]
    )
    plane = nsds.interaction(relation(np.eye(3)), friction(0.0, 0.6, dimension=3), on="block")
    return nsds.simulate(nsds.system(block=block, plane=plane), t_end=1.5, h=h, scheme=nsds.moreau_jean(theta=1.0, form=form))


@pytest.mark.parametrize("form", ["reduced", "global"])
def test_a_block_slides_in_a_curve_and_stops(form):
    stop, end = 1.03575625931202, np.array([-0.00821759517641119, 1.30735177831326])
    errors = []
    for h in (4e-3, 2e-3):
        rows = block_on_a_slope(h, form)
        moves = np.linalg.norm(rows["block"]["v"], axis=1) > 1e-12
        assert abs(rows["t"][moves][-1] - stop) < 2 * h
        force = rows["plane"]["lambda"][-1] / h
        np.testing.assert_allclose(force, MASS * GRAVITY * np.array([np.cos(SLOPE), -np.sin(SLOPE), 0]), atol=1e-8)
        errors.append(np.linalg.norm(rows["block"]["q"][-1, 1:] - end))
    assert errors[1] < 2.0 * 2e-3 * 4.0
    assert 1.9 < errors[0] / errors[1] < 2.1


def arm_mass(q, z, out):
    out[0, 0], out[1, 1] = 5.0 / 3.0 + math.cos(q[1]), 1.0 / 3.0
    out[0, 1] = out[1, 0] = 1.0 / 3.0 + math.cos(q[1]) / 2.0


def arm_gyr(q, v, z, out):
    k = math.sin(q[1]) / 2.0
    out[0], out[1] = -k * (2.0 * v[0] * v[1] + v[1] ** 2), k * v[0] ** 2


def arm_weight(t, q, v, z, out):
    out[0] = 9.81 * (1.5 * math.sin(q[0]) + 0.5 * math.sin(q[0] + q[1]))
    out[1] = 9.81 * 0.5 * math.sin(q[0] + q[1])


OF_THE_ARM = {
    "moreau_jean": nsds.moreau_jean(q_star=0.5),
    "alpha": nsds.generalised_alpha(),
    "d1": nsds.d1_minus_linear(),
    "paoli": nsds.schatzman_paoli(),
}


@pytest.mark.parametrize("scheme", OF_THE_ARM.values(), ids=OF_THE_ARM)
@pytest.mark.parametrize("law", [nsds.dry_friction([2.0, 0.8]), nsds.relay([-2.0, -0.8], [2.0, 0.8])], ids=["dry_friction", "relay"])
def test_a_two_link_arm_with_dry_friction_follows_the_solution_of_filippov(law, scheme):
    arm = nsds.lagrangian(arm_mass, fint=arm_weight, fgyr=arm_gyr, q=[1.8, 0.6], v=[0, 0])
    system = nsds.system(arm=arm, joints=nsds.interaction(relation(np.eye(2)), law, on="arm"))
    by_positions = scheme["scheme"] == b"schatzman_paoli"
    h = 1.25e-4 if by_positions else 2.5e-4
    rows = nsds.simulate(system, t_end=8.0, h=h, scheme=scheme)
    wanted = {  # of the case two_link_joint_friction
        1: (-0.745093743817, 0.0658567313986, -3.41721812448, 0.139195628402),
        2: (-0.473927006375, -0.479324183522, 0.760232278544, 6.69990123992),
        5: (0.396166286612, 0.147419686667, 1.21851608266, 0.0858571397293),
        8: (0.130184029271, 0.0520503511296, -0.160038727414, 0.0),
    }
    q, v = rows["arm"]["q"], rows["arm"]["v"]
    if by_positions:  # v is a backward difference
        v = np.vstack([(v[:-1] + v[1:]) / 2, v[-1:]])
    for t, state in wanted.items():
        np.testing.assert_allclose(np.r_[q[round(t / h)], v[round(t / h)]], state, atol=2.5e-3)
    stuck = (rows["t"] > 2.95) & (rows["t"] < 3.09)  # the second joint
    assert abs(rows["arm"]["v"][stuck, 1]).max() < 1e-12
    assert abs(rows["joints"]["lambda"][stuck, 1]).max() < 0.8 * h
    np.testing.assert_allclose(abs(rows["joints"]["lambda"][1:100]), np.broadcast_to([2 * h, 0.8 * h], (99, 2)), atol=1e-15)


def shaking(t, z, out):
    out[0], out[1] = z[0] * math.cos(z[1] * t), 0.0


def test_masses_that_rub_move_as_the_first_order_system_does():
    """The case two_dof_friction_oscillator as a Lagrangian system: the trapezoidal rule makes the same steps of both."""
    run = nsds.examples.EXAMPLES["friction_oscillator"].run | {"t_end": 200.0}
    wanted = nsds.simulate(nsds.examples.friction_oscillator(), **run)
    masses = nsds.lagrangian_linear([1.0, 1.0], K=[[2.0, -1.0], [-1.0, 1.0]], fext=shaking, q=[1.0, 0.0], v=[0.0, 0.0], z=[1.0, 0.3])
    ground = nsds.interaction(relation([[0.0, 1.0]]), nsds.dry_friction(0.5), on="masses")
    rows = nsds.simulate(nsds.system(masses=masses, ground=ground), t_end=200.0, h=run["h"])
    np.testing.assert_allclose(rows["masses"]["q"], wanted["masses"]["x"][:, ::2], atol=1e-9)
    np.testing.assert_allclose(rows["masses"]["v"], wanted["masses"]["x"][:, 1::2], atol=1e-9)
    np.testing.assert_allclose(rows["ground"]["lambda"][1:] / run["h"], wanted["ground"]["lambda"][1:], atol=1e-8)


def rods_mass(q, z, out):
    out[0, 0], out[1, 1] = 4.0 / 3.0, 1.0 / 3.0
    out[0, 1] = out[1, 0] = math.cos(q[0] - q[1]) / 2.0


def rods_gyr(q, v, z, out):
    s = math.sin(q[0] - q[1]) / 2.0
    out[0], out[1] = s * v[1] ** 2, -s * v[0] ** 2


def rods_weight(t, q, v, z, out):
    out[0], out[1] = 9.81 * 1.5 * math.sin(q[0]), 9.81 * 0.5 * math.sin(q[1])


def wall(q, z, out):
    out[0], out[1] = 0.3 - math.sin(q[0]) - math.sin(q[1]), 0.0


def wall_by_q(q, z, out):
    out[0, 0], out[0, 1] = -math.cos(q[0]), -math.cos(q[1])
    out[1, 0], out[1, 1] = math.sin(q[0]), math.sin(q[1])


def test_a_double_pendulum_strikes_a_rough_wall():
    """The first impact of the case double_pendulum_wall_friction: its time within a step, its impulses to first order."""
    system = nsds.system(
        rods=nsds.lagrangian(rods_mass, fint=rods_weight, fgyr=rods_gyr, q=[-1.2, -0.4], v=[0, 0]),
        wall=nsds.interaction(nsds.scleronomous(wall, wall_by_q, m=2), friction(0.6, 0.3), on="rods"),
    )
    errors = []
    for h in (1e-3, 1e-4):
        rows = nsds.simulate(system, t_end=0.7, h=h)
        first = int(np.argmax(rows["wall"]["lambda"][:, 0] > 0))
        assert abs(rows["t"][first] - 0.675729689747) < 1.5 * h
        errors.append(abs(rows["wall"]["lambda"][first] - [3.615867911, -1.084760373]).max())
        assert rows["wall"]["lambda"][first, 1] == pytest.approx(-0.3 * rows["wall"]["lambda"][first, 0], rel=1e-9)
    assert errors[1] < 20 * 1e-4 < errors[0] * 10


def disc_mass(q, z, out):
    """z = (m, R); q = centre, then phi, theta, psi."""
    A, C = z[0] * z[1] ** 2 / 4, z[0] * z[1] ** 2 / 2
    for i in range(6):
        for j in range(6):
            out[i, j] = z[0] if i == j and i < 3 else 0.0
    out[3, 3], out[4, 4], out[5, 5] = A * math.sin(q[4]) ** 2 + C * math.cos(q[4]) ** 2, A, C
    out[3, 5] = out[5, 3] = C * math.cos(q[4])


def disc_gyr(q, v, z, out):
    A, C, s, c = z[0] * z[1] ** 2 / 4, z[0] * z[1] ** 2 / 2, math.sin(q[4]), math.cos(q[4])
    out[0] = out[1] = out[2] = 0.0
    out[3] = 2 * (A - C) * s * c * v[3] * v[4] - C * s * v[4] * v[5]
    out[4] = -A * s * c * v[3] ** 2 + C * s * v[3] * (v[5] + v[3] * c)
    out[5] = -C * s * v[3] * v[4]


def edge(q, z, out):
    out[0], out[1], out[2] = q[2] - z[1] * math.sin(q[4]), 0.0, 0.0


def edge_by_q(q, z, out):
    """Velocity (up, x, y) of the lowest point, ``v + w × (-R e2)``, ``w = phi' e_z + theta' e1 + psi' e3``."""
    R, s, c, sp, cp = z[1], math.sin(q[4]), math.cos(q[4]), math.sin(q[3]), math.cos(q[3])
    a = np.zeros((3, 3))
    a[0, 2], a[1, 0], a[1, 1] = 1.0, cp, sp  # e_z, e1, e3
    a[2, 0], a[2, 1], a[2, 2] = s * sp, -s * cp, c
    l = np.zeros(3)  # -R e2, e2 = e3 × e1
    l[0], l[1], l[2] = -R * (-c * sp), -R * (c * cp), -R * s
    for i in range(3):
        for j in range(6):
            out[i, j] = 0.0
    out[0, 2] = out[1, 0] = out[2, 1] = 1.0
    for j in range(3):
        out[0, 3 + j] = a[j, 0] * l[1] - a[j, 1] * l[0]
        out[1, 3 + j] = a[j, 1] * l[2] - a[j, 2] * l[1]
        out[2, 3 + j] = a[j, 2] * l[0] - a[j, 0] * l[2]


def test_a_thin_disc_rolls_in_a_circle():
    """Steady precession of the case rolling_disc_precession, with friction: order 1."""
    R, w3, theta = 0.25, -2.25922149960554, 1.0
    r = R * w3 / 6
    v = [-R * w3, 0, 0, 6.0, 0, w3 - 6 * np.cos(theta)]
    errors = []
    for h in (2e-3, 1e-3):
        system = nsds.system(
            disc=nsds.lagrangian(disc_mass, fgyr=disc_gyr, fext=[0, 0, -1.2 * GRAVITY, 0, 0, 0], z=[1.2, R],
                                 q=[0, 0, R * np.sin(theta), 0, theta, 0], v=v),
            plane=nsds.interaction(nsds.scleronomous(edge, edge_by_q, m=3, z=[1.2, R]), friction(0.0, 1.0, dimension=3), on="disc"),
        )  # fmt: skip
        rows = nsds.simulate(system, t_end=1.0, h=h)
        end = rows["disc"]["q"][-1]
        errors.append(np.linalg.norm(end[:2] - [-r * np.sin(6.0), r * (np.cos(6.0) - 1)]) + abs(end[4] - theta))
        ratio = np.linalg.norm(rows["plane"]["lambda"][1:, 1:], axis=1) / rows["plane"]["lambda"][1:, 0]
        assert abs(np.median(ratio) - 0.345447) < 0.02
    assert errors[1] < 10 * h
    assert 1.9 < errors[0] / errors[1] < 2.1


# ------------------------------------------------------------------------------------------------- at other scales, at rest, jammed
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(scale, length):
    """A ball in units of mass and length other than kg and m."""

    def run(scale, length):
        radius, g = 0.1 * length, GRAVITY * length
        H = np.zeros((3, 6))
        H[0, 2] = H[1, 0] = H[2, 1] = 1.0
        H[1, 4], H[2, 3] = -radius, radius
        M = scale * np.diag([1.0] * 3 + [0.4 * radius**2] * 3)
        system = nsds.system(
            ball=nsds.lagrangian_linear(M, fext=scale * np.array([0, 0, -g, 0, 0, 0]), q=[0, 0, 2 * radius, 0, 0, 0],
                                        v=[length, 0.5 * length, 0, 0, 0, 3.0]),
            plane=nsds.interaction(relation(H, b=[-radius, 0, 0]), friction(0.5, 0.3, dimension=3), on="ball"),
        )  # fmt: skip
        rows = nsds.simulate(system, t_end=1.0, h=0.01)
        assert (rows["status"] == 0).all()
        return rows["ball"]["v"] / np.r_[[length] * 3, [1.0] * 3], rows["plane"]["lambda"] / (scale * length)

    for found, wanted in zip(run(scale, length), run(1.0, 1.0), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def table(legs, mu=0.3, pull=0.0, law=None):
    """A table top on legs at its corners and between them, q = (x, y, z, tilts, spin)."""
    angle = 2 * np.pi * np.arange(legs) / legs
    H = np.zeros((3 * legs, 6))
    for k, (x, y) in enumerate(zip(np.cos(angle), np.sin(angle), strict=True)):
        H[3 * k] = [0, 0, 1, y, -x, 0]
        H[3 * k + 1] = [1, 0, 0, 0, 0, -y]
        H[3 * k + 2] = [0, 1, 0, 0, 0, x]
    top = nsds.lagrangian_linear([2, 2, 2, 0.5, 0.5, 1.0], fext=[pull, 0, -2 * GRAVITY, 0, 0, 0], q=np.zeros(6), v=np.zeros(6))
    return nsds.system(top=top, floor=nsds.interaction(relation(H), friction(0.0, mu, dimension=3), on="top"))


@pytest.mark.parametrize("legs", [3, 4, 12])
@pytest.mark.parametrize("form", ["reduced", "global"])
def test_redundant_contacts_at_rest_stay_and_slide_where_they_are_pulled(legs, form):
    weight = 2 * GRAVITY
    for pull, acceleration in ((0.0, 0.0), (0.9 * 0.3 * weight, 0.0), (2 * 0.3 * weight, 0.3 * GRAVITY)):
        rows = nsds.simulate(table(legs, pull=pull), t_end=0.5, h=0.01, scheme=nsds.moreau_jean(form=form))
        assert (rows["status"] == 0).all()
        np.testing.assert_allclose(rows["top"]["v"][:, 0], acceleration * rows["t"], atol=1e-7)
        assert abs(rows["top"]["v"][:, 1:]).max() < 1e-7
        np.testing.assert_allclose(rows["floor"]["lambda"][1:, ::3].sum(axis=1), 0.01 * weight, rtol=1e-6)


def test_a_jammed_wedge_stays():
    """Two walls at less than the angle of friction hold a wedge that is pulled: impulses are not unique, the rest is."""
    half = np.arctan(0.3)
    H = np.array(
        [[np.cos(half), np.sin(half)], [-np.sin(half), np.cos(half)], [-np.cos(half), np.sin(half)], [-np.sin(half), -np.cos(half)]]
    )
    wedge = nsds.lagrangian_linear([1.0, 1.0], fext=[0.0, -GRAVITY], q=[0, 0], v=[0, -1.0])
    system = nsds.system(wedge=wedge, slot=nsds.interaction(relation(H), friction(0.0, 0.5), on="wedge"))
    rows = nsds.simulate(system, t_end=1.0, h=0.01)
    assert (rows["status"] == 0).all()
    assert abs(rows["wedge"]["v"][1:]).max() < 1e-9


def test_a_projection_of_positions_leaves_no_penetration_with_friction_in_space():
    system = sphere(friction(0.3, 0.3, dimension=3), v=(1.0, 0.5, -2.0, 0, 0, 3.0))
    for scheme in (nsds.moreau_jean_direct_projection(), nsds.moreau_jean_combined_projection(constraint_tol=1e-8)):
        rows = nsds.simulate(system, t_end=1.0, h=0.01, scheme=scheme)
        assert rows["plane"]["y"][:, 0].min() >= -1e-8
        assert (rows["status"] == 0).all()


def test_modal_systems_rub_in_space():
    """The exact scheme: a string of modes that is struck sideways against a rough support."""
    rng = np.random.default_rng(2)
    H = rng.normal(size=(3, 8)) / 3
    modes = nsds.lagrangian_modal(omega=10.0 * np.arange(1, 9), sigma=0.1, q=np.zeros(8), v=-H[0] * 3 + 0.5 * H[1])
    system = nsds.system(modes=modes, support=nsds.interaction(relation(H), friction(0.3, 0.4, dimension=3), on="modes"))
    rows = nsds.simulate(system, t_end=0.5, h=1e-3, scheme=nsds.moreau_jean_exact())
    lam, tangent = rows["support"]["lambda"], np.linalg.norm(rows["support"]["lambda"][:, 1:], axis=1)
    assert (lam[:, 0] > 0).any()
    assert (tangent <= 0.4 * lam[:, 0] + 1e-9).all()
    assert (rows["status"] == 0).all()


def test_consistent_starts_of_systems_with_friction():
    """Joints and gaps are closed, rubbing and driven rows are left alone."""
    rng = np.random.default_rng(6)
    system, *_ = random_system(rng, ["space"], ["equality", "dry"])
    system["body"]["q"] = 0.1 * rng.normal(size=system["body"]["q"].size)
    start = nsds.consistent(system)
    q, v = start["body"]["q"], start["body"]["v"]
    assert abs(system["law1"]["H"] @ q).max() < 1e-9
    assert (system["law0"]["H"] @ q)[0] > -1e-9
    assert abs(system["law1"]["H"] @ v).max() < 1e-9


# ------------------------------------------------------------------------------------------------- drives and refusals
def test_a_motor_of_bounded_strength_speeds_a_wheel_up_and_holds_its_speed():
    wheel = nsds.lagrangian_linear([0.5], fext=[-0.2], q=[0], v=[0])
    motor = nsds.interaction(nsds.prescribed_velocity([0], 4.0), nsds.relay(-1.2, 1.2), on="wheel")
    rows = nsds.simulate(nsds.system(wheel=wheel, motor=motor), t_end=3.0, h=0.01)
    np.testing.assert_allclose(rows["wheel"]["v"][:, 0], np.minimum(2.0 * rows["t"], 4.0), atol=1e-12)
    np.testing.assert_allclose(rows["motor"]["lambda"][[50, -1]], [0.012, 0.002], atol=1e-14)


@pytest.mark.parametrize("count", [2, 3])
def test_what_does_not_fit_is_refused_with_what_would(count):
    body = nsds.lagrangian_linear(np.eye(4), q=np.zeros(4), v=np.zeros(4))
    rows = relation(np.eye(4)[:count])
    wrong = 5 - count
    with pytest.raises(
        ValueError, match=rf"newton_impact_friction wants {wrong} constraints .* got {count} in all \({count} with dimension={count}"
    ):
        nsds.system(body=body, c=nsds.interaction(rows, friction(0, 0.1, dimension=wrong), on="body"))
    with pytest.raises(ValueError, match="newton_impact_friction: dimension must be at most 3, got 4"):
        friction(0.0, 0.1, dimension=4)
    ball = nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6))
    with pytest.raises(ValueError, match="contacts of Newton–Euler systems are in space; newton_impact_friction wants dimension=3, got 2"):
        nsds.system(ball=ball, c=nsds.interaction(nsds.contact_point(under, z=[0.1]), friction(0, 0.1, dimension=2), on="ball"))
    with pytest.raises(ValueError, match="contacts of Newton–Euler systems are in space"):
        nsds.collisions({"ball": nsds.shapes.sphere(0.1)}, friction(0, 0.1, dimension=2))
    both = nsds.system(
        body=body,
        floor=nsds.interaction(relation(np.eye(4)[:2]), friction(0, 0.1), on="body"),
        pull=nsds.interaction(relation(np.eye(4)[2:3]), nsds.relay(0.0, np.inf), on="body"),
    )
    with pytest.raises(ValueError, match="interaction 'pull': beside contacts with friction relay wants finite bounds"):
        nsds.simulate(both, t_end=0.1, h=0.01)


def tilted(q, z, out):
    out[0], out[1], out[2] = q[0] + z[0] * q[1], q[1] - z[0] * q[0], q[2]


def tilted_H(q, z, out):
    out[0, 0], out[0, 1], out[1, 1], out[1, 0], out[2, 2] = 1.0, z[0], 1.0, -z[0], 1.0


@pytest.mark.parametrize("jacobian", [tilted_H, None], ids=["H given", "H by differences"])
def test_a_plane_that_is_tilted_between_steps_is_the_new_plane(jacobian):
    """W is kept while H is the same, to the bit, and no longer."""
    law = nsds.newton_impact_friction(0.0, mu=0.2, dimension=3)
    block = nsds.lagrangian_linear(M=np.diag([1.0, 1.0, 1.0]), fext=[-9.81, 0, 0], q=[0.0, 0, 0], v=[0, 1.0, 0.5])
    plane = nsds.interaction(nsds.scleronomous(tilted, jacobian, m=3, z=[0.0]), law, on="block")
    system = nsds.system(block=block, plane=plane)
    advance = nsds.stepper(system, 1e-3)
    for tilt in (0.0, -0.1, -0.1, -0.2):  # into the block, which touches
        system["plane"]["z"] = tilt
        anew = nsds.stepper(system, 1e-3)(system, 20)
        system = advance(system, 20)
        assert system.tobytes() == anew.tobytes()
        direction = np.array([1.0, tilt, 0.0])
        assert direction @ system["block"]["v"] == pytest.approx(0.0, abs=1e-12)
