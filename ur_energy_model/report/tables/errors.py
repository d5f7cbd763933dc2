"""Tables of a model's errors on recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ur_energy_model.report.tables.table import Table


def error_table(
    key: str, metrics: Mapping[str, Any], names: Sequence[str], label: str
) -> Table | None:
    """Mean, largest and RMS error and R² by joint (S0 Tables V and VII)."""
    what, unit, number, note = {
        "torque": ("Torque", "N m", "V", "The mean is that of absolute errors."),
        "current": (
            "Current",
            "A",
            "VII",
            "Filtered currents of joints that move; the mean is that of absolute errors. The paper "
            "takes every sample unfiltered and keeps the sign of the mean: ur_energy protocol s0.",
        ),
    }[key]
    entries = metrics.get(key)
    if entries is None:
        return None
    return Table(
        f"table_{key}",
        f"{what} error, {label} (Table {number})",
        ("joint", f"mean [{unit}]", f"largest [{unit}]", f"RMS [{unit}]", "R²"),
        tuple(
            (name, row["mean"], row["max"], row["rms"], row["r2"])
            for name, row in zip(names, entries, strict=True)
        ),
        note,
    )


_POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""METRICS keys of power, with their names in the table."""


def power_table(metrics: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Table | None:
    """Errors of power and energy at the supply (EcBot, eq. 22-23)."""
    rows = [
        (
            f"{label}, {how}",
            p["rmse"],
            _interval(p),
            p["rmse_percent"],
            p["r2"],
            p["energy_error_percent"],
            entry.get("motion_energy_error_percent") if key == "power_from_motion" else None,
        )
        for entry, label in zip(metrics, labels, strict=True)
        for key, how in _POWERS.items()
        if (p := entry.get(key)) is not None
    ]
    if not rows:
        return None
    return Table(
        "power_error",
        "Power at the supply: model against measurement",
        (
            "recording",
            "RMSE [W]",
            "95 % [W]",
            "RMSE [% of range]",
            "R²",
            "energy error [%]",
            "error of motion energy [%]",
        ),
        tuple(rows),
        "Motion energy is the energy of the supply above its power at standstill.",
    )


def _interval(power: Mapping[str, Any]) -> str | None:
    """The interval of an RMSE; models written before it was stored have none."""
    low, high = power.get("rmse_low"), power.get("rmse_high")
    return None if low is None or high is None else f"{low:.2f} to {high:.2f}"
