"""ChunkUnpacker: unpacks the chunks of an MCAP file in bounded memory and time."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import zstandard

from ur_energy_model.errors import RecordingError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.telemetry.bag.mcap_format import RECOVER

MAX_CHUNK = 64 << 20
"""Largest unpacked size of a chunk; writers make chunks of 1 to 8 MB."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of a file (that of an arm at rest is below 50)."""
_FREE = 512 << 20
"""Unpacked size up to which the ratio of a small file does not matter."""
_HEAD = struct.Struct("<3QI")


class ChunkUnpacker:
    """Unpacks the chunks of one file.

    Args:
        path: of the file, for error messages.
        size: of the file in bytes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._left = max(_FREE, MAX_RATIO * size)

    @property
    def exhausted(self) -> bool:
        """Whether chunks unpacked to more than any recording does."""
        return self._left < 0

    def unpack(self, content: bytes) -> bytes:
        """Records of a chunk, at most MAX_CHUNK bytes.

        Raises:
            RecordingError: damaged, too large, or with an unknown compression; the file is small
                and unpacks to far more than a recording.
        """
        size, checksum, compression, packed = self._parts(content)
        if size > MAX_CHUNK:
            raise RecordingError(
                self._path,
                f"has a chunk of {size} bytes, the limit is {MAX_CHUNK}",
                "convert the bag to smaller chunks",
            )
        self._left -= size
        if self.exhausted:
            raise RecordingError(
                self._path,
                f"unpacks to more than {MAX_RATIO} times its size, which no recording does",
                "use a bag from a source you trust",
            )
        body = self._decompressed(packed, compression, size)
        if len(body) != size or (checksum and zlib.crc32(body) != checksum):
            raise RecordingError(self._path, "has a chunk whose checksum is wrong", RECOVER)
        return body

    def _parts(self, content: bytes) -> tuple[int, int, str, memoryview]:
        """Unpacked size, checksum, name of the compression, and packed records."""
        view = memoryview(content)
        try:
            _, _, size, checksum = _HEAD.unpack_from(view)
            (length,) = struct.unpack_from("<I", view, _HEAD.size)
            start = _HEAD.size + 4 + length
            compression = bytes(view[_HEAD.size + 4 : start]).decode()
            (packed,) = struct.unpack_from("<Q", view, start)
        except (struct.error, UnicodeDecodeError):
            raise RecordingError(self._path, "has a malformed chunk", RECOVER) from None
        return size, checksum, compression, view[start + 8 : start + 8 + packed]

    def _decompressed(self, packed: memoryview, compression: str, size: int) -> bytes:
        """At most one byte more than `size`."""
        if compression == "":
            return bytes(packed)
        try:
            if compression == "zstd":
                unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_CHUNK)
                if zstandard.frame_content_size(packed) == size:
                    return unpacker.decompress(packed, max_output_size=size)
                with unpacker.stream_reader(packed) as reader:
                    return reader.read(size + 1)
            if compression == "lz4":
                with needed_here():
                    import lz4.frame  # type: ignore[import-untyped]

                data: bytes = lz4.frame.LZ4FrameDecompressor().decompress(packed, size + 1)
                return data
        except (zstandard.ZstdError, RuntimeError, MemoryError):
            problem = "has a chunk that cannot be unpacked"
            raise RecordingError(self._path, problem, RECOVER) from None
        raise RecordingError(
            self._path, f"has a chunk compressed by {compression[:20]!r}", "convert the bag to zstd"
        )
