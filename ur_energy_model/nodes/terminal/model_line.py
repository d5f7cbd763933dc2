"""The line about the model that an estimator uses: its arm, age, origin and held-out errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic, model_words
from ur_energy_model.nodes.terminal.line import Level, Line, count
from ur_energy_model.telemetry.arm_identity import same_serial

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
