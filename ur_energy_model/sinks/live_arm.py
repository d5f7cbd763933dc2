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
from ur_energy_model.energy.meter import efficiency
from ur_energy_model.energy.powers import PowerTable
from ur_energy_model.energy.profile import Part
from ur_energy_model.energy.program import Script
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.energy.telemetry_checks import check_robot
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
    """The present reading; None before the first sample. The caller holds the estimator's lock.

    Powers are means since the viewer's previous reading; `batch` has the last samples.
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
    """Actions on an estimator, which raises an error of this package while there is none.

    The lock guards it against the thread that reads the samples; the joints are None for
    the robot's own names.
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


class RunningNode(NamedTuple):
    """A node of the running program, or a line outside of nodes, since the view began."""

    node: str
    line: int  # in execution now; 0 of a node of the past
    executions: int
    seconds: float
    energy: float  # at the supply [J]


@dataclass(frozen=True)
class LiveState:
    """What a live view shows: arm, connection and sinks at one moment."""

    source: str  # address of the controller, or the bag
    reading: ArmReading | None  # of the arm; None before the first sample
    link: LinkStatus  # state of the connection now
    sinks: tuple[SinkStatus, ...] = ()  # state of every sink
    cycle: Cycle | None = None  # the last completed one, None before
    disk_problem: str | None = None  # why the counters cannot be saved
    arm_warning: str | None = None  # that the model is of another arm
    program: RunningNode | None = None  # where the program is; None while none runs
    # what each part of the program has taken, dearest first
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
        """What is wrong now, one line each, that of the connection first."""
        silence = self.silence and f"no samples from {self.source}: {self.silence}"
        failing = [each for each in self.sinks if each.problem not in (None, NOT_OPEN)]
        sinks = (f"{sink.name}: {sink.problem}" for sink in failing)
        found = (silence, self.disk_problem, self.arm_warning, *sinks)
        return tuple(each for each in found if each is not None)


class JointRow(NamedTuple):
    """One joint, or another part of the arm, at one moment."""

    name: str  # of the joint, prefix included, or of the part
    power: float  # electrical [W]
    energy: float  # electrical, since reset [J]
    # mechanical over electrical energy since reset; NaN where no electrical energy was
    # taken
    efficiency: float = math.nan
    temperature: float | None = None  # [degC], None where unknown


def joint_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for each joint."""
    snapshot = reading.snapshot
    net = reading.snapshot.since_reset.net
    electrical, mechanical = (
        snapshot.channels.per_joint[f"{kind}_power"]
        for kind in ("electrical", "mechanical")
    )
    ratio = efficiency(net[mechanical], net[electrical])
    columns = [snapshot.power[electrical], net[electrical], ratio]
    columns += [] if snapshot.temperature is None else [snapshot.temperature]
    return tuple(map(JointRow, reading.joints, *(column.tolist() for column in columns)))


def part_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for standby, drivers, regeneration and unexplained: with the joints, the total.

    The last is left out where nothing of the total is measured.
    """
    snapshot = reading.snapshot
    net = reading.snapshot.since_reset.net
    shown = MODEL_PARTS if snapshot.total_source.name == "modelled" else PARTS
    columns = ((name, snapshot.channels.arm[channel]) for name, channel in shown.items())
    return tuple(
        JointRow(name, float(snapshot.power[k]), float(net[k])) for name, k in columns
    )


class SinkGroup:
    """Sinks that get the same readings, at a rate [Hz]."""

    def __init__(
        self, sinks: Iterable[Sink], rate: float = SinkOptions.sink_rate
    ) -> None:
        self.sinks = tuple(sinks)
        self._decimator = Decimator(rate)
        self._cycles: list[Cycle] = []

    def note_cycle(self, cycle: Cycle) -> None:
        """Keep a completed cycle for the next reading."""
        if self.sinks:
            self._cycles.append(cycle)

    def offer(self, time: float, make: Callable[[], ArmReading | None]) -> None:
        """Offer what `make` makes to all sinks if one is due at this controller time [s]."""
        if self._decimator.due(time):
            self.offer_at_once(make)

    def offer_at_once(self, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks; `make` returns None before the first sample."""
        reading = make() if self.sinks else None
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
    """Reads an arm in a thread of its own, counts its energy and feeds sinks and views.

    The estimator is made with the first samples, which name the arm. Everything may be
    called from any thread. `name` is that of the source, for users: the controller's
    address, or the bag; `clock` that a live source stamps with, None for recorded
    samples.

    `model_of` has the model for what the first samples state about the arm, and what to
    call it. A ControllerError means that the arm may become known later; any other error
    ends the reading. `script` is that of the running program.

    Attributes:
        recent: the last minutes of samples.
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
        self._outlets = SinkGroup(())
        self._estimator: LiveEstimator | None = None
        self._arm_type: ArmTypeMonitor | None = None
        self._words = ""
        self._last: Telemetry

    def start(self, outlets: SinkGroup) -> None:
        """Start reading; the sinks are fed in the reading thread, and closed by their owner."""
        self._outlets = outlets
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
        """Arm, connection and sinks now; mean powers are since the viewer's previous state."""
        found = LiveState(self._name, None, self.reader.link, self._outlets.statuses)
        if (estimator := self._estimator) is None:
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
        """That the samples are those of another type of arm, or the model of another arm."""
        found = None if self._arm_type is None else self._arm_type.contradiction
        return estimator.arm_warning if found is None else found.words()

    def _program_state(self) -> dict[str, Any]:
        counted = self._log.program
        if counted is None:
            return {}
        found: dict[Part, RunningNode] = {}
        for part, spent in counted.spent().items():
            if part.node >= 0 or part.line:
                name = part.name(self._script)
                found[part] = RunningNode(
                    name, 0, spent.executions, spent.seconds, spent.energy
                )
        now = found.get(Part.of(counted.here))
        return {
            "program": None if now is None else now._replace(line=counted.here.line),
            "nodes": tuple(sorted(found.values(), key=lambda each: -each.energy)),
        }

    def _consume(self, batch: Telemetry) -> None:
        if self._estimator is None:  # once the arm is identified
            model, self._words = self._model_of(batch.info)
            robot = load_robot(model.robot)
            if self._live and batch.info.robot not in (None, robot.name):
                raise WrongRobotError(
                    self._name,
                    f"is a {batch.info.robot}, but the model is of a {robot.name}",
                    f"state a model of a {batch.info.robot}, or the address of the {robot.name}",
                )
            check_robot(batch.info.source, batch.info, robot)
            self._last, note = batch, self._outlets.note_cycle
            known = LiveEstimator(
                model, robot, self._options, on_cycle=note, on_powers=self._follow_work
            )
            self._arm_type = ArmTypeMonitor(robot)
            self._estimator = known
        if self._arm_type is not None:
            self._arm_type.observe(batch)
        with self._lock:
            self._estimator.update(batch)
            self._last = batch
            self.recent.add(batch)
            self._outlets.offer(float(batch.time[-1]), lambda: self._reading("sinks"))

    def _follow_work(self, table: PowerTable, marks: Marks) -> None:
        self._log.add(self._known().channels, table, marks)

    def _offer_last(self) -> None:
        """Offer what a recorded source ended with."""
        if self._estimator is not None:
            with self._lock:
                self._outlets.offer_at_once(lambda: self._reading("sinks"))

    def _reading(self, viewer: str) -> ArmReading | None:
        known = self._known()
        link = self.reader.link
        joints = known.calculator.robot.joint_names
        return estimator_reading(known, viewer, self._last, link, self._words, joints)

    def _known(self) -> LiveEstimator:
        if self._estimator is None:
            raise UrEnergyError("the arm is not known yet: no samples have arrived")
        return self._estimator
