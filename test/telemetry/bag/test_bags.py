# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bags: what was written is read, bit for bit, with its gaps, programs and provenance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.errors import InputError, MissingFieldError
from ur_energy_model.telemetry.bag.files import FileSplit, bag_name
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.gaps import Gap
from ur_energy_model.telemetry.samples import RecordingInfo, concatenate

INFO = RecordingInfo(
    source="10.0.0.1", robot="ur10e", serial="2019/55", controller_version="5.11.1.108318",
    rate=500.0, gravity=(0.0, 6.9, -6.9), payload_mass=1.25,
    payload_center_of_mass=(0.0, 0.01, 0.1), simulated=True, extra={"cell": "7: left"},
)  # fmt: skip


def test_every_bit_of_every_field_and_what_made_it_come_back(tmp_path):
    telemetry = make_telemetry(60, fields=tuple(FIELDS), info=INFO)
    bag = write_bag(tmp_path / "bag", telemetry)
    assert_same_samples(read_bag(bag), telemetry)
    for path in (bag, bag / "bag_0.mcap"):
        assert read_bag(path).info == replace(INFO, source=str(path))


def test_gaps_come_back_with_their_causes(tmp_path):
    first = make_telemetry(300)
    second = make_telemetry(300, first=310)
    restarted = replace(make_telemetry(200), stamp=make_telemetry(200, first=5000).stamp)
    gaps = (
        Gap(
            300,
            first.time[-1],
            second.time[0],
            10,
            "connection lost: closed by the controller",
        ),
        Gap(
            600, second.time[-1], restarted.time[0], 0, "controller restarted: no answer"
        ),
    )
    whole = replace(concatenate([first, second, restarted]), gaps=gaps)
    bag = write_bag(tmp_path / "bag", whole, batch=60)
    assert read_bag(bag).gaps == gaps
    batches = list(iterate_bag(bag, samples=100))
    assert [gap.index for batch in batches for gap in batch.gaps] == [0, 0]
    assert concatenate(batches).gaps == gaps


def test_batches_and_chosen_fields_are_those_of_the_whole(tmp_path):
    samples = 7
    telemetry = make_telemetry(600, fields=("actual_q", "payload_cog", "robot_mode"))
    bag = write_bag(tmp_path / "bag", telemetry)
    batches = list(iterate_bag(bag, samples=samples))
    assert max(map(len, batches)) <= samples
    assert_same_samples(concatenate(batches), telemetry)
    part = concatenate(
        list(iterate_bag(bag, ["actual_q", "payload_cog", "no_such_field"], 90))
    )
    assert set(part.columns) == {"actual_q", "payload_cog"}
    assert np.array_equal(part["actual_q"], telemetry["actual_q"])
    with pytest.raises(MissingFieldError, match="robot_mode"):
        part.require("robot_mode")


def test_samples_carry_the_program_that_was_loaded(tmp_path):
    """From its first sample on, in whatever batches they are read; metadata has the last."""
    names = [None, "first", "first", "second", None, "third"]
    info = RecordingInfo(rate=500.0)
    split = FileSplit(seconds=1.0)
    with BagWriter(tmp_path / "bag", info, ("actual_q",), split=split) as bag:
        for number, name in enumerate(names):
            part = make_telemetry(400, fields=("actual_q",), first=400 * number)
            bag.write(replace(part, info=replace(part.info, program=name)))
    for size in (130, 10_000):
        batches = iterate_bag(bag.path, None, size)
        read = [batch.info.program for batch in batches for _ in batch.time]
        assert read == [name for name in names for _ in range(400)]
    assert "third" in (bag.path / "metadata.yaml").read_text()


def test_templates_make_names_that_are_not_taken(tmp_path):
    for template, expected in {
        "{robot}": ["ur10e", "ur10e_1"],
        "cell 7/{serial}": ["cell_7_2019_55"],
        "../{robot}": [".._ur10e"],
    }.items():
        for name in expected:
            assert bag_name(template, INFO, tmp_path, 1_700_000_000.0) == name
            (tmp_path / name).mkdir()
    for template in ("{gripper}", "{", "..", "{robot.name}"):
        with pytest.raises(InputError, match="name"):
            bag_name(template, INFO, tmp_path)
