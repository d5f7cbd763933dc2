"""Batches that identification and estimation refuse."""

import numpy as np
import pytest

from ur_energy_model.energy.telemetry_checks import check_batch
from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.identification.recording_reader import REQUIRED
from ur_energy_model.telemetry.samples import Telemetry


def batch(**columns):
    names = (*REQUIRED, "target_moment")
    return Telemetry(
        np.arange(5.0) * 0.1, {**{name: np.zeros((5, 6)) for name in names}, **columns}
    )


def test_ordinary_values_pass():
    unmeasured = np.full((5, 6), np.nan)
    check_batch("bag", batch(target_moment=unmeasured), REQUIRED, 6)


@pytest.mark.parametrize("field", [*REQUIRED, "target_moment"])
def test_impossible_values_of_any_field_are_refused_by_time(field):
    values = np.zeros((5, 6))
    values[3, 1] = -1e160
    with pytest.raises(RecordingError, match=r"value -1e\+160 at t = 0.300 s is impossible") as no:
        check_batch("bag", batch(**{field: values}), REQUIRED, 6)
    assert no.value.field == field


def test_a_missing_field_is_named():
    with pytest.raises(MissingFieldError, match="actual_qd"):
        check_batch("bag", Telemetry(np.zeros(1), {"actual_q": np.zeros((1, 6))}), REQUIRED, 6)
