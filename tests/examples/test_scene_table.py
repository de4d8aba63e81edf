"""The scene table: ordinary models with defaults run without a failed step, keep energy and rest, and do what they are drawn to do.

``python -m tests.scenes`` runs every scene to its end, at all its steps, and prints the figures; here runs are shorter. The first steps
of all scenes with every index and view checked are part of ``python -m tests.plain_coverage``.
"""

import pytest

import nsds
from tests.scenes import SCENES, run
from tests.scenes.runs import judge

# Runs (scene, h) that something is wrong with, and what: what is left to mend, by ``(name, h): reason``.
WRONG = {}
FEW = 300  # steps of a run at the smallest h, which ends before the scene's facts hold


def runs():
    """(scene, h, t_end) of all steps of each scene."""
    for name, scene in SCENES.items():
        for k, h in enumerate(scene.steps):
            if (name, h) not in WRONG:
                yield pytest.param(name, h, min(scene.short, FEW * h) if k == 2 else scene.short, id=f"{name}-{h:g}")


@pytest.mark.parametrize(("name", "h", "t_end"), list(runs()))
def test_scene(name, h, t_end):
    outcome = run(SCENES[name], h, t_end)
    assert outcome.failed == 0, outcome.wrong
    assert not outcome.wrong


def test_the_table_is_long_enough_and_says_what_is_wrong():
    assert len(SCENES) >= 40
    assert all(name in SCENES and h in SCENES[name].steps and reason for (name, h), reason in WRONG.items())


def outcome_of(change):
    """The outcome of a box at rest whose rows were changed after the run."""
    scene = SCENES["box_at_rest"]
    system, facts = scene.build()
    rows = nsds.simulate(system, t_end=0.5, h=1e-2)
    assert judge(scene, system, facts, rows, 1e-2).wrong == []
    change(rows)
    return " ".join(judge(scene, system, facts, rows, 1e-2).wrong)


def test_a_failed_step_is_seen():
    def change(rows):
        rows["status"][10] = 2

    assert "1 steps failed" in outcome_of(change)


def test_a_residual_above_its_tolerance_is_seen():
    def change(rows):
        rows["residual"][10] = 1e-3

    assert "status 0 with residuals" in outcome_of(change)


def test_energy_that_grows_is_seen():
    def change(rows):
        rows["box"]["v"][10:, 2] += 0.1

    assert "energy gains" in outcome_of(change)


def test_a_box_that_moves_is_seen():
    def change(rows):
        rows["box"]["q"][20:, 0] += 1e-6

    assert "not so: it stays where it was" in outcome_of(change)
