"""What a user is told of a long recording: how much of it the fits use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ur_energy_model.identification.recording import Recording

_MINUTE = 60.0
_WHOLE = 0.99
"""Share of a recording that counts as all of it: steps between its parts are not counted."""


def used_time_notes(recordings: Iterable[Recording]) -> Iterator[str]:
    """A line for each recording that is longer than what the fits use of it."""
    for recording in recordings:
        kept, whole = recording.kept, recording.duration
        if kept is not None and kept.samples < _WHOLE * whole:
            yield (
                f"{recording.path}: uses {_minutes(kept.motions)} of {_minutes(whole)} minutes for "
                f"torque constants and friction, {_minutes(kept.samples)} for the bus capacitor "
                "and the errors of the fit: parts spread over the recording and those with the "
                "most varied motion and temperature; standby and winding losses use all of it"
            )


def _minutes(seconds: float) -> str:
    minutes = seconds / _MINUTE
    return f"{minutes:.0f}" if minutes >= 9.5 else f"{minutes:.1f}"
