# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of the nodes: name, default, unit, range and description.

A node has the parameters of several tables: NodeParameters, which every node has, its own
table, and those that rooms add to the subjects of the node. `declared` lists them; nodes
declare their parameters from it, and the parameter files under config/, the tables of
docs/nodes.md and the arguments of launch files are generated from it. At run time, a node
holds one object of each table, together a `Given` (`given_of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.powers import Method
from ur_energy_model.model.friction import LAWS
from ur_energy_model.options import Option, option, options_of, table_of
from ur_energy_model.rooms import Given, Node, choices_of, rooms, tables_of
from ur_energy_model.sinks.options import SUBJECT

AUTO = "auto"  # a friction law for each joint
SHORTEST_BATCH = 0.008
"""Time span of packets that are decoded together [s]; shorter periods share a batch."""
COMPUTED_TOGETHER = 0.08
"""Time span of the packets that the estimator computes together [s]. Its publications are
paced, and so come up to this time later.

One batch takes 1.5 ms of processor time, nearly independent of the number of samples,
because other programs have used the caches meanwhile: batches of 0.04 s would take half
as much time again."""
LONGEST_BATCH = 0.08
"""Longest time span of the packets that are decoded together, for publish periods that
are longer [s]."""


# fmt: off


@dataclass(frozen=True)
class NodeParameters:
    """Parameters of every node.

    With `autostart` false, the node waits for a lifecycle manager, which configures and
    activates it.
    """

    autostart: bool = option(
        True, "configure and activate at start, without a lifecycle manager", flags=()
    )


@dataclass(frozen=True)
class LiveParameters:
    """Parameters of the nodes that read an arm.

    Attributes:
        shortest_batch: time span of samples up to which several publish periods are
            decoded together [s]; longer publish periods have batches of their own.
    """

    robot_ip: str = option(
        "127.0.0.2", "address of the robot controller (RTDE port 30004)", address=True,
        flags=("--host",),
    )
    tf_prefix: str = option("", "prefix of joint and frame names, as in the UR driver")
    publish_rate: float = option(
        50.0, "publish rate of the live topics; energies lag up to 80 ms, joint_states 8 ms",
        unit="Hz", limits=(1.0, 500.0),
    )
    shortest_batch: ClassVar[float] = SHORTEST_BATCH

    @property
    def batch_seconds(self) -> float:
        """Time span of the samples that are decoded together [s].

        As many whole publish periods as fit into `shortest_batch`, at least one, and
        never more than LONGEST_BATCH.
        """
        period = 1.0 / self.publish_rate
        return min(LONGEST_BATCH, period * max(1, int(self.shortest_batch / period + 1e-9)))


@dataclass(frozen=True)
class LoggerParameters(LiveParameters):
    """Parameters of the node `logger`.

    Recordings are deleted only by `retention_days` and `retention_gb`, and only in
    `bag_directory`. The default of `retention_gb` keeps a cell from filling its disk.
    """

    robot_model: str = option(
        "", "name of the robot or path of a robot file; empty for the model that the controller "
        "names", flags=("--robot",),
    )
    bag_directory: Path = option(
        Path("bags"), "folder for bags; a relative one is below $XDG_DATA_HOME/ur_energy "
        "(~/.local/share/ur_energy), wherever the node is started",
    )
    record: bool = option(
        True, "record from activation on; retention_gb limits what the bags take"
    )
    rtde_rate: float = option(
        0.0, "RTDE output rate; 0 for the highest rate of the controller", unit="Hz",
        limits=(0.0, 500.0), flags=("--rate",),
    )
    meter: str = option(
        "", "URL of a power meter at the mains to record too, written as for ur_energy record "
        "--meter; empty for none", launch=True,
    )
    fields: tuple[str, ...] = option(
        (), "RTDE fields to record; empty for all fields of the energy model"
    )
    split_duration: float = option(
        0.0, "start a new bag file after this time; 0 for never", unit="s", limits=(0.0, 1e6)
    )
    retention_days: float = option(
        0.0, "delete files of recorded bags in bag_directory that are older, the oldest first, "
        "without marked ones; 0 keeps all", unit="days", limits=(0.0, 36500.0), launch=True,
    )
    retention_gb: float = option(
        20.0, "delete the oldest files of recorded bags in bag_directory, without marked ones, "
        "while all together take more; 0 keeps all", unit="GB", limits=(0.0, 1e6), launch=True,
    )
    record_energy: bool = option(
        True, "record energy, energy/summary, energy/cycle and energy/prediction of an estimator "
        "in the same namespace, if there is one",
    )
    publish_joint_states: bool = option(True, "publish joint_states; false if a driver does")


def _friction_laws_option() -> Any:
    """The parameter `friction_laws`, files of Python code, which only the start of a node runs."""
    return option(
        (), "Python files with friction laws of your own, which are run at the start of the "
        "node",
        used_by="ur_energy_model.model.friction_files:load_friction_laws",
        flags=("--friction-laws",),
    )


@dataclass(frozen=True)
class IdentificationParameters:
    """Parameters of the node `identification`; most may change at any time."""

    robot_model: str = option(
        "", "name of the robot or path of a robot file; empty for the robot that the bags name",
        changeable=True, flags=("--robot",),
    )
    bags: tuple[Path, ...] = option((), "bags to identify the model from", changeable=True)
    validation_bags: tuple[Path, ...] = option(
        (), "bags held out for validation", changeable=True, flags=("--validate",)
    )
    output: Path = option(
        Path("model.yaml"), "path of the model file to write", changeable=True
    )
    friction_laws: tuple[Path, ...] = _friction_laws_option()
    friction: str = option(
        AUTO, "friction law; auto keeps the usual one unless another is better",
        choices=lambda: (AUTO, *LAWS), changeable=True, more_from="friction_laws",
    )
    power_model: str = option(
        "physical", "model of the bus power",
        choices=partial(choices_of, "physical", "power models"), changeable=True,
    )
    identify_on_start: bool = option(False, "identify once on activation")
    exit_when_done: bool = option(
        False, "end the node after identify_on_start; exit code 1 if it failed"
    )


@dataclass(frozen=True)
class EstimatorParameters(LiveParameters):
    """Parameters of the node `estimator`, without those that rooms add to it.

    Rooms add what is done beside the estimation (subject "estimator"), and where energies
    go besides ROS (subject "sinks").
    """

    shortest_batch: ClassVar[float] = COMPUTED_TOGETHER
    source: Literal["rtde", "bag", "joint_states"] = option(
        "rtde", "source of samples: the controller, a bag played in real time, or the joint_states "
        "topic of a driver",
    )
    robot_ip: str = option(
        "127.0.0.2", "address of the robot controller (RTDE port 30004)", address=True,
        only_with=("source", "rtde"), flags=("--host",),
    )
    friction_laws: tuple[Path, ...] = _friction_laws_option()
    model_file: Path | None = option(
        None, "identified model (model.yaml); empty for the generic model of the arm",
        flags=("--model",),
    )
    robot_model: str = option(
        "", "name of the robot or path of a robot file; empty for the robot of the model file, "
        "else the one that the controller or the bag names", flags=("--robot",),
    )
    same_arm: bool = option(
        False, "the model is of this very arm, whatever the serial numbers are, as after an "
        "exchange of its control box",
    )
    bag: Path | None = option(
        None, "bag to play (source: bag)", only_with=("source", "bag")
    )
    loop: bool = option(
        False, "restart the bag at its end (source: bag)", only_with=("source", "bag")
    )
    effort_unit: Literal["auto", "ampere", "newton_metre", "without_gravity"] = option(
        "auto", "unit of effort in joint_states (source: joint_states), without_gravity for N m "
        "from which gravity was removed; auto recognises it from the motion",
        only_with=("source", "joint_states"),
    )
    method: Method = option(
        "auto", "compute power from the measured current or from motion alone; auto uses the "
        "current if it is measured",
    )
    gap_limit: float = option(
        0.1, "longest gap between samples that is integrated over (or 2.5 sample periods, if "
        "longer); longer gaps count as unaccounted time", unit="s", limits=(0.002, 10.0),
        changeable=True,
    )
    state_file: Path | None = option(
        None, "file that keeps the energy counters and what was learned over a restart; "
        "empty for none",
    )
    reload_period: float = option(
        1.0, "period of checking model_file for changes; 0 for never", unit="s",
        limits=(0.0, 3600.0),
    )
    track_standby: bool = option(
        True, "estimate the standby power from the bus power at standstill", changeable=True
    )
    standby_limit: float = option(
        15.0, "largest difference between tracked and identified standby power", unit="W",
        limits=(0.0, 100.0), changeable=True,
    )
    drift_alarm: float = option(
        5.0, "mean unexplained power (measured less modelled) that raises a warning", unit="W",
        limits=(0.1, 1000.0), changeable=True,
    )
    drift_time: float = option(
        60.0, "time constant of the mean in drift_alarm", unit="s", limits=(1.0, 86400.0),
        changeable=True,
    )
    idle_power: float = option(
        0.0, "power with the brakes engaged, used if no bus power is measured; 0 for the "
        "identified standby power", unit="W", limits=(0.0, 200.0), changeable=True,
    )
    cycle_trigger: Trigger = option(
        "auto", "what starts a new cycle, besides the service ~/start_cycle; auto: program start, "
        "digital output or repeated motion, whichever shows cycles",
    )
    cycle_output: int = option(
        0, "digital output whose rising edge starts a cycle", limits=(0, 17),
        only_with=("cycle_trigger", "digital_output"),
    )
    cycle_log: Path | None = option(
        None, "CSV file to which the energy of each cycle is appended; empty for none"
    )
    publish_robot_description: bool = option(
        False, "publish robot_description, a simple robot model made from the robot file, for rviz "
        "without ur_description",
    )

# fmt: on

CORE_NODES = (
    Node("logger", LoggerParameters, "ur_energy_model.nodes.logger:main"),
    Node(
        "identification",
        IdentificationParameters,
        "ur_energy_model.nodes.identification:main",
    ),
    Node(
        "estimator",
        EstimatorParameters,
        "ur_energy_model.nodes.estimator:main",
        subjects=(SUBJECT, "estimator"),
    ),
)
"""The nodes that are always there."""


def nodes() -> dict[str, Node]:
    """The nodes of the core and of the rooms that are there, by name."""
    found = {node.name: node for node in CORE_NODES}
    for room in rooms():
        found |= {node.name: node for node in room.nodes}
    return found


def tables(node: Node) -> tuple[type, ...]:
    """The tables of the parameters of a node, in the order of declaration."""
    return (NodeParameters, *tables_of(node.parameters, node.subjects))


def declared(node: Node) -> tuple[Option, ...]:
    """The parameters of a node, in the order in which it declares them.

    An option that two tables share, as the tables of two kinds of sinks do, is there
    once.
    """
    found: dict[str, Option] = {}
    for table in tables(node):
        for entry in options_of(table):
            found.setdefault(entry.name, entry)
    return tuple(found.values())


def given_of(node: Node, values: Mapping[str, Any]) -> Given:
    """The objects of all tables of a node.

    Args:
        node: the node.
        values: values of the node's parameters by name, with the types of the tables'
            fields; the other parameters have their defaults.
    """
    return Given(*(table_of(table, values) for table in tables(node)))


def ignored_parameters(node: Node, given: Given) -> Iterator[str]:
    """Lines about parameters that were given but have no effect beside the other ones.

    Args:
        node: the node.
        given: the objects of all of its tables.

    Yields:
        A line for each, such as "bag is ignored: it needs source:=bag, and source is
        rtde".
    """
    for table in tables(node):
        values: Any = given.of(table)
        for entry in options_of(table):
            text = entry.ignored(values)
            if text is not None:
                yield text


NODES: dict[str, tuple[Option, ...]] = {
    name: declared(node) for name, node in nodes().items()
}
"""The parameters of every node by its name."""


def parameter(node: str, name: str) -> Option:
    """An option of a node.

    Raises:
        KeyError: there is no such node or parameter.
    """
    for entry in NODES[node]:
        if entry.name == name:
            return entry
    raise KeyError(f"{node} has no parameter {name}")
