"""Interactions: a relation and a law on one or two parts, or on elements of array parts."""

import re

import numpy as np

from nsds import _checks
from nsds.model import joints
from nsds.model.laws import HELD, LAWS, MAKERS, block_of, require_fitting
from nsds.model.records import pack
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER, RELATIONS, SYSTEMS

_ELEMENTS = re.compile(r"(\w+)\[\s*(-?\d*)\s*(:?)\s*(-?\d*)\s*(:?)\s*(-?\d*)\s*\]")


def interaction(relation, law, on, *, enabled=None):
    """Joins a relation and a law on the parts on which they act.

    Parameters
    ----------
    relation : dict
        From `nsds.lagrangian_linear_relation`, `nsds.first_order_linear_relation`, or one of the nonlinear ones.
    law : dict
        Of Lagrangian systems from `nsds.newton_impact`, `nsds.multiple_impact`, `nsds.multiple_impact_friction`,
        `nsds.newton_impact_friction`, `nsds.newton_impact_rolling_friction`, `nsds.fremond_impact`, `nsds.poisson_impact`,
        `nsds.poisson_impact_friction`, `nsds.dry_friction`, of first-order ones from `nsds.mixed_complementarity`, `nsds.normal_cone`, of
        both from `nsds.relay`, `nsds.complementarity` and `nsds.equality`; of rigid bodies from `nsds.equality`, `nsds.newton_impact`,
        those of friction, `nsds.dry_friction` and `nsds.relay`.
    on : str, (str, indices), or a pair of these
        Name of a part, or of two parts. Elements of an array part are chosen as in NumPy, ``"beads[0]"``, ``"beads[:-1]"``, or by
        an index array, ``("beads", [0, 2, 5])``; a bare name means all elements. Several elements make the interaction an array with
        one entry for each, and two sides are paired element by element.
    enabled : bool or array_like of bool (count,), optional
        Of rigid bodies, which elements take part, where that may change: between steps, in the record, or in a run, by a
        `nsds.sampled_control` that writes ``"bond.enabled"``, as of bonds that break, latches and clutches. What is not enabled exerts no
        force; its y and ydot are told all the same. A joint that is enabled must hold where the bodies are then.

    Returns
    -------
    dict
        A part for `nsds.system`. In the record it has the fields y and lambda, those of the relation and the law, and more that change in
        time: ydot and active on Lagrangian systems, the multipliers mu of a normal cone, enabled where it was given.

    Raises
    ------
    TypeError, ValueError
        Not a relation or law, or a choice of parts that cannot be read.

    Examples
    --------
    >>> import nsds
    >>> floor = nsds.interaction(nsds.lagrangian_linear_relation(H=[[1.0]]), nsds.newton_impact(e=0.9), on="beads[0]")
    >>> neighbours = nsds.interaction(
    ...     nsds.lagrangian_linear_relation(H=[[-1.0, 1.0]]), nsds.newton_impact(e=0.9), on=("beads[:-1]", "beads[1:]"))
    """
    # relation and law must come from constructors; z of both would be ambiguous
    made = dict.fromkeys(RELATIONS, ("m", "n")) | {"joint": ("m", "n", "joint")}
    makers = ["nsds.joints" if name == "joint" else f"nsds.{name}" for name in RELATIONS]
    _checks.made("interaction", "relation", relation, "relation", made, makers)
    _checks.made("interaction", "law", law, "law", HELD, MAKERS)
    if "z" in relation and law.get("z") is not None:
        raise ValueError("interaction: relation and law both have parameters z, of which an interaction has one; give one of them all")
    if "bounds" in relation and law["law"] != "relay":
        raise ValueError(f"interaction: bounds of lambda as a function of time are for the law nsds.relay(), got {law['law']}")
    if enabled is not None:
        enabled = _checks.flags("interaction", "enabled", enabled)
    return {"kind": "interaction", "relation": relation, "law": law, "sides": _sides(on), "enabled": enabled}


def _sides(on):
    is_pair = isinstance(on, (tuple, list)) and len(on) == 2 and (isinstance(on[1], str) or _has_indices(on[1]))
    return [_side(each) for each in (on if is_pair else [on])]


def _has_indices(on):
    return isinstance(on, (tuple, list)) and len(on) == 2 and isinstance(on[0], str)


def _side(on):
    """(part, chooser): the chooser is an index array, a slice, or None for all elements."""
    if isinstance(on, str) and on.isidentifier():
        return on, None
    match = _ELEMENTS.fullmatch(on) if isinstance(on, str) else None
    if match:
        name, first, colon, last, second_colon, stride = match.groups()
        if not colon and first:
            return name, np.array([int(first)])
        if colon:
            return name, slice(*(int(text) if text else None for text in (first, last, stride if second_colon else "")))
    if _has_indices(on):
        return on[0], np.atleast_1d(_checks.whole_numbers("interaction", "on: the indices of elements", on[1]))
    raise ValueError(
        f'interaction: on must name one or two parts, as "ball", "beads[0]", "beads[1:]" or ("beads", [0, 2]), got {_checks.shortened(on)}'
    )


def interaction_record(name, part, systems):
    """Record array of an interaction, when the systems of the model are known."""
    # 1. systems it acts on, and the elements that each side chooses
    kinds = {side: system["kind"] for side, system in systems.items()}
    counts = {side: system["record"].shape[0] if system["record"].ndim else None for side, system in systems.items()}
    sizes = {side: system["record"]["v" if "v" in system["record"].dtype.names else "x"].shape[-1] for side, system in systems.items()}
    relation, law = part["relation"], part["law"]
    if any(_is_planar(systems.get(side)) for side, _ in part["sides"]):
        relation = _in_plane(name, relation, part["sides"], systems)
    elements = [_elements(name, side, chooser, counts) for side, chooser in part["sides"]]
    # 2. number of constraints and columns, which must fit the systems
    family = _family(name, relation, law, part["sides"], kinds)
    m = block_of(f"interaction '{name}'", law, family) if relation["m"] is None else relation["m"]
    n_columns = sum(sizes[side] for side, _ in part["sides"])
    if relation["n"] not in (None, n_columns):
        on = " and ".join(f"'{side}' ({sizes[side]} coordinates)" for side, _ in part["sides"])
        what = "H has" if "H" in relation else "the relation is for"
        raise ValueError(f"interaction '{name}': {what} {relation['n']} columns, expected {n_columns} for {on}")
    if "dofs" in relation and relation["dofs"].max() >= n_columns:
        raise ValueError(
            f"interaction '{name}': dofs must be below {n_columns}, the number of coordinates, got {relation['dofs'].tolist()}"
        )
    # 3. pairs of elements: as many on both sides, and no body with itself
    lengths = {len(e) for e in elements} - {1}
    if len(lengths) > 1:
        raise ValueError(f"interaction '{name}': the two sides choose {len(elements[0])} and {len(elements[1])} elements")
    if len(elements) == 2 and part["sides"][0][0] == part["sides"][1][0] and (elements[0] == elements[1]).any():
        raise ValueError(f"interaction '{name}' joins a body with itself: on names a part of '{part['sides'][0][0]}' twice")
    single = all(counts[side] is None or (isinstance(chooser, np.ndarray) and chooser.size == 1) for side, chooser in part["sides"])
    count = None if single else max(len(e) for e in elements)

    # 4. fields of the constraints
    fields = {key: np.zeros(() if m == 1 else (m,), np.int64 if key == "active" else np.float64) for key in _OF_CONSTRAINTS[family]}
    # 5. a joint with a unilateral law, or two stops with a bilateral one, contradict their meaning
    is_joint = relation["relation"] == "joint"
    if is_joint and relation["joint"] in joints.HELD and LAWS[law["law"]].is_one_sided:
        raise ValueError(
            f"interaction '{name}': {relation['joint']} holds bodies together, and {law['law']} would let them part: it wants "
            "nsds.equality(); stops are joints.hinge_angle and joints.slide_along with lower= or upper="
        )
    if is_joint and {"lower", "upper"} <= set(relation) and LAWS[law["law"]].bilateral:
        raise ValueError(
            f"interaction '{name}': {law['law']} would hold {relation['joint']} at its lower and its upper stop at once; stops want "
            "nsds.newton_impact(e)"
        )
    # 6. fields of relation and law, one set for each element
    fields |= {} if is_joint else _fields(relation)
    fields |= {key: fields[key].reshape(fields["y"].shape) for key in ("b", "e", "velocity") if isinstance(fields.get(key), np.ndarray)}
    fields |= _law_fields(name, law, family, m, fields["y"].shape)
    if count is not None:
        fields = {key: _stacked(value, count) for key, value in fields.items()}
    if part["enabled"] is not None:
        if family != NEWTON_EULER:
            raise ValueError(f"interaction '{name}': enabled is for rigid bodies, but '{part['sides'][0][0]}' is {family}")
        fields["enabled"] = _checks.flags(f"interaction '{name}'", "enabled", part["enabled"], () if count is None else (count,))
    # 7. geometry of joints from the initial configurations, and the chosen elements of arrays
    if is_joint:
        fields |= _geometry(relation, part["sides"], elements, count, systems)
    if any(counts[side] is not None for side, _ in part["sides"]):
        n_elements = 1 if count is None else count
        table = np.stack([np.broadcast_to(e, (n_elements,)) for e in elements], axis=-1).astype(np.int64)
        fields["element"] = table[0] if count is None else table
    return pack(fields, count)


def _is_planar(system):
    return system is not None and "planar" in (system["record"].dtype.names or ())


def _in_plane(name, relation, sides, systems):
    """Relation of planar bodies: for a joint, its rows in the plane."""
    for side, _ in sides:
        if side in systems and not _is_planar(systems[side]):
            raise ValueError(f"interaction '{name}': '{side}' must be planar bodies, as those that it is joined with, got bodies in space")
    if relation["relation"] != "joint":
        return relation
    try:
        return joints.in_plane(relation)
    except ValueError as error:
        raise ValueError(f"interaction '{name}': {error}") from None


_OF_CONSTRAINTS = dict.fromkeys((LAGRANGIAN, NEWTON_EULER), ("y", "ydot", "lambda", "active")) | {FIRST_ORDER: ("y", "lambda")}


def _fields(relation):
    return {key: value for key, value in relation.items() if key not in ("relation", "m", "n")}


def _geometry(relation, sides, elements, count, systems):
    """Rows of a joint between the bodies at their start, and the angles that change in time."""
    q = [np.atleast_2d(systems[side]["record"]["q"])[chosen] for (side, _), chosen in zip(sides, elements, strict=True)]
    rows = joints.resolve(relation, *(q if count is not None else (each[0] for each in q)))
    angle = {"angle": rows.pop("angle")} if "angle" in rows else {}
    return angle | {"geometry": rows}


def _stacked(value, count):
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: _stacked(inner, count) for key, inner in value.items()}
    return np.broadcast_to(value, (count, *np.shape(value)))


def _family(name, relation, law, sides, kinds):
    """Family of the systems, which must fit relation and law."""
    families = RELATIONS[relation["relation"]].families
    for side, _ in sides:
        if SYSTEMS[kinds[side]][0] not in families:
            wanted = " and ".join(families)
            raise ValueError(f"interaction '{name}': {relation['relation']} is for {wanted} systems, but '{side}' is a {kinds[side]}")
    family = SYSTEMS[kinds[sides[0][0]]][0]
    require_fitting(f"interaction '{name}'", law["law"], relation["relation"], family)
    return family


def _law_fields(name, law, family, m, per_constraint):
    """Fields of the law in the record."""
    fields, block = {}, block_of(f"interaction '{name}'", law, family)
    if m % block:
        others = [f"{size} with dimension={one}" for one, size in LAWS[law["law"]].blocks[family].items() if size != block]
        instead = f" ({others[0]})" if others else ""
        raise ValueError(
            f"interaction '{name}': {law['law']} wants {block} constraints for each contact, the normal first, got {m} in all{instead}"
        )
    per_contact = per_constraint if block == 1 else (m // block,) if m > block else ()
    for parameter in LAWS[law["law"]].parameters:
        value = law[parameter]
        if value.ndim and value.shape != (m // block,):
            raise ValueError(f"interaction '{name}': {parameter} must be a number or have shape {(m // block,)}, got {value.shape}")
        fields[parameter] = np.broadcast_to(value.reshape(()) if value.size == 1 else value, per_contact)
    return fields | LAWS[law["law"]].fields(f"interaction '{name}'", law, m)


def _elements(name, side, chooser, counts):
    if side not in counts:
        known = ", ".join(counts) or "none"
        raise ValueError(f"interaction '{name}': there is no part '{side}'; the systems are: {known}{_checks.meant(side, counts)}")
    # all, one, a slice or an index array, as in NumPy
    count = counts[side]
    if count is None:
        if chooser is not None:
            raise ValueError(f"interaction '{name}': part '{side}' is not an array (count=), it has no elements to choose")
        return np.zeros(1, np.int64)
    if chooser is None:
        return np.arange(count)
    if isinstance(chooser, slice):
        chosen = np.arange(count)[chooser]
        if chosen.size == 0:
            raise ValueError(f"interaction '{name}': the slice on '{side}' chooses none of its {count} elements")
        return chosen
    _checks.array(f"interaction '{name}'", f"indices on '{side}'", chooser, n_dims=1)
    if chooser.size == 0 or chooser.dtype.kind not in "iu" or (chooser < -count).any() or (chooser >= count).any():
        raise ValueError(f"interaction '{name}': indices on '{side}' must be whole numbers in [-{count}, {count}), got {chooser.tolist()}")
    return chooser % count
