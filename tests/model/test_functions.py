"""User functions: compiled once, known by name and content, refused with a word on what is wanted."""

import random
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import normal

import nsds
from nsds.model.functions import function_address, function_name

GRAVITY = 9.81
FORCE = ("lagrangian_linear", "fext")


def weight(t, z, out):
    out[0] = -GRAVITY * z[0]


def ball(fext, **more):
    return nsds.system(ball=nsds.lagrangian_linear(M=[1.0], fext=fext, q=[1.0], v=[0.0], **more))


def test_the_record_names_the_function():
    system = ball(weight, z=[1.0])
    name = system["ball"]["fext"].item().decode()
    assert name.startswith(f"{__name__}:weight#")
    assert system["ball"]["fext"].dtype.itemsize % 8 == 0
    assert function_address(name, *FORCE) == function_address(function_name(weight, *FORCE), *FORCE)


def test_another_body_constant_or_closure_is_another_function(monkeypatch):
    def force_of(factor):
        def force(t, z, out):
            out[0] = factor * t

        return force

    names = {function_name(force_of(factor), *FORCE) for factor in (1.0, 2.0, 2.0)}
    assert len(names) == 2
    before = function_name(weight, *FORCE)
    monkeypatch.setitem(globals(), "GRAVITY", 1.62)
    assert function_name(weight, *FORCE) != before
    moon = nsds.simulate(ball(weight, z=[1.0]), t_end=1.0, h=1.0)
    assert moon["ball"]["v"][-1, 0] == -1.62


def test_parameters_and_functions_may_differ_over_an_ensemble():
    def up(t, z, out):
        out[0] = z[0]

    systems = np.concatenate([np.repeat(ball(weight, z=[1.0]), 2)])
    systems["ball"]["z"][:, 0] = [1.0, 2.0]
    assert nsds.simulate(systems, t_end=1.0, h=1.0)["ball"]["v"][:, -1, 0].tolist() == [-9.81, -19.62]
    systems["ball"]["fext"][1] = function_name(up, *FORCE).encode()
    assert nsds.simulate(systems, t_end=1.0, h=1.0)["ball"]["v"][:, -1, 0].tolist() == [-9.81, 2.0]


def upwards(t, z, out):
    out[2] = z[0]


def about_z(t, q, v, z, out):
    out[2] = 0.1 * v[5]


def about_z_by_v(t, q, v, z, out):
    out[2, 2], out[5, 5] = 0.0, 0.1


def test_what_a_function_does_not_write_is_zero():
    """Also where the scheme adds to what it wrote: internal and gyroscopic moments, C and K."""
    free = {"mass": 1.0, "inertia": [0.7, 0.9, 1.3], "q": [0, 0, 0, 1, 0, 0, 0], "v": [1, 0, 0, 0.8, 0.1, 2.0], "C": 0.1 * np.eye(6)}
    given = nsds.rigid_bodies(fext=[0, 0, 0.3], mext=[0, 0, 0.3], **free)
    told = nsds.rigid_bodies(fext=upwards, mext=upwards, z=[0.3], **free)
    damped = nsds.rigid_bodies(fext=upwards, mext=upwards, mint=about_z, jac_v=about_z_by_v, z=[0.3], **free)
    stated = nsds.rigid_bodies(fext=[0, 0, 0.3], mext=[0, 0, 0.3], **free | {"C": np.diag([0.1] * 5 + [0.2])})
    rows = nsds.simulate(nsds.system(given=given, told=told, stated=stated, damped=damped), t_end=1.0, h=0.01)
    assert (rows["given"]["v"] == rows["told"]["v"]).all()
    np.testing.assert_allclose(rows["damped"]["v"], rows["stated"]["v"], rtol=0, atol=1e-12)


def test_each_element_of_an_array_part_has_its_own_parameters():
    part = nsds.lagrangian_linear(M=[1.0], fext=weight, z=[[1.0], [2.0], [3.0]], q=[0.0], v=[0.0], count=3)
    trajectory = nsds.simulate(nsds.system(balls=part), t_end=1.0, h=1.0)
    np.testing.assert_allclose(trajectory["balls"]["v"][-1, :, 0], [-9.81, -19.62, -29.43])


@pytest.mark.parametrize(
    ("fext", "words"),
    [
        (lambda t, out: None, ["fext(t, z, out)", "(t, out)"]),
        (lambda: None, ["fext(t, z, out)"]),
        (np.sin, ["fext(t, z, out)", "sin"]),
        (lambda t, z, out: out.append(t), ["fext(t, z, out)", "does not compile"]),
        (lambda t, z, out: 1.0, ["fext(t, z, out)", "does not compile", "nothing returned"]),
    ],
)
def test_unsuitable_functions_are_refused(fext, words):
    with pytest.raises(TypeError) as caught:
        ball(fext)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def breaks_at_half(t, z, out):
    out[0] = np.nan if t > 0.5 else 1.0


@pytest.mark.parametrize("on_failure", ["raise", "warn", "continue"])
def test_nan_from_a_function_is_named_at_its_step(on_failure):
    system = ball(breaks_at_half)
    if on_failure == "raise":
        with pytest.raises(nsds.SimulationError, match=r"fext of part 'ball'.*breaks_at_half.*returned NaN") as caught:
            nsds.simulate(system, t_end=1.0, h=0.1)
        trajectory = caught.value.trajectory
        assert (caught.value.step, len(trajectory)) == (6, 7)
    elif on_failure == "warn":
        with pytest.warns(RuntimeWarning, match="step 6.*breaks_at_half"):
            trajectory = nsds.simulate(system, t_end=1.0, h=0.1, on_failure="warn")
        assert len(trajectory) == 11
    else:
        trajectory = nsds.simulate(system, t_end=1.0, h=0.1, on_failure="continue")
        assert len(trajectory) == 11
    assert np.isfinite(trajectory["ball"]["q"][:6]).all()
    assert (trajectory["status"][:6] == 0).all()
    assert trajectory["status"][6] != 0


def test_another_process_finds_the_function_in_its_module(tmp_path):
    (tmp_path / "forces.py").write_text("def push(t, z, out):\n    out[0] = 2.0\n")
    make = "import numpy as np, nsds, forces\n" + (
        "np.save('ball.npy', nsds.system(ball=nsds.lagrangian_linear(M=[1.0], fext=forces.push, q=[0.0], v=[0.0])))"
    )
    use = """
import numpy as np, nsds
def used(**given):
    try:
        return nsds.step(np.load('ball.npy'), 1.0, **given)['ball']['v'][0]
    except ValueError as error:
        return error
"""

    def run(code):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    run(make)
    unknown, *_, known = run(f"{use}\nprint(used())\nimport forces\nprint(used())")
    assert known == "2.0"
    assert "forces:push" in unknown
    assert "functions=[...]" in unknown
    (tmp_path / "forces.py").rename(tmp_path / "copied.py")
    assert run(f"{use}\nimport copied\nprint(used(functions=[copied.push]))") == ["2.0"]
    (tmp_path / "forces.py").write_text("def push(t, z, out):\n    out[0] = 33.0\n")
    assert "forces.push has changed" in " ".join(run(f"{use}\nimport forces\nprint(used())"))


def test_a_record_imports_nothing(tmp_path):
    """Also not by an attribute of a module that imports when it is asked for it."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "lazy.py").write_text("def __getattr__(name):\n    import trap\n")
    code = """
import numpy as np, nsds, lazy
def push(t, z, out):
    out[0] = 2.0
system = nsds.system(ball=nsds.lagrangian_linear(M=[1.0], fext=push, q=[0.0], v=[0.0]))
for name in (b"trap:push#0", b"lazy:push#0", b"os:system#0", b"os.path:sys.modules#0", b"#", b"\\xff:\\xff", b"trap", b"__main__:push#0"):
    system["ball"]["fext"] = name
    for run in (lambda: nsds.simulate(system, t_end=1.0, h=0.1), lambda: nsds.consistent(system)):
        try:
            run()
        except ValueError as error:
            assert "fext" in str(error), error
        else:
            raise AssertionError(name)
print("none")
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "none", ran.stderr


@pytest.mark.parametrize("call", ["simulate", "step", "stepper"])
def test_what_a_function_raises_ends_the_run_with_part_function_and_time(call):
    def force(t, q, v, z, out):
        if t > 0.055 and z[0] > 0:
            raise ValueError("on purpose")
        out[0] = -q[0]

    systems = np.repeat(nsds.system(mass=nsds.lagrangian(mass=[1.0], fint=force, q=[1.0], v=[0.0], z=[1.0])), 3)
    systems["mass"]["z"][:, 0] = [0.0, 0.0, 1.0]
    run = {
        "simulate": lambda system: nsds.simulate(system, t_end=1.0, h=0.01),
        "step": lambda system: nsds.step(nsds.step(system, 0.03), 0.03),
        "stepper": lambda system: nsds.stepper(system, 0.01)(system, 20),
    }[call]
    message = r"part 'mass': fint\(t, q, v, z, out\), .*force, at t = 0\.06, .*: on purpose \(ValueError\)"
    for system, member in ((systems, 2), (systems[2], None)):
        with pytest.raises(nsds.SimulationError, match=message) as caught:
            run(system)
        assert isinstance(caught.value.__cause__, ValueError)
        assert caught.value.member == member
        assert caught.value.trajectory["step"].max() < 6 or call == "stepper"
    assert (run(systems[0])["status"] == 0).all()


def test_a_function_that_loses_its_result_is_refused():
    def loses(t, z, out):
        out = z * t  # noqa: F841

    def keeps(t, z, out):
        out = out.reshape(1, 1)
        out[0, 0] = 1.0

    def adds(t, z, out):
        out += 1.0

    for function in (keeps, adds):
        system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=function, q=[0.0], v=[0.0], z=[2.0]))
        assert nsds.step(system, 0.5)["mass"]["v"] == 0.5
    with pytest.raises(TypeError, match=r"part 'mass': fext\(t, z, out\), .*loses, must write into its last argument.*'out = ...' is lost"):
        nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=loses, q=[0.0], v=[0.0], z=[2.0]))


STRENGTH = 1.0


def strong(t, z, out):
    out[0] = STRENGTH


def test_numbers_that_changed_since_a_function_was_compiled_are_told(monkeypatch):
    system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=strong, q=[0.0], v=[0.0]))
    nsds.simulate(system, t_end=1.0, h=0.5)
    monkeypatch.setitem(globals(), "STRENGTH", 2.0)
    with pytest.warns(RuntimeWarning, match=r"simulate: the function strong \(fext\) reads STRENGTH, which was 1\.0 .* is 2\.0 now"):
        old = nsds.simulate(system, t_end=1.0, h=0.5)
    assert old["mass"]["v"][-1] == 1.0
    system = nsds.system(mass=nsds.lagrangian_linear(M=[1.0], fext=strong, q=[0.0], v=[0.0]))
    assert nsds.simulate(system, t_end=1.0, h=0.5)["mass"]["v"][-1] == 2.0


def noise():
    return np.random.rand()  # noqa: NPY002


def noisy(t, x, z, out):
    out[0] = noise() - x[0]


def noisy_by_module(t, x, z, out):
    out[0] = random.gauss(0.0, 1.0)


def noisy_by_name(t, x, z, out):
    out[0] = normal() - x[0]  # noqa: NPY002


@pytest.mark.parametrize("function", [noisy, noisy_by_module, noisy_by_name])
def test_functions_that_draw_random_numbers_are_refused(function):
    with pytest.raises(TypeError, match=r"first_order: f: the function nois\w+: it draws random numbers"):
        nsds.first_order(function, x=[0.0])


def measured(t, x, state, z, u):
    u[0] = -x[0] + z[0] * np.random.normal()  # noqa: NPY002


def test_a_controller_may_measure_with_noise():
    """It is called once at each of its instants: what it wrote acts until the next."""
    plant = nsds.first_order_linear(A=[[0.0]], x=[1.0], u=[0.0])
    system = nsds.system(plant=plant, control=nsds.sampled_control(measured, reads="plant", writes="plant", period=0.1, z=[0.01]))
    rows = nsds.simulate(system, t_end=1.0, h=0.05, scheme=nsds.zero_order_hold())
    u, x = rows["plant"]["u"][:, 0], rows["plant"]["x"][:, 0]
    assert (u[0:-1:2] == u[1::2]).all()
    assert (u[0::2] != -x[0::2]).all()
    assert abs(u + np.repeat(x[0::2], 2)[: u.size]).max() < 0.1
