"""Records: unknown and missing keys are refused with line, key and a suggestion."""

from __future__ import annotations

import pytest

from test.reading.yaml_file import tree
from ur_energy_model.errors import ModelFileError
from ur_energy_model.ranges import MASS
from ur_energy_model.yaml_reader import Record


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
