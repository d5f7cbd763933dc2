"""Health of the estimator on /diagnostics: source, model and counters."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.nodes.diagnostics import ERROR, OK, SILENT_AFTER, WARN, status
from ur_energy_model.nodes.estimated_arm import EstimatedArm
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry

if TYPE_CHECKING:
    from ur_energy_model.plant.history.live_history import LiveHistory

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
