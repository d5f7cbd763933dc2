"""Health of the estimator on /diagnostics: source, model and counters."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

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

MAX_LATENCIES = 2000
"""Largest number of latencies kept between two reports."""
MISSED_SHARE = 0.02
"""Share of publications whose absence is a warning."""
Part: TypeAlias = tuple[bytes, str, dict[str, object]]
"""Level, message and values of a status."""


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
        self._samples = self._gaps = 0
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
        self, snapshot: Snapshot | None, reader: SourceReader | None, arm: EstimatedArm | None
    ) -> Callable[[], list[DiagnosticStatus]]:
        """Starts a new interval; returns what makes the statuses of the last one.

        Those of source, model, counters and history: messages take long to make.

        Args:
            snapshot: present state, None before the first sample.
            reader: of the samples, None before it is started.
            arm: None while it is not known which arm it is.
        """
        parts = {"source": self._source(snapshot, reader), "model": self._model(snapshot, arm)}
        problem = self.disk_problem or (None if arm is None else arm.estimator.log_problem)
        counters: dict[str, object] = {}
        if snapshot is not None:
            counters = {"since": snapshot.reset_time, "serial": snapshot.serial or "unknown"}
            counters |= {} if snapshot.note is None else {"note": snapshot.note}
        parts["counters"] = (OK if problem is None else ERROR, problem or "kept", counters)
        if arm is not None and arm.history is not None:
            problem = arm.history.problem
            values: dict[str, object] = {"history_store": arm.history.address}
            level = OK if problem is None else WARN
            parts["history"] = level, problem or "written each minute", values
        named = [(f"{self._node}: {name}", *part) for name, part in parts.items()]
        return lambda: [status(*each, self._hardware) for each in named]

    def _source(self, snapshot: Snapshot | None, reader: SourceReader | None) -> Part:
        now = time.monotonic()
        seconds = max(now - self._since, 1e-3)
        values: dict[str, object] = {
            "rate_Hz": self._samples / seconds,
            "published_Hz": self.published / seconds,
            "publications_missed": self.missed,
        }
        taken = np.array(self._latency)
        if len(taken):  # from the newest sample's host stamp to its publication
            percentiles = 1e3 * np.percentile(taken, [50, 99, 100])
            names = ("latency_p50_ms", "latency_p99_ms", "latency_max_ms")
            values |= zip(names, percentiles.tolist(), strict=True)
        age = None if self._last_arrival is None else now - self._last_arrival
        values |= {
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
        unaccounted = 0.0
        if snapshot is not None:
            unaccounted = snapshot.lifetime.unaccounted
            values |= {
                "samples": snapshot.samples,
                "refused_samples": snapshot.refused,
                "controller_restarts": snapshot.controller_restarts,
                "unaccounted_s": unaccounted,
            }
        missed = self.missed - self._missed > MISSED_SHARE * self.published
        slow = "publish_rate is not reached: the processor is busy, or the rate too high"
        problem = None if reader is None else reader.why_silent
        if reader is not None and reader.ended:
            level, text = OK, "the bag has ended"
        elif problem is not None:
            level, text = ERROR, problem
        elif age is None or age > SILENT_AFTER:
            level, text = ERROR, "no samples; is the controller on and reachable?"
        elif unaccounted > self._unaccounted:
            level, text = WARN, "samples are missing; their energy is unaccounted"
        else:
            level, text = (WARN, slow) if missed else (OK, "samples arrive")
        self._latency.clear()
        self._samples = self.published = 0
        self._since, self._missed, self._unaccounted = now, self.missed, unaccounted
        return level, text, values

    def _model(self, snapshot: Snapshot | None, arm: EstimatedArm | None) -> Part:
        if arm is None:
            text = "the arm is not known yet; the controller or the bag states which it is"
            return OK, text, {"model": None, "learned_minutes": 0.0, "next_needed": None}
        model, calculator = arm.model, arm.estimator.calculator
        standby, path = calculator.standby, model.path
        remedy = "identify the arm again" if model.learning is None else "learning follows"
        level, text = OK, "agrees with the bus power"
        if snapshot is None or not snapshot.bus_measured:
            text = "not compared: no bus power"
        elif snapshot.drifting:
            level, text = WARN, f"drifts away from the bus power; {remedy}"
        elif standby.at_limit:
            level, text = WARN, "standby power is beyond the limit of the model's"
        warning = model.problem or model.warning or arm.warning
        if warning is not None:
            level, text = WARN, warning
        values: dict[str, object] = {
            "model": model.words,
            "model_file": "none" if path is None else str(path),
            "robot": calculator.model.robot,
            "age_days": None if path is None else age_of(path),
            "standby_model_W": calculator.model.bus.standby,
            "standby_W": standby.power,
            "standby_std_W": standby.std,
            "session_anchored": standby.anchored,
            **model.values(),
        }
        if snapshot is not None and snapshot.bus_measured:
            values |= {
                "residual_mean_W": snapshot.residual_mean,
                "residual_std_W": snapshot.residual_std,
                "drift_alarm": snapshot.drifting,
            }
        return level, text, values


def age_of(path: Path) -> float | None:
    """Days since a file was written; None if it does not exist."""
    with suppress(OSError):
        return (time.time() - path.stat().st_mtime) / 86400.0
    return None


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
    age = None
    with suppress(ValueError):
        made = datetime.fromisoformat(str(made_by.get("date")))
        made = made if made.tzinfo is not None else made.replace(tzinfo=timezone.utc)
        now = datetime.now(timezone.utc) if now is None else now
        age = max(0.0, (now - made).total_seconds() / 86400.0)
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
    parts.append(_held_out(model.validation) or "not checked on held-out recordings")
    old = age is not None and age > OLD_DAYS
    if old:
        parts.append("check it against a new recording (ur_energy evaluate)")
    return Line(Level.WARN if old else Level.INFO, ", ".join(parts))


def _held_out(validation: Sequence[Mapping[str, Any]]) -> str | None:
    """Largest power and energy errors of the held-out recordings; None without any.

    Recordings of a fitted motion or of another arm do not count.
    """
    rmse, energy = list[float](), list[float]()
    for entry in validation:
        power, arms = entry.get("power"), entry.get("serials")
        arms = arms if isinstance(arms, Mapping) else {}
        other = same_serial(arms.get("model"), arms.get("recording")) is False
        fitted = entry.get("motion") in ("fitted", "same motion again")
        if other or fitted or not isinstance(power, Mapping):
            continue
        for errors, key in ((rmse, "rmse"), (energy, "energy_error_percent")):
            if isinstance(value := power.get(key), int | float):
                errors.append(abs(float(value)))
    if not rmse:
        return None
    text = f"held-out power within {max(rmse):.1f} W rms"
    text += f" and energy within {max(energy):.1f} %" if energy else ""
    return f"{text} ({count(len(rmse), 'recording')})"


# EstimatorLines: lines for an operator of a running estimator.


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
        self._problems = {
            "model file": ProblemLines("the model file can be used again", Level.WARN),
            "counters": ProblemLines("the energy counters are saved again"),
            "log": ProblemLines("the cycle log is written again"),
            "history": ProblemLines("the history is written again", Level.WARN),
        }
        self._models, self._bag = RepeatedLines(), RepeatedLines()
        self._plans = RepeatedLines(Level.WARN)
        self._clock = ClockLines()
        self._notes: tuple[str | None, ...] = ()
        self._openings = 0
        self._end_reported = self._robot_reported = False

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

    def problems(self, arm: EstimatedArm, counters: str | None) -> list[Line]:
        """Lines due now about files that cannot be used or written.

        Args:
            arm: of the estimator.
            counters: problem of their file, None for no problem.
        """
        model, history = arm.model.problem, None if arm.history is None else arm.history.problem
        found = {
            "model file": None if model is None else f"keeping the old model: {model}",
            "counters": counters,
            "log": arm.estimator.log_problem,
            "history": None if history is None else f"history: {history}",
        }
        return [line for name, each in found.items() for line in self._problems[name].update(each)]

    def source(self, reader: SourceReader | None) -> list[Line]:
        """Lines due now about the source."""
        lines = self._clock.update()
        if reader is None:
            return lines
        if (bag := self._parameters.bag) is not None and self._parameters.source == "bag":
            for _ in range(max(1, self._openings), reader.attempts):
                lines += self._bag.happened(f"bag {bag} plays again, from its beginning")
            self._openings = reader.attempts
            if reader.ended and not self._end_reported:
                self._end_reported = True
                text = f"bag {bag} has ended after {count(reader.samples, 'sample')}"
                lines.append(Line(Level.INFO, f"{text}; the counters keep their values"))
        else:
            lines += self._connection.update(reader.link, reader.info)
        robot = None if reader.info is None else reader.info.robot
        if None not in (robot, self.robot) and robot != self.robot and not self._robot_reported:
            self._robot_reported = True
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
