"""Where a learned model comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone

from ur_energy_model import __version__
from ur_energy_model.learning.kept_models import ORIGIN, learned_digest
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


@dataclass
class LearnedTime:
    """The samples that were learned from.

    Attributes:
        samples: their number.
        seconds: work among them [s].
        since, until: host times of the first and last, ISO 8601; None where none was recorded.
    """

    samples: int = 0
    seconds: float = 0.0
    since: str | None = None
    until: str | None = None

    def add(self, window: Telemetry, seconds: float) -> None:
        """Count a window with some work [s]."""
        self.samples += len(window)
        self.seconds += seconds
        if window.stamp is not None:
            self.since = self.since or _date(int(window.stamp[0]))
            self.until = _date(int(window.stamp[-1]))


def with_provenance(
    model: EnergyModel,
    previous: EnergyModel,
    learned: LearnedTime,
    version: int,
    info: RecordingInfo,
) -> EnergyModel:
    """A learned model with its provenance.

    Args:
        model: learned.
        previous: that it may replace.
        learned: what it was learned from.
        version: its number.
        info: of the arm.
    """
    return replace(
        model,
        provenance={
            "origin": ORIGIN,
            "package_version": __version__,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "serial": info.serial,
            "firmware": info.controller_version,
            "simulated": info.simulated,
            "version": version,
            "learned": {
                "minutes": learned.seconds / 60.0,
                "samples": learned.samples,
                "since": learned.since,
                "until": learned.until,
            },
            "previous": {
                "origin": str(previous.provenance.get("origin", "identified")),
                "sha256": learned_digest(previous),
            },
        },
    )


def _date(stamp: int) -> str:
    return datetime.fromtimestamp(stamp / 1e9, timezone.utc).isoformat(timespec="seconds")
