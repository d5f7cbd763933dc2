"""What learning did and noticed: attempts to improve the model, changes of the arm, open needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Attempt:
    """One refit, and whether its model was taken over.

    Attributes:
        time: controller time at the end of the data that the refit used [s].
        samples: learned from so far.
        version: number of the model in use after the attempt; 0 is the first model.
        supply_energy_error_percent: error of the model in use over the held-out time, whole arm
            at the supply; None without measured bus power, or without motion.
        joint_energy_interval_percent: half width of the 95 % interval of each joint's electrical
            energy over the motion of the held-out time, percent of that energy; NaN without any.
        accepted: whether the refitted model replaced the one before.
        reason: one clause in words, such as "predicts the next two minutes better".
    """

    time: float
    samples: int
    version: int
    supply_energy_error_percent: float | None
    joint_energy_interval_percent: tuple[float, ...]
    accepted: bool
    reason: str

    def as_json(self) -> dict[str, Any]:
        """One entry of "history" in `ur_energy learn --json`."""
        return {
            "time": self.time,
            "samples": self.samples,
            "version": self.version,
            "supply_energy_error_percent": self.supply_energy_error_percent,
            "joint_energy_interval_percent": list(self.joint_energy_interval_percent),
            "accepted": self.accepted,
            "reason": self.reason,
        }


def attempt_from_json(entry: Mapping[str, Any]) -> Attempt:
    """The attempt that `Attempt.as_json` described."""
    interval = tuple(map(float, entry["joint_energy_interval_percent"]))
    return Attempt(**{**entry, "joint_energy_interval_percent": interval})


@dataclass(frozen=True)
class Change:
    """A change of the arm that is larger than its uncertainty; each is reported once.

    Attributes:
        time: controller time since when it is seen [s].
        joint: name of the joint; None for a change of the whole arm (standby, payload, mounting).
        what: "friction", "standby", "payload" or "mounting".
        size: relative change (friction, 0.22 for 22 % above the usual), else in W, kg or rad.
        interval: its 95 % interval (low, high), same unit.
        words: the sentence for people, with the value, the usual one and the temperature.
    """

    time: float
    joint: str | None
    what: str
    size: float
    interval: tuple[float, float]
    words: str

    def as_json(self) -> dict[str, Any]:
        """One entry of "events" in `ur_energy learn --json`."""
        return {
            "time": self.time,
            "joint": self.joint,
            "what": self.what,
            "size": self.size,
            "interval": list(self.interval),
            "words": self.words,
        }


def change_from_json(values: Mapping[str, Any]) -> Change:
    """The change that `Change.as_json` describes.

    Raises:
        KeyError, TypeError, ValueError: it does not describe one.
    """
    low, high = values["interval"]
    return Change(**{**values, "interval": (float(low), float(high))})


@dataclass(frozen=True)
class Need:
    """What ordinary work has not shown yet.

    Attributes:
        joint: index of the joint, from 0; None for the whole arm.
        what: "speed", "load", "acceleration", "standstill", "bus_power" or "temperature".
        speed_range: joint speeds that would help (low, high), rad/s; None where it is not about
            speed.
        energy_share_percent: half width of the 95 % interval that this leaves open in the whole
            arm's energy over a reference work (`learning.needs`), percent.
        words: the sentence for people.
    """

    joint: int | None
    what: str
    speed_range: tuple[float, float] | None
    energy_share_percent: float
    words: str

    def as_json(self) -> dict[str, Any]:
        """One entry of "needs" in the provenance of a learned model."""
        return {
            "joint": self.joint,
            "what": self.what,
            "speed_range": None if self.speed_range is None else list(self.speed_range),
            "energy_share_percent": self.energy_share_percent,
            "words": self.words,
        }


NEEDS = "needs"
"""Key of the needs in the provenance of a learned model."""


def need_from_json(values: Mapping[str, Any]) -> Need:
    """The need that `Need.as_json` describes.

    Raises:
        KeyError, TypeError, ValueError: it does not describe one.
    """
    speeds = values["speed_range"]
    joint = values["joint"]
    return Need(
        joint=None if joint is None else int(joint),
        what=str(values["what"]),
        speed_range=None if speeds is None else (float(speeds[0]), float(speeds[1])),
        energy_share_percent=float(values["energy_share_percent"]),
        words=str(values["words"]),
    )
