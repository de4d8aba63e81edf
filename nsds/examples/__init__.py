"""Built-in examples: plain functions that return a record (or an ensemble), how to run each, and its picture."""

from typing import NamedTuple

from nsds.examples import bouncing_ball as _ball
from nsds.examples import cam_bifurcation as _bifurcation
from nsds.examples import cam_follower as _cam
from nsds.examples import column_of_beads as _column
from nsds.examples import impacting_bar as _bar
from nsds.examples.bouncing_ball import bouncing_ball
from nsds.examples.cam_bifurcation import cam_bifurcation
from nsds.examples.cam_follower import cam_follower, cam_motion
from nsds.examples.column_of_beads import column_of_beads
from nsds.examples.impacting_bar import impacting_bar

__all__ = ["EXAMPLES", "bouncing_ball", "cam_bifurcation", "cam_follower", "cam_motion", "column_of_beads", "impacting_bar"]


class Example(NamedTuple):
    """An example: ``build(**parameters)`` gives the record, ``run`` how to simulate it, ``draw(trajectory, system)`` its figure."""

    build: object
    run: dict
    draw: object


# A new example is one module and one line here; the command line and the tests pick it up.
EXAMPLES = {
    "bouncing_ball": Example(bouncing_ball, _ball.RUN, _ball.draw),
    "cam_follower": Example(cam_follower, _cam.RUN, _cam.draw),
    "cam_bifurcation": Example(cam_bifurcation, _bifurcation.RUN, _bifurcation.draw),
    "column_of_beads": Example(column_of_beads, _column.RUN, _column.draw),
    "impacting_bar": Example(impacting_bar, _bar.RUN, _bar.draw),
}
