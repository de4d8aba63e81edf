"""Every pair of shapes under every scheme with detection: what is set down rests, is dropped comes back, is thrown beside misses."""

import pytest

from nsds.model.system_kinds import NEWTON_EULER
from tests.cells.outcomes import schemes_of
from tests.cells.page import section
from tests.pairs import PAIRS, REQUIRED


@pytest.mark.parametrize("scheme", schemes_of(NEWTON_EULER))
@pytest.mark.parametrize(("above", "below"), PAIRS)
@pytest.mark.parametrize("what", REQUIRED)
def test_what_a_pair_does(what, above, below, scheme):
    REQUIRED[what](above, below, scheme)


def test_page_of_laws_says_so():
    assert section("Shapes")[0] == {pair: dict.fromkeys(schemes_of(NEWTON_EULER), "✓") for pair in PAIRS}
