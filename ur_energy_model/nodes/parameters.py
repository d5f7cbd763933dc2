"""The one table of node parameters: name, default, unit, range, description.

Nodes declare their parameters from it, the parameter files under config/ and docs/nodes.md are
written from it, and the launch files take their defaults from it. It does not import ROS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | list[str]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a node.

    Attributes:
        name: ROS parameter name.
        default: its type is the parameter's type.
        description: what it does, one sentence without a full stop.
        unit: SI unit of a number.
        minimum, maximum: inclusive range of a number.
        choices: allowed values of a text.
        read_only: True where it takes effect only when the node is configured.
    """

    name: str
    default: Value
    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True

    @property
    def kind(self) -> str:
        """Name of the type as the documentation spells it."""
        return "list of text" if isinstance(self.default, list) else _KINDS[type(self.default)]

    def problem(self, value: object) -> str | None:
        """Why a value of the right type is refused; None where it is accepted."""
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if isinstance(value, int | float):
            low = -float("inf") if self.minimum is None else self.minimum
            high = float("inf") if self.maximum is None else self.maximum
            if not low <= value <= high:
                return f"{self.name} must be between {low:g} and {high:g}, not {value:g}"
        return None


_KINDS: dict[type, str] = {bool: "true/false", int: "integer", float: "number", str: "text"}

AUTOSTART = Parameter("autostart", True, "configure and activate without a lifecycle manager")
ROBOT_IP = Parameter("robot_ip", "127.0.0.2", "address of the robot's controller (RTDE port 30004)")
ROBOT_MODEL = Parameter(
    "robot_model", "ur5e", "name of a robot description, such as ur5e, or the path of a robot file"
)
TF_PREFIX = Parameter("tf_prefix", "", "put before joint and frame names, as the UR driver does")
PUBLISH_RATE = Parameter(
    "publish_rate", 50.0, "rate of the live topics", unit="Hz", minimum=1.0, maximum=500.0
)
MODEL_FILE = Parameter("model_file", "", "the identified model (model.yaml)")

LOGGER: tuple[Parameter, ...] = (
    AUTOSTART,
    ROBOT_IP,
    ROBOT_MODEL,
    TF_PREFIX,
    PUBLISH_RATE,
    Parameter(
        "bag_directory", "bags", "folder for recordings; each bag is named by robot and start time"
    ),
    Parameter("record", False, "start recording on activation"),
    Parameter(
        "rtde_rate", 0.0, "RTDE output rate, 0 for the controller's own", unit="Hz",
        minimum=0.0, maximum=500.0,
    ),
    Parameter("fields", [""], "RTDE fields to record; empty records all that energy work needs"),
    Parameter(
        "split_duration", 0.0, "start a new bag after this time, 0 for never", unit="s",
        minimum=0.0, maximum=1e6,
    ),
    Parameter("publish_joint_states", True, "publish joint_states, where no driver does"),
)  # fmt: skip

IDENTIFICATION: tuple[Parameter, ...] = (
    AUTOSTART,
    ROBOT_MODEL,
    Parameter("bags", [""], "bags to identify from", read_only=False),
    Parameter("validation_bags", [""], "bags held out for validation", read_only=False),
    Parameter("output", "model.yaml", "where the model file goes", read_only=False),
    Parameter(
        "friction", "auto", "friction law, auto to choose by held-out error", read_only=False
    ),
    Parameter("power_model", "physical", "bus power model", read_only=False),
    Parameter("identify_on_start", False, "identify once on activation"),
    Parameter("exit_when_done", False, "end the node after that, with exit code 1 where it failed"),
)

ESTIMATOR: tuple[Parameter, ...] = (
    AUTOSTART,
    Parameter(
        "source", "rtde", "where samples come from: the controller, a bag in real time, or a "
        "driver's joint_states topic", choices=("rtde", "bag", "joint_states"),
    ),
    ROBOT_IP,
    MODEL_FILE,
    Parameter(
        "robot_model", "", "name of a robot description or path of a robot file; empty takes the "
        "model's",
    ),
    Parameter("bag", "", "the bag to play (source: bag)"),
    Parameter("loop", False, "play the bag again when it ends (source: bag)"),
    Parameter(
        "effort_unit", "ampere", "what effort means in joint_states (source: joint_states)",
        choices=("ampere", "newton_metre"),
    ),
    Parameter(
        "method", "auto", "power from measured current, from motion by the model, or the former "
        "where there is a current", choices=("auto", "current", "motion"),
    ),
    TF_PREFIX,
    PUBLISH_RATE,
    Parameter(
        "gap_limit", 0.1, "longest gap in the samples that is bridged at any rate (2.5 sample "
        "periods where that is longer); longer ones are counted as unaccounted time",
        unit="s", minimum=0.002, maximum=10.0, read_only=False,
    ),
    Parameter(
        "state_file", "", "where energy counters survive a restart; empty keeps none"
    ),
    Parameter("reload_period", 1.0, "how often model_file is checked for a change, 0 for never",
              unit="s", minimum=0.0, maximum=3600.0),
    Parameter("track_standby", True, "follow the standby power at standstill from the bus power",
              read_only=False),
    Parameter(
        "standby_limit", 15.0, "largest departure of the tracked standby power from the model's",
        unit="W", minimum=0.0, maximum=100.0, read_only=False,
    ),
    Parameter(
        "drift_alarm", 5.0, "mean residual of model minus bus power that raises a warning",
        unit="W", minimum=0.1, maximum=1000.0, read_only=False,
    ),
    Parameter(
        "drift_time", 60.0, "time constant of the mean residual", unit="s", minimum=1.0,
        maximum=86400.0, read_only=False,
    ),
    Parameter(
        "idle_power", 0.0, "arm powered, brakes engaged, where no bus power is measured; 0 takes "
        "the model's standby", unit="W", minimum=0.0, maximum=200.0, read_only=False,
    ),
    Parameter(
        "cycle_trigger", "program", "what starts a new cycle, besides the service ~/start_cycle",
        choices=("none", "program", "digital_output", "int_register"),
    ),
    Parameter(
        "cycle_output", 0, "digital output whose rising edge starts a cycle", minimum=0, maximum=17
    ),
    Parameter("cycle_log", "", "CSV file that collects the energy of every cycle"),
    Parameter(
        "publish_robot_description", False, "publish a simple robot model made from the robot "
        "file, for rviz where no ur_description is installed",
    ),
)  # fmt: skip

SIMULATED_ROBOT: tuple[Parameter, ...] = (
    AUTOSTART,
    ROBOT_MODEL,
    Parameter("host", "127.0.0.2", "loopback address to serve RTDE, dashboard and scripts on"),
    Parameter(
        "motion", "trajectory_b", "a named motion (trajectory_a, trajectory_b, hold, sinusoids, "
        "pick_and_place, warm_up) or a Fourier trajectory file",
    ),
    Parameter(
        "duration", 0.0, "stop serving after this time, 0 for never", unit="s", minimum=0.0,
        maximum=1e6,
    ),
    Parameter("seed", 0, "seed of the arm's hidden parameters and of all noise", minimum=0,
              maximum=2**31 - 1),
    Parameter("session", 0, "which day of that arm: standby power, friction and temperatures "
              "differ from session to session; 0 for the arm as drawn", minimum=0,
              maximum=2**31 - 1),
    Parameter("ambient", 25.0, "temperature around the arm", unit="degC", minimum=-20.0,
              maximum=60.0),
    Parameter("truth_file", "", "where the true parameters and energies go (JSON)"),
)  # fmt: skip

NODES: dict[str, tuple[Parameter, ...]] = {
    "logger": LOGGER,
    "identification": IDENTIFICATION,
    "estimator": ESTIMATOR,
    "simulated_robot": SIMULATED_ROBOT,
}
"""Parameters of every node, by node name."""


def parameter(node: str, name: str) -> Parameter:
    """The table's entry.

    Raises:
        KeyError: no such node or parameter.
    """
    for entry in NODES[node]:
        if entry.name == name:
            return entry
    raise KeyError(f"{node} has no parameter {name}")


def parameter_file(node: str) -> str:
    """Text of the node's parameter file (config/<node>.yaml): every default, documented."""
    lines = [
        f"# Parameters of the {node} node; docs/nodes.md describes them.",
        "/**:",
        "  ros__parameters:",
        *(f"    {p.name}: {_yaml(p.default)}  # {_comment(p)}" for p in NODES[node]),
    ]
    return "\n".join(lines) + "\n"


def markdown_table(node: str) -> Iterator[str]:
    """Lines of the node's parameter table in docs/nodes.md."""
    yield "| parameter | type | default | | takes effect |"
    yield "|---|---|---|---|---|"
    for entry in NODES[node]:
        when = "at configuration" if entry.read_only else "live"
        yield (
            f"| `{entry.name}` | {entry.kind} | `{_yaml(entry.default)}` "
            f"| {_comment(entry)} | {when} |"
        )


def _comment(entry: Parameter) -> str:
    notes = [entry.unit] if entry.unit else []
    if entry.choices:
        notes.append(", ".join(entry.choices))
    if entry.minimum is not None and entry.maximum is not None:
        notes.append(f"{entry.minimum:g} to {entry.maximum:g}")
    return entry.description + (f" ({'; '.join(notes)})" if notes else "")


def _yaml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
