# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files that a user may be handed: damage, bombs, nonsense numbers and shifted columns."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import zstandard
from mcap.opcode import Opcode
from mcap.records import Channel, Metadata, Schema

from test.model.made_up import with_tensors
from test.telemetry.bag.bag_files import chunk_record, record, text
from ur_energy_model.files import config_file
from ur_energy_model.model.capsules import load_shape
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.mcap_format import MAGIC
from ur_energy_model.telemetry.bag.mcap_format import packed as file_records
from ur_energy_model.telemetry.bag.metadata import GAP_RECORD_NAME
from ur_energy_model.trajectory.fourier import load_trajectory

READERS: dict[str, Callable[[Path], Any]] = {
    "robot": load_robot,
    "seven": load_robot,
    "model": load_model,
    "trajectory": load_trajectory,
    "geometry": lambda path: load_shape(path, "ur5e"),
}
"""Of the YAML files that people edit."""
SHIPPED = {
    "robot": "robots/ur5e.yaml",
    "seven": "robots/gen3.yaml",
    "trajectory": "excitation/ur5e.yaml",
    "geometry": "geometry/ur5e.yaml",
}
NUMBERS = (
    "nan", ".nan", ".inf", "-1", "0", "1e300", "1e999", "null", "true", "[]", "{}", "'1'", "1:30",
    "9" * 400, "!!python/object:os.system x", "*a", "\\x1b[2J",
)  # fmt: skip
HEADER = [
    "timestamp",
    *(f"{name}_{i}" for name in ("actual_q", "actual_qd") for i in range(6)),
]


@cache
def valid(kind: str) -> str:
    """Text of a valid file."""
    if kind != "model":
        return config_file(*SHIPPED[kind].split("/")).read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        save_model(with_tensors(), Path(folder) / "model.yaml")
        return (Path(folder) / "model.yaml").read_text(encoding="utf-8")


def damaged(data: bytes, random: Random) -> bytes:
    """At least two bytes with damage that depends on the random numbers alone; never unchanged."""
    for _ in range(100):
        first, second = sorted(random.sample(range(len(data) + 1), 2))
        if random.random() < 0.7:  # most damage is small
            second = min(second, first + random.choice((1, 8, 64, 4096)))
        head = data[:first]
        part = data[first:second]
        tail = data[second:]
        middle = random.randint(0, len(part))
        flipped = bytearray(data)
        for _ in range(random.choice((1, 1, 5, 50))):
            flipped[random.randrange(len(data))] ^= 1 << random.randrange(8)
        changed = random.choice((
            bytes(flipped),
            head,
            head + tail,
            head + part + part + tail,
            head + part[middle:] + part[:middle] + tail,
            head + random.randbytes(len(part)) + tail,
        ))  # fmt: skip
        if changed != data:
            return changed
    return data[:-1]  # such as a swap in equal bytes


def alias_bomb(levels: int = 9, width: int = 9) -> str:
    """YAML that expands to width ** levels items."""
    lines = (
        f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * width)}]" for k in range(1, levels)
    )
    return "\n".join([f"a0: &a0 [{', '.join(['x'] * width)}]", *lines]) + "\n"


def inline_bomb(levels: int = 9, width: int = 9) -> str:
    """The same as a value, which may stand for any other one."""
    value = f"&b0 [{', '.join(['x'] * width)}]"
    for k in range(1, levels):
        value = f"&b{k} [{value}, {', '.join([f'*b{k - 1}'] * (width - 1))}]"
    return value


def _changed(kind: str, random: Random) -> str:
    """A valid file with one number or key replaced."""
    source = valid(kind)
    number_or_key = r"(?<=[\[ ])-?\d[\d.e-]*|[A-Za-z_]\w*(?=:)"
    place = random.choice(list(re.finditer(number_or_key, source)))
    value = inline_bomb() if random.random() < 0.2 else random.choice(NUMBERS)
    return source[: place.start()] + value + source[place.end() :]


def yaml_file(folder: Path, random: Random) -> tuple[str, Path]:
    """A robot, model or trajectory file: a bomb, junk, or one wrong value."""
    kind = random.choice(("robot", "model", "trajectory"))
    make: list[Callable[[], str | bytes]] = [
        alias_bomb,
        lambda: valid(kind) + alias_bomb(),
        lambda: "a: " + "[" * random.choice((100, 5000, 100_000)),
        lambda: "a: " + "9" * 200_000,
        lambda: "".join(f"k{i}: 1\n" for i in range(200_000)),
        lambda: random.randbytes(2000),
        lambda: "a: '" + "x" * 3_000_000,
        *[lambda: _changed(kind, random)] * 8,
    ]
    content = random.choice(make)()
    path = folder / "file.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return kind, path


def _rows() -> list[str]:
    """Header and 200 rows whose columns hold known values."""
    values = [f"{0.1 * j:.2f}" for j in range(len(HEADER) - 1)]
    return [
        ",".join(HEADER),
        *(",".join([f"{100 + i / 500:.3f}", *values]) for i in range(200)),
    ]


def csv_file(folder: Path, random: Random) -> tuple[str, Path]:
    """A CSV recording: a gzip bomb, giant cells, nonsense numbers, or binary junk."""
    lines = [f"{line}\n" for line in _rows()]
    table = "".join(lines)
    place = random.randrange(1, len(lines))
    cells = lines[place].rstrip("\n").split(",")
    cells[random.randrange(len(cells))] = random.choice(NUMBERS)
    make: list[Callable[[], bytes]] = [
        lambda: _bomb(random.choice((b"\0", b"1", b"1,", b"\n", table.encode()))),
        lambda: table.encode()[: random.randrange(len(table))],
        lambda: (lines[0] + "1" * 5_000_000).encode(),
        lambda: (",".join(["x"] * 300_000) + "\n" + "1," * 300_000).encode(),
        lambda: "".join(
            [*lines[:place], ",".join(cells) + "\n", *lines[place + 1 :]]
        ).encode(),
        lambda: (lines[0] + "".join(random.sample(lines[1:], len(lines) - 1))).encode(),
        lambda: table.replace("\n", "\x1b[2J\n").encode(),
    ]
    content = random.choice(make)()
    path = folder / ("file.csv.gz" if content[:2] == b"\x1f\x8b" else "file.csv")
    path.write_bytes(content)
    return "csv", path


def shifted_csv(folder: Path, random: Random) -> tuple[str, Path]:
    """A table whose columns hold known values, with other cells in one row, some or all."""
    lines = _rows()
    share = random.choice((0.0, 0.5, 1.0))
    chosen = {random.randrange(1, len(lines))}
    chosen |= {i for i in range(1, len(lines)) if random.random() < share}
    column = random.randrange(1, len(HEADER))
    kind = random.randrange(4)
    for place in chosen:
        cells = lines[place].split(",")
        cell = cells[column]
        # A cell more, a cell less, a decimal comma, or two cells more.
        middle = ([cell, "0.77"], [], [cell.replace(".", ",")], ["", "0.77", cell])[kind]
        lines[place] = ",".join([*cells[:column], *middle, *cells[column + 1 :]])
    path = folder / "file.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "table", path


def _bomb(pattern: bytes) -> bytes:
    """A gzip file that unpacks to 300 MB of a pattern."""
    packed = io.BytesIO()
    block = pattern * (1 + (1 << 20) // len(pattern))
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(300):
            file.write(block)
    return packed.getvalue()


SMALL = record(Opcode.MESSAGE, bytes(22))
LABELS = {"k": "v" * 100}
MARK = struct.pack("<BQ", Opcode.CHUNK, 60 << 20) + bytes(28) + b"\x04\0\0\0zstd"
GAP = {"index": "3", "start": "1.5", "end": "2.5", "missing": "4", "cause": "x"}


def packed(body: bytes, times: int = 1) -> bytes:
    """Chunks of these records."""
    return chunk_record(len(body), zstandard.ZstdCompressor().compress(body)) * times


def _many(count: int, make: Callable[[int], bytes]) -> Callable[[], bytes]:
    return lambda: b"".join(map(make, range(count)))


def _unsized(size: int) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(bytes(size))


MCAP_BOMBS: dict[str, Callable[[], bytes]] = {
    "gaps": lambda: file_records([Metadata(GAP_RECORD_NAME, GAP)]) * 10_000,
    "schemas": _many(20_000, lambda i: file_records([Schema(i, b"c" * 1000, "b", "a")])),
    "channels": _many(
        20_000, lambda i: file_records([Channel(i, "a" * 900, "b", LABELS, 1)])
    ),
    "metadata": lambda: file_records([Metadata("m", {})]) * 510_000,
    "a large message": lambda: record(Opcode.MESSAGE, bytes(150 << 20)),
    "a large chunk": lambda: packed(SMALL * 3_000_000),
    "chunks that unpack to gigabytes": lambda: packed(bytes(60 << 20), 100),
    "a chunk larger than it says": lambda: chunk_record(1000, _unsized(200 << 20)),
    "empty chunks": lambda: chunk_record(0, b"", "") * 20_000,
    "marks of chunks": lambda: b"\xff" + MARK * 200_000,
    "wrong checksums": lambda: (
        b"\xff" + chunk_record(1 << 20, packed(bytes(1 << 20))) * 500
    ),
}


def mcap_file(folder: Path, random: Random) -> tuple[str, Path]:
    """An MCAP file of countless or lying records."""
    header = MAGIC + record(Opcode.HEADER, text("ros2") + text("x"))
    lying = struct.pack(
        "<BQ", random.choice([int(op) for op in Opcode]), 1 << random.randint(20, 62)
    )
    make: list[Callable[[], bytes]] = [
        *MCAP_BOMBS.values(),
        lambda: lying + bytes(100),
        lambda: random.randbytes(3000),
        lambda: record(Opcode.METADATA, text("m") + struct.pack("<I", 0xFFFFFFFF)),
    ]
    path = folder / "file.mcap"
    path.write_bytes(header + random.choice(make)())
    return random.choice(("bag", "events", "recover")), path


MAKERS = (yaml_file, csv_file, shifted_csv, mcap_file)
"""Of one hostile file, with the kind as which it is to be read."""


def bag_of_bomb(folder: Path, random: Random, healthy: Path) -> tuple[str, Path]:
    """A healthy bag with hostile metadata.yaml."""
    bag = folder / "bag"
    shutil.copytree(healthy, bag)
    metadata = bag / "metadata.yaml"
    known = metadata.read_text(encoding="utf-8")
    metadata.write_text(
        random.choice((
            alias_bomb(),
            known + alias_bomb(),
            re.sub(r"(?<=: )[\w'.]+$", inline_bomb(), known, count=1, flags=re.MULTILINE),
            re.sub(r"bag_0\.mcap", inline_bomb(), known, count=1),
            "a: " + "[" * 20_000,
            known.replace("bag_0.mcap", "bag_0.mcap\x1b[2J"),
            known.replace("message_count: ", "message_count: -"),
            known + "x" * 3_000_000,
        )),
        encoding="utf-8",
    )  # fmt: skip
    return random.choice(("bag", "recover", "events")), bag
