"""Telemetry as plain values for the state of learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps


def saved_samples(samples: Telemetry) -> dict[str, Any]:
    """Samples as arrays and plain values, without their gaps, which follow from the clock."""
    return {
        "time": samples.time,
        "columns": dict(samples.columns),
        "info": asdict(samples.info),
        "stamp": samples.stamp,
    }


def restored_samples(saved: Mapping[str, Any]) -> Telemetry:
    """The samples that `saved_samples` described."""
    info = dict(saved["info"])
    for name in ("gravity", "payload_center_of_mass"):
        info[name] = None if info[name] is None else tuple(info[name])
    time, stamp = np.array(saved["time"], dtype=float), saved["stamp"]
    rate = info["rate"]
    return Telemetry(
        time,
        {name: np.array(values, dtype=float) for name, values in saved["columns"].items()},
        RecordingInfo(**info),
        find_gaps(time, None if rate is None else 1.0 / rate),
        None if stamp is None else np.array(stamp, dtype=np.int64),
    )
