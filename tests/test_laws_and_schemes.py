"""Every law with every relation, scheme and kind of system: refused by name, or the law holds by its definition and a plain twin agrees."""

import pytest

from nsds.model import joints
from nsds.model.laws import LAWS
from nsds.model.system_kinds import NEWTON_EULER, RELATIONS
from nsds.schemes.table import SCHEMES
from tests.cells import CELLS
from tests.cells.bodies import FLAT, HOLDING
from tests.cells.outcomes import WRONG
from tests.cells.page import PAGE, column, column_of_page, kinds_of, kinds_of_page, promises
from tests.pairs import ABOVE

# Options besides the default ones with which a scheme is another method.
VARIANTS = {"moreau_jean": ({"form": "global"},), "d1_minus_linear": ({"level": "velocity"},)}
_METHODS = [
    pytest.param(family, name, options, id=f"{name} {family}{''.join(f' {value}' for value in options.values())}")
    for name, scheme in SCHEMES.items()
    for family in scheme.modules
    for options in ({}, *VARIANTS.get(name, ()))
    if not (options and family == NEWTON_EULER)
]


@pytest.mark.filterwarnings("ignore:event_driven.*handed over:RuntimeWarning")
@pytest.mark.parametrize(("family", "scheme", "options"), _METHODS)
def test_law_holds_wherever_a_scheme_takes_it(family, scheme, options):
    """Of all kinds that a cell stands for, and the page says so."""
    said = column(family, scheme, list(CELLS[family]()), options)
    wrong = [f"{' | '.join(row)}: {text}" for row, text in said.items() if WRONG in text]
    assert not wrong, "\n".join(wrong)
    assert any(text == "✓" or text.startswith("holds") for text in said.values())
    assert options or said == column_of_page(family, scheme), "python -m tests.cells writes docs/laws.md anew"


def test_page_of_laws_names_the_kinds_and_promises_what_is_measured():
    for family, cells in CELLS.items():
        assert kinds_of_page(family) == kinds_of(list(cells())), "python -m tests.cells writes docs/laws.md anew"
    assert "\n".join(promises()) in PAGE.read_text(encoding="utf-8"), "python -m tests.cells writes docs/laws.md anew"


def test_nothing_is_left_out():
    """No law, relation or joint, and no shape that a body can have."""
    cells = [cell for each in CELLS.values() for cell in each()]
    assert {cell.law.partition(",")[0] for cell in cells} == set(LAWS)
    assert {cell.relation.partition(" ")[0] for cell in cells} - {"collisions"} == set(RELATIONS)
    assert set(HOLDING) == set(joints.HELD)
    assert {cell.kind.partition(",")[0] for cell in cells if cell.relation == "joint"} == set(joints.__all__)
    above = {cell.kind.partition(" ")[0].replace("spheres", "sphere") for cell in cells if cell.relation == "collisions"}
    assert above == set(ABOVE)
    assert set(FLAT) < above
