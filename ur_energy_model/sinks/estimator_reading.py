"""Readings of a live estimator, and what views show of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.meter import efficiency
from ur_energy_model.energy.topics import PARTS, interval_energies
from ur_energy_model.sinks.sink import NOT_OPEN, ArmActions, ArmReading, SinkStatus
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry, arm_name
from ur_energy_model.telemetry.source import LinkStatus


@dataclass(frozen=True)
class About:
    """What a reading states beside the estimator's state.

    Attributes:
        batch: the last samples.
        link: state of the connection.
        model: the model in use, in words.
        joints: names of the joints, prefix included.
    """

    batch: Telemetry
    link: LinkStatus
    model: str
    joints: tuple[str, ...]


def estimator_reading(estimator: LiveEstimator, viewer: str, about: About) -> ArmReading | None:
    """The present reading; None before the first sample. The caller holds the estimator's lock.

    Args:
        estimator: of the arm.
        viewer: name of the caller; powers are means since its previous reading.
        about: what else the reading states.
    """
    snapshot = estimator.snapshot(viewer)
    if snapshot is None:
        return None
    calculator, stamp, info = estimator.calculator, about.batch.stamp, about.batch.info
    return ArmReading(
        arm=arm_name(replace(info, robot=info.robot or calculator.robot.name)),
        stamp=HOST_CLOCK.stamp() if stamp is None else int(stamp[-1]),
        joints=about.joints,
        snapshot=snapshot,
        link=about.link,
        positions=None if snapshot.q is None else calculator.joint_positions(snapshot.q),
        model=about.model,
        robot=calculator.robot,
    )


def estimator_actions(
    estimator: Callable[[], LiveEstimator], lock: threading.Lock, joints: tuple[str, ...] | None
) -> ArmActions:
    """Actions on an estimator.

    Args:
        estimator: returns it, or raises an error of this package while there is none.
        lock: guards it against the thread that reads the samples.
        joints: names of the joints, prefix included; None for the robot's own.
    """

    def reset(reason: str) -> None:
        known = estimator()
        with lock:
            known.reset(reason)

    def read_interval() -> dict[str, object]:
        known = estimator()
        with lock:
            passed = known.read_interval()
        return interval_energies(passed, known.channels, joints or known.channels.joints)

    return ArmActions(reset, read_interval)


# LiveState: what a live view shows at one moment.


@dataclass(frozen=True)
class LiveState:
    """Arm, connection and sinks at one moment.

    Attributes:
        source: address of the controller, or the bag.
        reading: of the arm; None before the first sample.
        link: state of the connection now.
        sinks: state of every sink.
        cycle: the last completed one, None before.
        disk_problem: why the counters cannot be saved, None if they are.
        arm_warning: that the model is of another arm, None if it is not known to be.
    """

    source: str
    reading: ArmReading | None
    link: LinkStatus
    sinks: tuple[SinkStatus, ...] = ()
    cycle: Cycle | None = None
    disk_problem: str | None = None
    arm_warning: str | None = None

    @property
    def silence(self) -> str | None:
        """Why no samples arrive now, None while they do."""
        link = self.link
        if link.connected and link.problem is None:
            return None if self.reading is not None else "no samples yet"
        reason = link.problem or link.last_error or "no answer yet"
        return reason.removeprefix(f"{self.source}: ")

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now, one line each."""
        silence = self.silence
        return (
            *(() if silence is None else (f"no samples from {self.source}: {silence}",)),
            *(() if self.disk_problem is None else (self.disk_problem,)),
            *(() if self.arm_warning is None else (self.arm_warning,)),
            *(
                f"{sink.name}: {sink.problem}"
                for sink in self.sinks
                if sink.problem not in (None, NOT_OPEN)
            ),
        )


# JointRow: what views and metrics state about one joint or another part of the arm.


@dataclass(frozen=True)
class JointRow:
    """One joint, or another part of the arm, at one moment.

    Attributes:
        name: of the joint, prefix included, or of the part.
        power: electrical [W].
        energy: electrical, since reset [J].
        efficiency: mechanical over electrical energy since reset; NaN where no electrical energy
            was taken.
        temperature: [degC], None where unknown.
    """

    name: str
    power: float
    energy: float
    efficiency: float
    temperature: float | None


def joint_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for each joint."""
    snapshot = reading.snapshot
    parts, net = snapshot.channels.per_joint, snapshot.since_reset.net
    energy = net[parts["electrical_power"]]
    temperatures = snapshot.temperature
    known = [None] * len(energy) if temperatures is None else temperatures.tolist()
    return tuple(
        JointRow(*values)
        for values in zip(
            reading.joints,
            snapshot.power[parts["electrical_power"]].tolist(),
            energy.tolist(),
            efficiency(net[parts["mechanical_power"]], energy).tolist(),
            known,
            strict=True,
        )
    )


def part_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for standby, drivers and regeneration; with the joints they sum to the total."""
    snapshot = reading.snapshot
    return tuple(
        JointRow(
            name,
            float(snapshot.power[snapshot.channels.arm[channel]]),
            float(snapshot.since_reset.net[snapshot.channels.arm[channel]]),
            float("nan"),
            None,
        )
        for name, channel in PARTS.items()
    )
