"""metadata.yaml of a rosbag2 directory, and how a recording's provenance is kept in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from ur_energy_model import __version__
from ur_energy_model.errors import RecordingError
from ur_energy_model.files import new_file
from ur_energy_model.telemetry.samples import Gap, RecordingInfo

FILE_NAME = "metadata.yaml"
ROOT = "rosbag2_bagfile_information"
RECORD_NAME = "ur_energy_model"
GAP_RECORD_NAME = "ur_energy_model.gap"
MAX_BYTES = 16 << 20
_REMEDY = "rebuild it with 'ur_energy recover'"


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
    """metadata.yaml of a bag, version 1 to 9.

    Raises:
        RecordingError: missing, malformed, or with file names that leave the bag.
    """
    path = folder / FILE_NAME
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RecordingError(path, "is far too large", _REMEDY)
        content = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise RecordingError(path, f"cannot be read ({error.strerror})", _REMEDY) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = "" if line is None else f" in line {line + 1}"
        raise RecordingError(path, f"is not valid YAML{place}", _REMEDY) from None
    try:
        return _parse(content[ROOT])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RecordingError(
            path, f"is not a rosbag2 description ({type(error).__name__}: {error})", _REMEDY
        ) from None


def _parse(root: Mapping[str, Any]) -> BagMetadata:
    names = [str(name) for name in root["relative_file_paths"]]
    for name in names:
        # Old bags wrote the folder in front of the name; only the name counts, and must be one.
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts or not PurePath(name).name:
            raise ValueError(f"file name {name!r} leads out of the bag")
    if root.get("compression_mode") not in (None, "", "none", "NONE"):
        raise ValueError(f"compression mode {str(root['compression_mode'])!r} is not supported")
    entries = root.get("files") or []
    files = []
    for i, name in enumerate(names):
        entry = entries[i] if i < len(entries) else {}
        start = int(entry.get("starting_time", {}).get("nanoseconds_since_epoch", 0))
        length = int(entry.get("duration", {}).get("nanoseconds", 0))
        count = int(entry.get("message_count", 0))
        files.append(FileEntry(PurePath(name).name, start, start + length, count))
    topics = [
        TopicEntry(
            str(topic["topic_metadata"]["name"]),
            str(topic["topic_metadata"]["type"]),
            str(topic["topic_metadata"].get("type_description_hash", "")),
            int(topic["message_count"]),
        )
        for topic in root["topics_with_message_count"]
    ]
    custom = {str(key): str(value) for key, value in (root.get("custom_data") or {}).items()}
    return BagMetadata(files, topics, custom, str(root["storage_identifier"]))


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

    Raises:
        RecordingError: a value that is not what it should be.
    """

    def number(key: str) -> float | None:
        return float(json.loads(custom[key])) if key in custom else None

    def vector(key: str) -> tuple[float, float, float] | None:
        if key not in custom:
            return None
        x, y, z = (float(value) for value in json.loads(custom[key]))
        return x, y, z

    try:
        extra = json.loads(custom.get("extra", "{}"))
        return RecordingInfo(
            source=source,
            robot=custom.get("robot"),
            serial=custom.get("serial"),
            controller_version=custom.get("controller_version"),
            rate=number("rate"),
            gravity=vector("gravity"),
            payload_mass=number("payload_mass"),
            payload_center_of_mass=vector("payload_center_of_mass"),
            simulated=json.loads(custom.get("simulated", "false")) is True,
            extra={str(key): str(value) for key, value in extra.items()},
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise RecordingError(
            source,
            "its recording information is malformed",
            "record again, or import the CSV again",
        ) from None


def custom_of_gap(gap: Gap) -> dict[str, str]:
    """A gap as key-value pairs."""
    return {key: value if key == "cause" else json.dumps(value)
            for key, value in asdict(gap).items()}  # fmt: skip


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
    except (KeyError, ValueError, TypeError, RecursionError):
        return None


def gaps_to_text(gaps: Sequence[Gap]) -> str:
    """Gaps as JSON."""
    return json.dumps([asdict(gap) for gap in gaps])
