"""The compiled time loop: one for each pair of a start and a step."""

from types import SimpleNamespace

from nsds._jit import kernel
from nsds.schemes.lagrangian import linear
from nsds.schemes.run.simulation import march_of


@kernel
def other_step(t_new, s, calls, options, memory):
    return 0, 0, 0.0


def test_steps_of_one_module_have_loops_of_their_own(monkeypatch):
    """Loops are named by modules; found by its name alone, that of another step would be run, with a clean status."""
    monkeypatch.setattr(other_step, "__module__", linear.step.__module__)
    first, same, other = (SimpleNamespace(start=linear.start, step=step) for step in (linear.step, linear.step, other_step))
    assert march_of(first) is march_of(same) is march_of(linear)
    assert march_of(other) is not march_of(first)
