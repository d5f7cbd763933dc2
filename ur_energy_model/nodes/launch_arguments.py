"""Arguments that several launch files have, or that set a node parameter; does not import launch.

An argument of a parameter has its name, default, description and choices from the parameter table.
"""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.nodes.parameter import Value
from ur_energy_model.nodes.parameters import parameter

SWITCH = ("true", "false")
OUTLETS = (
    "history_store", "foxglove", "foxglove_origins", "mcap", "prometheus", "mqtt", "opcua",
    "allow_network", "credentials",
)  # fmt: skip
"""Parameters of the estimator that say where the energies go besides ROS."""
BUDGET = ("retention_days", "retention_gb")
"""Parameters of the logger that limit its bags."""


@dataclass(frozen=True)
class LaunchArgument:
    """One DeclareLaunchArgument of a launch file.

    Attributes:
        name: as typed after `ros2 launch ... name:=value`.
        default_value: text; None if the user must give a value.
        description: one sentence without a full stop.
        choices: allowed values; empty for any.
    """

    name: str
    default_value: str | None = None
    description: str = ""
    choices: tuple[str, ...] = ()


_COMMON = (
    LaunchArgument("namespace", "", "namespace of all nodes, one per robot"),
    LaunchArgument(
        "params_file", "", "YAML file with node parameters; launch arguments override it"
    ),
    LaunchArgument(
        "log_level",
        "info",
        "lowest severity of messages that are shown",
        ("debug", "info", "warn", "error"),
    ),
    LaunchArgument("rviz", "false", "open rviz with markers and robot model", SWITCH),
    LaunchArgument("respawn", "false", "start a node again when it has ended", SWITCH),
    LaunchArgument("respawn_delay", "5.0", "pause before a node is started again [s]"),
)


def common(*names: str) -> list[LaunchArgument]:
    """Arguments that mean the same in every launch file that has them."""
    known = {argument.name: argument for argument in _COMMON}
    return [known[name] for name in names]


def of_parameters(node: str, *names: str) -> list[LaunchArgument]:
    """Arguments that set parameters of a node, with the defaults of these.

    Raises:
        KeyError: the node has no such parameter.
    """
    entries = [parameter(node, name) for name in names]
    return [
        LaunchArgument(
            entry.name,
            _text_of(entry.default),
            entry.description,
            SWITCH if isinstance(entry.default, bool) else entry.choices,
        )
        for entry in entries
    ]


def _text_of(value: Value) -> str:
    """A parameter's value as a launch argument, which `Parameter.parse` reads."""
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
