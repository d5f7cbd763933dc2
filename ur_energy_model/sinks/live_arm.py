# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""LiveArm: samples of one arm through the live estimator to sinks and views."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ur_energy_model.consistency.arm_type import ArmTypeMonitor
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.cycles import Marks
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.matched_model import check_robot
from ur_energy_model.energy.meter import efficiency
from ur_energy_model.energy.powers import PowerTable
from ur_energy_model.energy.program import Script
from ur_energy_model.energy.program_energy import ProgramPart
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.energy.topics import MODEL_PARTS, PARTS, interval_energies
from ur_energy_model.energy.work_log import WorkLog
from ur_energy_model.errors import UrEnergyError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.sink import NOT_OPEN, ArmActions, ArmReading, Sink, SinkStatus
from ur_energy_model.telemetry.clock import HOST_CLOCK, HostClock
from ur_energy_model.telemetry.recent_samples import RecentSamples
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, arm_name
from ur_energy_model.telemetry.source import Decimator, LinkStatus, TelemetrySource


def estimator_reading(
    estimator: LiveEstimator,
    viewer: str,
    batch: Telemetry,
    link: LinkStatus,
    model: str,
    joints: tuple[str, ...],
) -> ArmReading | None:
    """The present reading of an arm.

    Args:
        estimator: estimator of the arm; the caller holds its lock.
        viewer: name of the reader; powers are means since its previous reading.
        batch: the last samples, from which name of the arm and time are taken.
        link: state of the connection.
        model: the model in use, in words.
        joints: names of the joints, prefix included.

    Returns:
        The reading; None before the first sample.
    """
    snapshot = estimator.snapshot(viewer)
    if snapshot is None:
        return None
    robot = estimator.calculator.robot
    info = batch.info
    arm = arm_name(replace(info, robot=info.robot or robot.name))
    stamp = HOST_CLOCK.stamp() if batch.stamp is None else int(batch.stamp[-1])
    return ArmReading(arm, stamp, joints, snapshot, link, model=model, robot=robot)


def estimator_actions(
    estimator: Callable[[], LiveEstimator],
    lock: threading.Lock,
    joints: tuple[str, ...] | None,
) -> ArmActions:
    """Actions on an estimator.

    Args:
        estimator: returns the estimator; raises an UrEnergyError while there is none.
        lock: guards the estimator against the thread that reads the samples.
        joints: names of the joints, prefix included; None for the robot's own names.
    """

    def reset(reason: str) -> None:
        """Set the counters since reset to zero."""
        known = estimator()
        with lock:
            known.reset(reason)

    def read_interval() -> dict[str, object]:
        """Energies since the last call."""
        known = estimator()
        with lock:
            passed = known.read_interval()
        return interval_energies(passed, known.channels, joints or known.channels.joints)

    return ArmActions(reset, read_interval)


class RunningNode(NamedTuple):
    """A node of the running program, or a line outside nodes, since the view began.

    Attributes:
        node: name of the node, or the line as text.
        line: line in execution now; 0 for a node that is not executed now.
        executions: number of times that the node was executed.
        seconds: time spent in the node [s].
        energy: energy at the supply, during this time [J].
    """

    node: str
    line: int
    executions: int
    seconds: float
    energy: float


@dataclass(frozen=True)
class LiveState:
    """State that a live view shows: arm, connection and sinks at one moment.

    Attributes:
        source: address of the controller, or the bag.
        reading: reading of the arm; None before the first sample.
        link: state of the connection now.
        sinks: state of every sink.
        cycle: the last completed cycle; None before the first.
        disk_problem: why the counters cannot be saved; None while they can.
        arm_warning: warning that the model belongs to another arm; None where it does
            not.
        program: the node that is executed now; None while no program runs.
        nodes: time and energy of each part of the program, in descending order of energy.
    """

    source: str
    reading: ArmReading | None
    link: LinkStatus
    sinks: tuple[SinkStatus, ...] = ()
    cycle: Cycle | None = None
    disk_problem: str | None = None
    arm_warning: str | None = None
    program: RunningNode | None = None
    nodes: tuple[RunningNode, ...] = ()

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
        """Present problems, one line each; a problem of the connection is the first."""
        found: list[str] = []
        if self.silence is not None:
            found.append(f"no samples from {self.source}: {self.silence}")
        if self.disk_problem is not None:
            found.append(self.disk_problem)
        if self.arm_warning is not None:
            found.append(self.arm_warning)
        failing = [sink for sink in self.sinks if sink.problem not in (None, NOT_OPEN)]
        return (*found, *(f"{sink.name}: {sink.problem}" for sink in failing))


class JointRow(NamedTuple):
    """One joint, or another part of the arm, at one moment.

    Attributes:
        name: name of the joint, prefix included, or of the part.
        power: electrical [W].
        energy: electrical, since reset [J].
        efficiency: mechanical over electrical energy since reset; NaN where no electrical
            energy was taken, and for other parts.
        temperature: temperature of the motor [degC]; None where it is not known.
    """

    name: str
    power: float
    energy: float
    efficiency: float = math.nan
    temperature: float | None = None


def joint_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for each joint, in the order of `reading.joints`."""
    snapshot = reading.snapshot
    net = snapshot.since_reset.net
    electrical = snapshot.channels.per_joint["electrical_power"]
    mechanical = snapshot.channels.per_joint["mechanical_power"]
    ratio = efficiency(net[mechanical], net[electrical])
    columns = [snapshot.power[electrical], net[electrical], ratio]
    if snapshot.temperature is not None:
        columns.append(snapshot.temperature)
    return tuple(map(JointRow, reading.joints, *(column.tolist() for column in columns)))


def part_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for each other part: standby, drivers, regeneration and unexplained.

    With the joints they sum to the total of the arm. The unexplained part is left out
    where no part of the total was measured.
    """
    snapshot = reading.snapshot
    net = snapshot.since_reset.net
    shown = MODEL_PARTS if snapshot.total_source.name == "modelled" else PARTS
    rows: list[JointRow] = []
    for name, channel in shown.items():
        column = snapshot.channels.arm[channel]
        rows.append(JointRow(name, float(snapshot.power[column]), float(net[column])))
    return tuple(rows)


class SinkGroup:
    """Sinks that get the same readings, at the same times."""

    def __init__(
        self, sinks: Iterable[Sink], rate: float = SinkOptions.sink_rate
    ) -> None:
        """A group of sinks, which `close` closes.

        Args:
            sinks: sinks of the group; there may be none.
            rate: rate of readings [Hz].
        """
        self.sinks = tuple(sinks)
        self._decimator = Decimator(rate)
        self._cycles: list[Cycle] = []

    def note_cycle(self, cycle: Cycle) -> None:
        """Keep a completed cycle for the next reading."""
        if self.sinks:
            self._cycles.append(cycle)

    def offer(self, time: float, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks if one is due.

        Args:
            time: controller time of the last sample [s].
            make: makes the reading; returns None before the first sample.
        """
        if self._decimator.due(time):
            self.offer_at_once(make)

    def offer_at_once(self, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks; `make` returns None before the first sample."""
        if not self.sinks:
            return
        reading = make()
        if reading is not None:
            reading = replace(reading, cycles=tuple(self._cycles))
            self._cycles.clear()
            for sink in self.sinks:
                sink.offer(reading)

    @property
    def statuses(self) -> tuple[SinkStatus, ...]:
        """State of every sink."""
        return tuple(sink.status for sink in self.sinks)

    def close(self) -> None:
        """Close all sinks."""
        for sink in self.sinks:
            sink.close()


class LiveArm:
    """Reads an arm in a thread of its own, counts its energy and updates sinks and views.

    The estimator is made with the first samples, which name the arm. Everything may be
    called from any thread.

    Attributes:
        recent: the last minutes of samples.
        reader: the thread that reads the samples.
        actions: what clients of sinks may request of the arm.
    """

    def __init__(
        self,
        name: str,
        open_source: Callable[[], TelemetrySource],
        model_of: Callable[[RecordingInfo], tuple[EnergyModel, str]],
        options: LiveOptions,
        *,
        clock: HostClock | None = None,
        script: Script | None = None,
    ) -> None:
        """An arm that is not read yet.

        Args:
            name: name of the source, for users: address of the controller, or the bag.
            open_source: opens the source of samples.
            model_of: returns the model for what the first samples state about the arm,
                and what to call it. A ControllerError means that the arm may be named
                later; any other error ends the reading.
            options: options of the estimator.
            clock: clock with which a live source stamps the samples; None for recorded
                samples.
            script: script of the running program, whose nodes are named; None for none.
        """
        self._name = name
        self._model_of = model_of
        self._options = options
        self._script = script
        self._log = WorkLog(script)
        self.recent = RecentSamples()
        self._live = clock is not None
        self.reader = SourceReader(
            open_source, self._consume, clock=clock, on_end=self._offer_last
        )
        self._lock = threading.Lock()
        self.actions = estimator_actions(self._known, self._lock, None)
        self._sinks = SinkGroup(())
        self._estimator: LiveEstimator | None = None
        self._arm_type: ArmTypeMonitor | None = None
        self._words = ""  # the model in use, in words
        self._last: Telemetry

    def start(self, sinks: SinkGroup) -> None:
        """Start reading; the caller closes the sinks, which the reading thread updates."""
        self._sinks = sinks
        self.reader.start()

    def close(self) -> None:
        """Stop reading, save the counters and release the state file."""
        self.reader.stop()
        if self._estimator is not None:
            with self._lock:
                self._estimator.close()

    def save(self) -> None:
        """Write the counters to disk; samples do not wait for it."""
        if self._estimator is not None:
            with self._lock:
                save = self._estimator.prepare_save()
            save()

    def finished_work(self) -> tuple[EnergyModel, WorkLog] | None:
        """The model of the arm, and what the arm did; None before the first sample.

        The reading must have ended.
        """
        if self._estimator is None:
            return None
        self._log.finish()
        return self._estimator.calculator.model, self._log

    def state(self, viewer: str) -> LiveState:
        """Arm, connection and sinks now.

        Args:
            viewer: name of the reader; powers are means since its previous state.
        """
        found = LiveState(self._name, None, self.reader.link, self._sinks.statuses)
        estimator = self._estimator
        if estimator is None:
            return found
        with self._lock:
            return replace(
                found,
                reading=self._reading(viewer),
                cycle=estimator.cycles[-1] if estimator.cycles else None,
                disk_problem=estimator.disk_problem,
                arm_warning=self._arm_warning(estimator),
                **self._program_state(),
            )

    def _arm_warning(self, estimator: LiveEstimator) -> str | None:
        """That samples or model are of another arm, in words; None if they are not."""
        if self._arm_type is not None:
            contradiction = self._arm_type.contradiction
            if contradiction is not None:
                return contradiction.words()
        return estimator.arm_warning

    def _program_state(self) -> dict[str, Any]:
        """Fields `program` and `nodes` of a LiveState; none while no program has run."""
        counted = self._log.program
        if counted is None:
            return {}
        found: dict[ProgramPart, RunningNode] = {}
        for part, spent in counted.spent().items():
            if part.node >= 0 or part.line:
                name = part.name(self._script)
                found[part] = RunningNode(
                    name, 0, spent.executions, spent.seconds, spent.energy
                )
        now = found.get(ProgramPart.of(counted.here))
        if now is not None:
            now = now._replace(line=counted.here.line)
        nodes = tuple(sorted(found.values(), key=lambda node: -node.energy))
        return {"program": now, "nodes": nodes}

    def _consume(self, batch: Telemetry) -> None:
        """Count the samples of a batch; called in the reading thread."""
        if self._estimator is None:
            self._estimator = self._made_estimator(batch)
        if self._arm_type is not None:
            self._arm_type.observe(batch)
        with self._lock:
            self._estimator.update(batch)
            self._last = batch
            self.recent.add(batch)
            self._sinks.offer(float(batch.time[-1]), lambda: self._reading("sinks"))

    def _made_estimator(self, batch: Telemetry) -> LiveEstimator:
        """The estimator for the arm that the first samples name.

        Raises:
            WrongRobotError: the model is of another type of arm than the controller.
        """
        model, self._words = self._model_of(batch.info)
        robot = load_robot(model.robot)
        named = batch.info.robot
        if self._live and named not in (None, robot.name):
            raise WrongRobotError(
                self._name,
                f"is a {named}, but the model is of a {robot.name}",
                f"state a model of a {named}, or the address of the {robot.name}",
            )
        check_robot(batch.info.source, batch.info, robot)
        self._last = batch
        self._arm_type = ArmTypeMonitor(robot)
        return LiveEstimator(
            model,
            robot,
            self._options,
            on_cycle=self._sinks.note_cycle,
            on_powers=self._follow_work,
        )

    def _follow_work(self, table: PowerTable, marks: Marks) -> None:
        """Log what the arm did, for the measures at the end; the lock is held."""
        self._log.add(self._known().channels, table, marks)

    def _offer_last(self) -> None:
        """Offer the last reading of a source that has ended."""
        if self._estimator is not None:
            with self._lock:
                self._sinks.offer_at_once(lambda: self._reading("sinks"))

    def _reading(self, viewer: str) -> ArmReading | None:
        """The present reading; the lock is held.

        Args:
            viewer: name of the reader; powers are means since its previous reading.
        """
        known = self._known()
        link = self.reader.link
        joints = known.calculator.robot.joint_names
        return estimator_reading(known, viewer, self._last, link, self._words, joints)

    def _known(self) -> LiveEstimator:
        """The estimator.

        Raises:
            UrEnergyError: no samples have arrived, which name the arm.
        """
        if self._estimator is None:
            raise UrEnergyError("the arm is not known yet: no samples have arrived")
        return self._estimator
