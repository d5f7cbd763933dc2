"""Options of an optimization."""

from __future__ import annotations

from dataclasses import dataclass

KEEP_DWELL = 0.5
"""Dwells up to this long must stay [s]: grippers, sensors."""


@dataclass(frozen=True)
class OptimizationOptions:
    """What a cycle may become.

    Attributes:
        cycle_time: of the new cycle [s]; None keeps that of the recording.
        keep_dwell: dwells up to this long must stay [s].
        jerk: largest jerk of the joints [rad/s^3]; None for no limit.
        tool_speed: largest speed of the flange [m/s]; None for the controller's usual setting.
        recorded_limits: take the largest speeds, accelerations and torques of the recording as
            limits, instead of those of the robot file.
        pareto: compute the energy over the cycle time.
        power_off_after: waits longer than this may switch the arm off [s]; None for never.
        keep: numbers of steps of the sheet that stay exactly as recorded.
        keep_slow: keep moves that are deliberately slow.
        max_speedup: largest factor on recorded speeds and accelerations; None for no limit.
        session: take standby power and friction of the session from the recording itself.
    """

    cycle_time: float | None = None
    keep_dwell: float = KEEP_DWELL
    jerk: float | None = None
    tool_speed: float | None = None
    recorded_limits: bool = False
    pareto: bool = False
    power_off_after: float | None = None
    keep: tuple[int, ...] = ()
    keep_slow: bool = True
    max_speedup: float | None = None
    session: bool = True
