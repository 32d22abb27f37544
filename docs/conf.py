"""Settings of the documentation: ``make docs`` in the folder above builds it, with warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

# One thread of linear algebra: the examples are small, and their times then mean something.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import lopro  # noqa: E402

project = "lopro"
author = "lopro developers"
copyright = "lopro developers, BSD-3-Clause"
version = release = lopro.__version__

extensions = [
    "departures",  # ours, in _ext, like the next one
    "generated_pages",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas show without a network
]

exclude_patterns = ["_build", "**/README.rst", "_generated/*.md", "comparison/*.md"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = [
    "config.cache"
]  # the gallery's settings hold functions, which cannot be pickled
# Text in single backticks becomes a link where it names something in the reference.
default_role = "autolink"

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the docstrings
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# Everything numpydoc can check, less what the project does on purpose.
numpydoc_validation_checks = {
    "all",
    "ES01",  # one line may be all there is to say
    "EX01",  # whether there is an example is for the author of the line above
    "GL02",  # a docstring of one paragraph may close on its last line
    "GL08",  # a method that implements a protocol inherits its docstring
    "PR01",  # the fields of a record are explained in its text
    "PR04",  # the type of "A, y as in bpdn" stands there
    "PR06",  # "integer array" is what it is called
    "PR08",  # symbols of the mathematics keep their case
    "RT01",  # what "Return the ..." returns is in that sentence
    "SA01",  # links are in the text
    "SS05",  # a noun may end in an s
    "YD01",
}

html_theme = "furo"
html_title = f"lopro {release}"
html_static_path = ["_static"]
html_css_files = ["lopro.css"]
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),  # what a page shows, it prints
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "matplotlib_animations": False,
    "backreferences_dir": None,
    "default_thumb_file": str(HERE / "images" / "idea.png"),
}
