"""Samples of target_moment: bounded, spread over time, and kept as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.identification.exact_arm import ExactArm
from ur_energy_model.learning.information import TorqueRows
from ur_energy_model.telemetry.samples import Telemetry


def filled(work: Telemetry, times: int) -> TorqueRows:
    rows = TorqueRows()
    for k in range(times):
        rows.append(replace(work, time=work.time + 100.0 * k))
    return rows


def test_rows_are_bounded_and_spread_over_all_time(work: Telemetry) -> None:
    rows = filled(work, 6)
    assert 1000 < rows.samples <= 3000
    time = rows.columns["time"]
    assert time[0] < work.time[0] + 1.0
    assert time[-1] > work.time[-1] + 499.0
    assert (np.diff(time) > 0).all()


def test_measured_motion_is_kept_without_holes(arm: ExactArm) -> None:
    measured = arm.record(60.0, seed=58)
    columns = {name: v for name, v in measured.columns.items() if name != "target_qdd"}
    rows = filled(replace(measured, columns=columns), 2)
    assert not rows.from_targets
    assert np.diff(rows.columns["time"]).max() < 0.015


def test_rows_are_restored(work: Telemetry) -> None:
    rows = filled(work, 2)
    again = TorqueRows.restored(rows.saved())
    for part in (rows, again):
        part.append(replace(work, time=work.time + 900.0))
    assert rows.columns.keys() == again.columns.keys()
    for name, values in rows.columns.items():
        np.testing.assert_array_equal(again.columns[name], values)


def test_fields_that_appear_later_do_not_mix(work: Telemetry) -> None:
    rows = filled(work, 1)
    count = rows.samples
    told = {"payload": np.ones(len(work)), "payload_cog": np.zeros((len(work), 3))}
    rows.append(replace(work, columns={**work.columns, **told}))
    assert rows.samples == count


def test_a_session_that_is_over_keeps_a_part(work: Telemetry) -> None:
    rows = filled(work, 3)
    short = rows.shortened()
    assert 400 < short.samples <= 800
    assert short.columns["time"][0] == rows.columns["time"][0]
