"""LiveArm: samples of one arm through the live estimator to sinks and views."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.energy.telemetry_checks import check_robot
from ur_energy_model.errors import UrEnergyError, WrongRobotError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.sinks.estimator_reading import (
    About,
    LiveState,
    estimator_actions,
    estimator_reading,
)
from ur_energy_model.sinks.options import SinkOptions
from ur_energy_model.sinks.sink import ArmReading, Sink, SinkStatus
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import Decimator, TelemetrySource

# SinkGroup: all sinks of one estimator, fed at one rate.


class SinkGroup:
    """Sinks that get the same readings.

    Args:
        sinks: already made.
        rate: of readings [Hz].
    """

    def __init__(self, sinks: Iterable[Sink], rate: float = SinkOptions.sink_rate) -> None:
        self.sinks = tuple(sinks)
        self._decimator = Decimator(rate)

    def offer(self, time: float, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks if one is due.

        Args:
            time: controller time of the last sample [s].
            make: makes the reading, None before the first sample.
        """
        if self._decimator.due(time):
            self.offer_at_once(make)

    def offer_at_once(self, make: Callable[[], ArmReading | None]) -> None:
        """Offer a reading to all sinks; `make` as in `offer`."""
        reading = make() if self.sinks else None
        if reading is not None:
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


@dataclass(frozen=True)
class NamedModel:
    """A model and what to call it.

    Attributes:
        model: of the arm.
        words: the model in words, for users.
    """

    model: EnergyModel
    words: str


class LiveArm:
    """Reads an arm in a thread of its own, counts its energy and feeds sinks and views.

    The estimator is made with the first samples, which tell the arm. Everything may be called from
    any thread.

    Args:
        name: of the source, for users: the controller's address, or the bag.
        open_source: makes the source of samples.
        model_of: the model for what the first samples tell about the arm. A ControllerError means
            that the arm may become known later; any other error ends the reading.
        options: of the estimator.
        clock: that a live source stamps with; None for recorded samples.

    Attributes:
        reader: the thread, with state of the connection and failure.
        actions: what sinks may ask for.
    """

    def __init__(
        self,
        name: str,
        open_source: Callable[[], TelemetrySource],
        model_of: Callable[[RecordingInfo], NamedModel],
        options: LiveOptions,
        *,
        clock: HostClock | None = None,
    ) -> None:
        self._name, self._model_of, self._options = name, model_of, options
        self._live = clock is not None
        self.reader = SourceReader(open_source, self._consume, clock=clock, on_end=self._offer_last)
        self._lock = threading.Lock()
        self.actions = estimator_actions(self._known, self._lock, None)
        self._outlets = SinkGroup(())
        self._estimator: LiveEstimator | None = None
        self._words = ""
        self._last: Telemetry
        self._new_cycles: list[Cycle] = []

    def start(self, outlets: SinkGroup) -> None:
        """Start reading.

        Args:
            outlets: get a reading at their rate, in the thread that reads; closed by their owner.
        """
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
        if self._estimator is None:
            return
        with self._lock:
            save = self._estimator.prepare_save()
        save()

    def state(self, viewer: str) -> LiveState:
        """Arm, connection and sinks now.

        Args:
            viewer: name of the caller; mean powers are since its previous state.
        """
        estimator, reading, cycle = self._estimator, None, None
        if estimator is not None:
            with self._lock:
                reading = self._reading(estimator, viewer)
                cycle = estimator.cycles[-1] if estimator.cycles else None
        return LiveState(
            source=self._name,
            reading=reading,
            link=self.reader.link,
            sinks=self._outlets.statuses,
            cycle=cycle,
            disk_problem=None if estimator is None else estimator.disk_problem,
            arm_warning=None if estimator is None else estimator.arm_warning,
        )

    def _consume(self, batch: Telemetry) -> None:
        estimator = self._estimator or self._on_arm_identified(batch)
        with self._lock:
            estimator.update(batch)
            self._last = batch
            self._outlets.offer(float(batch.time[-1]), lambda: self._sink_reading(estimator))

    def _offer_last(self) -> None:
        """Offer what a recorded source ended with."""
        if (estimator := self._estimator) is not None:
            with self._lock:
                self._outlets.offer_at_once(lambda: self._sink_reading(estimator))

    def _on_arm_identified(self, batch: Telemetry) -> LiveEstimator:
        """Start estimating once the arm is identified."""
        named = self._model_of(batch.info)
        robot = load_robot(named.model.robot)
        if self._live and batch.info.robot not in (None, robot.name):
            raise WrongRobotError(
                self._name,
                f"is a {batch.info.robot}, but the model is of a {robot.name}",
                f"state a model of a {batch.info.robot}, or the address of the {robot.name}",
            )
        check_robot(batch.info.source, batch.info, robot)
        estimator = LiveEstimator(
            named.model, robot, self._options, on_cycle=self._new_cycles.append
        )
        self._words, self._last = named.words, batch
        self._estimator = estimator
        return estimator

    def _sink_reading(self, estimator: LiveEstimator) -> ArmReading | None:
        reading = self._reading(estimator, "sinks")
        if reading is not None:
            reading = replace(reading, cycles=tuple(self._new_cycles))
            self._new_cycles.clear()
        return reading

    def _reading(self, estimator: LiveEstimator, viewer: str) -> ArmReading | None:
        joints = estimator.calculator.robot.joint_names
        about = About(self._last, self.reader.link, self._words, joints)
        return estimator_reading(estimator, viewer, about)

    def _known(self) -> LiveEstimator:
        """The estimator.

        Raises:
            UrEnergyError: the arm is not known yet.
        """
        if self._estimator is None:
            raise UrEnergyError("the arm is not known yet: no samples have arrived")
        return self._estimator
