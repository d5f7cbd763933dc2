# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a rosbag2 directory states about its bag: metadata.yaml, provenance, hash."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias

import yaml

from ur_energy_model import __version__
from ur_energy_model.codec import built
from ur_energy_model.errors import RecordingError
from ur_energy_model.files import new_file, open_regular
from ur_energy_model.ranges import GRAVITY
from ur_energy_model.telemetry.bag.mcap_format import Summary
from ur_energy_model.telemetry.bag.messages import (
    DUMPER,
    LATCHED,
    TELEMETRY_TOPIC,
    BagTopic,
    offered_qos_profiles,
)
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.yaml_reader import ReadingLimits, Record, YamlTree, excerpt, integer

FILE_NAME = "metadata.yaml"
ROOT = "rosbag2_bagfile_information"
# enough for a bag of ten thousand files
LIMITS = ReadingLimits(size=16_000_000, values=200_000)
_LATCHED_TEXT = re.compile(rf"durability: (?:{LATCHED}|1)\b")
LONGEST_FILE_NAME = 255  # longest name that common file systems take [bytes]
_REMEDY = "rebuild it with 'ur_energy recover'"
_NO_COMPRESSION = ("", "none", "storage")
_COMPRESSIONS = ("file", "message")
_COUNT = integer(0, 2**63)
_TIME = integer(-(2**63), 2**63)


class FileEntry(NamedTuple):
    """One storage file in metadata.yaml.

    Attributes:
        name: of the file in the folder of the bag.
        start: log time of its first message [ns].
        end: log time of its last message [ns].
        messages: number of its messages.
    """

    name: str
    start: int
    end: int
    messages: int

    @classmethod
    def of_summary(cls, name: str, summary: Summary) -> FileEntry:
        """Entry of an MCAP file by its summary."""
        return cls(name, summary.start_time, summary.end_time, summary.messages)


class TopicEntry(NamedTuple):
    """One topic in metadata.yaml.

    Attributes:
        name: of the topic, with its namespace.
        type: of its messages.
        digest: RIHS01 hash of the type, "" if it is unknown.
        messages: number of messages in all files.
        latched: whether late subscribers get the last message.
    """

    name: str
    type: str
    digest: str
    messages: int
    latched: bool = False

    @classmethod
    def of_topic(cls, topic: BagTopic, messages: int) -> TopicEntry:
        """Entry of a topic with this number of messages."""
        return cls(
            topic.name, topic.kind.name, topic.kind.digest, messages, topic.latched
        )


@dataclass(frozen=True)
class BagMetadata:
    """Content of metadata.yaml, as rosbag2 (version 9) has it.

    Attributes:
        files: storage files, in order.
        topics: of the bag.
        custom: key-value pairs about the recording, see `custom_of_info`.
        storage: "mcap" or "sqlite3".
    """

    files: Sequence[FileEntry]
    topics: Sequence[TopicEntry]
    custom: Mapping[str, str] = field(default_factory=dict)
    storage: str = "mcap"

    @property
    def samples(self) -> int:
        """Number of telemetry messages."""
        found = (topic for topic in self.topics if topic.name.endswith(TELEMETRY_TOPIC))
        return sum(topic.messages for topic in found)

    def write(self, folder: Path) -> None:
        """Replace metadata.yaml in one step.

        OSError: the disk fails; RecordingError: the name of a file is not text.
        """
        for file in self.files:
            if not file.name.isprintable():
                raise RecordingError(folder, f"has a file {file.name!a}", "rename it")
        start = min((file.start for file in self.files if file.messages), default=0)
        end = max((file.end for file in self.files if file.messages), default=0)
        content = {
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
        text = yaml.dump(
            {ROOT: content},
            Dumper=DUMPER,
            sort_keys=False,
            allow_unicode=True,
            width=1000,
        )
        with new_file(folder / FILE_NAME) as out:
            out.write(text)


def read_metadata(folder: Path) -> BagMetadata:
    """Read metadata.yaml of a bag, version 1 to 9; unknown keys are ignored.

    RecordingError: missing, malformed, too large, or with file names outside the bag.
    """
    tree = YamlTree.read(folder / FILE_NAME, RecordingError, _REMEDY, LIMITS)
    root = Record(Record(tree)[ROOT])
    files: dict[str, FileEntry] = {}
    for item in root["relative_file_paths"].items():
        path = PurePath(item.written())  # old bags put a folder in front of the name
        name = path.name
        if path.is_absolute() or ".." in path.parts or not name or "\0" in name:
            raise item.refuse(f"file name '{excerpt(str(path))}' leads out of the bag")
        if len(name.encode(errors="surrogatepass")) > LONGEST_FILE_NAME:
            raise item.refuse(
                f"file name '{excerpt(name)}' is longer than a file's can be"
            )
        if name in files:  # a bag is read as long as its files are
            raise item.refuse(f"file '{excerpt(name)}' occurs twice")
        files[name] = FileEntry(name, 0, 0, 0)
    _check_compression(root)
    entries = root.get("files")
    for name, item in zip(
        files, [] if entries is None else entries.items(), strict=False
    ):
        entry = Record(item)
        start = _nanoseconds(entry.get("starting_time"), "nanoseconds_since_epoch")
        length = _nanoseconds(entry.get("duration"), "nanoseconds")
        count = entry.read("message_count", _COUNT, 0)
        files[name] = FileEntry(name, start, start + length, count)
    topics = []
    for item in root["topics_with_message_count"].items():
        entry = Record(item)
        about = Record(entry["topic_metadata"])
        qos = about.get("offered_qos_profiles")
        if qos is None or qos.is_scalar:  # before version 9 the profiles are a text
            latched = qos is not None and is_latched(qos.written())
        else:
            found = [Record(profile).get("durability") for profile in qos.items()]
            latched = any(
                each is not None and each.written() == LATCHED for each in found
            )
        digest = about.read("type_description_hash", YamlTree.written, "")
        count = _COUNT(entry["message_count"])
        kind = about["name"].written(), about["type"].written()
        topics.append(TopicEntry(*kind, digest, count, latched))
    custom = root.get("custom_data")
    # This package writes scalars only; other values are of another writer.
    own = {
        key: child.written()
        for key, child in ({} if custom is None else custom.mapping()).items()
        if child.is_scalar
    }
    return BagMetadata(
        [*files.values()], topics, own, root["storage_identifier"].written()
    )


def _check_compression(root: Record) -> None:
    """Refuse compressions of whole files and of messages that are not read.

    rosbag2 writes FILE and MESSAGE, other writers the same in lower case, and `storage`
    for chunks.
    """
    mode = root.read("compression_mode", YamlTree.written, "")
    if mode.lower() in _NO_COMPRESSION:
        return
    if mode.lower() not in _COMPRESSIONS:
        raise root["compression_mode"].refuse(f"'{excerpt(mode)}' is not supported")
    name = root.read("compression_format", YamlTree.written, "")
    if name.lower() not in ("", "zstd"):
        problem = (
            f"'{excerpt(name)}' is not supported; convert the bag to zstd, or unpack it"
        )
        raise root["compression_format"].refuse(problem)


def _nanoseconds(tree: YamlTree | None, key: str) -> int:
    return 0 if tree is None else Record(tree).read(key, _TIME, 0)


def is_latched(text: str) -> bool:
    """Whether profiles as they are stored with a channel, of any version, are latched."""
    return _LATCHED_TEXT.search(text) is not None


# Provenance of a recording as the key-value pairs (custom data) of a bag, and back.

RECORD_NAME = "ur_energy_model"
GAP_RECORD_NAME = "ur_energy_model.gap"
PROGRAM_RECORD_NAME = "ur_energy_model.program"
"""Of an index in the file, and the name of the program from that sample on."""
HOST = "host"  # key of the computer that wrote a bag
BUDGET = "budget_path"
"""Key of the path at which a bag counts for the budget of its folder; others are never deleted."""
REMOVED = "removed_samples"
"""Key of the number of samples whose files were deleted for that budget."""
MAX_GAPS_AS_TEXT = 1000
"""Most gaps in metadata.yaml, which is for people; all are in the storage files."""
_NAMES = {
    "namespace": re.compile(r"(?!.{256})(?:/[A-Za-z_][A-Za-z0-9_]*)*"),
    "tf_prefix": re.compile(r".{0,255}"),
}
_NUMBERS = ("rate", "gravity", "payload_mass", "payload_center_of_mass", "simulated")
"""Keys whose values are JSON."""
_TEXTS = ("robot", "serial", "controller_version", "program")


def custom_of_info(
    info: RecordingInfo, fields: Sequence[str], *, host_clock: bool
) -> dict[str, str]:
    """Provenance of a recording as key-value pairs; what is unknown is left out.

    Args:
        info: robot and recording.
        fields: RTDE names in the bag.
        host_clock: whether stamps are those of the host's clock, and not the
            controller's.

    Returns:
        Texts; values that are no text are JSON.
    """
    entries: dict[str, Any] = {
        **{
            key: value
            for key, value in asdict(info).items()
            if value not in (None, "", {})
        },
        "fields": ",".join(fields),
        "recorded_from": info.source,
        "stamps": "host" if host_clock else "controller",
        "package_version": __version__,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in entries.items()
        if key not in ("source", "removed")
    }


def info_of_custom(custom: Mapping[str, str], source: str) -> RecordingInfo:
    """Provenance of a recording; what is missing is unknown. RecordingError: a malformed value.

    An implausible payload or gravity is unknown too: a controller may be configured
    wrongly, and the samples are good all the same.
    """
    try:
        own = {key: json.loads(custom[key]) for key in _NUMBERS if key in custom}
        rate = own.get("rate")
        mass = float(own.get("payload_mass", math.nan))
        if rate is not None and not 0.0 < (rate := float(rate)) <= 1e5:
            raise ValueError(f"rate {rate:g}")
        extra = json.loads(custom.get("extra", "{}"))
        return RecordingInfo(
            source=source,
            rate=rate,
            gravity=_vector(own.get("gravity"), GRAVITY.low, GRAVITY.high),
            payload_mass=mass if -1e-9 <= mass <= 3e3 else None,
            payload_center_of_mass=_vector(own.get("payload_center_of_mass"), 0.0, 10.0),
            simulated=own.get("simulated") is True,
            removed=removed_samples(custom),
            extra={str(key): str(value) for key, value in extra.items()},
            **{key: custom[key] for key in _TEXTS if key in custom},
            **{key: name_of_custom(custom, key) for key in _NAMES},
        )
    except (
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        problem = f"its recording information is malformed ({excerpt(str(error))})"
        raise RecordingError(
            source, problem, "record again, or import the CSV again"
        ) from None


def _vector(value: Any, low: float, high: float) -> tuple[float, float, float] | None:
    """A vector, None if it is missing or its length is out of range."""
    if value is None:
        return None
    x, y, z = map(float, value)
    return (x, y, z) if low <= math.hypot(x, y, z) <= high else None


def name_of_custom(custom: Mapping[str, str], key: str) -> str:
    """The `namespace` or `tf_prefix` of a recording.

    Args:
        custom: key-value pairs of the bag.
        key: one of the two.

    Returns:
        The name; "" where it is missing, or is none that ROS accepts.
    """
    name = custom.get(key, "")
    return name if _NAMES[key].fullmatch(name) else ""


def removed_samples(custom: Mapping[str, str]) -> int:
    """Number of samples that were deleted for a budget; 0 where it is missing or malformed."""
    text = custom.get(REMOVED, "")
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else 0


Note: TypeAlias = Gap | str | None
"""What belongs to a sample: the gap in front of it, or the program that was loaded from it on."""


def custom_of_note(index: int, note: Note) -> tuple[str, dict[str, str]]:
    """A note as the metadata record of a file.

    Args:
        index: of the note's sample among those that the file was recorded with.
        note: gap, or name of a program.

    Returns:
        Name and key-value pairs of the record.
    """
    if not isinstance(note, Gap):
        return PROGRAM_RECORD_NAME, {"index": str(index), "name": note or ""}
    values = asdict(replace(note, index=index)).items()
    texts = {key: value if key == "cause" else json.dumps(value) for key, value in values}
    return GAP_RECORD_NAME, texts


def notes_of_custom(name: str, custom: Mapping[str, str]) -> list[tuple[int, Note]]:
    """The note in a metadata record of a file, with the index of its sample in the file.

    Args:
        name: of the record.
        custom: its key-value pairs.

    Returns:
        One index and note; empty if the record is another one, or malformed.
    """
    try:
        if name == PROGRAM_RECORD_NAME:
            return [(int(custom["index"]), custom["name"] or None)]
        if name == GAP_RECORD_NAME:
            texts = custom.items()
            values = {
                key: text if key == "cause" else json.loads(text) for key, text in texts
            }
            gap = built(Gap, values)
            return [(gap.index, gap)]
    except (KeyError, ValueError, OverflowError, RecursionError):
        pass
    return []


def gaps_to_text(gaps: Sequence[Gap]) -> str:
    """The first gaps as JSON."""
    return json.dumps([asdict(gap) for gap in gaps[:MAX_GAPS_AS_TEXT]])


# Hash of a bag, by which its provenance names it.

_PIECE = 1 << 20


def bag_hash(path: Path) -> str:
    """SHA-256 over a bag's files, in the order of their names, by which provenance names it.

    Args:
        path: of the bag, or of one of its files.

    Returns:
        64 hexadecimal digits.

    Raises:
        OSError: a file cannot be read.
    """
    total = hashlib.sha256()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            with open_regular(file) as stream:
                for piece in iter(lambda: stream.read(_PIECE), b""):
                    total.update(piece)
    return total.hexdigest()
