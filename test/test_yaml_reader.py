# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""YAML files: each value as the type it must have, or refused with line, key and remedy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ur_energy_model.errors import ModelFileError
from ur_energy_model.ranges import MASS
from ur_energy_model.yaml_reader import (
    Quantity,
    Record,
    YamlTree,
    array,
    choice,
    integer,
    unique_names,
)

Read = Callable[[str], YamlTree]
RATIO = Quantity("1", 0.5, 1000, positive=True)
PAIRS = array(MASS, 2, 2)


@pytest.fixture
def tree(tmp_path: Path) -> Read:
    """Reads a file with this content."""

    def read(content: str) -> YamlTree:
        path = tmp_path / "x.yaml"
        path.write_text(content, encoding="utf-8")
        return YamlTree.read(path, ModelFileError, "do better")

    return read


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "x.yaml: is empty"),
        (b"a: [1, 2", "line 1: is not YAML"),
        (b"a: 1\nb: \xff\xfe", "line 2: is not YAML"),
        ("a: 1".encode("utf-16"), "x.yaml: is not UTF-8"),
        (b"a: 1\nb: !!python/name:os.system x", "line 2: tags"),
        (b"a: 1\n---\nb: 2", "line 2: contains a second document"),
        (b"a: &here 1", "line 1: anchors"),
        (b"#" * 4_000_001, "larger"),
        (b"a: [" + b"1, " * 100_000 + b"]", "line 1: contains more than 100000 values"),
        (b"a: " + b"[" * 20 + b"]" * 20, "line 1: is nested deeper than 20"),
    ],
)
def test_other_than_plain_yaml_is_refused_with_its_line(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=problem):
        YamlTree.read(path, ModelFileError, "do better")


def test_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.yaml")
    for other in (pipe, tmp_path):
        with pytest.raises(ModelFileError, match=r"regular file|directory"):
            YamlTree.read(other, ModelFileError, "do better")


@pytest.mark.parametrize(
    ("reader", "content", "value"),
    [
        (YamlTree.number, "1", 1.0),
        (YamlTree.number, "1e-5", 1e-5),
        (YamlTree.number, "+2.E3", 2000.0),
        (YamlTree.integer, "1732060800123456789", 1732060800123456789),  # all its digits
        *((YamlTree.text, each, each.strip("'"))
          for each in ("x y", "'5'", "1.2.3")),
        (PAIRS, "[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        (array(MASS, 2, 2, unknown=True), "[[1, null], null]", [[1, np.nan], [np.nan, np.nan]]),
    ],
)  # fmt: skip
def test_values_of_every_type(
    tree: Read, reader: Callable[[YamlTree], Any], content: str, value: Any
) -> None:
    np.testing.assert_equal(reader(tree(f"a: {content}").mapping()["a"]), value)


def mass_of_b(tree: YamlTree) -> float:
    with Record(tree) as keys:
        return MASS(keys["b"])


NO_NUMBERS = (
    "'1'", "true", "", ".nan", "1e999", "0x10", "012", "1:30", "1_000", "1,5", "{a: 1}", "9" * 500,
)  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "content", "problem"),
    [
        *((YamlTree.number, each, "line 2: a: ") for each in NO_NUMBERS),
        *((YamlTree.integer, each, "whole number") for each in ("1.5", "true")),
        *((YamlTree.text, each, "put it in quotes") for each in ("5", "no")),
        (MASS, "-1", "must not be negative"),
        (MASS, "1e5", "kg is impossible, expected 0 to 5000 kg"),
        (RATIO, "0", "must be positive"),
        (RATIO, "0.1", "0.1 is impossible, expected 0.5 to 1000"),
        *((PAIRS, each, "line 2: a") for each in
          ("[[1, 2], [3]]", "[[1, 2], null]", "1")),
        (choice(["power off", "idle"]), "pwoer off", r"did you mean 'power off'\?"),
        (integer(1, 3), "4", "4 must be 1 to 3"),
        (unique_names, "[x, y, x]", r"a\[2\]: 'x' occurs twice"),
        (mass_of_b, "{b: 1, c: 1}", "unknown key 'c'"),
        (mass_of_b, "{}", "'b' is missing"),
        (YamlTree.mapping, "{b: 1, b: 2}", "'b' occurs twice"),
        (YamlTree.mapping, "{[b]: 1}", "plain text"),
        (YamlTree.plain, "[1, {b: .nan}]", "finite"),
    ],
)  # fmt: skip
def test_other_values_are_refused_in_one_line(
    tree: Read, reader: Callable[[YamlTree], Any], content: str, problem: str
) -> None:
    node = tree(f"first: 1\na: {content}").mapping()["a"]
    with pytest.raises(ModelFileError, match=problem) as refusal:
        reader(node)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_unknown_keys_are_refused_with_line_and_suggestion(
    tree: Read, tmp_path: Path
) -> None:
    root = tree("a: 1\nlimits:\n  torqe: [1]\n")

    def read() -> None:
        with Record(root) as keys, Record(keys["limits"]) as part:
            assert keys["a"].number() == 1
            assert part.get("torque") is None

    with pytest.raises(ModelFileError) as refusal:
        read()
    assert str(refusal.value) == (
        f"{tmp_path}/x.yaml: line 3: limits.torqe: unknown key 'torqe' "
        "(did you mean 'torque'?); do better"
    )


def test_other_schemas_are_refused(tree: Read) -> None:
    Record(tree("schema: 2")).schema(2)
    problems = {
        "schema: 9": "schema 9 .*; update ur_energy_model",
        "schema: 1": "1 .*; do better",
    }
    wrong = ("a: 1", "schema: one", "schema: true", "schema: 1.5")
    for content, problem in (problems | dict.fromkeys(wrong, "schema")).items():
        with pytest.raises(ModelFileError, match=problem):
            Record(tree(content)).schema(2)
