"""One-step problems of a run: solutions by the definition of the laws, impulses as records have them, files that give them back."""

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

import nsds
from nsds import joints, shapes, solvers
from tests.reference_contact import Drawn, merit
from tests.reference_solvers import natural
from tests.scenes import SCENES


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else np.asarray(A)


def local(problem):
    """(W, q) of a problem in either form."""
    if problem.W is not None:
        return dense(problem.W), problem.q
    M, H = splu(csc_array(problem.M)), csc_array(problem.H)
    return H.T @ M.solve(dense(H)), H.T @ M.solve(problem.f) + problem.w


def error_of(one):
    """By how much a solution misses its problem, relative to its vector."""
    if isinstance(one.problem, solvers.Problem):
        _, M, q, lower, upper = one.problem
        return np.abs(natural(dense(M), q, one.r, lower, upper)).max() / np.abs(q).max()
    p, (W, q) = one.problem, local(one.problem)
    mu = np.stack([p.mu, np.zeros(p.n_contacts) if p.mu_r is None else p.mu_r], axis=1)
    off = np.linalg.norm(W @ one.r + q - one.u) / np.linalg.norm(q)
    return max(merit(Drawn(p.d, np.full(p.n_contacts, p.tangents), mu, W, q), one.r), off)


def balls(count, law, radius=0.1, **joined):
    """Balls side by side on the ground, pushed along it; those joined are on top."""
    ball = shapes.sphere(radius)
    place = 3.0 * radius * np.stack(np.divmod(np.arange(count), 32), axis=1)
    q = np.concatenate([place, np.full((count, 1), radius), np.tile([1.0, 0, 0, 0], (count, 1))], axis=1)
    v = np.concatenate([np.random.default_rng(1).uniform(-1, 1, (count, 2)), np.zeros((count, 4))], axis=1)
    bodies = nsds.rigid_bodies(np.full(count, 2.0), np.array([shapes.inertia(ball, 2.0)] * count), q=q, v=v)
    contacts = nsds.collisions({"balls": ball}, law, world=shapes.plane())
    return nsds.system(gravity=[0, 0, -9.81], balls=bodies, contacts=contacts, **joined)


SYSTEMS = {
    "a stack": (nsds.examples.box_stack, {}),
    "a gripper, whose joints are eliminated": (nsds.examples.gripper, {"tol": 1e-7}),
    "a guided box": (lambda: SCENES["guided_box"].build()[0], {"begin": 0.13, "tol": 1e-7}),
    "balls that roll": (lambda: balls(3, nsds.newton_impact_rolling_friction(0.0, mu=0.5, mu_r=0.01)), {}),
    "without friction": (lambda: balls(3, nsds.newton_impact(0.0)), {}),
    "disks": (lambda: SCENES["card_house"].build()[0], {}),
    "in the plane": (nsds.examples.masonry_arch, {}),
    "a Lagrangian system": (nsds.examples.woodpecker, {}),
    "a bar that strikes": (nsds.examples.impacting_bar, {"least": 3}),
    "a stick": (nsds.examples.impacting_stick, {"begin": 0.2}),
    "a relay": (nsds.examples.relay_oscillator, {}),
    "a bridge": (nsds.examples.diode_bridge, {}),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_solutions_obey_the_laws(name):
    build, settings = SYSTEMS[name]
    system, h = build(), 1e-3
    t_end = float(system["t"]) + settings.get("begin", 0.05) + 0.02
    found = list(nsds.one_step_problems(system, t_end=t_end, h=h))
    assert len(found) >= settings.get("least", 5)
    for one in found:
        assert one.residual < 1e-6
        assert error_of(one) < settings.get("tol", 1e-8)
        size = np.linalg.norm(one.problem.q)
        assert one.error <= settings.get("tol", 1e-8) * size + 1e-12


def missed_by(problem, r, u, D):
    """Velocity by which each contact in space misses the law of friction, case by case."""
    missed = []
    for c, mu in enumerate(problem.mu):
        (r_n, *r_t), (u_n, *u_t) = r[3 * c : 3 * c + 3], u[3 * c : 3 * c + 3]
        normal, tangent = D[3 * c], D[3 * c + 1 : 3 * c + 3].max()
        of_normal = u_n if u_n < normal * r_n else normal * r_n
        pushed = tangent * np.array(r_t) - u_t
        most, size = tangent * mu * max(r_n, 0.0), np.linalg.norm(pushed)
        slides = size > most
        missed.append(
            np.hypot(of_normal, np.linalg.norm(tangent * np.array(r_t) - pushed * (most / size)) if slides else np.linalg.norm(u_t))
        )
    return np.array(missed)


@pytest.mark.parametrize("tol", [1e-1, 1e-4])
def test_the_error_of_a_problem_is_a_velocity_and_the_residual_relative_to_those_without_impulses(tol):
    """Of solutions that are stopped early: error by the law's definition, and ``||F|| = residual ||q||``."""
    found = list(nsds.one_step_problems(nsds.examples.box_stack(), t_end=0.3, h=5e-3, solver=solvers.solver("nsgs", tol=tol)))
    coarse = [one for one in found if one.residual > 1e-9]
    assert coarse
    for one in coarse:
        missed = missed_by(one.problem, one.r, one.u, abs(dense(one.problem.W)).max(axis=1))
        assert one.error == pytest.approx(missed.max(), rel=1e-9)
        assert np.linalg.norm(missed) == pytest.approx(one.residual * np.linalg.norm(one.problem.q), rel=1e-6)


def test_units_of_the_error():
    """In millimetres it is a thousand times the number, and the residual the same."""
    errors = []
    for unit in (1.0, 1e3):
        body = nsds.shapes.box([0.2 * unit] * 3)
        system = nsds.system(
            gravity=[0, 0, -9.81 * unit],
            box=nsds.rigid_bodies(
                1.0, nsds.shapes.inertia(body, 1.0), q=[0, 0, 0.1 * unit, 1, 0, 0, 0], v=[unit, 0.3 * unit, 0, 0, 0, 2.0]
            ),
            contacts=nsds.collisions({"box": body}, nsds.newton_impact_friction(e_n=0.0, mu=0.5), world=nsds.shapes.plane()),
        )
        first = next(iter(nsds.one_step_problems(system, t_end=0.01, h=5e-3, solver=solvers.solver("nsgs", tol=1e-2))))
        errors.append((first.error / unit, first.residual))
    assert errors[0][0] > 0.0
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-6)


def test_impulses_are_those_of_the_run():
    system, h = nsds.examples.box_stack(), 5e-3
    rows = nsds.simulate(system, t_end=0.1, h=h)
    *_, last = nsds.one_step_problems(system, t_end=0.1, h=h)
    assert (last.t, last.step) == (rows["t"][-1], rows["step"][-1])
    np.testing.assert_allclose(last.r.reshape(-1, 3).sum(axis=0), rows["contacts"]["lambda"][-1].sum(axis=0), atol=1e-6)
    assert nsds.solvers.solve_fc3d(*last.problem[1:4], r0=last.guess, method="interior_point").status == 0


@pytest.mark.parametrize(
    "law",
    [
        nsds.newton_impact_friction(e_n=0.3, mu=0.5),
        nsds.newton_impact_rolling_friction(e_n=0.3, mu=0.5, mu_r=0.01),
        nsds.newton_impact_spinning_friction(e_n=0.3, mu=0.5, mu_s=0.01),
    ],
)
def test_many_contacts_are_given_by_the_velocities_of_bodies(law):
    """With a joint between two of the balls, whose equations lie among the velocities, and dry friction along another."""
    hinge = nsds.interaction(joints.hinge([0, 0, 0.1], [0, 0, 1]), nsds.equality(), on=("balls[0]", "balls[1]"))
    brake = nsds.interaction(joints.hinge_angle([0, 0, 1]), nsds.dry_friction(0.05), on=("balls[2]", "balls[3]"))
    system = balls(530, law, hinge=hinge, brake=brake)
    found = list(nsds.one_step_problems(system, t_end=1e-3, h=1e-3, scheme=nsds.moreau_jean()))
    rows = nsds.simulate(system, t_end=1e-3, h=1e-3, scheme=nsds.moreau_jean())
    one = found[-1]
    assert one.problem.W is None
    assert one.problem.n_contacts >= 531
    assert error_of(one) < 1e-3
    assert one.residual < 1e-4
    p = one.problem
    np.testing.assert_allclose(p.M @ one.v, p.f + p.H @ one.r, atol=1e-3 * np.abs(p.f).max())
    np.testing.assert_allclose(one.u, p.H.T @ one.v + p.w, atol=1e-3)
    normal = one.r.reshape(p.n_contacts, -1)[:530, 0].sum()
    assert normal == pytest.approx(rows["contacts"]["lambda"][-1][:, 0].sum(), rel=1e-3)


def test_files_give_back_what_was_recorded(tmp_path):
    pytest.importorskip("h5py")
    for one in nsds.one_step_problems(nsds.examples.box_stack(), t_end=0.1, h=5e-3, every=5):
        file = tmp_path / f"{one.problem.name}.hdf5"
        solvers.write_fclib(file, one.problem, one)
        stored = solvers.read_fclib(file)
        assert stored.problem.name == one.problem.name
        assert (stored.problem.W != one.problem.W).nnz == 0
        assert (stored.solution.r == one.r).all()
        assert (stored.problem.q == one.problem.q).all()
    assert {file.stem.rpartition("-")[0] for file in tmp_path.iterdir()} == {"step-10", "step-15", "step-20"}


def test_problems_of_a_step_that_fails_come_before_its_error():
    system = nsds.examples.box_stack()
    strict = solvers.solver("nsgs", tol=1e-14, max_iter=1, inexact=0.0)
    problems, found = nsds.one_step_problems(system, t_end=0.5, h=5e-3, solver=strict), []
    with pytest.raises(nsds.SimulationError):
        found.extend(problems)
    assert found
    assert found[-1].status != 0
    assert found[-1].problem.n_contacts > 0


def test_what_comes_of_a_solver_that_raises_in_python_is_told(monkeypatch):
    from nsds.schemes import recorder

    def broken(*_):
        raise RuntimeError("no memory")

    monkeypatch.setattr(recorder, "_frictions", broken)
    with pytest.raises(RuntimeError, match="no memory"):
        list(nsds.one_step_problems(nsds.examples.box_stack(), t_end=0.5, h=5e-3))


def test_refusals_name_what_is_wrong():
    system = nsds.examples.box_stack()
    with pytest.raises(ValueError, match=r"one_step_problems: .*one record.*\(2,\)"):
        nsds.one_step_problems(np.stack([system, system]), t_end=1.0, h=1e-3)
    with pytest.raises(ValueError, match="every"):
        nsds.one_step_problems(system, t_end=1.0, h=1e-3, every=0)
    with pytest.raises(ValueError, match="event_driven"):
        nsds.one_step_problems(nsds.examples.bouncing_ball(), t_end=1.0, h=1e-3, scheme=nsds.event_driven())
    with pytest.raises(ValueError, match="one_step_problems: t_end"):
        nsds.one_step_problems(system, t_end=-1.0, h=1e-3)
