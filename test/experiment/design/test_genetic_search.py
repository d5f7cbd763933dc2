"""The genetic search ends in time."""

from __future__ import annotations

import time
from contextlib import suppress

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design.genetic_search import genetic_search
from ur_energy_model.experiment.design.problem import DesignRequest
from ur_energy_model.model.robots import load_robot


def test_it_adds_nothing_after_its_time_limit() -> None:
    request = DesignRequest(load_robot("ur5e"), harmonics=2)
    begin = time.monotonic()
    with suppress(MotionRefusedError):
        genetic_search(request, population=100_000, generations=100_000, time_limit=0.2)
    assert time.monotonic() - begin < 60.0
