"""A scripted source and a recorder of it."""

import pytest

from test.telemetry.recording.scripted_source import ScriptedSource
from ur_energy_model.telemetry.recording.recorder import Recorder


@pytest.fixture
def source():
    return ScriptedSource()


@pytest.fixture
def recorder(tmp_path, source):
    with Recorder(source, tmp_path) as recorder_:
        yield recorder_
