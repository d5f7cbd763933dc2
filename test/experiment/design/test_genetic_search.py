"""The genetic search ends in time."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import pytest

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.design import genetic_search
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.model.robots import load_robot


def test_a_requested_centre_is_kept() -> None:
    centre = (0.0, -1.5, 0.0, 0.2, 0.0, 0.0)
    request = DesignRequest(load_robot("ur5"), centre=centre, tool_speed=10.0)
    problem = DesignProblem(request)
    start = problem.random_start(np.random.default_rng(0))
    assert problem.trajectory(start).q0 == pytest.approx(centre)
    gradient = problem.cost(start, 3.0, 4.0)[1]
    assert np.all(gradient[0] == 0.0)
    design = genetic_search(request, population=20, generations=2)
    assert design.trajectory.q0 == pytest.approx(centre)


def test_it_adds_nothing_after_its_time_limit() -> None:
    request = DesignRequest(load_robot("ur5e"), harmonics=2)
    begin = time.monotonic()
    with suppress(MotionRefusedError):
        genetic_search(request, population=100_000, generations=100_000, time_limit=0.2)
    assert time.monotonic() - begin < 60.0
