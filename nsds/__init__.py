"""Nonsmooth dynamical systems: one record in, one trajectory out.

Conventions, everywhere:

``y``
    Output of an interaction, the gap of a contact: ``y >= 0`` is allowed, ``y < 0`` is penetration.
``ydot``
    Its rate, ``H v``, plus ``D lambda`` where there is compliance.
``lambda``
    Multiplier dual to y, never attractive for a contact. On Lagrangian systems it is the impulse of the step that ends at t (N s), not a
    force, under every scheme but `nsds.event_driven`, where it is the force, and the impulse in the row after an impact; but a force (N)
    where the law holds between y and a lambda that y depends on (`nsds.compliant`, `nsds.lagrangian_relation`, linear relations with D,
    under complementarity and equality), and in what `nsds.equilibrium` returns. On first-order systems it is the current, voltage or
    control itself, of the step that ends at t.
    Shapes in a record, behind those of members and rows: () for one constraint, (m,) for m, (count,) or (count, m) of an interaction of
    count elements; contacts with friction (d,) or (k d,), contact by contact, each normal first; of `nsds.collisions` (capacity, d), of
    which the first n are contacts; multipliers mu of a normal cone (faces,).
``r``
    Input of first-order systems, ``M x' = f + r``, ``r = B lambda`` or ``g(t, x, lambda)``.
``H``
    ``ydot = H v`` and, with its transpose, the generalised impulse ``p = H^T lambda``; one row per scalar constraint. Between two parts:
    the columns of the first, then of the second.
``W``
    Delassus matrix ``H M_hat^-1 H^T``; ``M_hat`` is the iteration matrix of the scheme.
local frames
    The normal component comes first: constraints of a contact with friction are (normal, tangents), ``||lambda_t|| <= mu lambda_n``.
"""

import importlib.util
import sys

if importlib.util.find_spec("nsds.solvers") is None:  # it lies beside this folder until the package is installed
    _root = __path__[0].rpartition("nsds")[0] or "."
    raise ImportError(f"{__file__} is the source of nsds: pip install -e {_root}, or, if nsds is installed, start Python in another folder")

from nsds import _checks, analysis, io, laws, relations, schemes, solvers, status
from nsds.maths import rotations
from nsds.model import joints, shapes
from nsds.model.assembly import system
from nsds.model.collisions import collisions
from nsds.model.complementarity_system import linear_complementarity_system
from nsds.model.control import sampled_control
from nsds.model.first_order import first_order, first_order_linear
from nsds.model.interactions import interaction
from nsds.model.lagrangian import lagrangian, lagrangian_modal
from nsds.model.planar_bodies import planar_bodies
from nsds.model.rigid_bodies import rigid_bodies
from nsds.model.systems import lagrangian_linear
from nsds.pictures import plotting
from nsds.results.trajectories import SimulationError, SimulationInterrupted, restart
from nsds.schemes.run.description import describe
from nsds.schemes.run.simulation import simulate
from nsds.schemes.run.stepping import step, stepper
from nsds.status import advice

__version__ = "0.2.0.dev0"

# Public modules are stored by subject; they are imported as parts of the package: ``from nsds.plotting import figure``.
sys.modules.update({"nsds.joints": joints, "nsds.plotting": plotting, "nsds.rotations": rotations, "nsds.shapes": shapes})

# Groups: their names are names of the package, too, but completion shows them in the group alone.
_GROUPS = {"relations": relations, "laws": laws, "schemes": schemes, "analysis": analysis, "io": io}
globals().update({name: getattr(group, name) for group in (relations, laws, schemes, io) for name in group.__all__})

# What few programs need is imported when it is asked for: what stands for itself are modules.
_LATER = {"circuits": "nsds.circuits", "examples": "nsds.examples", "circuit": "nsds.circuits.record", "robot": "nsds.model.robots"}
_LATER |= {"report": "nsds.results.report", "view": "nsds.pictures.viewing"} | dict.fromkeys(analysis.__all__, "nsds.analysis")


def __getattr__(name):
    if name not in _LATER:
        near = "" if name.startswith("_") else _checks.meant(name, __all__)  # tools ask for many names of Python's own, and want no answer
        raise AttributeError(f"module 'nsds' has no attribute {name!r}{near}", name=name)
    module = importlib.import_module(_LATER[name])
    value = globals()[name] = module if module.__name__ == f"nsds.{name}" else getattr(module, name)
    return value


# Everything imported above is public: each name is listed once.
_MODULES = ("joints", "plotting", "rotations", "shapes", "solvers", "status", *_GROUPS)
__all__ = sorted({*_MODULES, *_LATER, *(name for name, value in globals().items() if callable(value) and not name.startswith("_"))})
_SHOWN = [name for name in __all__ if not any(name in group.__all__ for group in (*_GROUPS.values(), status))]


def __dir__():
    return [*_SHOWN, "__all__", "__version__"]
