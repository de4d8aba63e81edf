"""Laws of users: closed forms, Coulomb's law written anew, what keeps its own law, what is refused."""

import numpy as np
import pytest

import nsds
from nsds import _jit, status
from nsds.solvers import own_law
from nsds.solvers.box import own_law as of_rows
from nsds.solvers.box import signature as box
from nsds.solvers.contact import own_law as of_contacts
from nsds.solvers.contact import signature as contact

G, H, MU_X, MU_Y, DAMPING = 9.81, 1e-3, 0.6, 0.3, 2.0
relation = nsds.lagrangian_linear_relation


def elliptic(rho, mu, mu_r, r, u, out):
    """``(r_x / MU_X)^2 + (r_y / MU_Y)^2 <= r_N^2``, and -u_T in the normal cone of this set."""
    out[0] = max(r[0] - rho * u[0], 0.0)
    a, b, x, y, t = MU_X * out[0], MU_Y * out[0], r[1] - rho * u[1], r[2] - rho * u[2], 0.0
    if a == 0.0:
        out[1] = out[2] = 0.0
        return
    if (x / a) ** 2 + (y / b) ** 2 > 1.0:  # the point (a^2 x / (a^2 + t), b^2 y / (b^2 + t)) of the ellipse, by Newton's method from below
        for _ in range(60):
            p, s = a * x / (a * a + t), b * y / (b * b + t)
            t += 0.5 * (p * p + s * s - 1.0) / (p * p / (a * a + t) + s * s / (b * b + t))
    out[1], out[2] = a * a * x / (a * a + t), b * b * y / (b * b + t)


def coulomb(rho, mu, mu_r, r, u, out):
    """Of contacts with rolling friction, too, in space."""
    out[0] = max(r[0] - rho * u[0], 0.0)
    for disk in range(2 if r.size == 5 else 1):
        first = 1 + 2 * disk
        last, radius, size = min(first + 2, r.size), (mu_r if disk else mu) * out[0], 0.0
        for i in range(first, last):
            out[i] = r[i] - rho * u[i]
            size += out[i] ** 2
        size = np.sqrt(size)
        for i in range(first, last):
            out[i] *= radius / size if size > radius else 1.0


def viscous(rho, lower, upper, z, w):
    """``z = -h c w`` up to the bounds."""
    return min(max((z - rho * w) / (1.0 + rho / (H * DAMPING)), lower), upper)


def bounds(rho, lower, upper, z, w):
    return min(max(z - rho * w, lower), upper)


def never(rho, mu, mu_r, r, u, out):
    for i in range(r.size):
        out[i] = r[i] + rho


def broken(rho, mu, mu_r, r, u, out):
    for i in range(r.size):
        out[i] = np.nan


def point(v):
    """A point mass on a plane, as a Lagrangian system."""
    law = nsds.newton_impact_friction(0.0, 0.5, dimension=3)
    body = nsds.lagrangian_linear(M=2.0 * np.eye(3), fext=[0, 0, -2.0 * G], q=[0.0, 0.0, 0.0], v=v)
    return nsds.system(body=body, plane=nsds.interaction(relation([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]]), law, on="body"))


def under(t, q, z, out):
    """The contact of `block`, right below its centre of mass."""
    out[0], out[1], out[2], out[3] = q[2], q[0], q[1], 0.0
    out[4], out[5], out[6] = 0.0, 0.0, 1.0


def block(v):
    """The same as a rigid body: contact point and forces lie on a line through the centre of mass."""
    body = nsds.rigid_bodies(2.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=[*v, 0, 0, 0], fext=[0, 0, -2.0 * G])
    plane = nsds.interaction(nsds.contact_point(under), nsds.newton_impact_friction(0.0, 0.5), on="body")
    return nsds.system(body=body, plane=plane)


# ------------------------------------------------------------------------------------------------------- plain twins
def sweep_contacts(law, d, mu, W, q, n_sweeps):
    """Impulses after sweeps over contacts, each by ``r <- law(rho, ..)``, rho the inverse of the largest row sum of its block, to rest."""
    r = np.zeros(len(q))
    for _ in range(n_sweeps):
        for c, (slope, slope_r) in enumerate(mu):
            mine = slice(d * c, d * c + d)
            rho, out = 1.0 / abs(W[mine, mine]).sum(axis=1).max(), np.zeros(d)
            for _ in range(100):
                law(rho, slope, slope_r, r[mine], W[mine] @ r + q[mine], out)
                change, r[mine] = abs(out - r[mine]).max(), out
                if change <= 1e-15 * abs(out).max():
                    break
    return r


def drawn(n, d, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n * d, n * d))
    return A @ A.T / (n * d) + 0.2 * np.eye(n * d), rng.normal(size=n * d)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_sweeps_over_contacts_are_those_of_the_twin(d):
    n, law = 3, _jit.callback(of_contacts.LAW, coulomb)
    W, q = drawn(n, d, d)
    q[::d] -= 2.0  # all are closed
    mu, disk = np.array([[0.5, 0.1], [1.0, 0.3], [0.2, 0.05]]), np.full(n, min(d - 1, 2))
    row, column = n * np.arange(n + 1), np.tile(np.arange(n), n)
    blocks = W.reshape(n, d, n, d).transpose(0, 2, 1, 3).ravel().copy()
    for n_sweeps, wanted in ((1, status.MAX_ITER), (2, status.MAX_ITER), (500, status.CONVERGED)):
        options = contact.Options(1e-12, float(n_sweeps), 0.0, float(law.address), 0.0, 0.0, 1e-8, 0.1)
        r, u, info = np.zeros(n * d), np.zeros(n * d), np.zeros(contact.N_INFO)
        work = np.zeros(of_contacts.work_size(d, row, column)[0])
        problem = contact.Problem(disk, mu.ravel(), row, column, blocks, q)
        found = of_contacts.sweeps(problem, options, r, u, info, work, np.zeros(1, np.int64))
        assert found == wanted
        np.testing.assert_allclose(r, sweep_contacts(coulomb, d, mu, W, q, n_sweeps), atol=1e-12)
        np.testing.assert_allclose(u, W @ r + q, atol=1e-12)


def test_sweeps_over_rows_are_those_of_the_twin():
    """Among them an equation, which keeps its own law."""
    n, law = 4, _jit.callback(of_rows.LAW, viscous)
    M, q = drawn(n, 1, 7)
    lower, upper = np.array([-1.0, -0.2, -np.inf, -3.0]), np.array([1.0, 0.4, np.inf, 3.0])
    row, column, z = n * np.arange(n + 1), np.tile(np.arange(n), n), np.zeros(n)
    for n_sweeps in (1, 2, 3, 5000):
        options = box.Options(1e-13, float(n_sweeps), float(law.address), 0.0, 0.0, 0.1)
        mine, w, info = np.zeros(n), np.zeros(n), np.zeros(box.N_INFO)
        problem = box.Problem(row, column, M.ravel(), q, lower, upper)
        of_rows.sweeps(problem, options, mine, w, info, np.zeros(n), np.zeros(1, np.int64))
        z[:] = 0.0
        for _ in range(min(n_sweeps, 1000)):
            for i in range(n):
                w_i = M[i] @ z + q[i]
                z[i] = z[i] - w_i / M[i, i] if i == 2 else viscous(1.0 / M[i, i], lower[i], upper[i], z[i], w_i)
        np.testing.assert_allclose(mine, z, atol=1e-12)


# ------------------------------------------------------------------------------------------------------- runs
@pytest.mark.parametrize("make", [point, block])
def test_a_point_on_an_elliptic_cone_follows_its_curve(make):
    """``v_T' = -g (mu_x^2 v_x, mu_y^2 v_y) / sqrt(mu_x^2 v_x^2 + mu_y^2 v_y^2)``: v_y is C times v_x to the power of (mu_y / mu_x)^2.

    Along it, with 4 mu_y^2 = mu_x^2 and s = v_x^(1/4), the speed of v_x is closed, too: compared with a fine quadrature.
    """
    v = nsds.simulate(make([2.0, 1.0, 0.0]), t_end=0.2, h=H, solver=own_law(elliptic), scheme=nsds.moreau_jean())["body"]["v"][:, :3]
    power = (MU_Y / MU_X) ** 2
    constant = v[:, 1] / v[:, 0] ** power
    assert abs(constant / (1.0 / 2.0**power) - 1.0).max() < 5e-4  # implicit Euler on a smooth curve: of the order of h
    assert (v[:, 2] == 0.0).all()
    x = np.linspace(v[-1, 0], 2.0, 20_001)  # t = integral of dv_x / |v_x'|
    y = x**power / 2.0**power
    speed = G * MU_X**2 * x / np.hypot(MU_X * x, MU_Y * y)
    assert abs(np.trapezoid(1.0 / speed, x) - 0.2) < 1e-3


def test_elliptic_friction_holds_what_pushes_within_its_cone():
    """Pushed along x by less than mu_x m g, but more than mu_y m g: it stays at rest, and along y it would not."""
    for axis, rests in ((0, True), (1, False)):
        system, push = point([0.0, 0.0, 0.0]), np.zeros(3)
        push[axis], push[2] = 2.0 * G * 0.45, -2.0 * G
        system["body"]["fext"] = push
        v = nsds.simulate(system, t_end=0.05, h=H, solver=own_law(elliptic))["body"]["v"][-1]
        np.testing.assert_allclose(v[axis], 0.0 if rests else 0.15 * G * 0.05, atol=1e-9)


@pytest.mark.parametrize("d", [2, 3])
def test_coulombs_law_written_anew_gives_the_same_motion(d):
    """Three blocks, one on the other, dragged apart; with a stop without friction and an equation, which keep their laws."""
    n, law = 3, nsds.newton_impact_friction(0.0, 0.3, dimension=d)
    up, across = np.eye(d)[0], np.eye(d)[1]
    between = np.hstack([-np.eye(d), np.eye(d)])
    q = np.zeros((n, d))
    q[:, 0] = 0.1 * np.arange(n)
    v = np.zeros((n, d))
    v[-1, 1:] = 1.0
    push = -G * up + 2.0 * across
    system = nsds.system(
        blocks=nsds.lagrangian_linear(M=np.eye(d), fext=push, q=q, v=v, count=n),
        cart=nsds.lagrangian_linear(M=[[1.0]], q=0.0, v=1.0),
        floor=nsds.interaction(relation(np.eye(d)), law, on="blocks[0]"),
        gaps=nsds.interaction(relation(between, b=[-0.1] + [0.0] * (d - 1)), law, on=("blocks[:-1]", "blocks[1:]")),
        stop=nsds.interaction(relation([-across], b=[0.15]), nsds.newton_impact(0.5), on="blocks[2]"),
        tow=nsds.interaction(relation([[*-across, 1.0]]), nsds.equality(), on=("blocks[2]", "cart")),
    )
    mine = nsds.simulate(system, t_end=0.2, h=H, solver=own_law(coulomb, tol=1e-11))
    usual = nsds.simulate(system, t_end=0.2, h=H, solver=nsds.solvers.solver("nsgs", tol=1e-11))
    assert (mine["status"] == status.CONVERGED).all()
    assert usual["stop"]["active"].any()
    for part in ("blocks", "cart"):
        np.testing.assert_allclose(mine[part]["q"], usual[part]["q"], atol=1e-8)


def test_a_rolling_ball_under_coulombs_law_written_anew():
    ball = nsds.rigid_bodies(1.0, 0.4, q=[0, 0, 1.0, 1, 0, 0, 0], v=[2.0, 1.0, 0, 0, 0, 3.0], fext=[0, 0, -G])
    shapes = {"ball": nsds.shapes.sphere(1.0)}
    ground = nsds.collisions(shapes, nsds.newton_impact_friction(0.0, 0.2), world=[nsds.shapes.plane()])
    system = nsds.system(ball=ball, contacts=ground)
    mine = nsds.simulate(system, t_end=0.5, h=H, solver=own_law(coulomb))  # by moreau_jean
    usual = nsds.simulate(system, t_end=0.5, h=H, scheme=nsds.moreau_jean())
    np.testing.assert_allclose(mine["ball"]["v"], usual["ball"]["v"], atol=1e-8)


@pytest.mark.parametrize("scheme", ["moreau_jean_direct_projection", "moreau_jean_combined_projection"])
@pytest.mark.parametrize("make", [point, block])
def test_positions_are_projected_beside_a_law_of_contacts(make, scheme):
    """Where nothing is to be projected the motion is that without; a start below the plane is brought onto it."""
    scheme, settings = getattr(nsds, scheme)(), {"t_end": 0.1, "h": H, "solver": own_law(elliptic)}
    mine, usual = (nsds.simulate(make([2.0, 1.0, 0.0]), scheme=each, **settings)["body"] for each in (scheme, nsds.moreau_jean()))
    np.testing.assert_allclose(mine["v"], usual["v"], atol=1e-9)
    below = make([2.0, 1.0, 0.0])
    below["body"]["q"][2] = -1e-3
    assert abs(nsds.simulate(below, scheme=scheme, **settings)["body"]["q"][-1, 2]) < 1e-8


def test_a_law_of_bounds_under_the_exact_scheme():
    """A free modal mass under viscous friction up to a bound: as `test_viscous_friction_up_to_a_bound`, by another scheme."""
    mass = nsds.lagrangian_modal([0.0], mass=[1.0], q=[0.0], v=[4.0])
    slide = nsds.interaction(relation([[1.0]]), nsds.dry_friction(1.0), on="mass")
    rows = nsds.simulate(nsds.system(mass=mass, slide=slide), t_end=5.0, h=H, solver=own_law(viscous), scheme=nsds.moreau_jean_exact())
    t, q = rows["t"], rows["mass"]["q"][:, 0]
    exact = np.where(t < 3.5, 4.0 * t - t**2 / 2, 4.0 * 3.5 - 3.5**2 / 2 + 0.25 * (1.0 - np.exp(-2.0 * (t - 3.5))))
    np.testing.assert_allclose(q, exact, atol=8.0 * H)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_viscous_friction_up_to_a_bound(scale):
    """``4 - t`` down to 1/2, then ``exp(-2 t)``, in any unit of mass; with it a stop, by the law of bounds that it is written with."""
    mass = nsds.lagrangian_linear(M=scale, q=0.0, v=4.0 / scale)
    slide = nsds.interaction(relation([[1.0]]), nsds.dry_friction(1.0), on="mass")

    def law(rho, lower, upper, z, w):
        return min(max((z - rho * w) / (1.0 + rho / (H * DAMPING * scale)), lower), upper)

    rows = nsds.simulate(nsds.system(mass=mass, slide=slide), t_end=5.0, h=H, solver=own_law(law))
    t, v = rows["t"], rows["mass"]["v"][:, 0] * scale
    np.testing.assert_allclose(v, np.where(t < 3.5, 4.0 - t, 0.5 * np.exp(-2.0 * (t - 3.5))), atol=2.0 * H)
    assert (rows["status"] == status.CONVERGED).all()


def test_the_law_of_bounds_written_anew_gives_the_same_motion():
    system = nsds.examples.column_of_beads(count=4)
    mine = nsds.simulate(system, t_end=0.6, h=H, solver=own_law(bounds))
    usual = nsds.simulate(system, t_end=0.6, h=H)
    np.testing.assert_allclose(mine["beads"]["q"], usual["beads"]["q"], atol=1e-8)


@pytest.mark.parametrize(("law", "found"), [(never, status.STALLED), (broken, status.NON_FINITE)])
def test_a_law_without_solution_ends_the_run(law, found):
    rows = nsds.simulate(point([1.0, 0.0, 0.0]), t_end=2 * H, h=H, solver=own_law(law), on_failure="continue")
    assert rows["status"][1] == found
    with pytest.raises(nsds.SimulationError):
        nsds.simulate(point([1.0, 0.0, 0.0]), t_end=2 * H, h=H, solver=own_law(law))


def _relay():
    return nsds.examples.relay_oscillator()


@pytest.mark.parametrize(
    ("make", "law", "scheme", "message"),
    [
        (lambda: point([0, 0, 0.0]), elliptic, nsds.schatzman_paoli(), "schatzman_paoli"),
        (lambda: point([0, 0, 0.0]), elliptic, nsds.event_driven(), "event_driven"),
        (nsds.examples.two_link_manipulator, bounds, nsds.moreau_jean_combined_projection(), "moreau_jean_combined_projection"),
        (lambda: block([0, 0, 0.0]), elliptic, nsds.rattle(), r"use nsds\.moreau_jean"),
        (_relay, viscous, None, "first-order systems"),
        (nsds.examples.two_link_manipulator, viscous, nsds.generalised_alpha(), "generalised_alpha"),
    ],
)
def test_schemes_that_cannot_take_a_law_are_named(make, law, scheme, message):
    with pytest.raises(ValueError, match=message):
        nsds.simulate(make(), t_end=2 * H, h=H, scheme=scheme, solver=own_law(law))


def test_laws_that_do_not_fit_are_named():
    with pytest.raises(TypeError, match=r"viscous is not for this system, which has contacts with friction: it wants law\(rho, mu, mu_r"):
        nsds.simulate(point([0, 0, 0.0]), t_end=H, h=H, solver=own_law(viscous))
    with pytest.raises(TypeError, match=r"elliptic is not for this system, which has rows with bounds, .*law\(rho, lower, upper, z, w\)"):
        nsds.simulate(nsds.examples.column_of_beads(count=2), t_end=H, h=H, solver=own_law(elliptic))
    with pytest.raises(TypeError, match=r"own_law: expected a Python function law\(rho, lower, upper, z, w\) or law\(rho, mu"):
        own_law(lambda z: z)
    with pytest.raises(ValueError, match=r"elliptic of own_law is for nsds\.simulate"):
        nsds.solvers.solve_fc3d(np.eye(3), [-1.0, 1.0, 0.0], 0.5, own_law(elliptic))
    with pytest.raises(ValueError, match=r"bounds of own_law is for nsds\.simulate"):
        nsds.solvers.solve_relay(np.eye(1), [-1.0], -1.0, 1.0, own_law(bounds))
    chain = nsds.system(
        body=nsds.rigid_bodies(1.0, 0.1, q=[0, 0, 0, 1, 0, 0, 0], v=np.zeros(6)),
        brake=nsds.interaction(nsds.prescribed_velocity([5], [0.0]), nsds.dry_friction(1.0), on="body"),
    )
    with pytest.raises(ValueError, match="dry_friction of 'brake'"):
        nsds.simulate(chain, t_end=H, h=H, scheme=nsds.moreau_jean(), solver=own_law(elliptic))
