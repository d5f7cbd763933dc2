"""Recovers bags after a crash, a power cut or damage: `ur_energy recover`, and the logger."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.file_contents import has_summary
from ur_energy_model.telemetry.bag.file_recovery import Salvage, SeenContent, rewrite
from ur_energy_model.telemetry.bag.file_state import is_written
from ur_energy_model.telemetry.bag.files import bag_files, file_number, in_order_of_time
from ur_energy_model.telemetry.bag.metadata import (
    FILE_NAME,
    BagMetadata,
    FileEntry,
    TopicEntry,
    is_latched,
    read_metadata,
)
from ur_energy_model.telemetry.bag.provenance import HOST, REMOVED, gaps_to_text
from ur_energy_model.telemetry.bag.retention import is_own_bag
from ur_energy_model.telemetry.samples import Gap


@dataclass(frozen=True)
class Recovery:
    """Result of a recovery.

    Attributes:
        samples: number of readable samples.
        files: number of files of the bag.
        problems: what was damaged, a line each.
    """

    samples: int
    files: int
    problems: tuple[str, ...]


def recover_bag(path: Path) -> Recovery:
    """Rebuild the files of a bag from what is intact in them, and its metadata.yaml.

    Each file is rewritten beside the old one and replaces it once it is complete.

    Args:
        path: rosbag2 directory, or a single .mcap file.

    Raises:
        RecordingError: no bag, still being recorded, nothing readable in it, or the disk fails.
    """
    files = [path] if path.is_file() else in_order_of_time(_files_of(path))
    if not files:
        bag_files(path)  # raises if the path is the problem
        raise RecordingError(path, "has no .mcap files", "name a bag that ur_energy recorded")
    if any(is_written(file) for file in files):
        raise RecordingError(path, "is still being recorded", "stop the recording first")
    salvages: list[tuple[Path, Salvage]] = []
    problems: list[str] = []
    seen = SeenContent()
    with suppress(RecordingError):
        seen.custom = read_metadata(path).custom
    try:
        for file in files:
            salvage = rewrite(file, seen)
            seen.custom = {**salvage.custom, **seen.custom}
            problems += [f"{file.name}: {problem}" for problem in salvage.problems]
            if salvage.samples or not salvage.damaged:
                salvages.append((file, salvage))
            else:
                problems.append(f"{file.name}: nothing in it is readable, it is left out")
        samples = sum(salvage.samples for _, salvage in salvages)
        if samples == 0:
            raise RecordingError(path, "holds no sample that could be read", "record again")
        if path.is_dir():
            problems += _rebuild_metadata(path, salvages, seen.custom)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(path, f"cannot be rewritten ({reason})", "check the disk") from None
    finally:
        seen.samples.close()
    return Recovery(samples, len(salvages), tuple(problems))


def bag_state(bag: Path) -> tuple[Literal["finished", "written", "killed", "unknown"], str]:
    """Whether a bag is finished, being written, or its recorder was killed; and its computer.

    This is unknown of a bag without end of another computer, or on a file system without locks.

    Raises:
        OSError: it cannot be read.
        RecordingError: its metadata cannot be read.
    """
    files = _files_of(bag)
    host = read_metadata(bag).custom.get(HOST)
    writer = "another computer" if host is None else f"computer {host}"
    written = {is_written(file) for file in files}
    if True in written:
        return "written", writer
    if all(map(has_summary, files)):
        return "finished", writer
    known = None not in written and host == socket.gethostname()
    return "killed" if known else "unknown", writer


def recover_killed(
    folder: Path, report: Callable[[str, bool], None], stopping: Callable[[], bool]
) -> None:
    """Recover the bags of a folder whose recorder was killed.

    Bags that are being written are left alone, and those of which this cannot be told: of another
    computer, or on a file system without locks.

    Args:
        folder: of bags.
        report: called with a line about each bag, and whether it needs attention.
        stopping: returns whether to end before the next bag.
    """
    for bag in sorted(folder.glob("*")):
        if stopping():
            return
        try:
            if not is_own_bag(bag):
                continue
            state, writer = bag_state(bag)
            if state in ("finished", "written"):
                continue
            if state == "unknown":
                text = f"{bag} was not finished, and {writer} may still write it"
                report(f"{text}; if not, complete it with 'ur_energy recover'", True)
                continue
            recovery = recover_bag(bag)
        except RecordingError as error:
            report(f"{bag} was not finished, and cannot be completed: {error.problem}", True)
        except OSError:
            continue  # it was removed meanwhile
        else:
            report(f"{bag} was not finished; {recovery.samples} samples are recovered", False)


def _files_of(folder: Path) -> list[Path]:
    """Files of a bag in the order of its metadata, by number where that does not list all."""
    files = sorted(folder.glob("*.mcap"), key=file_number)
    with suppress(RecordingError):
        listed = [folder / entry.name for entry in read_metadata(folder).files]
        if set(listed) == set(files):
            return listed
    return files


def _rebuild_metadata(
    folder: Path, salvages: list[tuple[Path, Salvage]], known_custom: Mapping[str, str]
) -> list[str]:
    """Write metadata.yaml; returns the problems of the old one."""
    entries: list[FileEntry] = []
    counts: dict[str, int] = {}
    known: dict[str, TopicEntry] = {}
    gaps: list[Gap] = []
    custom = {key: value for key, value in known_custom.items() if key == REMOVED}
    first = 0
    for file, salvage in salvages:
        summary = salvage.summary
        entries.append(FileEntry.of_summary(file.name, summary))
        schemas = {schema.id: schema.name for schema in summary.schemas}
        for channel in summary.channels:
            counts[channel.topic] = counts.get(channel.topic, 0) + summary.counts[channel.id]
            known[channel.topic] = TopicEntry(
                channel.topic,
                schemas.get(channel.schema_id, ""),
                channel.metadata.get("topic_type_hash", ""),
                counts[channel.topic],
                is_latched(channel.metadata.get("offered_qos_profiles", "")),
            )
        gaps += [replace(gap, index=gap.index + first) for gap in salvage.gaps]
        custom = {**salvage.custom, **custom}
        first += salvage.samples
    problems = _faults_of_old_metadata(folder, first)
    custom["gaps"] = gaps_to_text(gaps)
    BagMetadata(entries, list(known.values()), custom).write(folder)
    return problems


def _faults_of_old_metadata(folder: Path, samples: int) -> list[str]:
    if not (folder / FILE_NAME).exists():
        return [f"{FILE_NAME} was missing"]
    try:
        counted = read_metadata(folder).samples
    except RecordingError:
        return [f"{FILE_NAME} was not readable"]
    if counted > samples:
        return [f"{counted - samples} of the {counted} samples that {FILE_NAME} counts are lost"]
    return []
