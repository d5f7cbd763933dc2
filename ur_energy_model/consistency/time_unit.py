# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time: whether positions advance as far as the speeds and the times of a recording require.

The energy of a recording is proportional to its time. A time column in milliseconds that
was read as seconds, a wrong rate, or positions in degrees beside speeds in rad/s all show
in the time scale of the recording (`telemetry.time_scale`): the factor by which the steps
of its clock would have to be multiplied so that the speeds explain the positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.telemetry.csv.times import UNITS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.time_scale import TimeScale, TimeScaleFit


@dataclass(frozen=True)
class _Mistake:
    """A usual mistake, its effect on the times, and its remedy.

    Attributes:
        factor: factor on the steps of the clock that corrects the mistake.
        shown: the mistake in words.
        options: options of an import that correct it.
    """

    factor: float
    shown: str
    options: str


_DEGREE = math.pi / 180.0
_RPM = math.pi / 30.0
_IN_HEADER = "the unit in the header of the CSV file, such as {}"
_OF_UNITS = (
    _Mistake(
        1.0 / _DEGREE,
        "the positions are in degrees where speeds are in rad/s",
        _IN_HEADER.format("actual_q_0 [deg]"),
    ),
    _Mistake(
        _DEGREE,
        "the speeds are in degrees per second where positions are in rad",
        _IN_HEADER.format("actual_qd_0 [deg/s]"),
    ),
    _Mistake(
        _RPM,
        "the speeds are in revolutions per minute",
        _IN_HEADER.format("actual_qd_0 [rpm]"),
    ),
)
_OTHER_OPTIONS = "--time-unit or --rate as they really are"


class TimeCheck:
    """Compares the times of one recording, in seconds, with its motion, batch by batch.

    Args:
        stated: the statement about the times, for messages.
    """

    def __init__(self, stated: str = "the times of the recording are in seconds") -> None:
        self._fit = TimeScaleFit()
        self._stated = stated
        self._info = RecordingInfo()

    def observe(self, part: Telemetry) -> None:
        """Add the next part."""
        if len(part):
            self._info = part.info
            self._fit.update(part)

    def contradictions(self) -> tuple[Contradiction, ...]:
        """The contradiction between times and motion, if there is one."""
        remedy = "correct the source: stamps in s, positions in rad, speeds in rad/s"
        if "imported_from" in self._info.extra:
            remedy = "import it again with {options}"
        return time_contradictions(self._fit.result, stated=self._stated, remedy=remedy)


def time_contradictions(
    scale: TimeScale | None,
    *,
    stated: str,
    remedy: str,
    unit: str = "s",
    rate: float | None = None,
) -> tuple[Contradiction, ...]:
    """The contradiction between the times of a recording and its motion, if there is one.

    Args:
        scale: time scale of the recording, with its times converted to seconds.
        stated: the statement about the times, for messages.
        remedy: what to do, with {options} in place of the options of an import that correct
            it.
        unit: unit of the times before they were converted to seconds; a key of UNITS.
        rate: rate of the samples [Hz], where the user states it in place of times.
    """
    if scale is None or scale.allows(1.0):
        return ()
    mistake = _mistake(scale, unit, rate)
    evidence = (
        f"{scale.positions} advances {scale.best:.4g} times as far as {scale.speeds} and the times "
        f"say, in {scale.steps} steps with motion"
    )
    if scale.is_precise:
        evidence += f", R2 {scale.r2:.4f}"
    return (
        Contradiction(
            subject="time",
            stated=stated,
            shown=mistake.shown,
            evidence=evidence,
            remedy=remedy.format(options=mistake.options),
            refused=True,
        ),
    )


def _mistake(scale: TimeScale, unit: str, rate: float | None) -> _Mistake:
    """The mistake that explains the time scale best; see `time_contradictions`."""
    if rate is not None:
        found = f"{rate / scale.best:.4g}"
        shown = f"the motion is that of {found} samples a second"
        return _Mistake(scale.best, shown, f"--rate {found}")
    read = UNITS.get(unit, 1.0)
    mistakes = list(_OF_UNITS)
    for name, seconds in UNITS.items():
        shown = f"the motion is that of times in {name}"
        mistakes.append(_Mistake(seconds / read, shown, f"--time-unit {name}"))
    usual = [each for each in mistakes if scale.allows(each.factor)]
    if usual:
        return min(usual, key=lambda each: abs(math.log(scale.best / each.factor)))
    kind = "short" if scale.best > 1.0 else "long"
    times = max(scale.best, 1.0 / scale.best)
    shown = f"the motion shows that they are {times:.3g} times too {kind}"
    return _Mistake(scale.best, shown, _OTHER_OPTIONS)
