"""McapDefinitions: schemas, channels and metadata of an MCAP file, in bounded memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.mcap_format import RECOVER, Channel, Op, Schema

DEFINITIONS = frozenset({Op.SCHEMA, Op.CHANNEL, Op.METADATA, Op.HEADER})
"""Records that `McapDefinitions` keeps; others are only counted."""
MAX_DEFINITION = 4 << 20
"""Largest schema, channel or metadata record in bytes."""
MAX_DEFINITIONS = 32 << 20
"""Largest size of all schemas and channels of a file, and of metadata that waits, in bytes."""
MAX_RECORDS = 1_000_000
"""Most records of a file that are neither messages nor chunks nor indexes."""


@dataclass
class McapDefinitions:
    """What a file states about its messages, as far as it was read.

    Attributes:
        path: of the file.
        schemas, channels: by number.
        library: the software that wrote the file.
    """

    path: Path
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    library: str = ""
    _sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    _size: int = 0
    _records: int = 0
    _metadata: list[bytes] = field(default_factory=list)
    _waiting: int = 0

    def note(self, op: int, content: bytes) -> None:
        """Keep a schema, channel, metadata or header record; others are only counted.

        Raises:
            RecordingError: a malformed record, or more than a recording has.
        """
        self._records += 1
        if self._records > MAX_RECORDS:
            raise self.refuse(f"has more than {MAX_RECORDS} records that are no messages")
        if op not in DEFINITIONS:
            return
        if len(content) > MAX_DEFINITION:
            raise self.refuse(f"has a record (type {op}) of {len(content)} bytes")
        try:
            self._keep(op, content)
        except (struct.error, UnicodeDecodeError):
            raise self.refuse(f"has a malformed record (type {op})") from None

    def take_metadata(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Named key-value pairs read since the last call, in order.

        Raises:
            RecordingError: a malformed record.
        """
        taken, self._metadata, self._waiting = self._metadata, [], 0
        try:
            for stream in map(BytesIO, taken):
                yield _text(stream), _map(stream)
        except (struct.error, UnicodeDecodeError):
            raise self.refuse(f"has a malformed record (type {Op.METADATA:d})") from None

    def refuse(self, problem: str, remedy: str = RECOVER) -> RecordingError:
        """Error that names the file."""
        return RecordingError(self.path, problem, remedy)

    def _keep(self, op: int, content: bytes) -> None:
        stream = BytesIO(content)
        if op == Op.HEADER:
            _text(stream)
            self.library = _text(stream)
        elif op == Op.METADATA:
            self._waiting += len(content)
            if self._waiting > MAX_DEFINITIONS:
                raise self.refuse(f"has more than {MAX_DEFINITIONS} bytes of metadata in one place")
            self._metadata.append(content)
        elif op == Op.SCHEMA:
            number = _number(stream, "<H")
            schema = Schema(number, _text(stream), _text(stream), _bytes(stream))
            self._count(op, number, len(content))
            self.schemas[number] = schema
        else:
            number, schema_id = _number(stream, "<H"), _number(stream, "<H")
            channel = Channel(number, schema_id, _text(stream), _text(stream), _map(stream))
            self._count(op, number, len(content))
            self.channels[number] = channel

    def _count(self, op: int, number: int, size: int) -> None:
        """Count the bytes of a definition, which replaces one of the same number."""
        total = self._size + size - self._sizes.get((op, number), 0)
        if total > MAX_DEFINITIONS:
            raise self.refuse(f"has more than {MAX_DEFINITIONS} bytes of schemas and channels")
        self._size, self._sizes[op, number] = total, size


def _number(stream: BinaryIO, code: str) -> int:
    return int(struct.unpack(code, stream.read(struct.calcsize(code)))[0])


def _text(stream: BinaryIO) -> str:
    return _bytes(stream).decode()


def _bytes(stream: BinaryIO) -> bytes:
    size = _number(stream, "<I")
    data = stream.read(size)
    if len(data) != size:
        raise struct.error
    return data


def _map(stream: BinaryIO) -> dict[str, str]:
    end = _number(stream, "<I") + stream.tell()
    values = {}
    while stream.tell() < end:
        key = _text(stream)
        values[key] = _text(stream)
    return values
