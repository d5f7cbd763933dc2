"""LiveState: what a live view shows at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.sink import NOT_OPEN, SinkStatus
from ur_energy_model.telemetry.source import LinkStatus


@dataclass(frozen=True)
class LiveState:
    """Arm, connection and sinks at one moment.

    Attributes:
        source: address of the controller, or the bag.
        reading: of the arm; None before the first sample.
        link: state of the connection now.
        sinks: state of every sink.
        cycle: the last completed one, None before.
        disk_problem: why the counters cannot be saved, None if they are.
        arm_warning: that the model is of another arm, None if it is not known to be.
    """

    source: str
    reading: ArmReading | None
    link: LinkStatus
    sinks: tuple[SinkStatus, ...] = ()
    cycle: Cycle | None = None
    disk_problem: str | None = None
    arm_warning: str | None = None

    @property
    def silence(self) -> str | None:
        """Why no samples arrive now, None while they do."""
        link = self.link
        if link.connected and link.problem is None:
            return None if self.reading is not None else "no samples yet"
        reason = link.problem or link.last_error or "no answer yet"
        return reason.removeprefix(f"{self.source}: ")

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now, one line each."""
        silence = self.silence
        return (
            *(() if silence is None else (f"no samples from {self.source}: {silence}",)),
            *(() if self.disk_problem is None else (self.disk_problem,)),
            *(() if self.arm_warning is None else (self.arm_warning,)),
            *(
                f"{sink.name}: {sink.problem}"
                for sink in self.sinks
                if sink.problem not in (None, NOT_OPEN)
            ),
        )
