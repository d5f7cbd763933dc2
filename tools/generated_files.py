"""Files that are written from the tables: `python -m tools.generated_files`.

Parameter files, layouts and docs/nodes.md; a test holds the files in the checkout to this.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tools import dashboards
from tools.launch_files import LAUNCH_FILES, declared_arguments
from tools.parameter_files import markdown_table, parameter_file
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.node_command import EXECUTABLES
from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.nodes.topics_and_services import SERVICES, TOPICS
from ur_energy_model.resources import share_directory

PURPOSE: dict[str, str] = {
    "logger": "Records RTDE into bags without loss; publishes joint_states.",
    "identification": "Fits a model of the arm to bags.",
    "estimator": "Publishes live power and energy from an identified model.",
    "simulated_robot": "A simulated arm behind the ports of a UR controller, to try things out.",
}


def files() -> dict[str, str]:
    """Text of every generated file, by path in the checkout."""
    joints = load_robot("ur5e").joint_names  # every UR arm has the same names
    return {
        **{f"config/{node}.yaml": parameter_file(node) for node in NODES},
        "config/plotjuggler/energy.xml": dashboards.plotjuggler(joints),
        "config/foxglove/energy.json": dashboards.foxglove(joints),
        "config/rviz/energy.rviz": dashboards.rviz(),
        "docs/nodes.md": "\n".join(_document()) + "\n",
    }


def _document() -> Iterator[str]:
    yield "# Nodes, topics, parameters and launch files"
    yield ""
    yield "Names are relative, so that a namespace per robot works. Live topics are reliable and"
    yield "keep the last 10 messages; latched ones keep one for late joiners. All nodes are"
    yield "lifecycle nodes that configure and activate themselves unless `autostart` is false; they"
    yield "end on SIGINT and SIGTERM with exit code 0, and with 1 and a one-line reason where they"
    yield "refuse their input."
    for node, executable in EXECUTABLES.items():
        yield ""
        yield f"## {executable}"
        yield ""
        yield f"{PURPOSE[node]} Node name `{node}`; defaults in `config/{node}.yaml`."
        yield ""
        yield "| topic | type | rate | |"
        yield "|---|---|---|---|"
        for topic in TOPICS[node]:
            rate = "subscribed" if topic.subscribed else topic.rate
            latched = " (latched)" if topic.latched else ""
            yield f"| `{topic.name}` | {topic.type} | {rate}{latched} | {topic.description} |"
        if SERVICES[node]:
            yield ""
            yield "| service (std_srvs/Trigger) | |"
            yield "|---|---|"
            for service in SERVICES[node]:
                yield f"| `{service.name}` | {service.description} |"
        yield ""
        yield from markdown_table(node)
    yield ""
    yield "## Launch files"
    for name in LAUNCH_FILES:
        yield ""
        yield f"`ros2 launch ur_energy_model {name}.launch.py [argument:=value ...]`"
        yield ""
        yield "| argument | default | |"
        yield "|---|---|---|"
        for argument in declared_arguments(name):
            default = "required"
            if argument.default_value is not None:
                default = f"`{argument.default_value}`" if argument.default_value else "empty"
            choices = f" ({', '.join(argument.choices)})" if argument.choices else ""
            yield f"| `{argument.name}` | {default} | {argument.description}{choices} |"


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
