"""RecorderOptions and RecorderStatus: settings of a recorder, and its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.file_split import FileSplit
from ur_energy_model.telemetry.bag.files import DEFAULT_NAME
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.recording.storage_use import StorageUse
from ur_energy_model.telemetry.samples import Gap


@dataclass(frozen=True)
class RecorderOptions:
    """How to record bags.

    Attributes:
        fields: RTDE names to write; None for all the source has.
        name: template of bag names, see `bag_name`.
        namespace, tf_prefix: of topics and joints in bags, see RecordingInfo.
        split: when to start a new file of a bag.
        pretrigger: time before `start` with which a bag begins [s].
        duration: length after which a bag ends by itself, by the controller's clock [s].
        retention: budget for all bags in the folder; None keeps all.
        resume: continue when a full disk has room again; otherwise a disk that is full for ten
            seconds ends the bag.
        messages: called in the writing thread about twice a second while a bag is open, for
            messages of other topics since its last call; it must not wait.
    """

    fields: tuple[str, ...] | None = None
    name: str = DEFAULT_NAME
    namespace: str = ""
    tf_prefix: str = ""
    split: FileSplit = field(default_factory=FileSplit)
    pretrigger: float = 0.0
    duration: float | None = None
    retention: Retention | None = None
    resume: bool = False
    messages: Callable[[], Iterable[Messages]] = tuple


@dataclass(frozen=True)
class RecorderStatus:
    """State of a recorder at one moment.

    Attributes:
        state: "idle", "recording", "failing" (the disk fails; samples wait in memory), "stopped"
            (by itself: the duration is over, the source ended, or the disk is nearly full).
        bag: being recorded, or recorded last.
        samples: written, or accepted for the next chunk; once the bag is finished, what can be
            read back from it.
        lost: samples missing in the bag: in gaps, in an outage that lasts, and `unreadable` ones.
        lost_seconds: time without samples, a present outage included [s].
        unreadable: samples that were written but cannot be read back (file deleted, replaced or
            cut, bag renamed, disk full).
        removed: samples of this bag that were deleted to keep within the budget; not lost ones.
        duplicates: packets left out because the controller sent the same tick again.
        gaps: in this bag.
        bytes: size of the bag so far.
        seconds: since recording began.
        waiting: samples in the queue between reading and writing.
        spilled: samples that waited in a temporary file because the queue was full.
        overflow: samples dropped because that file was full too; `lost` counts them as well.
        connected: False while a live source has lost its robot.
        last_error: the last error, None if there was none.
        stopped_because: what ended the recording too early, None if nothing did.
        storage: what all bags of the folder take, None without a budget.
    """

    state: str = "idle"
    bag: Path | None = None
    samples: int = 0
    lost: int = 0
    lost_seconds: float = 0.0
    unreadable: int = 0
    removed: int = 0
    duplicates: int = 0
    gaps: tuple[Gap, ...] = ()
    bytes: int = 0
    seconds: float = 0.0
    waiting: int = 0
    spilled: int = 0
    overflow: int = 0
    connected: bool = True
    last_error: str | None = None
    stopped_because: str | None = None
    storage: StorageUse | None = None
