"""What the estimator says of itself on /diagnostics."""

from __future__ import annotations

import time
from collections import deque
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.watched_model import WatchedModel
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.samples import Telemetry

SILENT_AFTER = 1.0
"""Silence of the source that counts as an error [s]."""
MOST_LATENCIES = 2000
"""Kept between two reports."""


class EstimatorHealth:
    """Rates, ages and problems, counted between reports.

    Args:
        node: fully qualified name of the node.
    """

    def __init__(self, node: str) -> None:
        self._node = node.lstrip("/")
        self._clock = HostClock()
        self._latency: deque[float] = deque(maxlen=MOST_LATENCIES)
        self._samples = 0
        self._gaps = 0
        self._last_arrival: float | None = None
        self._since = time.monotonic()
        self._hardware = ""
        self._unaccounted = 0.0
        self.source_problem: str | None = None
        """Why samples cannot be used at the moment."""
        self.disk_problem: str | None = None
        """Why the counters are not on disk."""

    def published(self, stamp: int) -> None:
        """The total power whose newest sample has this host stamp [ns] was handed to DDS."""
        self._latency.append((self._clock.now() - stamp) * 1e-9)

    def received(self, batch: Telemetry) -> None:
        """Samples have been counted."""
        self._samples += len(batch)
        self._gaps += len(batch.gaps)
        self._last_arrival = time.monotonic()
        self._hardware = batch.info.serial or batch.info.robot or batch.info.source

    def statuses(
        self,
        snapshot: Snapshot | None,
        reader: SourceReader | None,
        calculator: EnergyCalculator,
        model_file: WatchedModel,
        log_problem: str | None,
    ) -> list[DiagnosticStatus]:
        """Source, model and counters."""
        return [
            self._source(snapshot, reader),
            self._model(snapshot, calculator, model_file),
            self._counters(snapshot, log_problem),
        ]

    def _source(self, snapshot: Snapshot | None, reader: SourceReader | None) -> DiagnosticStatus:
        now = time.monotonic()
        rate = self._samples / max(now - self._since, 1e-3)
        self._samples, self._since = 0, now
        age = None if self._last_arrival is None else now - self._last_arrival
        unaccounted = 0.0 if snapshot is None else snapshot.lifetime.unaccounted
        losing = unaccounted > self._unaccounted and snapshot is not None
        self._unaccounted = unaccounted
        problem = self.source_problem or (None if reader is None else reader.why_silent)
        level, text = convert.OK, "samples arrive"
        if reader is not None and reader.ended:
            text = "the bag has ended"
        elif problem is not None:
            level, text = convert.ERROR, problem
        elif age is None or age > SILENT_AFTER:
            level, text = convert.ERROR, "no samples; is the controller on and reachable?"
        elif losing:
            level, text = convert.WARN, "samples are missing; their energy is unaccounted"
        values: dict[str, Any] = {
            "rate_Hz": rate,
            **self._latencies(),
            "age_s": age,
            "gaps": self._gaps,
            "reconnects": 0 if reader is None else reader.reconnects,
        }
        if snapshot is not None:
            values |= {
                "samples": snapshot.samples,
                "refused_samples": snapshot.refused,
                "controller_restarts": snapshot.controller_restarts,
                "unaccounted_s": unaccounted,
            }
        return convert.status(f"{self._node}: source", level, text, values, self._hardware)

    def _latencies(self) -> dict[str, float]:
        """From the host stamp of the newest sample in a published total power to its publication;
        live sources alone [ms].
        """  # noqa: D205
        taken = np.array(self._latency)
        self._latency.clear()
        if not len(taken):
            return {}
        p50, p99, worst = 1e3 * np.percentile(taken, [50, 99, 100])
        return {"latency_p50_ms": p50, "latency_p99_ms": p99, "latency_max_ms": worst}

    def _model(
        self, snapshot: Snapshot | None, calculator: EnergyCalculator, model_file: WatchedModel
    ) -> DiagnosticStatus:
        level, text = convert.OK, "agrees with the bus power"
        if snapshot is None or not snapshot.bus_measured:
            text = "not compared: no bus power"
        elif snapshot.drifting:
            level, text = convert.WARN, "drifts away from the bus power; identify the arm again"
        elif calculator.standby.at_limit:
            level, text = convert.WARN, "standby power is beyond the limit of the model's"
        if model_file.problem is not None:
            level, text = convert.WARN, model_file.problem
        values: dict[str, Any] = {
            "model_file": str(model_file.path),
            "robot": calculator.model.robot,
            "age_days": age_of(model_file.path),
            "standby_model_W": calculator.model.bus.standby,
            "standby_W": calculator.standby.power,
            "standby_std_W": calculator.standby.std,
            "session_anchored": calculator.standby.anchored,
        }
        if snapshot is not None and snapshot.bus_measured:
            values |= {
                "residual_mean_W": snapshot.residual_mean,
                "residual_std_W": snapshot.residual_std,
                "drift_alarm": snapshot.drifting,
            }
        return convert.status(f"{self._node}: model", level, text, values, self._hardware)

    def _counters(self, snapshot: Snapshot | None, log_problem: str | None) -> DiagnosticStatus:
        problem = self.disk_problem or log_problem
        values = {} if snapshot is None else {"since": snapshot.reset_time}
        level = convert.OK if problem is None else convert.ERROR
        return convert.status(
            f"{self._node}: counters", level, problem or "kept", values, self._hardware
        )


def age_of(path: Path) -> float | None:
    """Days since a file was written, None where it is gone."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime, tz=timezone.utc)
    except OSError:
        return None
    return (datetime.now(timezone.utc) - written).total_seconds() / 86400.0
