"""The cam follower over a range of speeds, all at once: one ensemble, one bifurcation diagram."""

import numpy as np

from nsds.examples.cam_follower import cam_follower
from nsds.pictures.plotting import bifurcation, figure, stroboscopic_points

RUN = {"t_end": 8.0, "h": 1e-4, "save_every": 2, "fields": ["follower"]}

_TRANSIENT = 5.0  # seconds that are not drawn


def cam_bifurcation(first_rpm=350.0, last_rpm=750.0, members=101, e=0.8):
    """Ensemble of cam followers at evenly spaced speeds.

    Parameters
    ----------
    first_rpm, last_rpm : float
        Speeds of the first and the last member (revolutions per minute).
    members : int
        Number of followers.
    e : float
        Restitution.

    Returns
    -------
    numpy.ndarray, shape (members,)
        Records of `nsds.examples.cam_follower`.

    Examples
    --------
    >>> import nsds
    >>> nsds.examples.cam_bifurcation(members=3)["follower"]["z"][:, 0]
    array([350., 550., 750.])
    """
    followers = np.repeat(cam_follower(e=e), members)
    followers["follower"]["z"][:, 0] = np.linspace(first_rpm, last_rpm, members)
    return followers


def draw(systems, trajectories):
    """Distance from the cam, once a revolution after the transient, against speed."""
    drawing, ax = figure(1)
    rpm = systems["follower"]["z"][:, 0]
    points = [
        stroboscopic_points(trajectory, "follower", period=60.0 / speed, after=_TRANSIENT)["q"][:, 0]
        for trajectory, speed in zip(trajectories, rpm, strict=True)
    ]
    bifurcation(rpm, points, ax=ax)
    ax.set(xlabel="cam speed (rpm)", ylabel="distance from the cam, once a revolution (m)")
    return drawing
