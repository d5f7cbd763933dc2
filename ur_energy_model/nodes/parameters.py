"""Parameters of the nodes: name, default, unit, range and description.

Nodes declare their parameters from NODES; the parameter files under config/ and docs/nodes.md are
generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import yaml

from ur_energy_model.model.friction import LAWS
from ur_energy_model.sinks.options import READINGS_PER_SECOND
from ur_energy_model.telemetry.rtde.address import is_address

# Parameter: one parameter of a node, with its range and how it is typed.

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
        read_only: True if it can only be changed while the node is unconfigured.
        only_with: name of another parameter and the value of it with which this one has an
            effect; None if it always has one.
        address: True for the address of a host.
    """

    name: str
    default: Value
    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True
    only_with: tuple[str, str] | None = None
    address: bool = False

    @property
    def dynamic(self) -> bool:
        """Whether ROS must accept other types, which `normalized` and `problem` deal with."""
        return self.is_switch or isinstance(self.default, float)

    @property
    def is_switch(self) -> bool:
        """Whether it is a text that YAML, and so the command line of ROS, may read as a bool."""
        return {"on", "off"} <= set(self.choices)

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, list):
            return "a list of text, such as \"['first', 'second']\""
        if isinstance(self.default, str):
            return "text, in quotes if it looks like a number"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind}, {self.minimum:.12g} to {self.maximum:.12g}"

    def normalized(self, value: Value) -> Value:
        """The value with on and off as text, which YAML reads as true and false, and 50 as 50.0."""
        if self.is_switch and isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(self.default, float) and type(value) is int:
            return float(value)
        return value

    def problem(self, value: object) -> str | None:
        """Reason why a value is refused; None if it is accepted."""
        kinds = (int, float) if isinstance(self.default, float) else (type(self.default),)
        of_text = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if type(value) not in kinds or not of_text:
            return f"{self.name} must be {self.wanted}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if self.address and not is_address(str(value)):
            return f"{self.name} must be the address of a host, not {value!r}"
        if isinstance(value, int | float):
            low = -float("inf") if self.minimum is None else self.minimum
            high = float("inf") if self.maximum is None else self.maximum
            if not low <= value <= high:
                return f"{self.name} must be between {low:g} and {high:g}, not {value:g}"
        return None

    def ignored(self, values: Mapping[str, object]) -> str | None:
        """Line that states that the value given has no effect; None if it has one.

        Args:
            values: of all parameters of the node.
        """
        if self.only_with is None or values[self.name] == self.default:
            return None
        name, wanted = self.only_with
        if values[name] == wanted:
            return None
        return f"{self.name} is ignored: it needs {name}:={wanted}, and {name} is {values[name]}"

    def parse(self, text: str) -> Value:
        """A value as typed on a command line.

        The items of a list are separated by commas, or it is a list of YAML: [a, "b", 'c'].

        Raises:
            ValueError: the text is not of the type, or the value is not allowed.
        """
        value: Value
        if isinstance(self.default, bool):
            if text not in ("true", "false"):
                raise ValueError(f"{self.name}:={text} is not true or false")
            value = text == "true"
        elif isinstance(self.default, list):
            value = self._items(text) or [""]
        else:
            try:
                value = type(self.default)(text)
            except ValueError as error:
                raise ValueError(f"{self.name}:={text} is not {self.wanted}") from error
        problem = self.problem(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def _items(self, text: str) -> list[str]:
        """Items of a list as typed, without empty ones."""
        items: object = text.split(",")
        if text.lstrip()[:1] in ("[", "'", '"'):
            try:
                # BaseLoader leaves 1e3 and on as they are.
                items = yaml.load(f"[{text}]", yaml.BaseLoader)
            except yaml.YAMLError:
                items = None
            if isinstance(items, list) and len(items) == 1 and isinstance(items[0], list):
                items = items[0]
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError(f"{self.name}:={text} is not {self.wanted}")
        return [item.strip() for item in items if item.strip()]


AUTO = "auto"
"""A friction law for each joint."""
AUTOSTART = Parameter(
    "autostart", True, "configure and activate at start, without a lifecycle manager"
)
ROBOT_IP = Parameter(
    "robot_ip", "127.0.0.2", "address of the robot controller (RTDE port 30004)", address=True
)
ROBOT_MODEL = Parameter(
    "robot_model", "ur5e", "name of the robot, such as ur5e, or path of a robot file"
)
TF_PREFIX = Parameter("tf_prefix", "", "prefix of joint and frame names, as in the UR driver")
PUBLISH_RATE = Parameter(
    "publish_rate",
    50.0,
    "publish rate of the live topics; above 125 Hz several come together, every 8 ms at most",
    unit="Hz",
    minimum=1.0,
    maximum=500.0,
)
MODEL_FILE = Parameter(
    "model_file", "", "identified model (model.yaml); empty for the generic model of the arm"
)
LEARN = Parameter(
    "learn", "on", "improve the model while the arm works: on uses what is learned, keep also "
    "writes it to model_file", choices=("off", "on", "keep"),
)  # fmt: skip

LOGGER: tuple[Parameter, ...] = (
    AUTOSTART,
    ROBOT_IP,
    Parameter(
        "robot_model", "", "name of the robot or path of a robot file; empty for the model that "
        "the controller names",
    ),
    TF_PREFIX,
    PUBLISH_RATE,
    Parameter(
        "bag_directory", "bags", "folder for bags; a relative one is below "
        "$XDG_DATA_HOME/ur_energy (~/.local/share/ur_energy), wherever the node is started",
    ),
    Parameter(
        "record", True, "record from activation on; retention_gb limits what the bags take",
    ),
    Parameter(
        "rtde_rate", 0.0, "RTDE output rate; 0 for the highest rate of the controller", unit="Hz",
        minimum=0.0, maximum=500.0,
    ),
    Parameter("fields", [""], "RTDE fields to record; empty for all fields of the energy model"),
    Parameter(
        "split_duration", 0.0, "start a new bag file after this time; 0 for never", unit="s",
        minimum=0.0, maximum=1e6,
    ),
    Parameter(
        "retention_days", 0.0, "delete files of recorded bags in bag_directory that are older, the "
        "oldest first, without marked ones; 0 keeps all", unit="days", minimum=0.0, maximum=36500.0,
    ),
    Parameter(
        "retention_gb", 20.0, "delete the oldest files of recorded bags in bag_directory, without "
        "marked ones, while all together take more; 0 keeps all", unit="GB", minimum=0.0,
        maximum=1e6,
    ),
    Parameter(
        "record_energy", True, "record energy, energy/summary, energy/cycle and "
        "energy/prediction of an estimator in the same namespace, if there is one",
    ),
    Parameter("publish_joint_states", True, "publish joint_states; false if a driver does"),
)  # fmt: skip

IDENTIFICATION: tuple[Parameter, ...] = (
    AUTOSTART,
    Parameter(
        "robot_model",
        "",
        "name of the robot or path of a robot file; empty for the robot that the bags name",
        read_only=False,
    ),
    Parameter("bags", [""], "bags to identify the model from", read_only=False),
    Parameter("validation_bags", [""], "bags held out for validation", read_only=False),
    Parameter("output", "model.yaml", "path of the model file to write", read_only=False),
    Parameter(
        "friction",
        AUTO,
        "friction law; auto selects the one with the smallest held-out error",
        choices=(AUTO, *LAWS),
        read_only=False,
    ),
    Parameter(
        "power_model",
        "physical",
        "model of the bus power",
        choices=("physical", "ecbot", "catalogue"),
        read_only=False,
    ),
    Parameter("identify_on_start", False, "identify once on activation"),
    Parameter(
        "exit_when_done", False, "end the node after identify_on_start; exit code 1 if it failed"
    ),
)

SINKS: tuple[Parameter, ...] = (
    Parameter(
        "foxglove", [""], "addresses of servers for Foxglove and Lichtblick, such as "
        "127.0.0.1:8765",
    ),
    Parameter(
        "foxglove_origins", [""], "sites whose pages may connect to a server for Foxglove too, "
        "such as http://dashboards.example; by default those of this machine and of Foxglove",
    ),
    Parameter("mcap", [""], "MCAP files that get what a Foxglove server sends"),
    Parameter(
        "prometheus", [""], "addresses of metrics servers for Prometheus, such as 127.0.0.1:9464"
    ),
    Parameter(
        "mqtt", [""], "URLs of MQTT brokers for Sparkplug B, such as mqtt://127.0.0.1:1883 or "
        "mqtts://broker:8883",
    ),
    Parameter("opcua", [""], "URLs of OPC UA servers, such as opc.tcp://127.0.0.1:4840"),
    Parameter(
        "sink_rate", READINGS_PER_SECOND, "rate of readings for foxglove, mcap, prometheus, mqtt "
        "and opcua", unit="Hz", minimum=0.1, maximum=50.0,
    ),
    Parameter(
        "allow_network", False, "allow addresses of foxglove, prometheus and opcua that other "
        "machines reach",
    ),
    Parameter(
        "credentials", "", "YAML file with user names, passwords and certificates of mqtt and "
        "opcua; empty for the environment",
    ),
    Parameter("mqtt_group", "ur_energy", "group of Sparkplug topics"),
    Parameter("mqtt_node", "estimator", "edge node of Sparkplug topics"),
    Parameter("mqtt_json", False, "also publish plain JSON topics"),
)  # fmt: skip
"""Of the estimator: where the energies go besides ROS."""

ESTIMATOR: tuple[Parameter, ...] = (
    AUTOSTART,
    Parameter(
        "source", "rtde", "source of samples: the controller, a bag played in real time, or the "
        "joint_states topic of a driver", choices=("rtde", "bag", "joint_states"),
    ),
    replace(ROBOT_IP, only_with=("source", "rtde")),
    MODEL_FILE,
    Parameter(
        "robot_model", "", "name of the robot or path of a robot file; empty for the robot of "
        "the model file, else the one that the controller or the bag names",
    ),
    LEARN,
    Parameter(
        "same_arm", False, "the model is of this very arm, whatever the serial numbers are, as "
        "after an exchange of its control box",
    ),
    Parameter("bag", "", "bag to play (source: bag)", only_with=("source", "bag")),
    Parameter(
        "loop", False, "restart the bag at its end (source: bag)", only_with=("source", "bag")
    ),
    Parameter(
        "effort_unit", "ampere", "unit of effort in joint_states (source: joint_states)",
        choices=("ampere", "newton_metre"), only_with=("source", "joint_states"),
    ),
    Parameter(
        "method", "auto", "compute power from the measured current or from motion alone; auto uses "
        "the current if it is measured", choices=("auto", "current", "motion"),
    ),
    TF_PREFIX,
    PUBLISH_RATE,
    Parameter(
        "gap_limit", 0.1, "longest gap between samples that is integrated over (or 2.5 sample "
        "periods, if longer); longer gaps count as unaccounted time",
        unit="s", minimum=0.002, maximum=10.0, read_only=False,
    ),
    Parameter(
        "state_file", "", "file that keeps the energy counters over a restart, and beside it what "
        "was learned; empty for none"
    ),
    Parameter("reload_period", 1.0, "period of checking model_file for changes; 0 for never",
              unit="s", minimum=0.0, maximum=3600.0),
    Parameter("track_standby", True, "estimate the standby power from the bus power at standstill",
              read_only=False),
    Parameter(
        "standby_limit", 15.0, "largest difference between tracked and identified standby power",
        unit="W", minimum=0.0, maximum=100.0, read_only=False,
    ),
    Parameter(
        "drift_alarm", 5.0, "mean of model minus bus power that raises a warning",
        unit="W", minimum=0.1, maximum=1000.0, read_only=False,
    ),
    Parameter(
        "drift_time", 60.0, "time constant of the mean in drift_alarm", unit="s", minimum=1.0,
        maximum=86400.0, read_only=False,
    ),
    Parameter(
        "idle_power", 0.0, "power with the brakes engaged, used if no bus power is measured; 0 "
        "for the identified standby power", unit="W", minimum=0.0, maximum=200.0, read_only=False,
    ),
    Parameter(
        "cycle_trigger", "auto", "what starts a new cycle, besides the service ~/start_cycle; "
        "auto: program start, digital output or repeated motion, whichever shows cycles",
        choices=("auto", "none", "program", "digital_output", "int_register"),
    ),
    Parameter(
        "cycle_output", 0, "digital output whose rising edge starts a cycle", minimum=0,
        maximum=17, only_with=("cycle_trigger", "digital_output"),
    ),
    Parameter(
        "cycle_log", "", "CSV file to which the energy of each cycle is appended; empty for none"
    ),
    Parameter(
        "publish_robot_description", False, "publish robot_description, a simple robot model made "
        "from the robot file, for rviz without ur_description",
    ),
    Parameter(
        "history_store", "", "folder or s3:// address of the history, for energies per second and "
        "per cycle, and health per minute; empty for none",
    ),
    *SINKS,
)  # fmt: skip

SIMULATED_ROBOT: tuple[Parameter, ...] = (
    AUTOSTART,
    ROBOT_MODEL,
    Parameter(
        "host",
        "127.0.0.2",
        "loopback address of the RTDE, dashboard and script servers",
        address=True,
    ),
    Parameter(
        "motion", "trajectory_b", "named motion (trajectory_a, trajectory_b, hold, sinusoids, "
        "pick_and_place, warm_up) or path of a Fourier trajectory file",
    ),
    Parameter(
        "duration", 0.0, "stop the motion and the servers after this time; 0 for never", unit="s",
        minimum=0.0, maximum=1e6,
    ),
    Parameter("seed", 0, "random seed of the true parameters and of the noise", minimum=0,
              maximum=2**31 - 1),
    Parameter("session", 0, "number of the session: standby power, friction and temperatures "
              "differ between sessions; 0 for the nominal values of the arm", minimum=0,
              maximum=2**31 - 1),
    Parameter("ambient", 25.0, "ambient temperature", unit="degC", minimum=-20.0,
              maximum=60.0),
    Parameter("truth_file", "", "JSON file for the true parameters and energies; empty for none"),
)  # fmt: skip

NODES: dict[str, tuple[Parameter, ...]] = {
    "logger": LOGGER,
    "identification": IDENTIFICATION,
    "estimator": ESTIMATOR,
    "simulated_robot": SIMULATED_ROBOT,
}
"""Parameters of every node, by node name."""


def parameter(node: str, name: str) -> Parameter:
    """Returns an entry of the table.

    Raises:
        KeyError: no such node or parameter.
    """
    for entry in NODES[node]:
        if entry.name == name:
            return entry
    raise KeyError(f"{node} has no parameter {name}")


def ignored(node: str, values: Mapping[str, object]) -> list[str]:
    """Lines about the parameters of a node that were given but have no effect."""
    texts = (entry.ignored(values) for entry in NODES[node])
    return [text for text in texts if text is not None]
