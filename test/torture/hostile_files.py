"""Files that a user may be handed: bombs, nonsense numbers and shifted columns."""

from __future__ import annotations

import gzip
import io
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

from test.telemetry.bag.bag_files import record, text
from test.test_hostile_files import valid
from ur_energy_model.telemetry.bag.mcap_format import MAGIC, Op

NUMBERS = (
    "nan", ".nan", ".inf", "-1", "0", "1e300", "1e999", "null", "true", "[]", "{}", "'1'", "1:30",
    "9" * 400, "!!python/object:os.system x", "*a", "\\x1b[2J",
)  # fmt: skip
HEADER = ["timestamp", *(f"{name}_{i}" for name in ("actual_q", "actual_qd") for i in range(6))]


def alias_bomb(levels: int = 9, width: int = 9) -> str:
    """YAML that expands to width ** levels items."""
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * width)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines) + "\n"


def inline_bomb(levels: int = 9, width: int = 9) -> str:
    """A YAML value that expands to width ** levels items; it may stand for any other value."""
    value = f"&b0 [{', '.join(['x'] * width)}]"
    for level in range(1, levels):
        aliases = ", ".join([f"*b{level - 1}"] * (width - 1))
        value = f"&b{level} [{value}, {aliases}]"
    return value


def merge_bomb(levels: int = 24) -> str:
    """YAML whose mappings each merge the one before twice."""
    lines = ["m0: &m0 {x: 1}"]
    lines += [f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], k{i}: 1}}" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


def deep(size: int) -> str:
    """YAML nested this deeply."""
    return "a: " + "[" * size + "]" * size + "\n"


def _changed(kind: str, random: Random) -> str:
    """A valid file with one number or key replaced."""
    source = valid(kind)
    places = list(re.finditer(r"(?<=[\[ ])-?\d[\d.e-]*|[A-Za-z_]\w*(?=:)", source))
    place = random.choice(places)
    value = inline_bomb() if random.random() < 0.2 else random.choice(NUMBERS)
    return source[: place.start()] + value + source[place.end() :]


def yaml_file(folder: Path, random: Random) -> tuple[str, Path]:
    """A robot, model or trajectory file: a bomb, junk, or one wrong value."""
    kind = random.choice(("robot", "model", "trajectory"))
    make: list[Callable[[], str | bytes]] = [
        alias_bomb,
        merge_bomb,
        lambda: valid(kind) + alias_bomb(),
        lambda: deep(random.choice((100, 5000, 100_000))),
        lambda: "a: " + "9" * 200_000,
        lambda: "".join(f"k{i}: 1\n" for i in range(200_000)),
        lambda: random.randbytes(2000),
        lambda: "- " * 20_000,
        lambda: "a: '" + "x" * 3_000_000,
        *[lambda: _changed(kind, random)] * 8,
    ]
    content = random.choice(make)()
    path = folder / "file.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return kind, path


def _rows(count: int, *, cells: int = 13) -> str:
    rows = (
        ",".join([f"{100 + 0.002 * i:.3f}", *[f"{0.1 * j:.2f}" for j in range(cells - 1)]])
        for i in range(count)
    )
    return ",".join(HEADER) + "\n" + "\n".join(rows) + "\n"


def csv_file(folder: Path, random: Random) -> tuple[str, Path]:
    """A CSV recording: a gzip bomb, giant cells, nonsense numbers, or binary junk."""
    table = _rows(200)
    lines = table.splitlines(keepends=True)
    place = random.randrange(1, len(lines))
    cells = lines[place].rstrip("\n").split(",")
    cells[random.randrange(len(cells))] = random.choice(NUMBERS)
    make: list[Callable[[], bytes]] = [
        lambda: _bomb(random.choice((b"\0", b"1", b"1,", b"\n", table.encode()))),
        lambda: table.encode()[: random.randrange(len(table))],
        lambda: (lines[0] + "1" * 5_000_000).encode(),
        lambda: (",".join(["x"] * 300_000) + "\n" + "1," * 300_000).encode(),
        lambda: random.randbytes(5000),
        lambda: "".join([*lines[:place], ",".join(cells) + "\n", *lines[place + 1 :]]).encode(),
        lambda: (lines[0] + "".join(random.sample(lines[1:], len(lines) - 1))).encode(),
        lambda: (lines[0] + '"' + "".join(lines[1:])).encode(),
        lambda: table.replace("\n", "\x1b[2J\n").encode(),
    ]
    content = random.choice(make)()
    path = folder / ("file.csv.gz" if content[:2] == b"\x1f\x8b" else "file.csv")
    path.write_bytes(content)
    return "csv", path


def shifted_csv(folder: Path, random: Random) -> tuple[str, Path]:
    """A table whose columns hold known values, with other cells in one row, some or all."""
    lines = _rows(200).splitlines()
    share = random.choice((0.0, 0.5, 1.0))
    chosen = {random.randrange(1, len(lines))}
    chosen |= {i for i in range(1, len(lines)) if random.random() < share}
    column, kind = random.randrange(1, len(HEADER)), random.randrange(4)
    for place in chosen:
        lines[place] = ",".join(_shifted(lines[place].split(","), column, kind))
    path = folder / "file.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "table", path


def _shifted(cells: list[str], column: int, kind: int) -> list[str]:
    """A row with a cell more, a cell less, a decimal comma, or two cells more."""
    before, cell, after = cells[:column], cells[column], cells[column + 1 :]
    middle = ([cell, "0.77"], [], [cell.replace(".", ",")], ["", "0.77", cell])[kind]
    return [*before, *middle, *after]


def _bomb(pattern: bytes, size: int = 300 << 20) -> bytes:
    """A gzip file that unpacks to repetitions of a pattern."""
    packed = io.BytesIO()
    block = pattern * (1 + (1 << 20) // len(pattern))
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as file:
        for _ in range(size // len(block)):
            file.write(block)
    return packed.getvalue()


def mcap_file(folder: Path, random: Random) -> tuple[str, Path]:
    """An MCAP file of countless or lying records."""
    header = MAGIC + record(Op.HEADER, text("ros2") + text("x"))
    metadata = record(Op.METADATA, text("m") + struct.pack("<I", 0))
    lying = struct.pack("<BQ", random.choice([int(op) for op in Op]), 1 << random.randint(20, 62))
    make: list[Callable[[], bytes]] = [
        lambda: header + metadata * 3_000_000,
        lambda: header + record(Op.CHANNEL, bytes(22)) * 500_000,
        lambda: header + record(Op.SCHEMA, struct.pack("<H", 1) + text("a") * 2) * 300_000,
        lambda: header + lying + bytes(100),
        lambda: header + random.randbytes(3000),
        lambda: header + record(Op.METADATA, text("m") + struct.pack("<I", 0xFFFFFFFF)),
        lambda: MAGIC,
    ]
    path = folder / "file.mcap"
    path.write_bytes(random.choice(make)())
    return random.choice(("bag", "events", "recover")), path


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
            re.sub(r"'?500\.0'?", inline_bomb(), known, count=1),
            re.sub(r"bag_0\.mcap", inline_bomb(), known, count=1),
            merge_bomb(),
            deep(20_000),
            known.replace("bag_0.mcap", "bag_0.mcap\x1b[2J"),
            known.replace("message_count: ", "message_count: -"),
            known + "x" * 3_000_000,
        )),
        encoding="utf-8",
    )  # fmt: skip
    return random.choice(("bag", "recover", "events")), bag
