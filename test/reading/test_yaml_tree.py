"""Nodes of a YAML file are read as the type they must have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from test.reading.yaml_file import tree
from ur_energy_model.errors import ModelFileError
from ur_energy_model.yaml_reader import Origin, Record, YamlTree, text


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


def test_plain_data_are_read_without_lines() -> None:
    origin = Origin(Path("arm.urdf"), ModelFileError, "do better")
    root = YamlTree.from_content({"a": [1, 2.5, None, True], "b": "5"}, origin)
    assert root.plain() == {"a": [1, 2.5, None, True], "b": "5"}
    with pytest.raises(ModelFileError, match=r"^arm.urdf: a\[3\]: True is not a number; do better"):
        root.mapping()["a"].items()[3].number()
    bad = YamlTree.from_content({"a": math.nan}, origin).mapping()["a"]
    with pytest.raises(ModelFileError, match="finite"):
        bad.number()
