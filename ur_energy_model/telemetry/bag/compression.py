# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compression of the chunks of MCAP files: which library packs them, and bounded unpacking.

Bags are packed by zstd. rosdep has no key of its Python package, so that a cell installed
by rosdep alone may lack it: bags are packed by lz4 there, and are not packed where that
is missing too. MCAP files state the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, BinaryIO

from ur_energy_model.errors import optional_import

MAX_CHUNK = 64 << 20
"""Largest chunk, packed or unpacked [bytes], and largest window of zstd; writers make 1 to 8 MB."""
_FASTEST_ZSTD = 1
"""Level of zstd: higher ones take more time and save little on telemetry."""


class UnpackingError(Exception):
    """Bytes that are not what the stated compression makes, or that unpack to another size."""


@dataclass(frozen=True)
class Packing:
    """Packing of the chunks of new files.

    Attributes:
        name: name of the compression in MCAP files; empty where chunks are not packed.
        pack: packs the body of a chunk.
        shortcoming: what is not installed, and what follows from that, as one line for
            users; None for zstd.
    """

    name: str
    pack: Callable[[bytes], bytes]
    shortcoming: str | None = None


def available_packing() -> Packing:
    """The best packing that is installed: zstd, else lz4, else none."""
    remedy = "sudo apt install python3-zstandard, or pip install zstandard"
    with suppress(ModuleNotFoundError):
        import zstandard

        return Packing("zstd", zstandard.ZstdCompressor(level=_FASTEST_ZSTD).compress)
    with suppress(ModuleNotFoundError):
        import lz4.frame  # type: ignore[import-untyped]

        larger = (
            f"zstandard is not installed: bags are packed by lz4 and larger; {remedy}"
        )
        return Packing("lz4", lz4.frame.compress, larger)
    return Packing(
        "", bytes, f"zstandard is not installed: bags are not packed; {remedy}"
    )


def unpacked(name: str, packed: bytes | memoryview, size: int) -> bytes:
    """The body of a chunk; never more than one byte beyond its stated size is made.

    Args:
        name: compression as the file states it: "zstd", "lz4" or "".
        packed: the packed body.
        size: stated size of the body [bytes], at most MAX_CHUNK.

    Raises:
        KeyError: another compression.
        UnpackingError: the bytes cannot be unpacked to a body of this size.
        MissingPackageError: the package of this compression is not installed.
    """
    body = _UNPACKERS[name](packed, size)
    if len(body) != size:
        raise UnpackingError
    return body


ZSTD_FRAME = b"\x28\xb5\x2f\xfd"
"""First bytes of what zstd packed."""
_FRAME_HEAD = 18  # largest header of a frame [bytes]
_PIECE = 1 << 20  # part of a file that is unpacked at once [bytes]


def unpacked_message(packed: bytes, largest: int) -> bytes:
    """A message that was packed on its own by zstd.

    Args:
        packed: begins with ZSTD_FRAME.
        largest: size of the largest possible message [bytes].

    Raises:
        UnpackingError: it cannot be unpacked, or is larger.
        MissingPackageError: zstandard is not installed.
    """
    with optional_import():
        import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
    try:
        with unpacker.stream_reader(packed) as reader:
            message = bytes(reader.read(largest + 1))
    except (zstandard.ZstdError, MemoryError):
        raise UnpackingError from None
    if len(message) > largest:
        raise UnpackingError
    return message


def unpack_zstd_file(source: BinaryIO, target: IO[bytes]) -> Iterator[int]:
    """Unpack a file, piece by piece; yields the size of each piece before it is written [bytes].

    Raises:
        UnpackingError: it cannot be unpacked, or ends too early.
        MissingPackageError: zstandard is not installed.
        OSError: a file cannot be read or written.
    """
    with optional_import():
        import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
    total = 0
    try:
        begin = source.read(_FRAME_HEAD)
        stated = zstandard.frame_content_size(begin)  # -1 if the frame does not state it
        source.seek(0)
        with unpacker.stream_reader(
            source, read_across_frames=True, closefd=False
        ) as reader:
            while piece := reader.read(_PIECE):
                total += len(piece)
                yield len(piece)
                target.write(piece)
    except (zstandard.ZstdError, MemoryError):
        raise UnpackingError from None
    if total < max(stated, 1):
        raise UnpackingError


def _from_zstd(packed: bytes | memoryview, size: int) -> bytes:
    """The body of a chunk packed by zstd, cut one byte beyond its stated size [bytes]."""
    with optional_import():
        import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
    try:
        if zstandard.frame_content_size(packed) == size:
            return bytes(unpacker.decompress(packed, max_output_size=size))
        # The frame does not state its size, or states another one than the chunk.
        with unpacker.stream_reader(packed) as reader:
            return bytes(reader.read(size + 1))
    except (zstandard.ZstdError, MemoryError):
        raise UnpackingError from None


def _from_lz4(packed: bytes | memoryview, size: int) -> bytes:
    """The body of a chunk packed by lz4, cut one byte beyond its stated size [bytes]."""
    with optional_import():
        import lz4.frame

    try:
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1))
    except (RuntimeError, MemoryError):
        raise UnpackingError from None


_UNPACKERS: dict[str, Callable[[bytes | memoryview, int], bytes]] = {
    "zstd": _from_zstd,
    "lz4": _from_lz4,
    "": lambda packed, size: bytes(packed[: size + 1]),
}
