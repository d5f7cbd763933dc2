"""Samples of target_moment for the setup and the inertias, in constant memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model.energy.operating_conditions import PAYLOAD
from ur_energy_model.identification.regression.narrow_filter import sample_period
from ur_energy_model.identification.regression.usable_samples import usable_samples
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_TARGET_RATE, _ACTUAL_RATE = 25.0, 100.0
"""Samples per second kept of recorded targets, which have no noise, and of measured motion [Hz]."""
_SPARSE = 1.5
"""Samples are thinned where there are more than this times as many."""
_MOST = 3000
"""Rows kept."""
_KEPT = 800
"""Rows of recorded targets kept of a session that is over."""
_MOST_PAYLOADS = 3


class TorqueRows:
    """target_moment with the motion it belongs to, thinned to what determines a setup.

    Recorded targets are noise-free: a few thousand of them spread over all the time suffice.
    Measured motion must be continuous to be filtered: the first samples are kept.
    """

    def __init__(self) -> None:
        self.columns: dict[str, Array] = {}
        """Values by field name, "time" among them."""
        self._stride = 1
        self._payloads: set[tuple[float, ...]] = set()

    @property
    def samples(self) -> int:
        """Number of samples kept."""
        return len(self.columns.get("time", ()))

    @property
    def from_targets(self) -> bool:
        """Whether the motion is that of recorded targets."""
        return "target_q" in self.columns

    def append(self, window: Telemetry) -> None:
        """Add the usable samples of a window, if it has target_moment."""
        names = next((n for n in (_TARGETS, _ACTUALS) if all(name in window for name in n)), None)
        if names is None or (self.samples and names[0] not in self.columns):
            return
        told = [name for name in PAYLOAD if name in window]
        keep = usable_samples(window, *names, *told)
        rate = _TARGET_RATE if names is _TARGETS else _ACTUAL_RATE
        tick = np.floor(window.time * rate + 0.5)
        if sample_period(window.time) < 1.0 / (_SPARSE * rate):
            keep &= np.diff(tick, prepend=-np.inf) != 0
        keep &= tick % self._stride == 0
        self._append({"time": window.time[keep], **{n: window[n][keep] for n in (*names, *told)}})

    def shortened(self) -> TorqueRows:
        """A part of the samples, for a session that is over."""
        out = TorqueRows()
        step = max(1, -(-self.samples // _KEPT)) if self.from_targets else 1
        out.columns = {name: part[::step] for name, part in self.columns.items()}
        out._payloads, out._stride = self._payloads, self._stride
        return out

    def telemetry(self, source: str) -> Telemetry:
        """The samples kept; `source` names them."""
        columns = {name: values for name, values in self.columns.items() if name != "time"}
        time = self.columns["time"]
        gaps = () if self.from_targets else find_gaps(time, sample_period(time))
        return Telemetry(time, columns, RecordingInfo(source=source), gaps)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        payloads = [list(entry) for entry in sorted(self._payloads)]
        return {"columns": dict(self.columns), "stride": self._stride, "payloads": payloads}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> TorqueRows:
        """The rows that `saved` describes."""
        out = cls()
        out.columns = {name: np.array(values) for name, values in saved["columns"].items()}
        out._stride = int(saved["stride"])
        out._payloads = {tuple(entry) for entry in saved["payloads"]}
        return out

    def _append(self, rows: dict[str, Array]) -> None:
        rows = self._with_known_payload(rows)
        if self.columns and set(rows) != set(self.columns):  # fields differ from those before
            return
        if not len(rows["time"]):
            return
        joined = {
            name: np.concatenate([self.columns[name], part]) if self.columns else part
            for name, part in rows.items()
        }
        while len(joined["time"]) > _MOST and "target_q" in joined:
            self._stride *= 2
            even = np.floor(joined["time"] * _TARGET_RATE + 0.5) % self._stride == 0
            joined = {name: part[even] for name, part in joined.items()}
        self.columns = {name: part[:_MOST] for name, part in joined.items()}

    def _with_known_payload(self, rows: dict[str, Array]) -> dict[str, Array]:
        """The rows with one of the first payloads that the controller was told."""
        if "payload" not in rows:
            return rows
        center = rows.get("payload_cog", np.zeros((len(rows["time"]), 3)))
        told = np.round(np.column_stack([rows["payload"], center]), 4)
        for entry in map(tuple, np.unique(told, axis=0).tolist()):
            if len(self._payloads) < _MOST_PAYLOADS:
                self._payloads.add(entry)
        known = np.array([tuple(row) in self._payloads for row in told.tolist()], dtype=bool)
        return {name: part[known] for name, part in rows.items()}
