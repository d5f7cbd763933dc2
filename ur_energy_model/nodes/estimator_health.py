# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Health of the estimator: its parts on /diagnostics, and lines for the operator.

The reading thread notes what it does (`record_batch`, `record_publication`,
`record_missed`); once a second the executor's thread asks for the parts and lines. Counts
between two reports may be off by one batch, since nothing is locked for them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.nodes import lines as levels
from ur_energy_model.nodes.estimated_arm import EstimatedArm, EstimatorCompanion
from ur_energy_model.nodes.lines import ConnectionLines, Level, OperatorLines, count
from ur_energy_model.nodes.parameters import EstimatorParameters
from ur_energy_model.nodes.ros import ERROR, OK, SILENT_AFTER, WARN, Part
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry, same_serial
from ur_energy_model.telemetry.source import LinkStatus

MAX_LATENCIES = 2000  # largest number of latencies kept between two reports
MISSED_SHARE = 0.02  # share of publications whose absence is a warning
BUSY = "publish_rate is not reached: the processor is busy, or the rate too high"
LATE = "samples came late and together: the network or the controller had stalled"
LATE_SHARE = 0.6
"""Share of the time of a batch for which the reader waited, from which its samples were late."""


class EstimatorHealth:
    """Rates, latencies and problems of an estimator between two reports.

    Args:
        parameters: own parameters of the node.
        companions: of the estimator, which add figures and parts of their own.
        lines: for the operator.

    Attributes:
        hardware: serial number or type of the arm, or the source.
        details: returns further figures of the source.
        doubt: returns what is wrong with the samples of the source; None for nothing.
        published: publications since the last report.
        missed: publications left out so far.
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
        self._latency: deque[float] = deque(maxlen=MAX_LATENCIES)
        self._samples = 0
        self._last_arrival: float | None = None
        self._since = time.monotonic()
        self._unaccounted = 0.0
        self._connection: ConnectionLines | None = None
        self._robot_reported = False
        self._working_sinks: set[str] = set()
        self.hardware = ""
        self.details: Callable[[], Mapping[str, object]] = dict
        self.doubt: Callable[[], str | None] = lambda: None
        self.published = 0
        self.missed = 0
        self._busy = self._late = 0
        """Those of them since the last report while this program was behind, and of samples that
        came late."""

    def begin(self) -> None:
        """The source is read from now on."""
        self._openings = 1
        self._end_reported = False
        if self._played:
            self._lines.log(levels.INFO, f"playing the bag {self._parameters.bag}")
        else:
            topic = self._parameters.source == "joint_states"
            address = "joint_states" if topic else self._parameters.robot_ip
            self._connection = ConnectionLines(self._lines, address)

    def record_publication(self, stamp: int | None) -> None:
        """Note that a total power was published.

        Args:
            stamp: host time of its newest sample [ns]; None where unknown.
        """
        self.published += 1
        if stamp is not None and self._parameters.source == "rtde":
            self._latency.append((HOST_CLOCK.stamp() - stamp) * 1e-9)

    def record_missed(self, count: int, seconds: float, waited: float) -> None:
        """Note publications that are left out for a batch, and whose fault it was.

        Args:
            count: how many.
            seconds: time span of the samples of the batch.
            waited: how long the reader waited for them [s]; if it had to wait, the samples
                came late, else this program was.
        """
        self.missed += count
        if waited > LATE_SHARE * seconds:
            self._late += count
        else:
            self._busy += count

    def record_batch(self, batch: Telemetry) -> None:
        """Note the arrival of samples."""
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
            reader: of the samples; None while the node is not active.
            arm: None while it is unknown.

        Returns:
            Statuses by name.
        """
        problem = arm and (arm.estimator.disk_problem or arm.estimator.log_problem)
        counters: dict[str, object] = {}
        if snapshot is not None:
            counters = {
                "since": snapshot.reset_time,
                "serial": snapshot.serial or "unknown",
            }
            counters |= {} if snapshot.note is None else {"note": snapshot.note}
        parts: dict[str, Part] = {
            "source": self._source(snapshot, reader),
            "model": _model(snapshot, arm, self._companions),
            "counters": (ERROR if problem else OK, problem or "kept", counters),
        }
        if arm is not None:
            for companion in self._companions:
                parts |= companion.parts()
        return parts

    def _source(self, snapshot: Snapshot | None, reader: SourceReader | None) -> Part:
        """Status of the source: rates, latencies and losses since the last call.

        The latency of a publication is the time since the host stamp of its newest sample.
        """
        now = time.monotonic()
        seconds = max(now - self._since, 1e-3)
        values: dict[str, object] = {
            "rate_Hz": self._samples / seconds,
            "published_Hz": self.published / seconds,
            "publications_missed": self.missed,
        }
        if self._latency:  # from the newest sample's host stamp to its publication
            percentiles = 1e3 * np.percentile(np.array(self._latency), [50, 99, 100])
            names = ("latency_p50_ms", "latency_p99_ms", "latency_max_ms")
            values |= zip(names, percentiles.tolist(), strict=True)
        age = None if self._last_arrival is None else now - self._last_arrival
        link = LinkStatus() if reader is None else reader.link
        values |= {
            "age_s": age,
            "gaps": link.losses.gaps,
            "lost": link.losses.samples,
            "lost_s": link.losses.seconds,
            "outage_s": link.outage,
            "skipped": link.skipped,
            "reconnects": 0 if reader is None else reader.reconnects,
        }
        if link.identity is not None:
            values["identity"] = link.identity
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
        if reader is not None and reader.ended:
            level = OK
            text = "the bag has ended"
        elif reader is not None and (problem := reader.why_silent) is not None:
            level = ERROR
            text = problem
        elif age is None or age > SILENT_AFTER:
            level = ERROR
            text = "no samples; is the controller on and reachable?"
        elif (doubt := self.doubt()) is not None:
            level = WARN
            text = doubt
        elif unaccounted > self._unaccounted:
            level = WARN
            text = "samples are missing; their energy is unaccounted"
        elif self._busy + self._late > MISSED_SHARE * self.published:
            level = WARN
            text = BUSY if self._busy >= self._late else LATE
        else:
            level = OK
            text = "samples arrive"
        self._latency.clear()
        self._samples = self.published = 0
        self._busy = self._late = 0
        self._since = now
        self._unaccounted = unaccounted
        return level, text, values

    def write_lines(self, reader: SourceReader | None, robot: str | None) -> None:
        """Write lines about the source.

        Args:
            reader: of the samples; None while the node is not active.
            robot: type of the model's arm, which that of the samples is compared with;
                None if it is unknown.
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
                text = f"bag {bag} has ended after {count(reader.samples, 'sample')}"
                self._lines.log(levels.INFO, f"{text}; the counters keep their values")
        found = None if reader.info is None else reader.info.robot
        if None not in (found, robot) and found != robot and not self._robot_reported:
            self._robot_reported = True
            text = f"the samples are of a {found}, but the model is of a {robot}"
            self._lines.log(levels.ERROR, text)

    def end(
        self, reader: SourceReader | None, arm: EstimatedArm | None, last: Snapshot | None
    ) -> None:
        """Write the lines at the end, once the reader was stopped and the counters saved.

        Args:
            reader: that was stopped; None if there was none.
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
        if (problem := arm.estimator.disk_problem) is not None:
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
            parts[f"sink {name}"] = (
                OK if problem is None else WARN,
                problem or "works",
                values,
            )
        return parts


def _model(
    snapshot: Snapshot | None,
    arm: EstimatedArm | None,
    companions: Sequence[EstimatorCompanion],
) -> Part:
    """Status of the model: how well it agrees with the arm, and where it comes from."""
    beside: dict[str, object] = {}
    for companion in companions:
        beside |= companion.model_values()
    if arm is None:
        text = "the arm is not known yet; the controller or the bag states which it is"
        return OK, text, {"model": None, **beside}
    calculator = arm.estimator.calculator
    path = arm.path
    age = None
    standby = calculator.standby
    if path is not None:
        with suppress(OSError):
            age = (time.time() - path.stat().st_mtime) / 86400.0
    level = OK
    text = "agrees with the bus power"
    if snapshot is None or not snapshot.bus_measured:
        text = "not compared: no bus power"
    elif snapshot.drifting:
        followed = any(companion.follows_arm for companion in companions)
        remedy = "learning follows" if followed else "identify the arm again"
        level = WARN
        text = f"drifts away from the bus power; {remedy}"
    elif standby.at_limit:
        level = WARN
        text = "standby power is beyond the limit of the model's"
    if (warning := arm.warning) is not None:
        level = WARN
        text = warning
    values: dict[str, object] = {
        "model": arm.words,
        "model_file": "none" if path is None else str(path),
        "robot": calculator.model.robot,
        "age_days": age,
        "standby_model_W": calculator.model.bus.standby,
        "standby_W": standby.power,
        "standby_std_W": standby.std,
        "session_anchored": standby.anchored,
        "controller_constants_N_m_per_A": ", ".join(
            f"{constant:.4g}" if np.isfinite(constant) else "unknown"
            for constant in arm.estimator.constants.torque_per_ampere.tolist()
        ),
        **beside,
    }
    if snapshot is not None and snapshot.bus_measured:
        values |= {
            "unexplained_mean_W": snapshot.unexplained_mean,
            "unexplained_std_W": snapshot.unexplained_std,
            "drift_alarm": snapshot.drifting,
        }
    return level, text, values


# age from which a model should be checked against a new recording [days]
OLD_DAYS = 365.0


def model_line(
    path: Path | None, model: EnergyModel, now: datetime | None = None
) -> tuple[Level, str]:
    """The line about a model that was loaded; a warning where it should be checked.

    Args:
        path: of the model file; None for a generic model.
        model: its content.
        now: present time, of which the age follows; None for that of the clock.

    Returns:
        Severity, and the line: arm, age, origin and held-out errors.
    """
    if path is None or is_generic(model):
        return levels.INFO, f"model: {model_words(model, path)}"
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
    if old := age is not None and age > OLD_DAYS:
        parts.append("check it against a new recording (ur_energy evaluate)")
    return levels.WARN if old else levels.INFO, ", ".join(parts)


def _held_out(validation: Sequence[Mapping[str, Any]]) -> str | None:
    """Largest power and energy errors of the held-out recordings; None without any.

    Recordings of a fitted motion or of another arm do not count.
    """
    rmse = list[float]()
    energy = list[float]()
    for entry in validation:
        power = entry.get("power")
        arms = entry.get("serials")
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
