"""Readers: quantities have ranges, arrays have shapes, names are checked."""

from __future__ import annotations

import numpy as np
import pytest

from test.reading.yaml_file import tree
from ur_energy_model.errors import InputError, ModelFileError
from ur_energy_model.yaml_reader import (
    Quantity,
    YamlTree,
    array,
    choice,
    integer,
    list_of,
    mapping_of,
    text,
    unique_names,
)

MASS = Quantity("kg", 0, 100)


RATIO = Quantity("1", 0.5, 1000, positive=True)


@pytest.mark.parametrize(
    ("quantity", "value", "problem"),
    [
        (MASS, -1, "must not be negative"),
        (MASS, 101, "101 kg is impossible, expected 0 to 100 kg"),
        (RATIO, 0, "must be positive"),
        (RATIO, 0.1, "0.1 is impossible, expected 0.5 to 1000"),
    ],
)
def test_quantities_have_a_range(tmp_path, quantity, value, problem) -> None:
    with pytest.raises(ModelFileError, match=problem):
        quantity(tree(f"a: {value}", tmp_path).mapping()["a"])


def read(content: str, reader, tmp_path):
    return reader(tree(f"a: {content}", tmp_path).mapping()["a"])


def test_arrays_have_a_shape_and_may_have_unknown_entries(tmp_path) -> None:
    two = array(MASS, 2, 2)
    np.testing.assert_array_equal(read("[[1, 2], [3, 4]]", two, tmp_path), [[1, 2], [3, 4]])
    partial = array(MASS, 2, 2, unknown=True)
    found = read("[[1, null], null]", partial, tmp_path)
    assert np.isnan(found).tolist() == [[False, True], [True, True]]
    for content in ("[[1, 2], [3]]", "[1, 2]", "[[1, 2], [3, x]]", "[[1, 2], null]", "[]", "1"):
        with pytest.raises(InputError, match="line 1: a"):
            read(content, two, tmp_path)


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
        read(content, reader, tmp_path)


def test_mappings_may_have_optional_keys(tmp_path) -> None:
    reader = mapping_of({"b": MASS}, {"c": text, "d": text})
    assert read("{b: 1, c: x}", reader, tmp_path) == {"b": 1.0, "c": "x"}
