"""RecorderOptions: what a recorder writes, where it splits files, and which old bags it deletes."""

from __future__ import annotations

from dataclasses import dataclass, field

from ur_energy_model.telemetry.bag.file_split import FileSplit
from ur_energy_model.telemetry.bag.naming import DEFAULT_NAME
from ur_energy_model.telemetry.bag.retention import Retention


@dataclass(frozen=True)
class RecorderOptions:
    """How to record bags.

    Attributes:
        fields: RTDE names to write; None for all the source has.
        name: template of bag names: {robot}, {serial}, {date}, {time}, {number}.
        split: when to start a new file of a bag.
        pretrigger: time before `start` with which a bag begins [s].
        duration: length after which a bag ends by itself, by the controller's clock [s].
        retention: which old bags beside the new one to delete; None keeps all.
    """

    fields: tuple[str, ...] | None = None
    name: str = DEFAULT_NAME
    split: FileSplit = field(default_factory=FileSplit)
    pretrigger: float = 0.0
    duration: float | None = None
    retention: Retention | None = None
