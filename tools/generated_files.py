# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generates config/<node>.yaml, the dashboard layouts, docs/formats.md and tables of docs/nodes.md.

    python -m tools.generated_files

A test checks that the files in the checkout are up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools import formats_page
from tools.parameter_files import markdown_table, parameter_file
from ur_energy_model.files import share_directory
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.launch_files import launch_files
from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.topics_and_services import SERVICES, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "docs/nodes.md"
END = "<!-- end -->"


def files() -> dict[str, str]:
    """Text of every generated file, by path in the checkout."""
    joints = load_robot("ur5e").joint_names  # every UR arm has the same names
    layouts = layout_files(ArmTopics(tuple(joints)))
    return {
        **{f"config/{node}.yaml": parameter_file(node) for node in NODES},
        **{f"config/{name}": text for name, text in layouts.items()},
        formats_page.PAGE: formats_page.page(),
        PAGE: page((share_directory() / PAGE).read_text(encoding="utf-8")),
    }


def page(text: str) -> str:
    """The page with new tables between its marks, such as <!-- estimator --> and <!-- end -->."""
    tables = {node: node_tables(node) for node in NODES}
    tables |= {f"{name}.launch.py": launch_table(name) for name in launch_files()}
    for name, lines in tables.items():
        start = f"<!-- {name} -->\n"
        before, found, after = text.partition(start)
        if not found:
            raise SystemExit(f"{PAGE}: has no line {start}")
        text = before + start + "\n".join(["", *lines, "", after[after.index(END) :]])
    return text


def node_tables(node: str) -> Iterator[str]:
    """Topics, services and parameters of a node."""
    yield "| topic | type | rate | content |"
    yield "|---|---|---|---|"
    for topic in TOPICS[node]:
        rate = "subscribed" if topic.subscribed else topic.rate
        latched = " (latched)" if topic.latched else ""
        yield f"| `{topic.name}` | {topic.type} | {rate}{latched} | {topic.description} |"
    if SERVICES[node]:
        yield ""
        yield "| service (std_srvs/Trigger) | effect |"
        yield "|---|---|"
        for service in SERVICES[node]:
            yield f"| `{service.name}` | {service.description} |"
    yield ""
    yield from markdown_table(node)


def launch_table(name: str) -> Iterator[str]:
    """Arguments of a launch file; those that an earlier table has are only named."""
    known = {entry.name for node in NODES for entry in NODES[node]}
    described = launch_files()
    arguments = described[name].arguments
    first = next(iter(described))
    if name != first:
        known |= {entry.name for entry in described[first].arguments}
    new = [each for each in arguments if each.name not in known or each.default is None]
    if new:
        yield "| argument | default | description |"
        yield "|---|---|---|"
    for argument in new:
        default = "required"
        if argument.default is not None:
            default = f"`{argument.default}`" if argument.default else "empty"
        choices = f" ({', '.join(argument.choices)})" if argument.choices else ""
        yield f"| `{argument.name}` | {default} | {argument.help}{choices} |"
    names = [f"`{each.name}`" for each in arguments if each not in new]
    if new:
        yield ""
    what = "As described above (`--show-args` has the defaults)"
    yield f"{what}: {', '.join(names)}."


def main() -> None:
    """Write the files into the checkout."""
    root: Path = share_directory()
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
