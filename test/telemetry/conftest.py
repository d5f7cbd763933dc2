# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Telemetry with known truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from test.telemetry.rtde_peer import RtdePeer
from test.telemetry.scripted_source import ScriptedSource
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

EPOCH = 1_700_000_000_000_000_000


def make_telemetry(
    count: int = 1000,
    *,
    fields: tuple[str, ...] = ENERGY_FIELDS,
    rate: float = 500.0,
    first: int = 0,
    info: RecordingInfo | None = None,
    stamped: bool = True,
) -> Telemetry:
    """Random values of full precision, with the clock of a controller."""
    rng = np.random.default_rng(abs(first))
    time = 1000.0 + np.arange(first, first + count) / rate
    columns = {
        name: rng.normal(
            size=(count, FIELDS[name].width) if FIELDS[name].width > 1 else count
        )
        for name in fields
    }
    columns["timestamp"] = time
    if info is None:
        info = RecordingInfo(source="127.0.10.1", robot="ur5e", rate=rate)
    stamp = EPOCH + np.arange(first, first + count) * np.int64(round(1e9 / rate))
    return Telemetry(time, columns, info, stamp=stamp if stamped else None)


def assert_same_samples(read: Telemetry, written: Telemetry) -> None:
    """Every value, bit for bit."""
    assert len(read) == len(written)
    assert set(read.columns) == set(written.columns)
    for name, values in written.columns.items():
        assert read[name].shape == values.shape, name
        assert read[name].tobytes() == np.ascontiguousarray(values).tobytes(), name
    assert (read.stamp is None) == (written.stamp is None)
    if read.stamp is not None and written.stamp is not None:
        assert np.array_equal(read.stamp, written.stamp)


@pytest.fixture
def telemetry() -> Telemetry:
    """Two seconds at 500 Hz."""
    return make_telemetry()


@pytest.fixture
def peer() -> Iterator[RtdePeer]:
    with RtdePeer() as peer_:
        yield peer_


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource()


@pytest.fixture
def recorder(tmp_path: Path, source: ScriptedSource) -> Iterator[Recorder]:
    """A recorder of the scripted source."""
    with Recorder(source, tmp_path) as recorder_:
        yield recorder_
