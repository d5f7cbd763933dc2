"""Parameter files of config/ and parameter tables of docs/nodes.md."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ur_energy_model.nodes.parameters import NODES, Parameter, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 180
"""Longest line of a parameter file, as .yamllint has it."""
_KINDS: dict[type, str] = {bool: "true/false", int: "integer", float: "number", str: "text"}


def parameter_file(node: str) -> str:
    """Text of config/<node>.yaml: every parameter with its default and description."""
    lines = [
        f"# Parameters of the {node} node; docs/nodes.md describes them.",
        "/**:",
        "  ros__parameters:",
        *(line for p in NODES[node] for line in _entry(p)),
    ]
    return "\n".join(lines) + "\n"


def _entry(entry: Parameter) -> list[str]:
    """Lines of a parameter; a long description goes on below, beside no value."""
    value = f"    {entry.name}: {_yaml(entry.default)}  # "
    first, *rest = textwrap.wrap(value + _comment(entry), WIDTH, drop_whitespace=False)
    return [first.rstrip(), *(f"      # {line.strip()}" for line in rest)]


def markdown_table(node: str) -> Iterator[str]:
    """Lines of the parameter table of a node."""
    yield "| parameter | type | default | description | takes effect |"
    yield "|---|---|---|---|---|"
    for entry in NODES[node]:
        when = "at configuration" if entry.read_only else "live"
        kind = "list of text" if isinstance(entry.default, list) else _KINDS[type(entry.default)]
        yield f"| `{entry.name}` | {kind} | `{_yaml(entry.default)}` | {_comment(entry)} | {when} |"


def _comment(entry: Parameter) -> str:
    notes = [entry.unit] if entry.unit else []
    if entry.choices:
        notes.append(", ".join(entry.choices))
    if entry.minimum is not None and entry.maximum is not None:
        notes.append(f"{entry.minimum:.12g} to {entry.maximum:.12g}")
    return entry.description + (f" ({'; '.join(notes)})" if notes else "")


def _yaml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
