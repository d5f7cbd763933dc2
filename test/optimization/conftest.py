"""A recorded cycle, and what it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.optimization.simulated_cycle import arm_model, bag_of, pick_and_place, recorded
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle


@pytest.fixture(scope="session")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chain = pick_and_place()
    return bag_of(tmp_path_factory.mktemp("cycle"), recorded(chain, 2.4 * chain.duration))


@pytest.fixture(scope="session")
def result(bag: Path) -> OptimizedCycle:
    return optimize_cycle(arm_model(), bag, OptimizationOptions(pareto=True))
