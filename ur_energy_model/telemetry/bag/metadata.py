"""metadata.yaml of a rosbag2 directory, and how a recording's provenance is kept in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import hypot
from pathlib import Path, PurePath
from typing import Any

import yaml

from ur_energy_model import __version__
from ur_energy_model.errors import RecordingError
from ur_energy_model.files import new_file
from ur_energy_model.reading.ranges import GRAVITY
from ur_energy_model.reading.readers import integer
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_nodes import ReadingLimits
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.telemetry.samples import Gap, RecordingInfo

FILE_NAME = "metadata.yaml"
ROOT = "rosbag2_bagfile_information"
RECORD_NAME = "ur_energy_model"
GAP_RECORD_NAME = "ur_energy_model.gap"
LIMITS = ReadingLimits(size=16_000_000, values=200_000)
"""Room for a bag of ten thousand files."""
_REMEDY = "rebuild it with 'ur_energy recover'"
_COUNT = integer(0, 2**63)
_TIME = integer(-(2**63), 2**63)
_GRAVITY = (GRAVITY.low, GRAVITY.high)
"""Magnitude of a configured gravity [m/s^2]; a mounting changes the direction only."""


@dataclass(frozen=True)
class FileEntry:
    """One storage file: name, first and last log time [ns], number of messages."""

    name: str
    start: int
    end: int
    messages: int


@dataclass(frozen=True)
class TopicEntry:
    """One topic: name, type, type hash, number of messages."""

    name: str
    type: str
    digest: str
    messages: int


@dataclass(frozen=True)
class BagMetadata:
    """What metadata.yaml says.

    Attributes:
        files: storage files, in order.
        topics: all topics.
        custom: key-value pairs of the recording.
        storage: "mcap" or "sqlite3".
    """

    files: Sequence[FileEntry]
    topics: Sequence[TopicEntry]
    custom: Mapping[str, str] = field(default_factory=dict)
    storage: str = "mcap"

    def write(self, folder: Path) -> None:
        """Replace metadata.yaml in one step.

        Raises:
            OSError: the disk refuses.
        """
        content = yaml.safe_dump(
            {ROOT: self._content()}, sort_keys=False, allow_unicode=True, width=1000
        )
        with new_file(folder / FILE_NAME) as file:
            file.write(content)

    def _content(self) -> dict[str, Any]:
        used = [file for file in self.files if file.messages]
        start = min((file.start for file in used), default=0)
        end = max((file.end for file in used), default=0)
        return {
            "version": 9,
            "storage_identifier": self.storage,
            "duration": {"nanoseconds": end - start},
            "starting_time": {"nanoseconds_since_epoch": start},
            "message_count": sum(file.messages for file in self.files),
            "topics_with_message_count": [
                {
                    "topic_metadata": {
                        "name": topic.name,
                        "type": topic.type,
                        "serialization_format": "cdr",
                        "offered_qos_profiles": [],
                        "type_description_hash": topic.digest,
                    },
                    "message_count": topic.messages,
                }
                for topic in self.topics
            ],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [file.name for file in self.files],
            "files": [
                {
                    "path": file.name,
                    "starting_time": {"nanoseconds_since_epoch": file.start},
                    "duration": {"nanoseconds": file.end - file.start},
                    "message_count": file.messages,
                }
                for file in self.files
            ],
            "custom_data": dict(self.custom),
            "ros_distro": "jazzy",
        }

    @property
    def messages(self) -> dict[str, int]:
        """Number of messages by topic."""
        return {topic.name: topic.messages for topic in self.topics}


def read_metadata(folder: Path) -> BagMetadata:
    """metadata.yaml of a bag, version 1 to 9, with whatever keys its writer added.

    Raises:
        RecordingError: missing, malformed, beyond the limits of its size, or with file names that
            leave the bag.
    """
    root = YamlTree.read(folder / FILE_NAME, RecordingError, _REMEDY, LIMITS)
    return _parse(Record(Record(root)[ROOT]))


def _parse(root: Record) -> BagMetadata:
    names = [_file_name(item) for item in root["relative_file_paths"].items()]
    mode = root.read("compression_mode", YamlTree.written, "")
    if mode.lower() not in {"", "none"}:
        raise root["compression_mode"].refuse(f"'{excerpt(mode)}' is not supported")
    entries = root.get("files")
    files = [FileEntry(name, 0, 0, 0) for name in names]
    for i, item in enumerate([] if entries is None else entries.items()[: len(names)]):
        entry = Record(item)
        start = _nanoseconds(entry.get("starting_time"), "nanoseconds_since_epoch")
        length = _nanoseconds(entry.get("duration"), "nanoseconds")
        count = entry.read("message_count", _COUNT, 0)
        files[i] = FileEntry(names[i], start, start + length, count)
    topics = [_topic(Record(item)) for item in root["topics_with_message_count"].items()]
    custom = root.get("custom_data")
    # What is no single value was not written by this package and means nothing to it.
    own = {
        key: child.written()
        for key, child in ({} if custom is None else custom.mapping()).items()
        if child.is_scalar
    }
    return BagMetadata(files, topics, own, root["storage_identifier"].written())


def _file_name(tree: YamlTree) -> str:
    """Name of a storage file; old bags wrote the folder in front of it."""
    path = PurePath(tree.written())
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in path.name:
        raise tree.refuse(f"file name '{excerpt(str(path))}' leads out of the bag")
    return path.name


def _nanoseconds(tree: YamlTree | None, key: str) -> int:
    return 0 if tree is None else Record(tree).read(key, _TIME, 0)


def _topic(entry: Record) -> TopicEntry:
    about = Record(entry["topic_metadata"])
    return TopicEntry(
        about["name"].written(),
        about["type"].written(),
        about.read("type_description_hash", YamlTree.written, ""),
        _COUNT(entry["message_count"]),
    )


def custom_of_info(
    info: RecordingInfo, fields: Sequence[str], *, host_clock: bool
) -> dict[str, str]:
    """Provenance of a recording as key-value pairs; unknown things are left out."""
    entries: dict[str, Any] = {
        "robot": info.robot,
        "serial": info.serial,
        "controller_version": info.controller_version,
        "rate": info.rate,
        "fields": ",".join(fields),
        "gravity": info.gravity,
        "payload_mass": info.payload_mass,
        "payload_center_of_mass": info.payload_center_of_mass,
        "simulated": info.simulated,
        "recorded_from": info.source,
        "stamps": "host" if host_clock else "controller",
        "package_version": __version__,
        "extra": dict(info.extra) or None,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in entries.items()
        if value is not None
    }


def info_of_custom(custom: Mapping[str, str], source: str) -> RecordingInfo:
    """Provenance of a recording; what is missing is unknown.

    A payload or a gravity that no arm has is unknown too: a controller may have been told
    nonsense, and the samples are good all the same.

    Raises:
        RecordingError: a value that is not what it should be.
    """
    try:
        extra = json.loads(custom.get("extra", "{}"))
        return RecordingInfo(
            source=source,
            robot=custom.get("robot"),
            serial=custom.get("serial"),
            controller_version=custom.get("controller_version"),
            rate=_rate(custom),
            gravity=_vector(custom, "gravity", _GRAVITY),
            payload_mass=_likely(_number(custom, "payload_mass"), -1e-9, 3e3),
            payload_center_of_mass=_vector(custom, "payload_center_of_mass", (0.0, 10.0)),
            simulated=json.loads(custom.get("simulated", "false")) is True,
            extra={str(key): str(value) for key, value in extra.items()},
        )
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordingError(
            source,
            f"its recording information is malformed ({excerpt(str(error))})",
            "record again, or import the CSV again",
        ) from None


def _rate(custom: Mapping[str, str]) -> float | None:
    rate = _number(custom, "rate")
    if rate is not None and not 0.0 < rate <= 1e5:
        raise ValueError(f"rate {rate:g}")
    return rate


def _number(custom: Mapping[str, str], key: str) -> float | None:
    """Number under a key, None where there is none."""
    return float(json.loads(custom[key])) if key in custom else None


def _likely(value: float | None, lowest: float, highest: float) -> float | None:
    """A value within a range, else None; NaN is in no range."""
    return value if value is not None and lowest <= value <= highest else None


def _vector(
    custom: Mapping[str, str], key: str, length: tuple[float, float]
) -> tuple[float, float, float] | None:
    """Vector under a key, None where there is none or its length is out of a range."""
    if key not in custom:
        return None
    x, y, z = (float(value) for value in json.loads(custom[key]))
    return None if _likely(hypot(x, y, z), *length) is None else (x, y, z)


def custom_of_gap(gap: Gap) -> dict[str, str]:
    """A gap as key-value pairs."""
    return {
        key: value if key == "cause" else json.dumps(value) for key, value in asdict(gap).items()
    }


def gap_of_custom(custom: Mapping[str, str]) -> Gap | None:
    """A gap from key-value pairs, None where they are not one."""
    try:
        return Gap(
            index=int(json.loads(custom["index"])),
            start=float(json.loads(custom["start"])),
            end=float(json.loads(custom["end"])),
            missing=int(json.loads(custom["missing"])),
            cause=custom["cause"],
        )
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def gaps_to_text(gaps: Sequence[Gap]) -> str:
    """Gaps as JSON."""
    return json.dumps([asdict(gap) for gap in gaps])
