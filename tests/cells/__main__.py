"""Write docs/laws.md anew."""

from tests.cells.page import PAGE, page

PAGE.write_text(page(), encoding="utf-8")
