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
    "myst_nb",  # pages in Markdown, and those that are notebooks
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_heading_anchors = 3
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # of a cell, on a busy machine [s]
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


DOCS = Path(__file__).parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")
GLOB = re.compile(r"^(\w[\w/*]*\*)\n", re.MULTILINE)


def without_absent_rooms(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to pages of rooms that are not there become plain text.

    The pages of a removable room are a folder of their own. Where this folder does not
    exist, neither do the links into it and its line in a table of contents; where it exists,
    a page that is missing in it is an error, like any broken link.
    """
    here = (DOCS / page).parent

    def linked(link: re.Match[str]) -> str:
        """The link, or its text where the folder of its page does not exist."""
        text, place = link.groups()
        return link.group() if (here / place).parent.is_dir() else text

    def listed(line: re.Match[str]) -> str:
        """The line of a table of contents, or nothing where its folder has no pages."""
        return line.group() if any(here.glob(f"{line.group(1)}.md")) else ""

    source[0] = GLOB.sub(listed, LINK.sub(linked, source[0]))


def setup(app: Sphinx) -> None:
    """Escape docstrings before napoleon reads their sections; leave out absent rooms."""
    app.connect("autodoc-process-docstring", escape, priority=100)
    app.connect("source-read", without_absent_rooms)
