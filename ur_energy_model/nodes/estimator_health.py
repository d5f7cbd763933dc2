"""Health of the estimator on /diagnostics: source, model and counters."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.nodes.estimated_arm import EstimatedArm
from ur_energy_model.nodes.lines import (
    ClockLines,
    ConnectionLines,
    Level,
    Line,
    ProblemLines,
    RepeatedLines,
    count,
)
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.nodes.ros import ERROR, OK, SILENT_AFTER, WARN, status
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry, same_serial

if TYPE_CHECKING:  # its packages are needed for a history only
    from ur_energy_model.plant.live_history import LiveHistory

MAX_LATENCIES = 2000
"""Largest number of latencies kept between two reports."""
MISSED_SHARE = 0.02
"""Share of publications whose absence is a warning."""
LEARN_OFF: Mapping[str, object] = {"learned_minutes": 0.0, "next_needed": "learn is off"}


class EstimatorHealth:
    """Rates, latencies and problems between two reports.

    Args:
        node: full name of the node.

    Attributes:
        details: returns further figures of the source.
        disk_problem: why the counters could not be saved; None if they were.
        published: publications since the last report.
        missed: publications that publish_rate asked for and that were left out, so far.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._latency: deque[float] = deque(maxlen=MAX_LATENCIES)
        self._samples = 0
        self._gaps = 0
        self._last_arrival: float | None = None
        self._since = time.monotonic()
        self._hardware = ""
        self._unaccounted = 0.0
        self.details: Callable[[], Mapping[str, object]] = dict
        self.disk_problem: str | None = None
        self.published = self.missed = self._missed = 0

    def record_publication(self, stamp: int) -> None:
        """Note that a total power was published whose newest sample has this host stamp [ns]."""
        self._latency.append((HOST_CLOCK.stamp() - stamp) * 1e-9)

    def record_batch(self, batch: Telemetry) -> None:
        """Note the arrival of samples."""
        self._samples += len(batch)
        self._gaps += len(batch.gaps)
        self._last_arrival = time.monotonic()
        self._hardware = batch.info.serial or batch.info.robot or batch.info.source

    def statuses(
        self, snapshot: Snapshot | None, reader: SourceReader | None, arm: EstimatedArm
    ) -> list[DiagnosticStatus]:
        """Statuses of source, model and counters; starts a new interval."""
        return [
            self._source(snapshot, reader),
            self._model(snapshot, arm),
            self._counters(snapshot, arm.estimator.log_problem),
            *(() if arm.history is None else (self._history(arm.history),)),
        ]

    def statuses_before_arm(self, reader: SourceReader | None) -> list[DiagnosticStatus]:
        """Statuses while it is not known which arm it is."""
        text = "the arm is not known yet; the controller or the bag states which it is"
        values = {"model": None, "learned_minutes": 0.0, "next_needed": None}
        return [
            self._source(None, reader),
            status(f"{self._node}: model", OK, text, values, self._hardware),
            self._counters(None, None),
        ]

    def _source(self, snapshot: Snapshot | None, reader: SourceReader | None) -> DiagnosticStatus:
        now = time.monotonic()
        seconds = max(now - self._since, 1e-3)
        rate, published = self._samples / seconds, self.published
        missed = self.missed - self._missed
        self._samples = self.published = 0
        self._since, self._missed = now, self.missed
        age = None if self._last_arrival is None else now - self._last_arrival
        unaccounted = 0.0 if snapshot is None else snapshot.lifetime.unaccounted
        losing = unaccounted > self._unaccounted and snapshot is not None
        self._unaccounted = unaccounted
        problem = None if reader is None else reader.why_silent
        level, text = OK, "samples arrive"
        if reader is not None and reader.ended:
            text = "the bag has ended"
        elif problem is not None:
            level, text = ERROR, problem
        elif age is None or age > SILENT_AFTER:
            level, text = ERROR, "no samples; is the controller on and reachable?"
        elif losing:
            level, text = WARN, "samples are missing; their energy is unaccounted"
        elif missed > MISSED_SHARE * published:
            text = "publish_rate is not reached: the processor is busy, or the rate too high"
            level = WARN
        values: dict[str, object] = {
            "rate_Hz": rate,
            "published_Hz": published / seconds,
            "publications_missed": self.missed,
            **self._latencies(),
            "age_s": age,
            "gaps": self._gaps,
            "reconnects": 0 if reader is None else reader.reconnects,
        }
        if reader is not None and reader.link.identity is not None:
            values["identity"] = reader.link.identity
        values |= self.details()
        if HOST_CLOCK.check():
            values["clock_steps"] = HOST_CLOCK.steps
            values["clock"] = HOST_CLOCK.describe_step()
        if snapshot is not None:
            values |= {
                "samples": snapshot.samples,
                "refused_samples": snapshot.refused,
                "controller_restarts": snapshot.controller_restarts,
                "unaccounted_s": unaccounted,
            }
        return status(f"{self._node}: source", level, text, values, self._hardware)

    def _latencies(self) -> dict[str, float]:
        """Percentiles [ms] of the time from the newest sample's host stamp to its publication."""
        taken = np.array(self._latency)
        self._latency.clear()
        if not len(taken):
            return {}
        p50, p99, worst = 1e3 * np.percentile(taken, [50, 99, 100])
        return {"latency_p50_ms": p50, "latency_p99_ms": p99, "latency_max_ms": worst}

    def _model(self, snapshot: Snapshot | None, arm: EstimatedArm) -> DiagnosticStatus:
        calculator, model_file = arm.estimator.calculator, arm.model
        level, text = OK, "agrees with the bus power"
        if snapshot is None or not snapshot.bus_measured:
            text = "not compared: no bus power"
        elif snapshot.drifting:
            remedy = "identify the arm again" if arm.learning is None else "learning follows"
            level, text = WARN, f"drifts away from the bus power; {remedy}"
        elif calculator.standby.at_limit:
            level, text = WARN, "standby power is beyond the limit of the model's"
        if arm.warning is not None:
            level, text = WARN, arm.warning
        if arm.learning is not None and arm.learning.warning is not None:
            level, text = WARN, arm.learning.warning
        if model_file.problem is not None:
            level, text = WARN, model_file.problem
        values: dict[str, object] = {
            "model": arm.model_words,
            "model_file": "none" if model_file.path is None else str(model_file.path),
            "robot": calculator.model.robot,
            "age_days": None if model_file.path is None else age_of(model_file.path),
            "standby_model_W": calculator.model.bus.standby,
            "standby_W": calculator.standby.power,
            "standby_std_W": calculator.standby.std,
            "session_anchored": calculator.standby.anchored,
            **(LEARN_OFF if arm.learning is None else arm.learning.values()),
        }
        if snapshot is not None and snapshot.bus_measured:
            values |= {
                "residual_mean_W": snapshot.residual_mean,
                "residual_std_W": snapshot.residual_std,
                "drift_alarm": snapshot.drifting,
            }
        return status(f"{self._node}: model", level, text, values, self._hardware)

    def _counters(self, snapshot: Snapshot | None, log_problem: str | None) -> DiagnosticStatus:
        problem = self.disk_problem or log_problem
        values: dict[str, object] = {}
        if snapshot is not None:
            values = {"since": snapshot.reset_time, "serial": snapshot.serial or "unknown"}
            if snapshot.note is not None:
                values["note"] = snapshot.note
        level = OK if problem is None else ERROR
        return status(f"{self._node}: counters", level, problem or "kept", values, self._hardware)

    def _history(self, history: LiveHistory) -> DiagnosticStatus:
        level, text = OK, "written each minute"
        if history.problem is not None:
            level, text = WARN, history.problem
        values = {"history_store": history.address}
        return status(f"{self._node}: history", level, text, values, self._hardware)


def age_of(path: Path) -> float | None:
    """Days since a file was written; None if it does not exist."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime, tz=timezone.utc)
    except OSError:
        return None
    return (datetime.now(timezone.utc) - written).total_seconds() / 86400.0


# The line about the model that an estimator uses: its arm, age, origin and held-out errors.

OLD_DAYS = 365.0
"""Age from which a model should be checked against a new recording [days]."""


def model_line(path: Path | None, model: EnergyModel, now: datetime | None = None) -> Line:
    """The line about a model that was loaded; a warning where it should be checked.

    Args:
        path: of the model file; None for a generic model.
        model: its content.
        now: the present; None for the system's time.
    """
    if path is None or is_generic(model):
        return Line(Level.INFO, f"model: {model_words(model, path)}")
    made_by = model.provenance
    age = _age_days(made_by.get("date"), now)
    parts = [f"model {path}: {model.robot}"]
    if made_by.get("serial"):
        parts.append(f"serial {made_by['serial']}")
    bags = made_by.get("bags")
    origin = "identified"
    if age is not None:
        origin += f" on {str(made_by['date'])[:10]} ({count(int(age), 'day')} ago)"
    if isinstance(bags, Sequence) and bags:
        origin += f" from {count(len(bags), 'recording')}"
    if made_by.get("simulated"):
        origin += " of a simulated arm"
    parts.append(origin if origin != "identified" else "date and recordings unknown")
    verdict = _held_out(model.validation)
    parts.append(verdict or "not checked on held-out recordings")
    old = age is not None and age > OLD_DAYS
    if old:
        parts.append("check it against a new recording (ur_energy evaluate)")
    return Line(Level.WARN if old else Level.INFO, ", ".join(parts))


def _age_days(date: object, now: datetime | None) -> float | None:
    try:
        made = datetime.fromisoformat(str(date))
    except ValueError:
        return None
    made = made if made.tzinfo is not None else made.replace(tzinfo=timezone.utc)
    now = datetime.now(timezone.utc) if now is None else now
    return max(0.0, (now - made).total_seconds() / 86400.0)


def _held_out(validation: Sequence[Mapping[str, Any]]) -> str | None:
    """Largest power and energy errors of the held-out recordings; None without any.

    Recordings of a fitted motion or of another arm do not count.
    """
    powers = [
        entry["power"]
        for entry in validation
        if isinstance(entry.get("power"), Mapping)
        and entry.get("motion") not in ("fitted", "same motion again")
        and not _of_another_arm(entry.get("serials"))
    ]
    errors = {
        key: [abs(float(power[key])) for power in powers if _is_number(power.get(key))]
        for key in ("rmse", "energy_error_percent")
    }
    if not errors["rmse"]:
        return None
    text = f"held-out power within {max(errors['rmse']):.1f} W rms"
    if errors["energy_error_percent"]:
        text += f" and energy within {max(errors['energy_error_percent']):.1f} %"
    return f"{text} ({count(len(errors['rmse']), 'recording')})"


def _of_another_arm(serials: object) -> bool:
    if not isinstance(serials, Mapping):
        return False
    return same_serial(serials.get("model"), serials.get("recording")) is False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


# EstimatorLines: what an operator needs to know of a running estimator.


class EstimatorLines:
    """Lines about source, model and counters.

    Args:
        parameters: of the estimator.

    Attributes:
        robot: name of the arm that the estimator expects; None before it is known.
    """

    def __init__(self, parameters: EstimatorParameters) -> None:
        self._parameters = parameters
        self.robot: str | None = None
        topic = parameters.source == "joint_states"
        self._connection = ConnectionLines("joint_states" if topic else parameters.robot_ip)
        self._counters = ProblemLines("the energy counters are saved again")
        self._log = ProblemLines("the cycle log is written again")
        self._history = ProblemLines("the history is written again", Level.WARN)
        self._model_file = ProblemLines("the model file can be used again", Level.WARN)
        self._models = RepeatedLines()
        self._bag = RepeatedLines()
        self._plans = RepeatedLines(Level.WARN)
        self._clock = ClockLines()
        self._notes: tuple[str | None, ...] = ()
        self._openings = 0
        self._end_told = self._robot_told = False

    def begin(self) -> list[Line]:
        """The line at the start: where the samples come from."""
        if self._parameters.source == "bag":
            return [Line(Level.INFO, f"playing the bag {self._parameters.bag}")]
        return self._connection.begin()

    def model(self, path: Path | None, model: EnergyModel) -> list[Line]:
        """The line about a model that was loaded; without a path it is a generic one."""
        line = model_line(path, model)
        return [Line(line.level, each.text) for each in self._models.happened(line.text)]

    def useless_plan(self, problem: str) -> list[Line]:
        """The line about a plan whose energy cannot be predicted, if it is due."""
        return self._plans.happened(f"no prediction: {problem}")

    def problems(
        self, model_file: str | None, counters: str | None, log: str | None, history: str | None
    ) -> list[Line]:
        """Lines due now about files that cannot be used or written, None for no problem."""
        if model_file is not None:
            model_file = f"keeping the old model: {model_file}"
        return [
            *self._model_file.update(model_file),
            *self._counters.update(counters),
            *self._log.update(log),
            *self._history.update(None if history is None else f"history: {history}"),
        ]

    def source(self, reader: SourceReader | None) -> list[Line]:
        """Lines due now about the source."""
        lines = self._clock.update()
        if reader is None:
            return lines
        if self._parameters.source == "bag":
            lines += self._playback(reader)
        else:
            lines += self._connection.update(reader.link, reader.info)
        robot = None if reader.info is None else reader.info.robot
        if None not in (robot, self.robot) and robot != self.robot and not self._robot_told:
            self._robot_told = True
            text = f"the samples are of a {robot}, but the model is of a {self.robot}"
            lines.append(Line(Level.ERROR, text))
        return lines

    def arm(self, *notes: str | None) -> list[Line]:
        """Lines about counters or a model of another arm, once each time; None for nothing."""
        before, self._notes = self._notes, notes
        return [Line(Level.WARN, note) for note in notes if note is not None and note not in before]

    def end(
        self, reader: SourceReader | None, snapshot: Snapshot | None, problem: str | None
    ) -> list[Line]:
        """Lines at the end.

        Args:
            reader: that was stopped, None if there was none.
            snapshot: after the last sample, None before the first one.
            problem: why the counters could not be saved, None if they were.
        """
        lines = self._connection.end(None if reader is None else reader.link)
        if snapshot is None:
            return lines
        energy = float(snapshot.since_reset.net[snapshot.channels.arm["total"]])
        file = self._parameters.state_file
        text = f"{energy:,.0f} J since reset"
        if problem is not None:
            lines.append(Line(Level.ERROR, f"the energy counters are not saved: {problem}; {text}"))
        elif file:
            lines.append(Line(Level.INFO, f"energy counters saved in {file}: {text}"))
        else:
            lines.append(Line(Level.INFO, f"energy counters end: {text} (state_file is empty)"))
        return lines

    def _playback(self, reader: SourceReader) -> list[Line]:
        bag, lines = self._parameters.bag, list[Line]()
        for _ in range(max(1, self._openings), reader.attempts):
            lines += self._bag.happened(f"bag {bag} plays again, from its beginning")
        self._openings = reader.attempts
        if reader.ended and not self._end_told:
            self._end_told = True
            text = f"bag {bag} has ended after {count(reader.samples, 'sample')}"
            lines.append(Line(Level.INFO, f"{text}; the counters keep their values"))
        return lines
