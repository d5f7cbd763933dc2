# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The line for the operator about a model: arm, age, origin, and errors when it was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ur_energy_model.errors import counted
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.nodes import lines as levels
from ur_energy_model.nodes.lines import Level
from ur_energy_model.telemetry.samples import same_serial

SECONDS_PER_DAY = 86400.0
OLD_DAYS = 365.0
"""Age from which a model should be checked against a new recording [days]."""


def model_line(
    path: Path | None, model: EnergyModel, now: datetime | None = None
) -> tuple[Level, str]:
    """The line about a model that was loaded; a warning where it should be checked.

    Args:
        path: path of the model file; None for a generic model.
        model: the model that was loaded.
        now: present time, from which the age follows; None for the time of the clock.

    Returns:
        Severity, and the line: arm, age, origin and held-out errors.
    """
    if path is None or is_generic(model):
        return levels.INFO, f"model: {model_words(model, path)}"
    made_by = model.provenance
    age = _age_days(made_by, datetime.now(timezone.utc) if now is None else now)
    parts = [f"model {path}: {model.robot}"]
    if made_by.get("serial"):
        parts.append(f"serial {made_by['serial']}")
    parts.append(_origin(made_by, age))
    parts.append(_held_out(model.validation) or "not checked on held-out recordings")
    if age is not None and age > OLD_DAYS:
        parts.append("check it against a new recording (ur_energy evaluate)")
        return levels.WARN, ", ".join(parts)
    return levels.INFO, ", ".join(parts)


def _age_days(made_by: Mapping[str, Any], now: datetime) -> float | None:
    """Age of a model [days]; None where its provenance has no date that can be read.

    Args:
        made_by: provenance in the model file; a date without time zone is in UTC.
        now: present time.
    """
    try:
        made = datetime.fromisoformat(str(made_by.get("date")))
    except ValueError:
        return None
    if made.tzinfo is None:
        made = made.replace(tzinfo=timezone.utc)
    return max(0.0, (now - made).total_seconds() / SECONDS_PER_DAY)


def _origin(made_by: Mapping[str, Any], age: float | None) -> str:
    """When and from what a model was identified, in words.

    Args:
        made_by: provenance in the model file.
        age: age of the model [days]; None where it is unknown.
    """
    known: list[str] = []
    if age is not None:
        known.append(f"on {str(made_by['date'])[:10]} ({counted(int(age), 'day')} ago)")
    bags = made_by.get("bags")
    if isinstance(bags, Sequence) and bags:
        known.append(f"from {counted(len(bags), 'recording')}")
    if made_by.get("simulated"):
        known.append("of a simulated arm")
    if not known:
        return "date and recordings unknown"
    return f"identified {' '.join(known)}"


def _held_out(validation: Sequence[Mapping[str, Any]]) -> str | None:
    """Largest errors of the held-out recordings in words; None without recordings.

    Recordings of a fitted motion or of another arm do not count.

    Args:
        validation: METRICS of the model file; a model of an older version may lack any of
            their entries.
    """
    rmse: list[float] = []
    energy: list[float] = []
    for entry in validation:
        power = entry.get("power")
        serials = entry.get("serials")
        other_arm = False
        if isinstance(serials, Mapping):
            same = same_serial(serials.get("model"), serials.get("recording"))
            other_arm = same is False
        fitted = entry.get("motion") in ("fitted", "same motion again")
        if other_arm or fitted or not isinstance(power, Mapping):
            continue
        for errors, key in ((rmse, "rmse"), (energy, "energy_error_percent")):
            value = power.get(key)
            if isinstance(value, int | float):
                errors.append(abs(float(value)))
    if not rmse:
        return None
    text = f"held-out power within {max(rmse):.1f} W rms"
    if energy:
        text += f" and energy within {max(energy):.1f} %"
    return f"{text} ({counted(len(rmse), 'recording')})"
