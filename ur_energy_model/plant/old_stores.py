# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stores of earlier versions: a JSON record per source in place of logs, and their files.

STORE/sources/<source>.json, STORE/writers/<source>.<day>.json    records, with names of files
STORE/<table>/day=<YYYY-MM-DD>/<arm>/<source>.parquet             rows (or arm=<arm>/day=<day>)
STORE/models/<model>-<robot>.parquet                              a row each
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.plant.schema import TABLES
from ur_energy_model.plant.sources import SourceRecord
from ur_energy_model.plant.store_files import (
    DAY_FOLDER,
    PLAIN,
    StoredFile,
    StoreFiles,
    json_of,
    own_path,
)

_FILES = [
    re.compile(rf"(?P<table>[a-z][a-z_]*)/{place}/(?P<source>{PLAIN})\.parquet")
    for place in (f"{DAY_FOLDER}/(?P<arm>{PLAIN})", f"arm=(?P<arm>{PLAIN})/{DAY_FOLDER}")
]
"""Paths with the day in front and, before that, with the arm."""
_RECORD = re.compile(rf"(?:sources|writers)/{PLAIN}\.json")
_MODEL = re.compile(r"models/[0-9a-z]+-[A-Za-z0-9_]+\.parquet")
_ADDED_LATER = ("settings",)  # to `SourceRecord`


class OldSource(NamedTuple):
    """A record of an earlier version: its path, what it states, and its files.

    The path is "" for the file of a model; `record` is None for that, and for a live
    writer.
    """

    name: str
    record: SourceRecord | None
    files: tuple[StoredFile, ...]

    @property
    def source(self) -> str:
        """Name of the source."""
        return Path(self.name).stem


def old_sources(files: StoreFiles) -> Iterator[OldSource]:
    """What an earlier version wrote; a record that is none, or not of its own files, is foreign."""
    there = [name for folder in ("sources", "writers") for name in files.listing(folder)]
    for name in filter(_RECORD.fullmatch, there):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            yield _old_source(name, json_of(files.read(name)))
    for name in filter(_MODEL.fullmatch, files.listing("models")):
        if own_path(name) is not None:  # such as joined-<crc>.parquet, of this version
            continue
        yield OldSource("", None, (StoredFile(name, sources=(name, name)),))


def _old_source(name: str, values: Any) -> OldSource:
    """From the content of a record; raises any of several errors if it is none."""
    source = Path(name).stem
    live = isinstance(values, list)
    named = values if live else values["files"]
    named = named if isinstance(named, dict) else {path: {} for path in named}
    files = []
    for path, known in named.items():
        found = next(filter(None, (old.fullmatch(path) for old in _FILES)), None)
        if not found or source.partition(".")[0] not in found["source"]:
            raise ValueError(path)
        if found["table"] not in TABLES or not date.fromisoformat(found["day"]):
            raise ValueError(path)
        files.append(
            StoredFile(
                path,
                size=known.get("size"),
                crc32=known.get("crc32"),
                day=found["day"],
                arm=found["arm"],
                sources=(found["source"], found["source"]),
            )
        )
    record = None
    if not live:
        stated = [
            each.name for each in fields(SourceRecord) if each.name not in _ADDED_LATER
        ]
        record = SourceRecord(**{each: values[each] for each in stated})
        if record.source != source:
            raise ValueError(source)
    return OldSource(name, record, tuple(files))
