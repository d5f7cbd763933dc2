"""Choice of the cut-off frequency."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.regression.narrow_filter import (
    CUTOFF_RANGE,
    choose_cutoff,
)


def test_cutoff_follows_the_motion_and_the_noise() -> None:
    recording = ExactArm().record(40.0)
    quiet = choose_cutoff(recording)
    assert CUTOFF_RANGE[0] <= quiet <= CUTOFF_RANGE[1]
    time = recording.time
    lively = np.sin(2 * np.pi * 4.5 * time)[:, None] * np.ones(6) * 0.3
    fast = replace(recording, columns={**recording.columns, "actual_qd": lively})
    assert choose_cutoff(fast) > quiet
