"""Health of the logger on /diagnostics and in the terminal: connection and recording."""

from __future__ import annotations

import math
import time
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus

from ur_energy_model.nodes.diagnostics import ERROR, OK, SILENT_AFTER, WARN, status
from ur_energy_model.nodes.recording_session import RecordingSession
from ur_energy_model.nodes.terminal.clock_lines import ClockLines
from ur_energy_model.nodes.terminal.connection_lines import ConnectionLines
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.terminal.recording_lines import RecordingLines
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.options_and_status import RecorderStatus


class LoggerHealth:
    """Rates and problems between two reports.

    Args:
        node: full name of the node.
        address: of the controller.
        session: of the logger.
    """

    def __init__(self, node: str, address: str, session: RecordingSession) -> None:
        self._node, self._address, self._session = node, address, session
        self._connection, self._recording = ConnectionLines(address), RecordingLines()
        self._clock = ClockLines()
        self._samples, self._since = 0, time.monotonic()
        self._last_arrival = -math.inf

    def record_arrival(self, samples: int) -> None:
        """Note the arrival of samples."""
        self._samples += samples
        self._last_arrival = time.monotonic()

    def begin_lines(self, folder: Path, *, record: bool, retention: Retention | None) -> list[Line]:
        """Lines at the start.

        Args:
            folder: of the bags.
            record: whether recording begins by itself.
            retention: budget of the folder, None if all bags are kept.
        """
        kept = "all bags are kept" if retention is None else f"at most {retention} are kept"
        text = f"recording to {folder}; {kept} (retention_gb); record:=false switches it off"
        if not record:
            text = f"not recording; the service start_recording records to {folder}"
        return [Line(Level.INFO, text), *self._connection.begin()]

    def lines(self) -> list[Line]:
        """Lines due now."""
        session = self._session
        lines = self._clock.update() + self._connection.update(session.link, session.info)
        lines += self._recording.update(session.status)
        while session.recovered:
            text, attention = session.recovered.popleft()
            lines.append(Line(Level.WARN if attention else Level.INFO, text))
        if session.refusal is not None:
            lines += self._recording.refused(session.refusal)
        return lines

    def end_lines(self) -> list[Line]:
        """Lines at the end, after the session was stopped."""
        session = self._session
        return self._connection.end(session.link) + self._recording.end(session.status)

    def statuses(self) -> list[DiagnosticStatus]:
        """Statuses of connection and recording; starts a new interval."""
        return [self._connection_status(), self._recording_status(self._session.status)]

    def _connection_status(self) -> DiagnosticStatus:
        now = time.monotonic()
        rate = self._samples / max(now - self._since, 1e-3)
        self._samples, self._since = 0, now
        age = now - self._last_arrival
        link, info = self._session.link, self._session.info
        level, text = OK, "samples arrive"
        if link.problem is not None or age > SILENT_AFTER:
            reason = link.problem or link.last_error
            level, text = ERROR, reason or "no connection to the controller yet"
        values: dict[str, object] = {
            "robot_ip": self._address,
            "rate_Hz": rate,
            "age_s": age if math.isfinite(age) else None,
            "reconnects": link.reconnects,
            "duplicates": link.duplicates,
            "lost": link.lost,
            "lost_s": link.lost_seconds,
            "identity": link.identity,
        }
        if info is not None:
            values |= {
                "robot": info.robot,
                "serial": info.serial,
                "controller_version": info.controller_version,
            }
        if HOST_CLOCK.steps:
            values["clock"] = HOST_CLOCK.describe_step()
        return status(f"{self._node}: connection", level, text, values)

    def _recording_status(self, recorder: RecorderStatus) -> DiagnosticStatus:
        refusal = self._session.refusal
        level = OK if recorder.state in ("recording", "idle") else ERROR
        text = recorder.state
        if refusal is not None:
            level, text = ERROR, f"not recording: {refusal}"
        elif level == OK and recorder.lost:
            level = WARN
        storage = recorder.storage
        if level == OK and storage is not None and storage.problem is not None:
            level, text = WARN, f"bags exceed their budget: {storage.problem}"
        values: dict[str, object] = {
            "bag": recorder.bag,
            "samples": recorder.samples,
            "lost": recorder.lost,
            "lost_s": recorder.lost_seconds,
            "unreadable": recorder.unreadable,
            "gaps": len(recorder.gaps),
            "bytes": recorder.bytes,
            "seconds": recorder.seconds,
            "waiting": recorder.waiting,
            "last_error": recorder.last_error or "none",
        }
        if storage is not None:
            values |= {
                "stored_GB": storage.bytes / 1e9,
                "stored_files": storage.files,
                "stored_days": storage.oldest_days,
                "marked_files": storage.marked,
                "removed_files": storage.removed_files,
                "removed_GB": storage.removed_bytes / 1e9,
            }
        return status(f"{self._node}: recording", level, text, values)
