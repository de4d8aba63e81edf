"""docs/laws.md: made of what runs of all cells do, and read again."""

import re
from pathlib import Path

import numpy as np

import nsds
from nsds.model.system_kinds import FIRST_ORDER, LAGRANGIAN, NEWTON_EULER
from tests.cells import CELLS
from tests.cells.first_order import SOURCE, STATE, A
from tests.cells.outcomes import outcome, schemes_of
from tests.pairs import PAIRS, outcome_of_pair

PAGE = Path(__file__).parents[2] / "docs" / "laws.md"
_INTRODUCTION = """# Laws, relations and schemes

What goes with what. This page is made by `python -m tests.cells`, which runs a small system of each kind that a cell stands for: its law
is held to its definition, and its motion to that of a plain twin. ✓ is a cell all of whose kinds hold; a number refers to the message
below the table, which names the kinds where only some are refused. The kinds of each relation are listed below the messages.
`tests/test_laws_and_schemes.py` makes the same runs, and compares each column with them.
"""
_SHAPES = """
## Shapes

A shape on a body above one of the world: ✓ where what is set down rests, what is dropped comes back as its law says, and what is thrown
beside misses. `tests/collision/test_pairs_and_schemes.py` makes the same runs.
"""
_ORDER = """
## What the schemes promise

Measured with default options. Order: of smooth motion, of an oscillator (Lagrangian), of a top with three different moments of inertia
(rigid bodies), or of a linear system with a constant source (first order); "exact" is rounding. With impacts or sliding that begin inside
a step every time-stepping scheme is of order 1. Energy: of the oscillator, after 100 periods with ``omega h = 0.1``.
"""
_FAMILIES = {LAGRANGIAN: "Lagrangian systems", NEWTON_EULER: "Rigid bodies", FIRST_ORDER: "First-order systems"}
_HOLDS, _KINDS = "✓", "What the relations stand for:"


def page():
    """docs/laws.md."""
    text = [_INTRODUCTION]
    for family, title in _FAMILIES.items():
        cells, schemes = list(CELLS[family]()), schemes_of(family)
        columns = [column(family, scheme, cells) for scheme in schemes]
        rows = {row: [said[row] for said in columns] for row in columns[0]}
        text += [f"\n## {title}\n", *_table(("law", "relation"), schemes, rows), "", _KINDS, "", *kinds_of(cells)]
    schemes = schemes_of(NEWTON_EULER)
    rows = {pair: [_HOLDS if (why := outcome_of_pair(*pair, scheme)) is None else why for scheme in schemes] for pair in PAIRS}
    return "\n".join([*text, _SHAPES, *_table(("above", "below"), schemes, rows), "", _ORDER, *promises(), ""])


def column(family, scheme, cells, options=()):
    """{(law, relation): ✓, or what the page says of it} of a scheme with options, from runs of all kinds of all cells."""
    outcomes = {}
    for cell in cells:
        outcomes.setdefault((cell.law, cell.relation), {})[cell.kind] = outcome(cell, family, scheme, dict(options))
    return {row: _said(kinds) for row, kinds in outcomes.items()}


def _said(kinds):
    """What the page says of a cell, from the outcomes of its kinds."""
    holding, reasons = [kind or "plain" for kind, why in kinds.items() if why is None], {}
    for kind, why in kinds.items():
        if why is not None:
            reasons.setdefault(why, []).append(kind or "plain")
    if not holding:
        return ". ".join(reasons)
    refused = "".join(f". Not {'; '.join(of)}: {why}" for why, of in reasons.items())
    return f"holds: {'; '.join(holding)}{refused}" if reasons else _HOLDS


def kinds_of(cells):
    """Lines that list the kinds of each relation."""
    kinds = {}
    for cell in cells:
        kinds.setdefault(cell.relation, {})[cell.kind or "plain"] = None
    return [f"- {relation}: {'; '.join(of)}" for relation, of in kinds.items()]


def _table(heads, schemes, rows):
    """Lines of a table, and below it the messages to which its numbers refer."""
    numbers, lines = {}, ["| " + " | ".join((*heads, *schemes)) + " |", "|---" * (len(heads) + len(schemes)) + "|"]
    for row, said in rows.items():
        marks = (text if text == _HOLDS else str(numbers.setdefault(text, len(numbers) + 1)) for text in said)
        lines.append("| " + " | ".join((*row, *marks)) + " |")
    return [*lines, "", *(f"{number}. {why}" for why, number in numbers.items())]


def section(title):
    """({row: {scheme: ✓ or message}}, lines of the kinds) of a section of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    messages = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
    (_, _, *schemes), _, *lines = [
        [entry.strip() for entry in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    rows = {(one, other): dict(zip(schemes, (messages.get(mark, mark) for mark in marks), strict=True)) for one, other, *marks in lines}
    return rows, [line for line in text.splitlines() if line.startswith("- ")]


def column_of_page(family, scheme):
    """As `column`, from the page."""
    return {row: said[scheme] for row, said in section(_FAMILIES[family])[0].items()}


def kinds_of_page(family):
    """As `kinds_of`, from the page."""
    return section(_FAMILIES[family])[1]


# ------------------------------------------------------------------------------------------------------- promises
def promises():
    """Lines of the table of orders and energies."""
    lines = ["| scheme | systems | order | energy |", "|---|---|---|---|"]
    for family in _FAMILIES:
        lines += [f"| {scheme} | {family} | {_order(scheme, family)} | {_energy(scheme, family)} |" for scheme in schemes_of(family)]
    return lines


def _smooth(family, scheme, h, end):
    """Rows of smooth motion."""
    if family == LAGRANGIAN:
        is_difference = scheme in ("schatzman_paoli", "moreau_jean_exact")  # v of a row is (q_k - q_{k-1}) / h
        part = nsds.lagrangian_modal([1.0], q=[1.0], v=[(1.0 - np.cos(h)) / h if is_difference else 0.0])
    elif family == NEWTON_EULER:
        part = nsds.rigid_bodies(1.0, np.diag([1.0, 2.0, 3.0]), q=[0.0, 0, 0, 1, 0, 0, 0], v=[0.0, 0, 0, 0.3, 1.0, 0.5])
    else:
        part = nsds.first_order_linear(A, b=SOURCE, x=STATE)
    return nsds.simulate(nsds.system(part=part), t_end=end, h=h, scheme=getattr(nsds, scheme)())["part"]


def _order(scheme, family):
    """Measured order, from errors against a run with a step that is much shorter."""
    state = "x" if family == FIRST_ORDER else "q"
    ends = [_smooth(family, scheme, h, 1.0)[state][-1] for h in (0.02, 0.01, 0.01 / 16)]
    errors = [np.linalg.norm(end - ends[-1]) for end in ends[:2]]
    return "exact" if errors[1] < 1e-11 else str(round(np.log2(errors[0] / errors[1])))


def _energy(scheme, family):
    """What becomes of the energy of the oscillator, in words."""
    if family != LAGRANGIAN:
        return "–"
    rows = _smooth(family, scheme, 0.1, 628.4)  # a hundred periods, in whole steps
    first, last = (_amplitude(rows[part]) for part in (slice(0, 63), slice(-63, None)))
    change = (last / first) ** 2 - 1
    return "conserved" if abs(change) < 3e-4 else f"{'gains' if change > 0 else 'loses'} {abs(change):.2%}"


def _amplitude(rows):
    """Of the harmonic through the positions of a period, by least squares."""
    phase = 0.1 * np.arange(len(rows))
    return np.linalg.norm(np.linalg.lstsq(np.c_[np.cos(phase), np.sin(phase)], rows["q"][:, 0], rcond=None)[0])
