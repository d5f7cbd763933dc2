# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health of the estimator: its parts on /diagnostics, and lines for the operator.

The reading thread records its batches and publications (`record_batch`,
`record_publication`, `record_missed`); once a second the executor's thread makes the
parts and lines. The counts of one report may be off by one batch, since they have no
lock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.errors import counted
from ur_energy_model.nodes import lines as levels
from ur_energy_model.nodes.estimated_arm import EstimatedArm, EstimatorCompanion
from ur_energy_model.nodes.lines import ConnectionLines, OperatorLines
from ur_energy_model.nodes.model_line import SECONDS_PER_DAY
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.nodes.ros import ERROR, OK, SILENT_AFTER, WARN, Part
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus

MAX_LATENCIES = 2000  # largest number of latencies kept between two reports
MISSED_SHARE = 0.02  # share of publications whose absence is a warning
BUSY = "publish_rate is not reached: the processor is busy, or the rate too high"
LATE = "samples came late and together: the network or the controller had stalled"
LATE_SHARE = 0.6
"""Samples of a batch count as late if the reader waited for them for more than this share
of the time span of the batch; otherwise this program was behind."""


class EstimatorHealth:
    """Rates, latencies and problems of an estimator between two reports.

    Args:
        parameters: own parameters of the node.
        companions: companions of the estimator, which add further figures and statuses.
        lines: writer of the lines for the operator.

    Attributes:
        hardware: serial number or type of the arm, or the source.
        details: returns further figures of the source.
        doubt: returns a problem of the samples of the source; None without one.
        published: number of publications since the last report.
        missed: number of publications left out so far.
    """

    def __init__(
        self,
        parameters: EstimatorParameters,
        companions: Sequence[EstimatorCompanion],
        lines: OperatorLines,
    ) -> None:
        self._parameters = parameters
        self._companions = tuple(companions)
        self._lines = lines
        self._played = parameters.source == "bag"
        # Since the last report: latencies of publications [s], number of samples; when it
        # was made, by the monotonic clock [s], and the unaccounted time that it had [s].
        self._latency: deque[float] = deque(maxlen=MAX_LATENCIES)
        self._samples = 0
        self._since = time.monotonic()
        self._unaccounted = 0.0
        self._last_arrival: float | None = None  # arrival of samples, monotonic clock [s]
        # What lines have reported: of a controller or driver; of a bag, how many times it
        # was opened and whether it has ended; another arm than the model's; and sinks.
        self._connection: ConnectionLines | None = None
        self._openings = 1
        self._end_reported = False
        self._robot_reported = False
        self._working_sinks: set[str] = set()
        self.hardware = ""
        self.details: Callable[[], Mapping[str, object]] = dict
        self.doubt: Callable[[], str | None] = lambda: None
        self.published = 0
        self.missed = 0
        # Publications left out since the last report, by the cause.
        self._missed_busy = 0  # this program was behind
        self._missed_late = 0  # the samples came late

    def begin(self) -> None:
        """Note that the source is read from now on."""
        self._openings = 1
        self._end_reported = False
        if self._played:
            self._lines.log(levels.INFO, f"playing the bag {self._parameters.bag}")
        else:
            topic = self._parameters.source == "joint_states"
            address = "joint_states" if topic else self._parameters.robot_ip
            self._connection = ConnectionLines(self._lines, address)

    def record_publication(self, stamp: int | None) -> None:
        """Record that a total power was published.

        Args:
            stamp: host time of its newest sample [ns]; None where unknown.
        """
        self.published += 1
        if stamp is not None and self._parameters.source == "rtde":
            self._latency.append((HOST_CLOCK.stamp() - stamp) * 1e-9)

    def record_missed(self, count: int, seconds: float, waited: float) -> None:
        """Record publications that were left out for a batch, and the cause.

        Args:
            count: number of publications.
            seconds: time span of the samples of the batch [s].
            waited: time for which the reader waited for these samples [s]; see
                LATE_SHARE.
        """
        self.missed += count
        if waited > LATE_SHARE * seconds:
            self._missed_late += count
        else:
            self._missed_busy += count

    def record_batch(self, batch: Telemetry) -> None:
        """Record the arrival of samples."""
        self._samples += len(batch)
        self._last_arrival = time.monotonic()
        self.hardware = batch.info.serial or batch.info.robot or batch.info.source

    def parts(
        self,
        snapshot: Snapshot | None,
        reader: SourceReader | None,
        arm: EstimatedArm | None,
    ) -> dict[str, Part]:
        """Source, model and counters since the last call, and the parts of companions.

        Args:
            snapshot: powers and energies now; None before the first sample.
            reader: reader of the samples; None while the node is not active.
            arm: the arm; None while it is unknown.

        Returns:
            Statuses by name.
        """
        parts: dict[str, Part] = {
            "source": self._source(snapshot, reader),
            "model": _model(snapshot, arm, self._companions),
            "counters": _counters(snapshot, arm),
        }
        if arm is not None:
            for companion in self._companions:
                parts |= companion.parts()
        return parts

    def _source(self, snapshot: Snapshot | None, reader: SourceReader | None) -> Part:
        """Status of the source: rates, latencies and losses since the last call.

        Args:
            snapshot: powers and energies now; None before the first sample.
            reader: reader of the samples; None while the node is not active.
        """
        now = time.monotonic()
        age = None if self._last_arrival is None else now - self._last_arrival
        values = self._rates(now)
        values["age_s"] = age
        values |= _link_values(reader)
        values |= self.details()
        if HOST_CLOCK.check():
            values |= {
                "clock_steps": HOST_CLOCK.steps,
                "clock": HOST_CLOCK.describe_step(),
            }
        unaccounted = 0.0
        if snapshot is not None:
            unaccounted = snapshot.lifetime.unaccounted
            values |= {
                "samples": snapshot.samples,
                "refused_samples": snapshot.refused,
                "controller_restarts": snapshot.controller_restarts,
                "unaccounted_s": unaccounted,
            }
        level, text = self._source_verdict(reader, age, unaccounted)
        self._latency.clear()
        self._samples = 0
        self.published = 0
        self._missed_busy = 0
        self._missed_late = 0
        self._since = now
        self._unaccounted = unaccounted
        return level, text, values

    def _rates(self, now: float) -> dict[str, object]:
        """Rates [Hz] and latencies [ms] since the last report.

        The latency of a publication is the time since the host stamp of its newest
        sample.

        Args:
            now: time of the report, by the monotonic clock [s].
        """
        seconds = max(now - self._since, 1e-3)
        values: dict[str, object] = {
            "rate_Hz": self._samples / seconds,
            "published_Hz": self.published / seconds,
            "publications_missed": self.missed,
        }
        if self._latency:
            milliseconds = 1e3 * np.array(self._latency)
            values["latency_p50_ms"] = float(np.percentile(milliseconds, 50))
            values["latency_p99_ms"] = float(np.percentile(milliseconds, 99))
            values["latency_max_ms"] = float(milliseconds.max())
        return values

    def _source_verdict(
        self, reader: SourceReader | None, age: float | None, unaccounted: float
    ) -> tuple[bytes, str]:
        """Level and text of the status of the source: the first problem that applies.

        Args:
            reader: reader of the samples; None while the node is not active.
            age: time since the last samples [s]; None before the first.
            unaccounted: time without samples that the counters have [s].
        """
        if reader is not None and reader.ended:
            return OK, "the bag has ended"
        silent = None if reader is None else reader.why_silent
        if silent is not None:
            return ERROR, silent
        if age is None or age > SILENT_AFTER:
            return ERROR, "no samples; is the controller on and reachable?"
        doubt = self.doubt()
        if doubt is not None:
            return WARN, doubt
        if unaccounted > self._unaccounted:
            return WARN, "samples are missing; their energy is unaccounted"
        if self._missed_busy + self._missed_late > MISSED_SHARE * self.published:
            return WARN, BUSY if self._missed_busy >= self._missed_late else LATE
        return OK, "samples arrive"

    def write_lines(self, reader: SourceReader | None, robot: str | None) -> None:
        """Write lines about the source.

        Args:
            reader: reader of the samples; None while the node is not active.
            robot: type of the arm of the model, with which the type of the arm that the
                samples name is compared; None if it is unknown.
        """
        self._lines.clock_steps()
        if reader is None:
            return
        if self._connection is not None:
            self._connection.update(reader.link, reader.info)
        else:
            bag = self._parameters.bag
            if reader.attempts > self._openings:
                self._openings = reader.attempts
                self._lines.event(
                    "bag", levels.INFO, f"bag {bag} plays again, from its beginning"
                )
            if reader.ended and not self._end_reported:
                self._end_reported = True
                text = f"bag {bag} has ended after {counted(reader.samples, 'sample')}"
                self._lines.log(levels.INFO, f"{text}; the counters keep their values")
        found = None if reader.info is None else reader.info.robot
        contradicted = found is not None and robot is not None and found != robot
        if contradicted and not self._robot_reported:
            self._robot_reported = True
            text = f"the samples are of a {found}, but the model is of a {robot}"
            self._lines.log(levels.ERROR, text)

    def end(
        self, reader: SourceReader | None, arm: EstimatedArm | None, last: Snapshot | None
    ) -> None:
        """Write the lines at the end, once the reader was stopped and the counters saved.

        Args:
            reader: reader that was stopped; None if there was none.
            arm: None if it was never known.
            last: the final powers and energies; None without any sample.
        """
        if self._connection is not None:
            self._connection.end(None if reader is None else reader.link)
        if arm is None or last is None:
            return
        energy = float(last.since_reset.net[last.channels.arm["total"]])
        file = self._parameters.state_file
        text = f"{energy:,.0f} J since reset"
        problem = arm.estimator.disk_problem
        if problem is not None:
            text = f"the energy counters are not saved: {problem}; {text}"
            self._lines.log(levels.ERROR, text)
        elif file:
            self._lines.log(levels.INFO, f"energy counters saved in {file}: {text}")
        else:
            self._lines.log(
                levels.INFO, f"energy counters end: {text} (state_file is empty)"
            )

    def sinks(self, sinks: Sequence[SinkStatus]) -> dict[str, Part]:
        """Write lines about sinks that begin to work, fail and work again.

        Returns:
            The status of each sink, by its name.
        """
        parts: dict[str, Part] = {}
        for sink in sinks:
            name = sink.name
            problem = sink.problem
            if problem is None and name not in self._working_sinks:
                self._working_sinks.add(name)
                self._lines.log(levels.INFO, f"energies go to {name}")
            if name in self._working_sinks or problem != NOT_OPEN:
                text = None if problem is None else f"{name}: {problem}"
                self._lines.problem(name, text, f"{name} works again", levels.WARN)
            keys = ("delivered", "dropped", "waiting", "clients")
            values = {key: getattr(sink, key) for key in keys}
            parts[f"sink {name}"] = OK, "works", values
            if problem is not None:
                parts[f"sink {name}"] = WARN, problem, values
        return parts


def _counters(snapshot: Snapshot | None, arm: EstimatedArm | None) -> Part:
    """Status of the counters: since when they count, and whether they are saved.

    Args:
        snapshot: powers and energies now; None before the first sample.
        arm: None while it is unknown.
    """
    values: dict[str, object] = {}
    if snapshot is not None:
        values["since"] = snapshot.reset_time
        values["serial"] = snapshot.serial or "unknown"
        if snapshot.note is not None:
            values["note"] = snapshot.note
    problem = None
    if arm is not None:
        problem = arm.estimator.disk_problem or arm.estimator.log_problem
    if problem is not None:
        return ERROR, problem, values
    return OK, "kept", values


def _link_values(reader: SourceReader | None) -> dict[str, object]:
    """Losses and interruptions of the connection; zeros while the node is not active."""
    link = LinkStatus() if reader is None else reader.link
    values: dict[str, object] = {
        "gaps": link.losses.gaps,
        "lost": link.losses.samples,
        "lost_s": link.losses.seconds,
        "outage_s": link.outage,
        "skipped": link.skipped,
        "reconnects": 0 if reader is None else reader.reconnects,
    }
    if link.identity is not None:
        values["identity"] = link.identity
    return values


def _model(
    snapshot: Snapshot | None,
    arm: EstimatedArm | None,
    companions: Sequence[EstimatorCompanion],
) -> Part:
    """Status of the model: how well it agrees with the arm, and where it comes from.

    Args:
        snapshot: powers and energies now; None before the first sample.
        arm: None while it is unknown.
        companions: companions of the estimator, which add figures of their own.
    """
    beside: dict[str, object] = {}
    for companion in companions:
        beside |= companion.model_values()
    if arm is None:
        text = "the arm is not known yet; the controller or the bag states which it is"
        return OK, text, {"model": None, **beside}
    calculator = arm.estimator.calculator
    standby = calculator.standby
    path = arm.path
    age = None
    if path is not None:
        with suppress(OSError):
            age = (time.time() - path.stat().st_mtime) / SECONDS_PER_DAY
    level, text = _model_verdict(snapshot, arm, companions)
    values: dict[str, object] = {
        "model": arm.words,
        "model_file": "none" if path is None else str(path),
        "robot": calculator.model.robot,
        "age_days": age,
        "standby_model_W": calculator.model.bus.standby,
        "standby_W": standby.power,
        "standby_std_W": standby.std,
        "session_anchored": standby.anchored,
        "controller_constants_N_m_per_A": _constants_words(arm),
        **beside,
    }
    if snapshot is not None and snapshot.bus_measured:
        values |= {
            "unexplained_mean_W": snapshot.unexplained_mean,
            "unexplained_std_W": snapshot.unexplained_std,
            "drift_alarm": snapshot.drifting,
        }
    return level, text, values


def _model_verdict(
    snapshot: Snapshot | None,
    arm: EstimatedArm,
    companions: Sequence[EstimatorCompanion],
) -> tuple[bytes, str]:
    """Level and text of the status of the model: the most important problem, if any.

    Args:
        snapshot: powers and energies now; None before the first sample.
        arm: the arm.
        companions: companions of the estimator, one of which may follow a drift of the
            arm.
    """
    warning = arm.warning
    if warning is not None:
        return WARN, warning
    if snapshot is None or not snapshot.bus_measured:
        return OK, "not compared: no bus power"
    if snapshot.drifting:
        followed = any(companion.follows_arm for companion in companions)
        remedy = "learning follows" if followed else "identify the arm again"
        return WARN, f"drifts away from the bus power; {remedy}"
    if arm.estimator.calculator.standby.at_limit:
        return WARN, "standby power is beyond the limit of the model's"
    return OK, "agrees with the bus power"


def _constants_words(arm: EstimatedArm) -> str:
    """Torque constants that the controller states, joint by joint [N m/A], as text."""
    constants = arm.estimator.constants.torque_per_ampere.tolist()
    words = [f"{each:.4g}" if np.isfinite(each) else "unknown" for each in constants]
    return ", ".join(words)
