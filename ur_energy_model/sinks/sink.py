"""What a sink is, and the readings that it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.topics import other_numbers, total_numbers
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array

# ArmReading: what every sink gets of an arm at one moment.


@dataclass(frozen=True)
class ArmReading:
    """State of one arm at one moment.

    Attributes:
        arm: name of the arm (arm_identity.py), the label of everything a sink publishes.
        stamp: host time of the last sample [ns since 1970, UTC].
        joints: names of the joints, prefix included, n.
        snapshot: powers, energies and states; powers are means since the previous reading.
        link: state of the connection, with lost samples.
        positions: joint origins in the base frame [n, 3], m; None where joint angles are unknown.
        cycles: completed since the previous reading.
        model: the model in use, in words.
        robot: description of the arm; None where a source of readings does not know it.
    """

    arm: str
    stamp: int
    joints: tuple[str, ...]
    snapshot: Snapshot
    link: LinkStatus
    positions: Array | None = None
    cycles: tuple[Cycle, ...] = ()
    model: str = ""
    robot: RobotDescription | None = None

    def numbers(self) -> dict[str, float]:
        """Values of the energy topics by name, the same as the ROS topics'; W and J."""
        return {**total_numbers(self.snapshot), **other_numbers(self.snapshot, self.joints)}


NOT_OPEN = "not open yet"
"""Problem of a sink that was made a moment ago."""


@dataclass(frozen=True)
class SinkStatus:
    """State of a sink.

    Attributes:
        name: such as "foxglove 127.0.0.1:8765".
        problem: why readings do not arrive now, None while they do.
        delivered: number of readings delivered.
        dropped: number of readings left out because the sink was too slow or away.
        waiting: number of readings that wait.
        clients: number of connected clients, None where a sink does not know.
    """

    name: str
    problem: str | None = None
    delivered: int = 0
    dropped: int = 0
    waiting: int = 0
    clients: int | None = None


class Sink(Protocol):
    """Takes readings; never blocks and never raises once it is made.

    Making one checks what the user stated (address, files) and raises UrEnergyError; a server that
    cannot be reached or a port in use later is a `problem` of its status, and is tried again.
    """

    @property
    def status(self) -> SinkStatus:
        """State, at any time."""
        ...

    def offer(self, reading: ArmReading) -> None:
        """Take a reading; it is left out and counted if the queue is full."""
        ...

    def close(self) -> None:
        """Deliver what waits, for a short time at most, and release everything."""
        ...


def problem_words(error: Exception) -> str:
    """Why a sink failed, for users: in the system's words, or as in the message of a library."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    if isinstance(error, UrEnergyError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else repr(error)


# ArmActions: what sinks may ask of the estimator, such as a reset of the counters.


@dataclass(frozen=True)
class ArmActions:
    """Actions on one arm; called from threads of sinks, so each must take the estimator's lock.

    Attributes:
        reset: sets the counters since reset to zero; its argument is the reason.
        read_interval: energies since the last call, as ~/read_interval returns them
            (energy_topics.statuses.interval_energies).
    """

    reset: Callable[[str], None]
    read_interval: Callable[[], Mapping[str, object]]
