# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration: `make docs` builds with warnings as errors."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ur_energy_model import __version__ as release

project = "ur_energy_model"
author = "ur_energy_model maintainers"
version = release
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"ur_energy_model {release}"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b7285",
        "color-brand-content": "#0b7285",
    },
    "dark_css_variables": {
        "color-brand-primary": "#4cc3d4",
        "color-brand-content": "#4cc3d4",
    },
}
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # annotations name types of other packages
suppress_warnings = [
    "ref.python"
]  # of names such as `bytes`, which an attribute has, too
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def escape(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Docstrings are plain text with `code` in them: only the code is markup."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]+`)", line)
        parts[::2] = [re.sub(r"([*|\\]|_(?!\w))", r"\\\1", text) for text in parts[::2]]
        parts[1::2] = [f"`{code}`" for code in parts[1::2]]
        lines[number] = "".join(parts)


def setup(app: Sphinx) -> None:
    """Escape docstrings before napoleon reads their sections."""
    app.connect("autodoc-process-docstring", escape, priority=100)
