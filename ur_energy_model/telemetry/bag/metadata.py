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
from ur_energy_model.ranges import GRAVITY, PAYLOAD_MASS
from ur_energy_model.telemetry.bag.mcap_format import Summary
from ur_energy_model.telemetry.bag.messages import (
    LATCHED,
    TELEMETRY_TOPIC,
    BagTopic,
    offered_qos_profiles,
)
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.yaml_nodes import DUMPER, ReadingLimits, excerpt
from ur_energy_model.yaml_reader import Record, YamlTree, integer

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
        name: name of the file in the folder of the bag.
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

    @property
    def content(self) -> dict[str, Any]:
        """The entry as metadata.yaml has it."""
        return {
            "path": self.name,
            "starting_time": {"nanoseconds_since_epoch": self.start},
            "duration": {"nanoseconds": self.end - self.start},
            "message_count": self.messages,
        }


class TopicEntry(NamedTuple):
    """One topic in metadata.yaml.

    Attributes:
        name: name of the topic, with its namespace.
        type: type of the topic's messages.
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
        kind = topic.kind
        return cls(topic.name, kind.name, kind.digest, messages, topic.latched)

    @property
    def content(self) -> dict[str, Any]:
        """The entry as metadata.yaml has it."""
        about = {
            "name": self.name,
            "type": self.type,
            "serialization_format": "cdr",
            "offered_qos_profiles": offered_qos_profiles(self.latched),
            "type_description_hash": self.digest,
        }
        return {"topic_metadata": about, "message_count": self.messages}


@dataclass(frozen=True)
class BagMetadata:
    """Content of metadata.yaml, as rosbag2 (version 9) has it.

    Attributes:
        files: storage files, in order.
        topics: topics of the bag.
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

        Raises:
            OSError: the disk fails.
            RecordingError: the name of a file is not text.
        """
        for file in self.files:
            if not file.name.isprintable():
                raise RecordingError(folder, f"has a file {file.name!a}", "rename it")
        filled = [file for file in self.files if file.messages]
        start = min((file.start for file in filled), default=0)
        end = max((file.end for file in filled), default=0)
        content = {
            "version": 9,
            "storage_identifier": self.storage,
            "duration": {"nanoseconds": end - start},
            "starting_time": {"nanoseconds_since_epoch": start},
            "message_count": sum(file.messages for file in self.files),
            "topics_with_message_count": [topic.content for topic in self.topics],
            "compression_format": "",
            "compression_mode": "",
            "relative_file_paths": [file.name for file in self.files],
            "files": [file.content for file in self.files],
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

    Args:
        folder: the bag.

    Raises:
        RecordingError: metadata.yaml is missing, malformed or too large, or has file
            names outside the bag.
    """
    tree = YamlTree.read(folder / FILE_NAME, RecordingError, _REMEDY, LIMITS)
    root = Record(Record(tree)[ROOT])
    files = _read_files(root)
    _check_compression(root)
    topics = [_read_topic(item) for item in root["topics_with_message_count"].items()]
    own: dict[str, str] = {}
    custom = root.get("custom_data")
    if custom is not None:
        for key, child in custom.mapping().items():
            # This package writes scalars only; other values come from another writer.
            if child.is_scalar:
                own[key] = child.written()
    return BagMetadata(files, topics, own, root["storage_identifier"].written())


def _read_files(root: Record) -> list[FileEntry]:
    """Storage files of a bag; times and counts are 0 where the metadata have none."""
    names: dict[str, None] = {}
    for item in root["relative_file_paths"].items():
        path = PurePath(item.written())  # old bags put a folder in front of the name
        name = path.name
        if path.is_absolute() or ".." in path.parts or not name or "\0" in name:
            raise item.refuse(f"file name '{excerpt(str(path))}' leads out of the bag")
        if len(name.encode(errors="surrogatepass")) > LONGEST_FILE_NAME:
            problem = f"file name '{excerpt(name)}' is longer than a file's can be"
            raise item.refuse(problem)
        if name in names:  # its samples would be read twice
            raise item.refuse(f"file '{excerpt(name)}' occurs twice")
        names[name] = None
    files = {name: FileEntry(name, 0, 0, 0) for name in names}
    entries = root.get("files")
    if entries is not None:
        for name, item in zip(names, entries.items(), strict=False):
            entry = Record(item)
            start = _nanoseconds(entry.get("starting_time"), "nanoseconds_since_epoch")
            length = _nanoseconds(entry.get("duration"), "nanoseconds")
            count = entry.read("message_count", _COUNT, 0)
            files[name] = FileEntry(name, start, start + length, count)
    return list(files.values())


def _read_topic(tree: YamlTree) -> TopicEntry:
    """One topic of a bag."""
    entry = Record(tree)
    about = Record(entry["topic_metadata"])
    profiles = about.get("offered_qos_profiles")
    latched = False
    if profiles is not None and profiles.is_scalar:  # a text before version 9
        latched = is_latched(profiles.written())
    elif profiles is not None:
        for profile in profiles.items():
            durability = Record(profile).get("durability")
            if durability is not None and durability.written() == LATCHED:
                latched = True
    return TopicEntry(
        name=about["name"].written(),
        type=about["type"].written(),
        digest=about.read("type_description_hash", YamlTree.written, ""),
        messages=_COUNT(entry["message_count"]),
        latched=latched,
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
    """The time under a key of a mapping [ns]; 0 where either is missing."""
    return 0 if tree is None else Record(tree).read(key, _TIME, 0)


def is_latched(text: str) -> bool:
    """Whether late subscribers get the last message of a topic with this quality of service.

    Args:
        text: the profiles as they are stored with a channel, of any version.
    """
    return _LATCHED_TEXT.search(text) is not None


# Provenance of a recording as the key-value pairs (custom data) of a bag, and back.

RECORD_NAME = "ur_energy_model"
"""Name of the record of a file that states the provenance of its recording."""
GAP_RECORD_NAME = "ur_energy_model.gap"
"""Name of records that state a gap, with the index of the next sample in the file."""
PROGRAM_RECORD_NAME = "ur_energy_model.program"
"""Name of records that state the program which runs from a sample on, with the index of that
sample in the file."""
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
_NOT_STORED = ("source", "removed")
"""Attributes of RecordingInfo that belong to the place of a bag, and not to the recording."""
_HIGHEST_RATE = 1e5
"""Highest rate of samples [Hz]; the rates of all controllers are far below."""


def custom_of_info(
    info: RecordingInfo, fields: Sequence[str], *, host_clock: bool
) -> dict[str, str]:
    """Provenance of a recording as key-value pairs; what is unknown is left out.

    Args:
        info: robot and recording.
        fields: RTDE names in the bag.
        host_clock: whether stamps are times of the host's clock; else they are times of
            the controller's clock.

    Returns:
        Texts; values that are no text are JSON.
    """
    pairs: dict[str, str] = {}
    for key, value in asdict(info).items():
        if key in _NOT_STORED or value in (None, "", {}):
            continue
        pairs[key] = value if isinstance(value, str) else json.dumps(value)
    pairs["fields"] = ",".join(fields)
    pairs["recorded_from"] = info.source
    pairs["stamps"] = "host" if host_clock else "controller"
    pairs["package_version"] = __version__
    return pairs


def info_of_custom(custom: Mapping[str, str], source: str) -> RecordingInfo:
    """Provenance of a recording; what is missing is unknown.

    An implausible payload or gravity is unknown too: a controller may be configured
    wrongly, and the samples are good all the same.

    Args:
        custom: key-value pairs of a bag, see `custom_of_info`.
        source: name of the recording, for its info and for errors.

    Raises:
        RecordingError: a malformed value.
    """
    try:
        own = {key: json.loads(custom[key]) for key in _NUMBERS if key in custom}
        rate = None
        if own.get("rate") is not None:
            rate = float(own["rate"])
            if not 0.0 < rate <= _HIGHEST_RATE:
                raise ValueError(f"rate {rate:g}")
        mass = float(own.get("payload_mass", math.nan))
        is_plausible_mass = -1e-9 <= mass <= PAYLOAD_MASS.high
        extra = json.loads(custom.get("extra", "{}"))
        return RecordingInfo(
            source=source,
            rate=rate,
            gravity=_vector(own.get("gravity"), GRAVITY.low, GRAVITY.high),
            payload_mass=mass if is_plausible_mass else None,
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
        remedy = "record again, or import the CSV again"
        raise RecordingError(source, problem, remedy) from None


def _vector(value: Any, low: float, high: float) -> tuple[float, float, float] | None:
    """A vector of three numbers.

    Args:
        value: list of numbers; None if it is missing.
        low: least length that is plausible.
        high: largest length that is plausible.

    Returns:
        The vector; None if it is missing, or its length is not plausible.

    Raises:
        TypeError, ValueError: it is no list of three numbers.
    """
    if value is None:
        return None
    x, y, z = (float(each) for each in value)
    if not low <= math.hypot(x, y, z) <= high:
        return None
    return x, y, z


def name_of_custom(custom: Mapping[str, str], key: str) -> str:
    """The `namespace` or `tf_prefix` of a recording.

    Args:
        custom: key-value pairs of the bag.
        key: "namespace" or "tf_prefix".

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
"""What belongs to a sample: the gap before the sample, or the program loaded from the sample on."""


def custom_of_note(index: int, note: Note) -> tuple[str, dict[str, str]]:
    """A note as the metadata record of a file.

    Args:
        index: index of the note's sample among the samples that the file was recorded
            with.
        note: gap, or name of a program.

    Returns:
        Name and key-value pairs of the record.
    """
    if not isinstance(note, Gap):
        return PROGRAM_RECORD_NAME, {"index": str(index), "name": note or ""}
    texts: dict[str, str] = {}
    for key, value in asdict(replace(note, index=index)).items():
        texts[key] = value if key == "cause" else json.dumps(value)
    return GAP_RECORD_NAME, texts


def notes_of_custom(name: str, custom: Mapping[str, str]) -> list[tuple[int, Note]]:
    """The note in a metadata record of a file, with the index of its sample in the file.

    Args:
        name: name of the metadata record.
        custom: key-value pairs of the record.

    Returns:
        One pair of index and note; empty if the record is another one, or malformed.
    """
    try:
        if name == PROGRAM_RECORD_NAME:
            return [(int(custom["index"]), custom["name"] or None)]
        if name == GAP_RECORD_NAME:
            values: dict[str, Any] = {}
            for key, text in custom.items():
                values[key] = text if key == "cause" else json.loads(text)
            gap = built(Gap, values)
            return [(gap.index, gap)]
    except (KeyError, ValueError, OverflowError, RecursionError):
        pass
    return []


def gaps_to_text(gaps: Sequence[Gap]) -> str:
    """The first gaps as JSON, at most MAX_GAPS_AS_TEXT of them."""
    return json.dumps([asdict(gap) for gap in gaps[:MAX_GAPS_AS_TEXT]])


# Hash of a bag, by which the provenance of a model names the bag.

_PIECE = 1 << 20  # part of a file that is read at once [bytes]


def bag_hash(path: Path) -> str:
    """SHA-256 over the contents of a bag's files, in the order of their names.

    Args:
        path: path of the bag, or of one of its files.

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
                while piece := stream.read(_PIECE):
                    total.update(piece)
    return total.hexdigest()
