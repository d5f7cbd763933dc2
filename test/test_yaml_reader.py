"""YAML files: each value as the type it must have, or refused with line, key and remedy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.errors import InputError, ModelFileError
from ur_energy_model.ranges import MASS
from ur_energy_model.yaml_reader import (
    Quantity,
    ReadingLimits,
    Record,
    UnreadableError,
    YamlTree,
    array,
    choice,
    integer,
    list_of,
    mapping_of,
    parse,
    read_bytes,
    text,
    unique_names,
)


def tree(content: str, tmp_path: Path) -> YamlTree:
    path = tmp_path / "x.yaml"
    path.write_text(content, encoding="utf-8")
    return YamlTree.read(path, ModelFileError, "do better")


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


@pytest.mark.parametrize(
    ("written", "value"),
    [("1", 1.0), ("-1.5", -1.5), ("1e-5", 1e-5), (".5", 0.5), ("+2.E3", 2000.0), ("0", 0.0)],
)
def test_numbers(tmp_path, written: str, value: float) -> None:
    assert tree(f"a: {written}", tmp_path).mapping()["a"].number() == value


@pytest.mark.parametrize(
    "written",
    [
        "'1'",
        '"1"',
        "true",
        "no",
        "null",
        "",
        ".nan",
        "-.inf",
        "nan",
        "1e999",
        "0x10",
        "012",
        "1:30",
        "1_000",
        "1,5",
        "one",
        "[1]",
        "{a: 1}",
        "9" * 500,
        "2024-01-01",
    ],
)
def test_other_values_are_not_numbers(tmp_path, written: str) -> None:
    root = tree(f"first: 1\na: {written}", tmp_path)
    with pytest.raises(ModelFileError, match="line 2: a: ") as refusal:
        root.mapping()["a"].number()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_text_must_be_quoted_if_it_could_be_another_value(tmp_path) -> None:
    for written in ("x y", "'5'", "'no'", "2024-01-01", "1.2.3"):
        assert tree(f"a: {written}", tmp_path).mapping()["a"].text() == written.strip("'")
    for written in ("5", "no", "null", "1e3"):
        with pytest.raises(ModelFileError, match="put it in quotes"):
            tree(f"a: {written}", tmp_path).mapping()["a"].text()
    with pytest.raises(ModelFileError, match="empty"):
        text(tree("a: ''", tmp_path).mapping()["a"])


def test_whole_numbers_keep_all_their_digits(tmp_path) -> None:
    node = tree("a: 1732060800123456789", tmp_path).mapping()["a"]
    assert node.integer() == 1732060800123456789
    for written in ("1.5", "true", "x", ".inf"):
        with pytest.raises(ModelFileError, match="whole number"):
            tree(f"a: {written}", tmp_path).mapping()["a"].integer()


def test_messages_are_short_and_without_control_characters(tmp_path) -> None:
    for name in ('"\\e[2J"', "x" * 1000):
        root = tree(f"{name}: 1", tmp_path)
        with pytest.raises(ModelFileError) as refusal, Record(root) as keys:
            keys.expect(f"key_{i}" for i in range(1000))
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 600


def test_unknown_keys_are_refused_with_line_and_suggestion(tmp_path) -> None:
    root = tree("a: 1\nlimits:\n  torqe: [1]\n", tmp_path)

    def read() -> None:
        with Record(root) as keys:
            assert keys["a"].number() == 1
            with Record(keys["limits"]) as part:
                assert part.get("torque") is None

    with pytest.raises(ModelFileError) as refusal:
        read()
    assert str(refusal.value) == (
        f"{tmp_path}/x.yaml: line 3: limits.torqe: unknown key 'torqe' "
        "(did you mean 'torque'?); do better"
    )


def test_a_misspelt_required_key_is_refused(tmp_path) -> None:
    root = tree("a: 1\ngear_ration: 101\n", tmp_path)
    with pytest.raises(ModelFileError, match=r"line 2: .*did you mean 'gear_ratio'"):
        Record(root)["gear_ratio"]
    with pytest.raises(ModelFileError, match="'mass' is missing"):
        Record(root)["mass"]


def test_similar_names_are_not_misspelt(tmp_path) -> None:
    root = tree("joint_1: 1\njoint_3: 1\n", tmp_path)
    keys = Record(root)
    keys.expect(["joint_1", "joint_2", "joint_3"])
    with pytest.raises(ModelFileError, match="'joint_2' is missing"):
        keys["joint_2"]


def test_an_error_in_the_block_takes_precedence_over_unread_keys(tmp_path) -> None:
    root = tree("a: x\nspare: 1\n", tmp_path)
    with pytest.raises(ModelFileError, match=r"line 1: a: x is not a number"), Record(root) as keys:
        keys["a"].number()


def test_missing_and_null_keys_take_the_default(tmp_path) -> None:
    with Record(tree("a: null\nb:\nc: 2\n", tmp_path)) as keys:
        assert [keys.read(name, MASS, 7.0) for name in "abcd"] == [7.0, 7.0, 2.0, 7.0]


def test_other_schemas_are_refused(tmp_path) -> None:
    Record(tree("schema: 2", tmp_path)).schema(2)
    Record(tree("a: 2", tmp_path)).schema(2, default=2)
    with pytest.raises(ModelFileError, match=r"schema 9 .*; update ur_energy_model"):
        Record(tree("schema: 9", tmp_path)).schema(2)
    with pytest.raises(ModelFileError, match=r"schema 1 .*; do better"):
        Record(tree("schema: 1", tmp_path)).schema(2)
    for content in ("a: 1", "schema: one", "schema: true", "schema: 1.5"):
        with pytest.raises(ModelFileError, match="schema"):
            Record(tree(content, tmp_path)).schema(2)


RATIO = Quantity("1", 0.5, 1000, positive=True)


@pytest.mark.parametrize(
    ("quantity", "value", "problem"),
    [
        (MASS, -1, "must not be negative"),
        (MASS, 1e5, "kg is impossible, expected 0 to 5000 kg"),
        (RATIO, 0, "must be positive"),
        (RATIO, 0.1, "0.1 is impossible, expected 0.5 to 1000"),
    ],
)
def test_quantities_have_a_range(tmp_path, quantity, value, problem) -> None:
    with pytest.raises(ModelFileError, match=problem):
        quantity(tree(f"a: {value}", tmp_path).mapping()["a"])


def read_as(content: str, reader, tmp_path):
    return reader(tree(f"a: {content}", tmp_path).mapping()["a"])


def test_arrays_have_a_shape_and_may_have_unknown_entries(tmp_path) -> None:
    two = array(MASS, 2, 2)
    np.testing.assert_array_equal(read_as("[[1, 2], [3, 4]]", two, tmp_path), [[1, 2], [3, 4]])
    partial = array(MASS, 2, 2, unknown=True)
    found = read_as("[[1, null], null]", partial, tmp_path)
    assert np.isnan(found).tolist() == [[False, True], [True, True]]
    for content in ("[[1, 2], [3]]", "[1, 2]", "[[1, 2], [3, x]]", "[[1, 2], null]", "[]", "1"):
        with pytest.raises(InputError, match="line 1: a"):
            read_as(content, two, tmp_path)


@pytest.mark.parametrize(
    ("reader", "content", "problem"),
    [
        (choice(["power off", "idle"]), "pwoer off", r"did you mean 'power off'\?"),
        (integer(1, 3), "4", "4 must be 1 to 3"),
        (list_of(MASS), "[]", "must not be empty"),
        (list_of(MASS, 2), "[1]", "has 1 values, 2 are needed"),
        (unique_names, "[x, y, x]", r"a\[2\]: 'x' occurs twice"),
        (unique_names, "[]", "list of names"),
        (mapping_of({"b": MASS}), "{b: 1, c: 1}", "unknown key 'c'"),
        (mapping_of({"b": MASS}), "{}", "'b' is missing"),
        (YamlTree.mapping, "{b: 1, b: 2}", "'b' occurs twice"),
        (YamlTree.mapping, "{[b]: 1}", "plain text"),
        (YamlTree.plain, "[1, {b: .nan}]", "finite"),
    ],
)
def test_other_readers(tmp_path, reader, content, problem) -> None:
    with pytest.raises(ModelFileError, match=problem):
        read_as(content, reader, tmp_path)


def test_mappings_may_have_optional_keys(tmp_path) -> None:
    reader = mapping_of({"b": MASS}, {"c": text, "d": text})
    assert read_as("{b: 1, c: x}", reader, tmp_path) == {"b": 1.0, "c": "x"}
