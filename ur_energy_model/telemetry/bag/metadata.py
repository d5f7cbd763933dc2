"""BagMetadata: metadata.yaml of a rosbag2 directory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from ur_energy_model.errors import RecordingError
from ur_energy_model.files import new_file
from ur_energy_model.reading.readers import integer
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_nodes import ReadingLimits
from ur_energy_model.reading.yaml_tree import YamlTree, excerpt
from ur_energy_model.telemetry.bag.layout import TELEMETRY_TOPIC
from ur_energy_model.telemetry.bag.mcap_format import Summary

FILE_NAME = "metadata.yaml"
ROOT = "rosbag2_bagfile_information"
LIMITS = ReadingLimits(size=16_000_000, values=200_000)
"""Enough for a bag of ten thousand files."""
LATCHED = "transient_local"
"""Durability of topics whose last message late subscribers get."""
_LATCHED_TEXT = re.compile(rf"durability: (?:{LATCHED}|1)\b")
LONGEST_FILE_NAME = 255
"""Longest name that common file systems take [bytes]."""
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_REMEDY = "rebuild it with 'ur_energy recover'"
_COUNT = integer(0, 2**63)
_TIME = integer(-(2**63), 2**63)


@dataclass(frozen=True)
class FileEntry:
    """One storage file: name, first and last log time [ns], number of messages."""

    name: str
    start: int
    end: int
    messages: int

    @classmethod
    def of_summary(cls, name: str, summary: Summary) -> FileEntry:
        """Entry of an MCAP file by its summary."""
        return cls(name, summary.start_time, summary.end_time, summary.messages)


@dataclass(frozen=True)
class TopicEntry:
    """One topic: name, type, type hash, number of messages, and whether it is latched."""

    name: str
    type: str
    digest: str
    messages: int
    latched: bool = False


@dataclass(frozen=True)
class BagMetadata:
    """Content of metadata.yaml.

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
            OSError: the disk fails.
            RecordingError: the name of a file is not text.
        """
        for file in self.files:
            if not file.name.isprintable():
                raise RecordingError(folder, f"has a file {file.name!a}", "rename it")
        content = yaml.dump(
            {ROOT: self._content()}, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=1000
        )
        with new_file(folder / FILE_NAME) as out:
            out.write(content)

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
                        "offered_qos_profiles": offered_qos_profiles(topic.latched),
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
    def samples(self) -> int:
        """Number of telemetry messages."""
        found = (topic for topic in self.topics if topic.name.endswith(TELEMETRY_TOPIC))
        return sum(topic.messages for topic in found)


def read_metadata(folder: Path) -> BagMetadata:
    """Read metadata.yaml of a bag, version 1 to 9; unknown keys are ignored.

    Raises:
        RecordingError: missing, malformed, too large, or with file names outside the bag.
    """
    root = YamlTree.read(folder / FILE_NAME, RecordingError, _REMEDY, LIMITS)
    return _parse(Record(Record(root)[ROOT]))


def _parse(root: Record) -> BagMetadata:
    names = _file_names(root["relative_file_paths"])
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
    # This package writes scalars only; other values are of another writer.
    own = {
        key: child.written()
        for key, child in ({} if custom is None else custom.mapping()).items()
        if child.is_scalar
    }
    return BagMetadata(files, topics, own, root["storage_identifier"].written())


def _file_names(tree: YamlTree) -> list[str]:
    """Names of the storage files, each once: a bag is read as long as its files are."""
    names: dict[str, None] = {}
    for item in tree.items():
        name = _file_name(item)
        if name in names:
            raise item.refuse(f"file '{excerpt(name)}' occurs twice")
        names[name] = None
    return list(names)


def _file_name(tree: YamlTree) -> str:
    """Name of a storage file without the folder that old bags put in front of it."""
    path = PurePath(tree.written())
    if path.is_absolute() or ".." in path.parts or not path.name or "\0" in path.name:
        raise tree.refuse(f"file name '{excerpt(str(path))}' leads out of the bag")
    if len(path.name.encode(errors="surrogatepass")) > LONGEST_FILE_NAME:
        raise tree.refuse(f"file name '{excerpt(path.name)}' is longer than a file's can be")
    return path.name


def _nanoseconds(tree: YamlTree | None, key: str) -> int:
    return 0 if tree is None else Record(tree).read(key, _TIME, 0)


def _topic(entry: Record) -> TopicEntry:
    about = Record(entry["topic_metadata"])
    qos = about.get("offered_qos_profiles")
    return TopicEntry(
        about["name"].written(),
        about["type"].written(),
        about.read("type_description_hash", YamlTree.written, ""),
        _COUNT(entry["message_count"]),
        qos is not None and _is_latched(qos),
    )


def _is_latched(qos: YamlTree) -> bool:
    """Whether a publisher was latched; before version 9 the profiles are a text."""
    if qos.is_scalar:
        return is_latched(qos.written())
    durabilities = [Record(profile).get("durability") for profile in qos.items()]
    return any(each is not None and each.written() == LATCHED for each in durabilities)


def offered_qos_profiles(latched: bool) -> list[dict[str, Any]]:
    """Quality of service that the nodes offer on a topic, in the form of rosbag2 (version 9)."""
    endless = [{"sec": 9223372036, "nsec": 854775807} for _ in range(3)]
    profile = {
        "history": "keep_last",
        "depth": 1 if latched else 10,
        "reliability": "reliable",
        "durability": LATCHED if latched else "volatile",
        "deadline": endless[0],
        "lifespan": endless[1],
        "liveliness": "automatic",
        "liveliness_lease_duration": endless[2],
        "avoid_ros_namespace_conventions": False,
    }
    return [profile]


def qos_text(latched: bool) -> str:
    """The same as it is stored with a channel."""
    return yaml.dump(offered_qos_profiles(latched), Dumper=_DUMPER, sort_keys=False).rstrip()


def is_latched(text: str) -> bool:
    """Whether profiles as they are stored with a channel, of any version, are latched."""
    return _LATCHED_TEXT.search(text) is not None
