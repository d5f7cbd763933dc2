"""Nodes under test, in processes and a ROS domain of their own."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from test.torture.accounting import Recorded, check_counts
from test.torture.case import Case, Verdict
from test.torture.recordings import readable_times
from test.torture.ros_client import ros_client
from test.torture.surroundings import PATIENCE
from test.torture.watched import Watched
from ur_energy_model.nodes.launch_arguments import node_command
from ur_energy_model.options import Value

STOP_SECONDS = 20.0
"""Longest time for the end of a recording [s], on a busy machine and a sick disk."""
_RECORDED = re.compile(r"(\S+): (\d+) samples, (\d+) lost")


def start_node(
    case: Case,
    name: str,
    environment: dict[str, str] | None = None,
    launch: Sequence[str] = (),
    **parameters: Value,
) -> Watched:
    """Start a node of the package; "cell" is logger and estimator in one process.

    Bags go to the case's folder `bags`, and the energy state to `state.json`.

    Args:
        case: its folder is the working directory.
        name: of the node, or "cell".
        environment: variables; those of a ROS domain of its own by default.
        launch: command that takes the place of the node's program.
        parameters: those that differ from their default.
    """
    folder = case.folder
    logger: dict[str, Value] = {"bag_directory": str(folder / "bags"), "record": True}
    estimator: dict[str, Value] = {"model_file": str(case.around.model)}
    estimator["state_file"] = str(folder / "state.json")
    defaults = {"logger": logger, "estimator": estimator, "cell": logger | estimator}
    values = defaults.get(name, {}) | parameters
    command = _cell(values) if name == "cell" else node_command(name, values)
    command = [*launch, *command[1:]] if launch else command
    return Watched(command, folder, environment or case.around.ros_environment())


def _cell(parameters: dict[str, Value]) -> list[str]:
    """Command of the cell; parameters without a node's name apply to both nodes."""
    program = Path(node_command("logger", {})[0]).parent / "cell_node"
    words = (f"{name}:={_yaml(value)}" for name, value in parameters.items())
    return [str(program), "--ros-args", *(part for word in words for part in ("-p", word))]


def _yaml(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def end_node(case: Case, node: Watched, verdict: Verdict, codes: tuple[int, ...] = (0,)) -> None:
    """Ctrl-C, and judge how it ended; the time that takes counts as the case's."""
    began = time.monotonic()
    node.end(PATIENCE)
    verdict.seconds = max(verdict.seconds, time.monotonic() - began)
    node.judge(verdict, codes)


def stop_recording(
    environment: Mapping[str, str], patience: float = 0.0
) -> tuple[str, int, int] | None:
    """Let a logger end its recording; returns bag, samples and losses, None if it says none.

    Args:
        environment: of the logger.
        patience: time for which it may take to begin one [s].
    """
    end = time.monotonic() + patience
    with ros_client(environment) as client:
        while True:
            told = reported(client.call("/logger/stop_recording", STOP_SECONDS) or "")
            if told is not None or time.monotonic() > end:
                return told
            client.spin(0.5)


def reported(text: str) -> tuple[str, int, int] | None:
    """Bag, samples and losses that a logger told, None if it did not."""
    match = _RECORDED.search(text)
    return (match[1], int(match[2]), int(match[3])) if match else None


def check_recording(
    case: Case, verdict: Verdict, told: tuple[str, int, int] | None, *, honest: bool = True
) -> Recorded | None:
    """Compare what a logger told about a recording with what its bag holds."""
    if told is None:
        return None
    bag, samples, lost = told
    recorded = Recorded(readable_times(case.folder / bag), samples, lost)
    check_counts(verdict, recorded, honest=honest)
    return recorded
