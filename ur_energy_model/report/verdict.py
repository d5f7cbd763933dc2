"""The verdict in plain words: can this model be believed, and what would make it better?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Grade = Literal["good", "fair", "poor"]

ORDER: tuple[Grade, ...] = ("good", "fair", "poor")
TORQUE_R2 = (0.99, 0.95)
"""Least R2 of the torque of every joint that counts as good, and as fair."""
CURRENT_R2 = (0.90, 0.60)
"""The same for the current of moving joints; wrists, with little but friction, are the weakest."""
POWER_RMSE = (2.0, 4.0)
"""Largest RMSE of the power at the supply [W]; the measurement's own noise is about 1.5 W."""
POWER_RMSE_PERCENT = (3.0, 6.0)
"""The same in percent of the power's range; the milder of both counts."""
ENERGY_ERROR = (1.0, 3.0)
"""Largest error of the energy at the supply, percent."""
MOTION_ENERGY_ERROR = (10.0, 20.0)
"""Largest error of the energy above standstill, predicted from the motion alone, percent."""

_HEADLINES: dict[Grade, str] = {
    "good": "The model can be trusted for energy.",
    "fair": "The model is usable, with care.",
    "poor": "Do not rely on this model yet.",
}


@dataclass(frozen=True)
class Statement:
    """One finding."""

    grade: Grade
    text: str


@dataclass(frozen=True)
class ModelVerdict:
    """What the report says on top.

    Attributes:
        grade: worst of the findings.
        headline: one sentence.
        statements: findings with figures, and what to do where they fall short.
    """

    grade: Grade
    headline: str
    statements: tuple[Statement, ...]


def judge(
    metrics: Sequence[Mapping[str, Any]],
    joint_names: Sequence[str],
    *,
    held_out: bool,
    simulated: bool = False,
) -> ModelVerdict:
    """Judge a model by its errors on recordings.

    Args:
        metrics: METRICS of the recordings that count: held out where there are any.
        joint_names: as people say them.
        held_out: whether the model was fitted without these recordings.
        simulated: whether a simulated controller made them.
    """
    found = [
        *_correlation(metrics, "torque", joint_names, TORQUE_R2),
        *_correlation(metrics, "current", joint_names, CURRENT_R2),
        *_power(metrics),
        *_motion_energy(metrics),
    ]
    if not held_out:
        found.append(
            Statement(
                "fair",
                "These figures are about recordings that the model was fitted to. Give the report "
                "(or identify --validate) another recording of the same arm to see whether they "
                "hold.",
            )
        )
    if simulated:
        found.append(Statement("good", "A simulated controller made these recordings, not an arm."))
    grade = worst_of(statement.grade for statement in found)
    return ModelVerdict(grade, _HEADLINES[grade], tuple(found))


def grade_of(value: float, limits: tuple[float, float], *, high: bool) -> Grade:
    """Grade of a figure against the limits of good and fair; `high` where more is better."""
    good, fair = limits
    if value >= good if high else value <= good:
        return "good"
    return "fair" if (value >= fair if high else value <= fair) else "poor"


def worst_of(grades: Iterable[Grade]) -> Grade:
    """The worst of some grades; "poor" where there is none."""
    known = set(grades)
    return next((grade for grade in reversed(ORDER) if grade in known), "poor")


_WORDS = {
    "torque": (
        "joint torques",
        "check mounting and payload of the recording, and that it is the right robot",
    ),
    "current": (
        "motor currents while moving",
        "record a motion that moves this joint more (ur_energy excite), warmed up as in production",
    ),
}


def _correlation(
    metrics: Sequence[Mapping[str, Any]],
    key: str,
    names: Sequence[str],
    limits: tuple[float, float],
) -> Iterator[Statement]:
    """How much of a signal the model explains: typical joint, and the weakest."""
    rows = [
        [np.nan if entry.get("r2") is None else float(entry["r2"]) for entry in m[key]]
        for m in metrics
        if m.get(key) is not None
    ]
    what, remedy = _WORDS[key]
    values = np.array(rows, dtype=float)
    if values.size == 0 or not np.isfinite(values).any():
        yield Statement("fair", f"The recordings say nothing about the {what}.")
        return
    worst = int(np.nanargmin(values)) % values.shape[1]
    least, middle = float(np.nanmin(values)), float(np.nanmedian(values))
    grade = grade_of(least, limits, high=True)
    text = f"It explains {_percent(middle)} of the variation of the {what}"
    if least < 0:
        text += f"; {names[worst]} is described worse than by its mean"
    elif _percent(least) == _percent(middle):
        text += " on every joint"
    else:
        text += f", at least {_percent(least)} on every joint ({names[worst]} is the weakest)"
    yield Statement(grade, text + ("." if grade == "good" else f"; {remedy}."))


def _power(metrics: Sequence[Mapping[str, Any]]) -> Iterator[Statement]:
    entries = [m["power"] for m in metrics if m.get("power") is not None]
    entries = [entry for entry in entries if entry["rmse"] is not None]
    if not entries:
        yield Statement(
            "fair",
            "Power at the supply was not recorded, so that standby and losses are assumptions; "
            "record actual_robot_voltage and actual_robot_current.",
        )
        return
    worst = max(entries, key=lambda entry: float(entry["rmse"]))
    percent = worst["rmse_percent"]
    errors = [abs(float(e["energy_error_percent"])) for e in entries if e["energy_error_percent"]]
    grades = [grade_of(max(errors, default=0.0), ENERGY_ERROR, high=False)]
    fits = [grade_of(float(worst["rmse"]), POWER_RMSE, high=False)]
    if percent is not None:
        fits.append(grade_of(float(percent), POWER_RMSE_PERCENT, high=False))
    grades.append(min(fits, key=ORDER.index))
    grade = worst_of(grades)
    text = f"Power at the supply is met within {worst['rmse']:.2g} W RMS"
    if percent is not None:
        text += f" ({percent:.1f} % of its range)"
    text += f", energy within {max(errors, default=0.0):.1f} %"
    remedy = "; an arm's standby power shifts by some watts from day to day: identify with today's"
    yield Statement(grade, text + ("." if grade == "good" else f"{remedy} recording."))


def _motion_energy(metrics: Sequence[Mapping[str, Any]]) -> Iterator[Statement]:
    """Energy of motion on its own: most of the whole is standby, which tells nothing of motors."""
    errors = [m.get("motion_energy_error_percent") for m in metrics]
    known = [abs(float(error)) for error in errors if error is not None]
    if not known:
        return
    grade = grade_of(max(known), MOTION_ENERGY_ERROR, high=False)
    text = f"Energy of motion above standstill is predicted within {max(known):.1f} %"
    remedy = "; identify with recordings of more days and of motions like those in production."
    yield Statement(grade, text + ("." if grade == "good" else remedy))


def _percent(share: float) -> str:
    """A share as percent, with as many nines as it deserves."""
    digits = 3 if share > 0.9995 else 2 if share > 0.99 else 1
    return f"{np.floor(share * 10 ** (digits + 2)) / 10**digits:.{digits}f} %"
