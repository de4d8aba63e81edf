"""Nonsmooth laws: relations between the output y and the multiplier lambda of an interaction.

A law is a small dict: its name in the table below and its parameters.
"""

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nsds import _checks
from nsds._docstrings import with_sections
from nsds.model.functions import function_name
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, RELATIONS


def _equations_first(values, m):
    """No bounds for equations, then zero and infinity."""
    is_equation = np.arange(m) < values["n_equalities"][..., None]
    return np.where(is_equation, -np.inf, 0.0), np.full(is_equation.shape, np.inf)


def _given(values, m):
    """Bounds of the law."""
    return values["lower"].reshape(*values.shape, m), values["upper"].reshape(*values.shape, m)


def _strength(values, m):
    """Bounds minus and plus the limit of the law."""
    limit = values["limit"].reshape(*values.shape, m)
    return -limit, limit


def _equations_of(owner, law, m):
    """The field n_equalities."""
    if law["n_equalities"] > m:
        raise ValueError(f"{owner}: n_equalities must be at most {m}, the number of constraints, got {law['n_equalities']}")
    return {"n_equalities": law["n_equalities"]}


def _cone_of(owner, law, m):
    """The half-spaces of a cone, and their multipliers."""
    if law["G"].shape[1] != m:
        raise ValueError(f"{owner}: G must have {m} columns, one for each constraint, got {law['G'].shape[1]}")
    return {"cone_G": law["G"], "cone_g": law["g"], "mu": np.zeros_like(law["g"])}


def _coefficients_of(owner, law, m):
    """Matrices of stiffness and damping, numbers of a single row."""
    fields = {}
    for field in ("stiffness", "damping"):
        value = law[field]
        if value.shape not in ((), (m,), (m, m)):
            raise ValueError(f"{owner}: {field} must be a number or have shape {(m,)} or {(m, m)}, got {value.shape}")
        matrix = value if value.ndim == 2 else np.eye(m) * value
        fields[field] = matrix if m > 1 else matrix.reshape(())
    return fields


def _function_of(owner, law, m):
    """The name of the function, and its parameters."""
    return {field: law[field] for field in ("force", "z") if law[field] is not None}


NONE, FINITE, ANY = range(3)  # bounds of a form: lambda has none of the law's own, finite ones, or some that may be infinite
_FRICTION_TANGENTS = {2: 1, 3: 2}  # of contacts with friction, by the number of their constraints


class Form(NamedTuple):
    """Treatment of laws by kernels and analyses, as the properties that they ask for: a new form is a row of `FORMS`.

    is_equation: y or ydot is zero, and lambda of either sign. is_given: lambda is a force given by y and ydot. is_cone: lambda lies in a
    polyhedron. bounds: NONE, FINITE or ANY; bounds of mechanical systems are those of a force at all times, whatever the gap. tangents: by
    the number of constraints of a contact, how many are tangents with friction; what remains beside the normal are moments, of rolling or
    of spinning about the normal, with the coefficient of_moments. impact: law of impacts with impulses of its own, a key of
    `nsds.solvers.impact.LAWS`. read: parameters that kernels read by name.
    """

    is_equation: bool = False
    is_given: bool = False
    is_cone: bool = False
    bounds: int = NONE
    tangents: MappingProxyType = MappingProxyType({})
    of_moments: str = ""
    impact: str = ""
    read: tuple = ()

    @property
    def properties(self):
        """Names of those that decide how the law is stated; without any it is a gap, which opens."""
        return [field for field in self._fields if field not in ("of_moments", "read") and getattr(self, field)]

    @property
    def has_friction(self):
        """Whether contacts have friction at all times, not in impacts alone."""
        return bool(self.tangents) and not self.impact

    @property
    def spins(self):
        """Whether contacts resist spinning about their normals."""
        return self.of_moments == "mu_s"

    @property
    def rolls(self):
        """Whether contacts resist rolling or spinning."""
        return any(size > 1 + tangents for size, tangents in self.tangents.items())


# Properties of forms that the tables of each family read.
TREATED = {
    LAGRANGIAN: {"is_equation", "bounds", "tangents", "impact"},
    NEWTON_EULER: {"is_equation", "is_given", "bounds", "tangents"},
    FIRST_ORDER: {"is_equation", "is_cone", "bounds"},
}
FORMS = {
    "equality": Form(is_equation=True),
    "unilateral": Form(),
    "friction": Form(tangents=_FRICTION_TANGENTS, read=("mu",)),
    "rolling": Form(tangents={3: 1, 5: 2}, of_moments="mu_r", read=("mu", "mu_r")),
    "spinning": Form(tangents={4: 2}, of_moments="mu_s", read=("mu", "mu_s")),
    "dry_friction": Form(bounds=FINITE),
    "cone": Form(is_cone=True),
    "bounded": Form(bounds=ANY),
    "multiple_impact": Form(tangents=_FRICTION_TANGENTS, impact="multiple_impact", read=("stiffness", "exponent")),
    "force": Form(is_given=True),
    "poisson": Form(tangents=_FRICTION_TANGENTS, impact="poisson_impact", read=("e",)),
}


class Law(NamedTuple):
    """Description of a law: a new one is a row of `LAWS` and a constructor.

    roles: of the relations that it fits, by family of systems. form: its treatment by kernels, a row of `FORMS`. parameters: the
    range of each, which is one number, or one for each contact. blocks: constraints of one contact, by family and dimension, the usual
    one first, where they are more than one. own_bounds: of lambda, if its form has bounds, from the parts of an array of interactions and
    their number m of constraints; of mechanical systems those of a force. restitution: parameters that are one, of each constraint of a
    block from the first on. is_detected: whether detected contacts may have it. is_of_position: whether it relates lambda to y if y
    depends on lambda, which is then a force. held: entries of its constructor beside the parameters; fields: its fields in a record, a
    function of (owner, law, m); shapes: that of each, by lengths or as a whole, or for a whole number the largest that it may be.
    """

    roles: MappingProxyType
    form: str = "unilateral"
    parameters: MappingProxyType = MappingProxyType({})
    blocks: MappingProxyType = MappingProxyType({})
    own_bounds: Callable | None = None
    restitution: tuple = ()
    is_detected: bool = False
    is_of_position: bool = False
    held: tuple = ()
    shapes: MappingProxyType = MappingProxyType({})
    fields: Callable = lambda owner, law, m: {}

    @property
    def families(self):
        """Families of systems it is for."""
        return tuple(self.roles)

    @property
    def treatment(self):
        """Properties of its form."""
        return FORMS[self.form]

    @property
    def bilateral(self):
        """Whether lambda has either sign, and the constraint is never open."""
        form = self.treatment
        return form.is_equation or form.is_given or form.is_cone or form.bounds == FINITE

    @property
    def is_bounded(self):
        """Whether lambda has two bounds of the law's own: the constraint is neither open nor an equation."""
        return self.treatment.bounds != NONE

    @property
    def is_given(self):
        """Whether lambda is a force given by y and ydot: it is no unknown."""
        return self.treatment.is_given

    @property
    def is_one_sided(self):
        """Whether y is a gap: the constraint opens, and lambda is not negative."""
        return not (self.bilateral or self.is_bounded)

    def bounds(self, values, m):
        """Bounds of lambda of an array of interactions with m constraints: its own, or those of its sign."""
        if self.own_bounds is not None:
            return self.own_bounds(values, m)
        shape = (*values.shape, m)
        return np.full(shape, -np.inf if self.bilateral else 0.0), np.full(shape, np.inf)

    def block(self, family, dimension=None):
        """Constraints of one contact, of the usual dimension where none is given."""
        sizes = self.blocks.get(family, {None: 1})
        return sizes[next(iter(sizes)) if dimension is None else dimension]


_FRICTION = {"e_n": (0.0, 1.0), "e_t": (-1.0, 1.0), "mu": (0.0, np.inf)}
_OF_CONTACT = {"restitution": ("e_n", "e_t"), "is_detected": True, "held": ("dimension",)}
_CONTACT = {LAGRANGIAN: ("gap",), NEWTON_EULER: ("contact",)}
_ROLLING = _FRICTION | {"mu_r": (0.0, np.inf)}
_SPINNING = _FRICTION | {"mu_s": (0.0, np.inf)}
_FRICTION_BLOCKS, _ROLLING_BLOCKS = {LAGRANGIAN: {2: 2, 3: 3}, NEWTON_EULER: {3: 3}}, {LAGRANGIAN: {3: 5, 2: 3}, NEWTON_EULER: {3: 5}}
LAWS = {
    "newton_impact": Law(
        {LAGRANGIAN: ("gap",), NEWTON_EULER: ("contact", "joint")}, parameters={"e": (0.0, 1.0)}, restitution=("e",), is_detected=True
    ),
    "newton_impact_friction": Law(_CONTACT, "friction", _FRICTION, _FRICTION_BLOCKS, **_OF_CONTACT),
    "fremond_impact": Law(_CONTACT, "friction", _FRICTION, _FRICTION_BLOCKS, **_OF_CONTACT),
    "newton_impact_rolling_friction": Law(_CONTACT, "rolling", _ROLLING, _ROLLING_BLOCKS, **_OF_CONTACT),
    "newton_impact_spinning_friction": Law(
        {NEWTON_EULER: ("contact",)}, "spinning", _SPINNING, {NEWTON_EULER: {3: 4}}, restitution=("e_n", "e_t"), is_detected=True
    ),
    "poisson_impact": Law({LAGRANGIAN: ("gap",)}, "poisson", {"e": (0.0, 1.0)}, restitution=("e",)),
    "poisson_impact_friction": Law(
        {LAGRANGIAN: ("gap",)}, "poisson", {"e": (0.0, 1.0), "mu": (0.0, np.inf)}, {LAGRANGIAN: {2: 2, 3: 3}},
        restitution=("e",), held=("dimension",),
    ),
    "multiple_impact": Law(
        {LAGRANGIAN: ("gap",)}, "multiple_impact", {"e": (0.0, 1.0), "stiffness": (1e-300, np.inf), "exponent": (1.0, np.inf)},
        restitution=("e",),
    ),
    "multiple_impact_friction": Law(
        {LAGRANGIAN: ("gap",)}, "multiple_impact",
        {"e": (0.0, 1.0), "mu": (0.0, np.inf), "stiffness": (1e-300, np.inf), "exponent": (1.0, np.inf)}, {LAGRANGIAN: {2: 2, 3: 3}},
        restitution=("e",), held=("dimension",),
    ),
    "dry_friction": Law(
        {LAGRANGIAN: ("gap", "drive"), NEWTON_EULER: ("joint", "drive")}, "dry_friction", {"limit": (0.0, np.inf)}, own_bounds=_strength
    ),
    "complementarity": Law({LAGRANGIAN: ("gap", "position"), FIRST_ORDER: ("output",)}, is_of_position=True),
    "equality": Law(
        {LAGRANGIAN: ("gap", "position", "drive"), FIRST_ORDER: ("output",), NEWTON_EULER: ("joint", "drive")},
        "equality", is_of_position=True,
    ),
    "mixed_complementarity": Law(
        {FIRST_ORDER: ("output",)}, "bounded", own_bounds=_equations_first,
        held=("n_equalities",), shapes={"n_equalities": "m"}, fields=_equations_of,
    ),
    "relay": Law(
        {LAGRANGIAN: ("gap", "drive"), FIRST_ORDER: ("output",), NEWTON_EULER: ("joint", "drive")},
        "bounded", {"lower": (-np.inf, np.inf), "upper": (-np.inf, np.inf)}, own_bounds=_given,
    ),
    "normal_cone": Law(
        {FIRST_ORDER: ("output",)}, "cone",
        held=("G", "g"), shapes={"cone_G": ("k", "m"), "cone_g": ("k",), "mu": ("k",)}, fields=_cone_of,
    ),
    "spring_damper": Law(
        {NEWTON_EULER: ("joint",)}, "force",
        held=("stiffness", "damping"), shapes=dict.fromkeys(("stiffness", "damping"), "per_pair"), fields=_coefficients_of,
    ),
    "force_law": Law({NEWTON_EULER: ("joint",)}, "force", held=("force", "z"), fields=_function_of),
}  # fmt: skip
# Entries of the constructors' dicts beside the name.
HELD = {name: (*law.parameters, *law.held) for name, law in LAWS.items()}
MAKERS = tuple(f"nsds.{name}" for name in LAWS)


def require_fitting(owner, law, relation, family):
    """Refuses a law that does not fit a relation between systems of a family."""
    if family not in LAWS[law].families:
        known = ", ".join(name for name, row in LAWS.items() if family in row.families)
        raise ValueError(f"{owner}: {law} is not a law for {family} systems; these are: {known}")
    if RELATIONS[relation].role not in LAWS[law].roles[family]:
        known = ", ".join(fitting(relation, family))
        raise ValueError(f"{owner}: {relation} wants one of the laws {known}, got {law}")
    require_treated(owner, law)


def require_treated(owner, law):
    """Refuses a law with properties that no kernel treats together, or whose row lacks a parameter that kernels read for its form.

    Kernels of contacts know no bounds: a contact with bounds of its own, as with adhesion, would run as one without them.
    """
    row, form = LAWS[law], LAWS[law].treatment
    # 1. the form: properties that exclude each other, or that the kernels of a family do not read
    if len(form.properties) > 1 and form.properties != ["tangents", "impact"]:
        raise ValueError(f"{owner}: {law} has the form {row.form!r} with {' and '.join(form.properties)}, of which kernels treat one alone")
    for family in row.families:
        if not TREATED[family].issuperset(form.properties):
            has, treated = " and ".join(form.properties), ", ".join(sorted(TREATED[family]))
            raise ValueError(f"{owner}: {law} has the form {row.form!r} with {has}; of {family} systems kernels treat gaps, and {treated}")
    # 2. bounds where the form has them, and nowhere else; what opens with a gap has none
    if (row.own_bounds is None) != (form.bounds == NONE):
        has, lacks = (f"form {row.form!r}", "row") if row.own_bounds is None else ("row", f"form {row.form!r}")
        raise ValueError(f"{owner}: the {has} of {law} has bounds of lambda, and its {lacks} has none")
    opens = [role for roles in row.roles.values() for role in roles if role == "contact"] + row.is_detected * ["detected contact"]
    if opens and not row.is_one_sided:
        raise ValueError(f"{owner}: a {opens[0]} opens with its gap, and a law of the form {row.form!r} as {law} acts at all times")
    # 3. sizes of contacts, for which the form says what is a tangent: of any other size all of them would act like gaps
    for family in row.families if row.blocks or form.has_friction else ():
        unknown = set(row.blocks.get(family, {None: 1}).values()) - form.tangents.keys()
        if unknown:
            raise ValueError(f"{owner}: {law} has contacts of {min(unknown)} constraints, of which its form {row.form!r} names no tangent")
    # 4. parameters
    missing = [parameter for parameter in form.read if parameter not in row.parameters]
    if missing:
        raise ValueError(f"{owner}: laws of the form {row.form!r} have a parameter {missing[0]}, which the row of {law} lacks")


def fitting(relation, family):
    """Names of the laws that fit a relation between systems of a family."""
    return [name for name, law in LAWS.items() if RELATIONS[relation].role in law.roles.get(family, ())]


def block_of(owner, law, family):
    """Constraints of one contact of a given law, on systems of a family."""
    dimension, row = law.get("dimension"), LAWS[law["law"]]
    if dimension is not None and dimension not in row.blocks[family]:
        raise ValueError(f"{owner}: contacts of {family} systems are in space; {law['law']} wants dimension=3, got {dimension}")
    return row.block(family, dimension)


def rows_of_contact(law, dtype):
    """Constraints of one contact of a recorded interaction: length of y over number of coefficients of friction."""
    if not LAWS[law].blocks:
        return 1
    return math.prod(dtype["y"].shape) // math.prod(dtype["mu"].shape)


def is_force(law, relation, has_D):
    """Whether lambda of an interaction of Lagrangian systems is a force and its law acts on y; else it is an impulse."""
    return LAWS[law].is_of_position and (has_D or "D" in RELATIONS[relation].functions)


_ranged = with_sections(Raises="ValueError\n    A parameter out of its range.")


def newton_impact(e):
    """Unilateral contact with Newton's restitution: ``0 <= ydot+ + e ydot-  ⟂  lambda >= 0`` while ``y <= 0`` ([EventCapturing]).

    Parameters
    ----------
    e : float or array_like (m,)
        Restitution in [0, 1]; one value for all constraints of the interaction, or one each.

    Raises
    ------
    ValueError
        e outside [0, 1].

    Examples
    --------
    >>> import nsds
    >>> nsds.newton_impact(0.9)["law"]
    'newton_impact'
    """
    return _with_parameters("newton_impact", e=e)


def poisson_impact(e):
    """Contacts of which several take part in one impact, by Poisson's law: what is given back is the part e of each impulse.

    In compression contacts stop closing, ``0 <= ydot_C  ⟂  P_C >= 0``; in expansion each gives back ``e P_C`` at least,
    ``0 <= ydot+  ⟂  P_E - e P_C >= 0`` (Pfeiffer and Glocker 1996, chapter 8). A contact alone obeys ``ydot+ = -e ydot-``, as under
    `nsds.newton_impact`; of several, those at rest give back what others have pressed on them, so that a flat block which falls on one
    corner rocks. See `nsds.solvers.solve_poisson_impact`.

    Parameters
    ----------
    e : float or array_like (m,)
        Restitution of impulses in [0, 1]; one value for all constraints of the interaction, or one each.

    Raises
    ------
    ValueError
        e outside [0, 1].

    Notes
    -----
    Where all e are equal no impact gains energy. A step with an impact uses the velocities at its start and leaves those of the law at its
    end, to which forces that press add nothing where contacts rebound, as under Newton's law. All contacts of the system are to have this
    law or `nsds.poisson_impact_friction`; equations, `nsds.equality`, hold during the impact.

    Examples
    --------
    >>> import nsds
    >>> balls = nsds.lagrangian_linear(M=[1.0], q=[[-0.2], [0.0], [0.1]], v=[[1.0], [0.0], [0.0]], count=3)
    >>> touch = nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]], b=[-0.1])
    >>> cradle = nsds.interaction(touch, nsds.poisson_impact(e=0.5), on=("balls[:-1]", "balls[1:]"))
    >>> rows = nsds.simulate(nsds.system(balls=balls, cradle=cradle), t_end=0.2, h=1e-3)
    >>> rows["balls"]["v"][-1, :, 0].round(6).tolist()
    [0.0, 0.5, 0.5]
    """
    return _with_parameters("poisson_impact", e=e)


@_ranged
def poisson_impact_friction(e, mu, dimension=None):
    """`nsds.poisson_impact` with Coulomb's friction in both phases of an impact, and of contacts that stay closed.

    ``||P_CT|| <= mu P_CN`` opposes the tangential velocity at the end of compression, ``||P_ET|| <= mu P_EN`` that at the end of
    expansion (Glocker and Pfeiffer 1995, without restitution of tangents). A body may so slip to one side in compression and to the other
    in expansion, which Newton's law with friction, `nsds.newton_impact_friction`, does not know.

    Parameters
    ----------
    e, mu : float or array_like (contacts,)
        Restitution of normal impulses in [0, 1], and coefficient of friction.
    dimension : 2 or 3, optional
        Contacts in the plane or in space; in the plane if not given.

    Notes
    -----
    Where all e are equal no impact gains energy. See `nsds.poisson_impact` for what goes with it.

    Examples
    --------
    A rod that falls on its end, inclined by 45 degrees, under Newton's law and under Poisson's:

    >>> import numpy as np, nsds
    >>> end = nsds.lagrangian_linear_relation([[0.0, 1.0, -0.5], [1.0, 0.0, 0.5]])
    >>> for law in (nsds.newton_impact_friction(0.5, 1.0), nsds.poisson_impact_friction(0.5, 1.0)):
    ...     rod = nsds.lagrangian_linear(M=[1.0, 1.0, 1 / 6], q=np.zeros(3), v=[-0.2, -1.0, 0.0])
    ...     rows = nsds.simulate(nsds.system(rod=rod, floor=nsds.interaction(end, law, on="rod")), t_end=1e-3, h=1e-3)
    ...     (rows["floor"]["ydot"][-1].round(6) + 0.0).tolist()
    [0.5, 0.0]
    [0.56, 0.0]
    """
    return _with_parameters("poisson_impact_friction", e=e, mu=mu) | _dimension("poisson_impact_friction", dimension)


@_ranged
def multiple_impact(e, stiffness=1.0, exponent=1.0):
    """Contacts of which several take part in one impact, by the law of Liu, Zhao and Brogliato (2008).

    While bodies touch, contacts are springs of the force ``stiffness D^exponent`` with deformations D, positions stay, and a contact
    returns the part ``e^2`` of the energy that it took: what each ball of Newton's cradle does depends on this. A contact alone obeys
    ``ydot+ = -e ydot-``, as under `nsds.newton_impact`, and contacts at rest carry loads. See `nsds.solvers.solve_multiple_impact`.

    Parameters
    ----------
    e : float or array_like (m,)
        Energetic restitution in [0, 1]; one value for all constraints of the interaction, or one each.
    stiffness : float or array_like (m,)
        Stiffnesses, positive; only ratios between the contacts of the system count.
    exponent : float
        At least 1 and the same in all of the system: 1 linear, 1.5 Hertz.

    Notes
    -----
    A step with an impact uses the velocities at its start and leaves those of the law at its end, to which forces of that step add
    nothing where contacts rebound, as under Newton's law. All contacts of the system are to have this law; equations, `nsds.equality`,
    hold during the impact.

    Examples
    --------
    >>> import nsds
    >>> balls = nsds.lagrangian_linear(M=[1.0], q=[[-0.2], [0.0], [0.1]], v=[[1.0], [0.0], [0.0]], count=3)
    >>> touch = nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]], b=[-0.1])
    >>> cradle = nsds.interaction(touch, nsds.multiple_impact(e=1.0, exponent=1.5), on=("balls[:-1]", "balls[1:]"))
    >>> rows = nsds.simulate(nsds.system(balls=balls, cradle=cradle), t_end=0.2, h=1e-3)
    >>> rows["balls"]["v"][-1, :, 0].round(6).tolist()
    [-0.070952, 0.076403, 0.994549]
    """
    return _with_parameters("multiple_impact", e=e, stiffness=stiffness, exponent=exponent)


@_ranged
def multiple_impact_friction(e, mu, stiffness=1.0, exponent=1.0, dimension=None):
    """`nsds.multiple_impact` with Coulomb's friction during the impact, and of contacts that stay closed.

    While bodies touch, a contact that slips has ``dP_T = -mu dP_N u_T / ||u_T||``; one that sticks has what keeps it so, up to
    ``mu dP_N``: slip may end and turn within an impact (Zhao, Liu and Brogliato 2009). A contact alone gives back the part ``e^2`` of the
    work of compression (Stronge's restitution), whatever its stiffness is.

    Parameters
    ----------
    e, mu : float or array_like (contacts,)
        Energetic restitution in [0, 1], of the work of normal impulses, and coefficient of friction.
    stiffness, exponent
        See `nsds.multiple_impact`.
    dimension : 2 or 3, optional
        Contacts in the plane or in space; in the plane if not given.

    Notes
    -----
    See `nsds.multiple_impact` for what goes with it; contacts of both laws may be in one system.

    Examples
    --------
    A rod that falls on its end, inclined by 45 degrees:

    >>> import numpy as np, nsds
    >>> end = nsds.lagrangian_linear_relation([[0.0, 1.0, -0.5], [1.0, 0.0, 0.5]])
    >>> rod = nsds.lagrangian_linear(M=[1.0, 1.0, 1 / 6], q=np.zeros(3), v=[-0.2, -1.0, 0.0])
    >>> floor = nsds.interaction(end, nsds.multiple_impact_friction(0.5, 1.0), on="rod")
    >>> (nsds.simulate(nsds.system(rod=rod, floor=floor), t_end=1e-3, h=1e-3)["floor"]["ydot"][-1].round(6) + 0.0).tolist()
    [0.551362, 0.0]
    """
    law = "multiple_impact_friction"
    return _with_parameters(law, e=e, mu=mu, stiffness=stiffness, exponent=exponent) | _dimension(law, dimension)


@_ranged
def newton_impact_friction(e_n, mu, e_t=0.0, dimension=None):
    """Unilateral contact with Newton's restitution and Coulomb's friction (Moreau 1988; [Notes], 10.2 and 11.198).

    With ``u'_n = u_n+ + e_n u_n-`` and ``u'_t = u_t+ + e_t u_t-``, while ``y_n <= 0``: ``0 <= u'_n  ⟂  lambda_n >= 0``,
    ``||lambda_t|| <= mu lambda_n``, and ``lambda_t = -mu lambda_n u'_t / ||u'_t||`` where the contact slides.

    Each contact has as many constraints as the dimension: the normal one, then the tangent, or two tangents at right angles. Of y only the
    normal component counts.

    Parameters
    ----------
    e_n : float or array_like (contacts,)
        Restitution in [0, 1]; one value for all contacts of the interaction, or one each.
    mu : float or array_like (contacts,)
        Coefficient of friction, not negative.
    e_t : float or array_like (contacts,)
        Restitution of the tangential velocity in [-1, 1].
    dimension : 2 or 3, optional
        Contacts in the plane or in space. If not given: of Lagrangian systems in the plane; those of rigid bodies are in space always.

    Notes
    -----
    Newton's restitution together with friction may gain energy in an oblique impact of a body that is not a ball (Kane and Levinson
    1985); `nsds.fremond_impact` never does.

    Examples
    --------
    >>> import nsds
    >>> nsds.newton_impact_friction(e_n=0.9, mu=0.3)["mu"].item()
    0.3
    """
    return _with_parameters("newton_impact_friction", e_n=e_n, e_t=e_t, mu=mu) | _dimension("newton_impact_friction", dimension)


@_ranged
def newton_impact_rolling_friction(e_n, mu, mu_r, e_t=0.0, dimension=None):
    """`newton_impact_friction` with a moment that resists rolling (Acary and Bourrier 2021; [Notes], chapter 12).

    The moment of the contact in the tangent plane obeys ``||lambda_r|| <= mu_r lambda_n`` and, where the bodies roll,
    ``lambda_r = -mu_r lambda_n omega_t / ||omega_t||``, with omega_t the relative angular velocity in that plane. Spinning about the normal
    is free. The contact has five constraints: normal, two tangents, two of rolling; in the plane three: normal, tangent, rolling.

    In residuals of steps of rigid bodies angular rates count as velocities, at the length ``((1/m_a + 1/m_b) / (1/I_a + 1/I_b))^(1/2)`` of
    both bodies, I a third of the trace of the inertia: the radius of gyration where one of them moves.

    Parameters
    ----------
    e_n, mu, e_t : float or array_like
        See `newton_impact_friction`.
    mu_r : float or array_like
        Coefficient of rolling friction (m), not negative.
    dimension : 2 or 3, optional
        Contacts in the plane or, if not given, in space; those of rigid bodies are in space always.

    Examples
    --------
    >>> import nsds
    >>> nsds.newton_impact_rolling_friction(e_n=0.0, mu=0.5, mu_r=0.01)["mu_r"].item()
    0.01
    """
    law = "newton_impact_rolling_friction"
    return _with_parameters(law, e_n=e_n, e_t=e_t, mu=mu, mu_r=mu_r) | _dimension(law, dimension)


@_ranged
def newton_impact_spinning_friction(e_n, mu, mu_s, e_t=0.0):
    """`newton_impact_friction` of rigid bodies with a moment about the normal that resists spinning, as of a contact with some area.

    The moment obeys ``|lambda_s| <= mu_s lambda_n`` and, where the bodies spin against each other about the normal,
    ``lambda_s = -mu_s lambda_n sign(omega_n)``. Rolling is free. The contact has four constraints: normal, two tangents, spinning. It is
    in space; bodies in the plane do not spin about the normals of their contacts.

    Parameters
    ----------
    e_n, mu, e_t : float or array_like
        See `newton_impact_friction`.
    mu_s : float or array_like
        Coefficient of spinning friction (m), not negative: of a disk of radius R pressed on evenly ``2 R mu / 3``, of a Hertzian contact of
        radius R ``3 pi R mu / 16``.

    Notes
    -----
    The moment is independent of the tangential force: of a contact that slides and spins at the same time, friction over an area would
    have less of both (Contensou 1963).

    Examples
    --------
    A ball that spins on the floor comes to rest after ``2 r^2 omega / (5 mu_s g)``:

    >>> import nsds
    >>> ball = nsds.shapes.sphere(0.1)
    >>> system = nsds.system(
    ...     gravity=[0, 0, -9.81],
    ...     ball=nsds.rigid_bodies(1.0, nsds.shapes.inertia(ball, 1.0), q=[0, 0, 0.1, 1, 0, 0, 0], v=[0, 0, 0, 0, 0, 10.0]),
    ...     contacts=nsds.collisions(
    ...         {"ball": ball}, nsds.newton_impact_spinning_friction(e_n=0.0, mu=0.5, mu_s=0.01), world=nsds.shapes.plane()
    ...     ),
    ... )
    >>> rows = nsds.simulate(system, t_end=0.5, h=1e-2)
    >>> abs(rows["ball"]["v"][[0, 20, 50], 5]).round(3).tolist()
    [10.0, 5.095, 0.0]
    """
    return _with_parameters("newton_impact_spinning_friction", e_n=e_n, e_t=e_t, mu=mu, mu_s=mu_s)


def dry_friction(limit):
    """Friction of a given strength, as in a joint: ``|lambda| <= h limit``, and ``lambda = -h limit sign(ydot)`` where it slides.

    It acts all the time, on the velocity ydot of any constraint. lambda is an impulse, h the step. `nsds.relay` has a limit for each
    direction.

    Parameters
    ----------
    limit : float or array_like (m,)
        Largest force (N) or moment (N m), not negative.

    Raises
    ------
    ValueError
        A limit that is negative.

    Examples
    --------
    >>> import nsds
    >>> nsds.dry_friction(2.5)["limit"].item()
    2.5
    """
    return _with_parameters("dry_friction", limit=limit)


def spring_damper(stiffness, damping=0.0):
    """Force of a spring and a damper on a coordinate y of two bodies: ``f = -stiffness y - damping ydot``, lambda its impulse in the step.

    On `nsds.joints.distance` a spring between two points, y its extension; on `nsds.joints.hinge_angle` a torsion spring; on
    `nsds.joints.slide_along` a spring along an axis; on all six rows of `nsds.joints.fixed_joint` a bushing. Stiff ones need no small steps
    under schemes that are implicit: Newton's matrix couples the two bodies.

    Parameters
    ----------
    stiffness, damping : float or array_like (m,) or (m, m)
        Of each row of the relation, or of rows on each other: N/m and N s/m for displacements, N m and N m s for angles and cosines.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity.

    Examples
    --------
    Two balls on a spring of length 1:

    >>> import nsds
    >>> balls = nsds.rigid_bodies(2.0, 0.1, q=[[0, 0, 0, 1, 0, 0, 0], [1.1, 0, 0, 1, 0, 0, 0]], v=[[0.0] * 6] * 2)
    >>> spring = nsds.interaction(
    ...     nsds.joints.distance([0, 0, 0], [1.1, 0, 0], length=1.0), nsds.spring_damper(100.0), on=("balls[0]", "balls[1]"))
    >>> rows = nsds.simulate(nsds.system(balls=balls, spring=spring), t_end=0.3, h=1e-3)
    >>> float(rows["spring"]["y"][-1].round(4))  # 0.1 cos 3
    -0.099
    """
    law = {"law": "spring_damper"}
    for name, value in (("stiffness", stiffness), ("damping", damping)):
        law[name] = value = _parameter("spring_damper", name, value)
        if value.ndim > 2 or value.size == 0 or (value.ndim == 2 and value.shape[0] != value.shape[1]):
            raise ValueError(f"spring_damper: {name} must be a number, a vector or a square matrix, got shape {value.shape}")
    return law


def force_law(force, z=None):
    """Force that a function gives of a coordinate y of two bodies and its rate: springs and dampers of any kind, motors and servos.

    It acts along y on the first body, and with the opposite sign on the second; lambda is its impulse in the step.

    Parameters
    ----------
    force : function ``force(t, y, ydot, z, out)``
        Writes the force of each row of the relation into ``out`` (m,): N for displacements, N m for angles.
    z : array_like, optional
        Parameters passed to the function.

    Raises
    ------
    TypeError, ValueError
        A function that has the wrong arguments or does not compile; parameters that are no vector of numbers.

    Examples
    --------
    A servo that holds the angle of a door:

    >>> import nsds
    >>> def servo(t, y, ydot, z, out):
    ...     out[0] = z[0] * (z[1] - y[0]) - z[2] * ydot[0]
    >>> door = nsds.rigid_bodies(10.0, [1.0, 1.0, 1.0], q=[0.5, 0, 0, 1, 0, 0, 0], v=[0.0] * 6)
    >>> system = nsds.system(
    ...     door=door,
    ...     hinge=nsds.interaction(nsds.joints.hinge([0, 0, 0], [0, 0, 1]), nsds.equality(), on="door"),
    ...     servo=nsds.interaction(nsds.joints.hinge_angle([0, 0, 1]), nsds.force_law(servo, z=[40.0, 0.5, 20.0]), on="door"),
    ... )
    >>> float(nsds.simulate(system, t_end=5.0, h=1e-2)["servo"]["y"][-1].round(3))
    0.5
    """
    z = None if z is None else _checks.array("force_law", "z", z, at_least=1, n_dims=1)
    return {"law": "force_law", "force": function_name(force, "force_law", "force"), "z": z}


@_ranged
def fremond_impact(e, mu, dimension=None):
    """Frémond's impact law: friction acts on the mean of the tangential velocities before and after the impact, ``(u_t+ + u_t-) / 2``.

    The work of an impact is the impulse times the mean velocity (Frémond, Non-smooth thermomechanics, 2002, chapter 3), so that
    ``lambda_n (u_n+ + u_n-) / 2 + lambda_t (u_t+ + u_t-) / 2 <= 0`` holds for every e and mu where contacts close, ``u_n- <= 0``: no impact
    gains energy. It is `nsds.newton_impact_friction` with ``e_t = 1``.

    Parameters
    ----------
    e, mu : float or array_like (contacts,)
        Restitution of the normal velocity in [0, 1], and coefficient of friction.
    dimension : 2 or 3, optional
        See `newton_impact_friction`.

    Examples
    --------
    >>> import nsds
    >>> nsds.fremond_impact(e=0.5, mu=0.3)["e_t"].item()
    1.0
    """
    return _with_parameters("fremond_impact", e_n=e, e_t=1.0, mu=mu) | _dimension("fremond_impact", dimension)


def _dimension(law, dimension):
    """The dimension of contacts, None for the usual one of the systems."""
    return {"dimension": None if dimension is None else _checks.integer(law, "dimension", dimension, low=2, high=3)}


def _parameter(law, name, value):
    """An array of numbers; a function is refused with the alternative for parameters that vary."""
    if callable(value):
        raise TypeError(
            f"{law}: {name} must be numbers, got the function {_checks.shortened(value)}: what varies is set between steps by nsds.stepper "
            f"in the record's field '{name}'; in a first-order system bounds(t, z, out) of its relation say it, with nsds.relay()"
        )
    return _checks.array(law, name, value)


def _with_parameters(law, **parameters):
    """A law whose parameters, numbers or vectors, or tables over two materials, lie in their ranges."""
    result = {"law": law}
    for name, value in parameters.items():
        low, high = LAWS[law].parameters[name]
        result[name] = value = _parameter(law, name, value)
        most = 2 if LAWS[law].is_detected else 1
        if value.ndim > most or (value < low).any() or (value > high).any():
            kinds = "a number, a vector or a table over materials" if most == 2 else "a number or a vector"
            raise ValueError(f"{law}: {name} must be {kinds} in [{low:g}, {high:g}], got {value.tolist()}")
    return result


def complementarity():
    """Complementarity: ``0 <= y ⟂ lambda >= 0``; at velocity level under Moreau–Jean, an impact that dissipates all (e = 0).

    Examples
    --------
    >>> import nsds
    >>> nsds.complementarity()
    {'law': 'complementarity'}
    """
    return {"law": "complementarity"}


def equality():
    """Bilateral constraint: ``y = 0`` with lambda of either sign; ``ydot = 0`` at every step under Moreau–Jean.

    Examples
    --------
    >>> import nsds
    >>> nsds.equality()
    {'law': 'equality'}
    """
    return {"law": "equality"}


def mixed_complementarity(n_equalities):
    """Equations first, then complementarity: ``y_i = 0`` for the first ``n_equalities``, ``0 <= y_i ⟂ lambda_i >= 0`` for the rest.

    Parameters
    ----------
    n_equalities : int >= 0
        Number of equations ([Notes], eq. 9.36).

    Raises
    ------
    TypeError, ValueError
        Not a whole number, or negative.

    Examples
    --------
    >>> import nsds
    >>> nsds.mixed_complementarity(2)["n_equalities"].item()
    2
    """
    return {
        "law": "mixed_complementarity",
        "n_equalities": np.array(_checks.integer("mixed_complementarity", "n_equalities", n_equalities, 0)),
    }


def relay(lower=None, upper=None):
    """Relay: ``-y ∈ N_[lower,upper](lambda)``: lambda = lower where y > 0, upper where y < 0, anything between where y = 0.

    On joints and prescribed velocities of rigid bodies, and in Lagrangian systems, it is ydot that counts, and the bounds are those of a
    force or moment, of which lambda is the impulse: ``h lower <= lambda <= h upper``. With `nsds.prescribed_velocity` it is a motor that
    holds a velocity with no more than these, on the angle of a hinge a brake or a clutch with bounds of its own for each direction;
    ``relay(0, inf)`` never lets ydot be negative, as a freewheel does.

    With a negative D, ``y = C x + D lambda`` has hysteresis, of width ``(upper - lower) |D|``: within it both bounds are solutions, and the
    one between them is unstable. A run keeps the bound that lambda has until it is no solution any more, and begins at that of the record's
    lambda; where this lies between the bounds, and both are solutions, a warning says at which one the run begins.

    Parameters
    ----------
    lower, upper : float or array_like (m,)
        Bounds of lambda, ``lower <= upper``, -1 and 1 if neither is given; ``[0, 1]`` makes step functions of -y. Infinite bounds make the
        constraint one-sided.

    Raises
    ------
    TypeError
        One bound without the other.
    ValueError
        NaN, or lower above upper.

    Examples
    --------
    >>> import nsds
    >>> nsds.relay(0.0, 1.0)["upper"].item()
    1.0
    """
    # 1. both bounds or neither
    if (lower is None) != (upper is None):
        given, missing, value = ("lower", "upper", lower) if upper is None else ("upper", "lower", upper)
        raise TypeError(
            f"relay: {missing} must be given where {given} is, got {given} = {_checks.shortened(value)} alone; relay(-1, 1) has bounds to "
            "both sides of 0, nsds.dry_friction(limit) those of a force that opposes motion"
        )
    lower, upper = (-1.0, 1.0) if lower is None else (lower, upper)
    # 2. lower <= upper, with infinities that never act
    low, high = (_bounds(name, bound) for name, bound in (("lower", lower), ("upper", upper)))
    if low.ndim > 0 < high.ndim and low.shape != high.shape:
        raise ValueError(f"relay: lower and upper must have one length, got shapes {low.shape} and {high.shape}")
    if low.ndim > 1 or high.ndim > 1 or not (low <= high).all() or np.isposinf(low).any() or np.isneginf(high).any():
        raise ValueError(
            f"relay: lower <= upper is wanted, numbers or vectors, got {_checks.shortened(lower)} and {_checks.shortened(upper)}"
        )
    return {"law": "relay", "lower": low, "upper": high}


def _bounds(name, bound):
    """A number or vector in which infinity is allowed."""
    try:
        infinite = np.isinf(np.asarray(bound))
    except (TypeError, ValueError):  # not numbers at all
        infinite = np.False_
    if not infinite.any():
        value = _parameter("relay", name, bound)
    else:
        value = np.asarray(bound, dtype=np.float64)
        _checks.array("relay", name, np.where(infinite, 0.0, value))
    _checks.length("relay", name, value)
    return value


def normal_cone(G, g):
    """Normal cone of a polyhedron: ``-y ∈ N_P(lambda)``, ``P = {lambda: G lambda >= g}``.

    That is ``y = G^T mu``, ``0 <= mu ⟂ G lambda - g >= 0``; mu is a field of the interaction.

    Parameters
    ----------
    G : array_like (k, m)
        One row per half-space.
    g : array_like (k,)
        Right-hand side.

    Raises
    ------
    TypeError, ValueError
        Wrong shape, NaN or infinity.

    Examples
    --------
    >>> import nsds
    >>> triangle = nsds.normal_cone(G=[[1, 0], [0, 1], [-1, -1]], g=[0, 0, -1])
    >>> triangle["G"].shape
    (3, 2)
    """
    G = _checks.array("normal_cone", "G", G, n_dims=2)
    if G.size == 0:
        raise ValueError(f"normal_cone: G must have shape (k, m), both at least 1, got {G.shape}")
    return {"law": "normal_cone", "G": G, "g": _checks.array("normal_cone", "g", g, shape=(G.shape[0],), at_least=1)}
