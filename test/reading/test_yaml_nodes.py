"""Malformed or malicious YAML is refused in bounded time and memory, with its line."""

from __future__ import annotations

import os

import pytest

from ur_energy_model.yaml_reader import (
    ReadingLimits,
    UnreadableError,
    parse,
    read_bytes,
)

LIMITS = ReadingLimits()


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
