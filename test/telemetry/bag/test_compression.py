# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags of computers that lack a package of compression: written, read by others, recovered."""

from __future__ import annotations

import sys

import pytest
from mcap.reader import make_reader

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import MissingPackageError
from ur_energy_model.telemetry.bag.compression import (
    UnpackingError,
    available_packing,
    unpacked,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag

ABSENT = {
    "zstd": (),
    "lz4": ("zstandard",),
    "": ("zstandard", "lz4", "lz4.frame"),
}
"""Packages that are absent where bags are packed so."""


@pytest.fixture(params=ABSENT)
def packing(request, monkeypatch):
    """The packing of a computer that lacks some packages."""
    for name in ABSENT[request.param]:
        monkeypatch.setitem(sys.modules, name, None)
    return request.param


def test_bags_are_packed_by_what_is_installed_and_other_readers_read_them(
    tmp_path, packing
):
    telemetry = make_telemetry(1000)
    bag = write_bag(tmp_path / "bag", telemetry)
    assert_same_samples(read_bag(bag), telemetry)
    (path,) = bag.glob("*.mcap")
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
        assert summary is not None
        assert {each.compression for each in summary.chunk_indexes} == {packing}
    assert (available_packing().shortcoming is None) == (packing == "zstd")


@pytest.mark.parametrize("damaged", [False, True])
def test_a_file_without_its_end_is_recovered(tmp_path, packing, damaged):
    bag = write_bag(tmp_path / "bag", make_telemetry(4000), batch=100)
    (path,) = bag.glob("*.mcap")
    content = bytearray(path.read_bytes())
    if damaged:
        content[len(content) // 3] ^= 0xFF
    path.write_bytes(content[: 2 * len(content) // 3])
    result = recover_bag(bag)
    found = read_bag(bag)
    assert len(found) == result.samples
    assert 0 < len(found) < 4000
    if not damaged:
        assert_same_samples(found, make_telemetry(4000).cut(slice(0, len(found))))


@pytest.mark.parametrize("packed", [b"", b"nonsense", bytes(100)])
@pytest.mark.parametrize("name", ABSENT)
def test_bytes_that_unpack_to_another_size_are_refused(name, packed):
    with pytest.raises(UnpackingError):
        unpacked(name, packed, 20)


def test_a_packing_that_is_not_installed_is_named(tmp_path, monkeypatch):
    bag = write_bag(tmp_path / "bag", make_telemetry(100))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingPackageError, match="zstandard"):
        read_bag(bag)
