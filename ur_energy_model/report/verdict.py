# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The verdict: whether a model is reliable, and what would improve it.

Errors of a model on recordings are graded by limits; the worst finding determines the grade
of the model, and each finding that is not good names a remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.identification.visited_path import Motion

Grade = Literal["good", "fair", "poor"]

ORDER: tuple[Grade, ...] = ("good", "fair", "poor")
# Limits for a good and for a fair model.
TORQUE_R2 = (0.99, 0.95)  # smallest R2 of the torque of every joint
CURRENT_R2 = (0.90, 0.60)
"""Smallest R2 of the current of moving joints: lowest at the wrists, where friction
dominates."""
POWER_RMSE = (2.0, 4.0)
"""Largest RMSE of the power at the supply [W]; the noise of the measurement is about 1.5 W."""
POWER_RMSE_PERCENT = (3.0, 6.0)
"""Largest RMSE of the power in percent of its range; the better grade of both RMSE counts."""
ENERGY_ERROR = (1.0, 3.0)  # largest error of the energy at the supply [%]
MOTION_ENERGY_ERROR = (10.0, 20.0)
"""Largest error of the energy above standstill, predicted from the motion alone [%]."""

_HEADLINES: dict[Grade, str] = {
    "good": "The model can be trusted for energy.",
    "fair": "The model is usable, with care.",
    "poor": "Do not rely on this model yet.",
}
_VALIDATE = (
    "To validate it, give the report (or identify --validate) a recording of another motion of "
    "the same arm."
)
_SIGNALS = {
    "torque": (
        "joint torques",
        "check mounting and payload of the recording, and the choice of the robot",
    ),
    "current": (
        "motor currents while moving",
        "record a motion that moves this joint more (ur_energy excite), warmed up as in production",
    ),
}
"""Signals of METRICS in words, each with the remedy for a low R2."""


@dataclass(frozen=True)
class Statement:
    """One finding.

    Attributes:
        grade: "good", "fair" or "poor".
        text: the finding, and what to do about it, in one sentence.
    """

    grade: Grade
    text: str


@dataclass(frozen=True)
class ModelVerdict:
    """The verdict on a model or a result.

    Attributes:
        grade: the worst one of the findings.
        headline: the verdict in one sentence.
        statements: findings behind the grade.
    """

    grade: Grade
    headline: str
    statements: tuple[Statement, ...]


def judge(
    metrics: Sequence[Mapping[str, Any]],
    joint_names: Sequence[str],
    *,
    motions: Set[Motion],
    simulated: bool = False,
    generic: str | None = None,
    another_arm: str | None = None,
    doubts: Sequence[str] = (),
    contradictions: Sequence[Contradiction] = (),
) -> ModelVerdict:
    """Judge a model by its errors on recordings.

    Args:
        metrics: METRICS of recordings of other motions than the fitted ones, or of all
            recordings if there are no others.
        joint_names: names of the joints from base to tool.
        motions: how the motions of these recordings are related to the fitted ones.
        simulated: whether a recording is of a simulated controller.
        generic: statement about a generic model; None for an identified one.
        another_arm: warning if the model is of another arm than the recordings; None if not.
        doubts: other warnings about the recorded arm.
        contradictions: the doubts that the recordings themselves show.
    """
    warnings = list(doubts)
    if another_arm:
        warnings.insert(0, another_arm)
    distinct = dict.fromkeys(warnings)
    found = [Statement("fair", f"{line[0].upper()}{line[1:]}.") for line in distinct]
    if generic is not None:
        found.append(Statement("fair", generic))
    found += _correlation(metrics, "torque", joint_names, TORQUE_R2)
    # Another payload than the one that was set is in the currents: more motion would not
    # help.
    subjects = [contradiction.subject for contradiction in contradictions]
    found += _correlation(
        metrics, "current", joint_names, CURRENT_R2, explained="payload" in subjects
    )
    found += _power(metrics)
    found += _motion_energy(metrics)
    if motions != {"held out"}:
        found.append(Statement("fair", f"{_fitted_motions(motions)}. {_VALIDATE}"))
    if simulated:
        text = "These recordings are of a simulated controller, not of an arm."
        found.append(Statement("good", text))
    grade = worst_of(statement.grade for statement in found)
    if contradictions:
        shown = contradictions[0].shown
        headline = f"The recording contradicts what was set: {shown}."
    elif another_arm is not None and grade == "poor":
        headline = (
            "A model of another arm that does not fit this one: identify a model of it."
        )
    elif another_arm is not None:
        headline = "A model of another arm: usable, within its intervals."
    elif generic is not None and grade == "poor":
        headline = "A generic model that does not fit this arm: identify a model of it."
    elif generic is not None:
        headline = "A generic model: usable, within its intervals."
    else:
        headline = _HEADLINES[grade]
    return ModelVerdict(grade, headline, tuple(found))


def _fitted_motions(motions: Set[Motion]) -> str:
    """How motions that are not all held out are related to the fitted ones, a clause."""
    if "same motion again" in motions:
        return "These recordings are the same motion again that the model was fitted to"
    if "fitted" in motions:
        return "These results are for the recordings that the model was fitted to"
    return "The model does not name the motions it was fitted to"


def generic_statement(words: str, half_width: float | None) -> str:
    """The statement of a report about a generic model.

    Args:
        words: the arm type, in words.
        half_width: largest half width of the 95 % intervals of the modelled energy of all
            recordings [%]; None if no energy flowed.
    """
    text = (
        f"This is the model of an arm type ({words}): no recording of this arm was used."
    )
    if half_width is not None:
        text += (
            f" The 95 % interval of the modelled energy is ± {half_width:.2g} %; those of "
            "single joints are wider. Its standby power and friction are those of the "
            "recordings' own standstill and first seconds of motion, as far as these were "
            "recorded."
        )
    return f"{text} A model of this arm (ur_energy identify) has narrower intervals."


def grade_of(value: float, limits: tuple[float, float], *, high: bool = False) -> Grade:
    """Grade of a value.

    Args:
        value: value to be graded.
        limits: limits of "good" and of "fair".
        high: whether larger values are better.
    """
    good, fair = limits
    sign = 1.0 if high else -1.0
    if sign * value >= sign * good:
        return "good"
    if sign * value >= sign * fair:
        return "fair"
    return "poor"


def worst_of(grades: Iterable[Grade]) -> Grade:
    """The worst of some grades; "poor" if there are none."""
    return max(grades, key=ORDER.index, default="poor")


def _correlation(
    metrics: Sequence[Mapping[str, Any]],
    key: str,
    names: Sequence[str],
    limits: tuple[float, float],
    *,
    explained: bool = False,
) -> Iterator[Statement]:
    """The statement on how much of a signal the model explains: median, and weakest joint.

    Args:
        metrics: METRICS of recordings.
        key: "torque" or "current".
        names: names of the joints.
        limits: limits of R2 for "good" and "fair".
        explained: whether a low R2 has a reason that another statement names: a wrong
            payload.
    """
    recorded = [entry[key] for entry in metrics if entry.get(key)]
    rows = [[joint.get("r2") for joint in joints] for joints in recorded]
    what, remedy = _SIGNALS[key]
    if explained:
        remedy = "the payload is the reason"
    values = np.array(rows, dtype=float)  # [recordings, joints]; NaN for None
    if values.size == 0 or not np.isfinite(values).any():
        text = f"The recordings contain no information about the {what}."
        yield Statement("fair", text)
        return
    worst = int(np.nanargmin(values)) % values.shape[1]
    least = float(np.nanmin(values))
    middle = float(np.nanmedian(values))
    grade = grade_of(least, limits, high=True)
    hardly_moved = ~np.isfinite(values).any(axis=0)
    idle = np.array(names)[hardly_moved].tolist()
    every = "every joint that moved" if idle else "every joint"
    text = f"It explains {_percent(middle)} of the variation of the {what}"
    if least < 0:
        text += f"; for {names[worst]} the mean would be a better model"
    elif _percent(least) == _percent(middle):
        text += f" on {every}"
    else:
        text += f", at least {_percent(least)} on {every} ({names[worst]} is the weakest)"
    if idle:
        text += f"; {', '.join(idle)} hardly moved"
    if grade != "good":
        text += f"; {remedy}"
    yield Statement(grade, f"{text}.")


def _power(metrics: Sequence[Mapping[str, Any]]) -> Iterator[Statement]:
    """The statement on power and energy at the supply, by the recording with most error."""
    powers = [entry.get("power") for entry in metrics]
    entries = [power for power in powers if power and power["rmse"] is not None]
    if not entries:
        yield Statement(
            "fair",
            "Power at the supply was not recorded, so standby and losses are assumptions; "
            "record actual_robot_voltage and actual_robot_current.",
        )
        return
    worst = max(entries, key=lambda entry: float(entry["rmse"]))
    percent = worst["rmse_percent"]
    errors = [abs(float(entry["energy_error_percent"] or 0.0)) for entry in entries]
    error = max(errors)
    of_power = grade_of(float(worst["rmse"]), POWER_RMSE)
    text = f"Power at the supply is accurate to within {worst['rmse']:.2g} W RMS"
    if percent is not None:
        relative = grade_of(float(percent), POWER_RMSE_PERCENT)
        of_power = min(of_power, relative, key=ORDER.index)
        text += f" ({percent:.1f} % of its range)"
    grade = worst_of([grade_of(error, ENERGY_ERROR), of_power])
    text += f", energy to within {error:.1f} %"
    if grade != "good":
        text += "; standby power changes by some watts from day to day: "
        text += "identify with a new recording"
    yield Statement(grade, f"{text}.")


def _motion_energy(metrics: Sequence[Mapping[str, Any]]) -> Iterator[Statement]:
    """The statement on the energy of motion: the total is mostly standby.

    Standby does not depend on the motors, so that the error of the total shows little of
    them.
    """
    errors = [entry.get("motion_energy_error_percent") for entry in metrics]
    known = [abs(float(error)) for error in errors if error is not None]
    if known:
        grade = grade_of(max(known), MOTION_ENERGY_ERROR)
        text = (
            f"Energy of motion above standstill is predicted to within {max(known):.1f} %"
        )
        if grade != "good":
            text += "; identify with recordings of several days, and of motions as in production"
        yield Statement(grade, f"{text}.")


def _percent(share: float) -> str:
    """A share in percent, rounded down, with more digits the closer it is to one."""
    digits = 1
    if share > 0.9995:
        digits = 3
    elif share > 0.99:
        digits = 2
    rounded = np.floor(share * 10 ** (digits + 2)) / 10**digits
    return f"{rounded:.{digits}f} %"
