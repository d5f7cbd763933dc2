# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameter files of config/ and parameter tables of docs/nodes.md."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.options import Option, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 180  # longest line of a parameter file, as .yamllint has it


def parameter_file(node: str) -> str:
    """Text of config/<node>.yaml: every parameter with its default and description."""
    lines = [
        f"# Parameters of the {node} node; docs/nodes.md describes them.",
        "/**:",
        "  ros__parameters:",
        *(line for p in NODES[node] for line in _entry(p)),
    ]
    return "\n".join(lines) + "\n"


def _entry(entry: Option) -> list[str]:
    """Lines of a parameter; a long description goes on below, beside no value."""
    value = f"    {entry.name}: {_yaml(entry.parameter)}  # "
    first, *rest = textwrap.wrap(
        value + entry.help + entry.note, WIDTH, drop_whitespace=False
    )
    return [first.rstrip(), *(f"      # {line.strip()}" for line in rest)]


def markdown_table(node: str) -> Iterator[str]:
    """Lines of the parameter table of a node."""
    yield "| parameter | default | description |"
    yield "|---|---|---|"
    for entry in NODES[node]:
        about = f"{entry.help}{entry.note}{'; live' if entry.changeable else ''}"
        yield f"| `{entry.name}` | `{_yaml(entry.parameter)}` | {about} |"


def _yaml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
