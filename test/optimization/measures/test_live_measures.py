# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""An arm that is watched live has the measures that a recording of the same work has."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from test.cli.conftest import Capture, answer
from test.sinks.peers import until
from test.telemetry.scripted_source import ScriptedSource
from ur_energy_model.cli.live import measures_seen
from ur_energy_model.energy.live import LiveOptions
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import load_model
from ur_energy_model.optimization.measures.ranking import Measures
from ur_energy_model.sinks.live_arm import LiveArm, SinkGroup
from ur_energy_model.telemetry.bag.reader import iterate_bag


def watched(bag: Path, model: Path) -> LiveArm:
    """An arm that did what a recording has, watched to its end."""
    source: Any = ScriptedSource()
    for batch in iterate_bag(bag):
        source.info = replace(batch.info, source="10.0.0.5")
        for start in range(0, len(batch), 10):
            part = batch.cut(slice(start, start + 10))
            source.give_last(replace(part, info=source.info))
    source.give_last(EOFError())
    arm = LiveArm(
        "10.0.0.5",
        lambda: source,
        lambda _: (load_model(model), str(model)),
        LiveOptions(),
    )
    arm.start(SinkGroup(()))
    until(lambda: arm.reader.ended or arm.reader.failure is not None)
    assert arm.reader.failure is None
    return arm


@pytest.mark.truth
def test_they_are_those_of_a_recording(
    wrongly_set: Path, model_file: Path, capsys: Capture
) -> None:
    expected = answer(capsys, "estimate", model_file, wrongly_set)["measures"]
    with closing(watched(wrongly_set, model_file)) as arm:
        live = measures_seen(arm, model_path=model_file, host="10.0.0.5")
        played = measures_seen(arm, model_path=model_file, bag=wrongly_set)
    entries = live.as_json(Tariff())["measures"]
    assert [each["kind"] for each in entries] == [each["kind"] for each in expected]
    assert {"payload", "moves", "line", "pose"} <= {each["kind"] for each in entries}
    for found, other in zip(entries, expected, strict=True):
        assert found["per_cycle"]["energy"] == pytest.approx(
            other["per_cycle"]["energy"], rel=0.02, abs=0.2
        )
        assert found["bag"] == "10.0.0.5"
        if found["command"]:
            steps = [shlex.split(step) for step in found["command"].split("&&")]
            assert [step[1] for step in steps] == ["record", "optimize"]
            assert "10.0.0.5" in steps[0]
            assert steps[0][-1] == steps[1][3]
    again = played.as_json(Tariff())["measures"]
    assert [each["command"] for each in again] == [each["command"] for each in expected]


def test_nothing_before_the_first_sample() -> None:
    source: Any = ScriptedSource()
    source.give_last(EOFError())
    model = generic_model("ur5e")
    with closing(
        LiveArm("10.0.0.5", lambda: source, lambda _: (model, "model"), LiveOptions())
    ) as arm:
        arm.start(SinkGroup(()))
        until(lambda: arm.reader.ended)
        assert measures_seen(arm, host="10.0.0.5") == Measures()
