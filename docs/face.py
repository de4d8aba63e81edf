"""The picture at the head of the README: ``python docs/face.py`` writes ``docs/face.png``."""

import math
from pathlib import Path

import matplotlib as mpl
import numpy as np

import nsds

PICTURE = Path(__file__).with_name("face.png")
_STYLE = {"font.size": 8, "axes.titlesize": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6}
_GREY, _BLUE, _RED = "0.55", "#1f5fa8", "#c23b22"
_BRIDGE = """full-wave rectifier
V1 a b SIN(0 10 50)
D1 a out DI
D2 b out DI
D3 0 a DI
D4 0 b DI
C1 out 0 470u
R1 out 0 50
.model DI D
"""


def draw_tower(ax):
    """A tower of boxes, the uppermost of which was struck."""
    tower = nsds.examples.box_stack(n=8, offset=0.2)
    tower["boxes"]["v"][4:, 0] = np.linspace(0.3, 1.3, 4)
    rows = nsds.simulate(tower, t_end=0.3, h=1e-3, progress=False)
    nsds.plotting.scene(tower, rows[-1], ax=ax, elev=8, azim=-68)
    ax.set_axis_off()
    ax.set_title("Impacts and Coulomb friction", y=0.98)


def draw_diagram(ax):
    """Positions of a driven oscillator before a stop, once a period, over the frequency of what drives it."""
    frequency = np.linspace(2.2, 3.05, 360)
    mass = nsds.lagrangian_linear(M=[1.0], K=[1.0], C=[0.1], fext=_push, q=[0.1], v=[0.0], z=frequency[:1])
    stop = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]], b=[0.2]), nsds.newton_impact(0.8), on="mass")
    rows = nsds.sweep(
        nsds.system(mass=mass, stop=stop), vary={"mass.z[0]": frequency}, period=lambda omega: 2.0 * np.pi / omega, keep=64,
        progress=False,
    )  # fmt: skip
    for points in rows["x"][:, :, :, 0]:  # with the frequency rising, then falling
        ax.plot(np.repeat(frequency, 64), points.ravel(), ",", color=_BLUE, alpha=0.6)
    ax.set(xlabel="frequency of the force", ylabel="position once a period", title="Orbits, bifurcations, chaos")


def _push(t, z, out):
    out[0] = math.cos(z[0] * t)


def draw_rectifier(ax):
    """Voltages of a rectifier with ideal diodes, and when they conduct."""
    bridge = nsds.circuit(_BRIDGE)
    rows = nsds.simulate(bridge, t_end=0.04, h=2e-4, scheme=nsds.event_driven(), progress=False)
    t = rows["t"] * 1e3
    source = nsds.circuits.voltage(bridge, rows, "a") - nsds.circuits.voltage(bridge, rows, "b")
    current = nsds.circuits.current(bridge, rows, "D1") + nsds.circuits.current(bridge, rows, "D2")
    ax.fill_between(t, 0.0, 11.0, where=current > 1e-9, color=_RED, alpha=0.15, lw=0.0, label="diodes conduct")
    ax.plot(t, abs(source), color=_GREY, lw=0.8, label="source")
    ax.plot(t, nsds.circuits.voltage(bridge, rows, "out"), color=_BLUE, lw=1.2, label="output")
    ax.set(xlabel="time (ms)", ylabel="voltage (V)", ylim=(0.0, 13.0), title="Ideal diodes and switches")
    ax.legend(frameon=False, loc="upper center", ncols=3, fontsize=6, columnspacing=1.0, handlelength=1.2)  # above all curves


def main():
    """Write the picture."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_STYLE):
        figure = plt.figure(figsize=(9.0, 2.9), layout="constrained")
        draw_tower(figure.add_subplot(1, 3, 1, projection="3d"))
        draw_diagram(figure.add_subplot(1, 3, 2))
        draw_rectifier(figure.add_subplot(1, 3, 3))
        figure.savefig(PICTURE, dpi=110, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    main()
