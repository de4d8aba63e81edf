"""Site of the documentation: ``sphinx-build -W docs docs/_build/html``.

Notebooks are shown as ``python -m tests.run_notebooks --save docs/generated/notebooks`` leaves them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate import write_all

import nsds

project, author, copyright = "nsds", "the nsds authors", "the nsds authors, BSD-3-Clause"
release = version = nsds.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = f"nsds {release}"
html_static_path, html_css_files = ["_static"], ["pages.css"]
exclude_patterns = ["_build", "generated/*.inc.md"]
default_role = "py:obj"
nb_execution_mode = "off"  # notebooks were executed by the check of notebooks, which keeps their outputs
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
napoleon_numpy_docstring, napoleon_google_docstring = True, False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
python_display_short_literal_types = True
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

write_all(Path(__file__).parent)
