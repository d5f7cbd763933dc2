"""Malformed or malicious YAML is refused in bounded time and memory, with its line."""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ur_energy_model.yaml_reader import (
    Node,
    ReadingLimits,
    UnreadableError,
    node_of,
    parse,
    read_bytes,
)

LIMITS = ReadingLimits()
BOMBS = {
    "many values": "a: [" + "1, " * 1_300_000 + "1]",
    "deep lists": "a: " + "[" * 1_000_000,
    "deep mappings": "a: " + "{a: " * 900_000,
    "deep blocks": "- " * 1_900_000,
    "deep keys": "? " * 1_900_000,
    "indented": "".join(" " * i + "a:\n" for i in range(1500)),
    "laughs": "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
    "tag directives": "".join(f"%TAG !{i}! tag:x,2000:\n" for i in range(100_000)) + "---\na: 1",
    "documents": "--- 1\n" * 500_000,
    "open quote": "a: '" + "x\n" * 1_900_000,
    "long key": "x" * 3_900_000 + ": 1",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_bounded_time_and_memory(name: str) -> None:
    raw = BOMBS[name].encode()
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(UnreadableError) as refusal:
        parse(raw, LIMITS)
    assert refusal.value.line is not None
    assert time.process_time() - start < 20  # unbounded, some of them take minutes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # kB


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        (b"", "empty", None),
        (b"# only words\n", "empty", None),
        (b"a: [1, 2", "not YAML", 1),
        (b"a: 1\nb: 'x", "not YAML", 2),
        (b"a: 1\nb: \x01", "not YAML", 2),
        (b"a: 1\nb: \xff\xfe", "not YAML", 2),
        ("a: 1".encode("utf-16"), "UTF-8", None),
        (b"a: 1\nb: !!python/name:os.system x", "tags", 2),
        (b"a: 1\nb: !own {}", "tags", 2),
        (b"a: 1\n---\nb: 2", "second document", 2),
        (b"a: &here 1", "anchors", 1),
    ],
)
def test_other_than_plain_yaml_is_refused_with_its_line(
    text: bytes, problem: str, line: int | None
) -> None:
    with pytest.raises(UnreadableError, match=problem) as refusal:
        parse(text, LIMITS)
    assert refusal.value.line == line


def test_too_large_files_and_folders_are_refused(tmp_path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * 101)
    assert len(read_bytes(path, ReadingLimits(size=101))) == 101
    with pytest.raises(UnreadableError, match="larger"):
        read_bytes(path, ReadingLimits(size=100))
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for other in (pipe, tmp_path):
        with pytest.raises(OSError, match=r"regular file|directory"):
            read_bytes(other, LIMITS)


def test_values_and_levels_are_counted() -> None:
    assert isinstance(parse(b"a: [1, 2]", ReadingLimits(values=5)).value, tuple)
    with pytest.raises(UnreadableError, match="more than 4 values"):
        parse(b"a: [1, 2]", ReadingLimits(values=4))
    parse(b"a: [[1]]", ReadingLimits(depth=3))
    with pytest.raises(UnreadableError, match="deeper than 2"):
        parse(b"a: [[1]]", ReadingLimits(depth=2))


def plain(node: Node) -> object:
    """Content of a tree, scalars as text."""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, tuple):
        return {plain(key): plain(value) for key, value in node.value}
    return [plain(value) for value in node.value]


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=8)
DATA = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)


@given(DATA)
def test_dumped_data_are_read_back(data: object) -> None:
    assert plain(parse(yaml.safe_dump(data).encode(), LIMITS)) == data
    assert plain(node_of(data)) == data


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with suppress(UnreadableError):
        parse(raw, LIMITS)
