# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What is typed from a sheet into a program saves what the sheet promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.exact_arm import write_bag
from test.optimization.typed_programs import (
    ARM,
    CB3,
    CB3_HOME,
    SEED,
    beside,
    program,
    run,
    typed_into,
    vector,
)
from ur_energy_model.energy.profile import profile_program
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.optimization.cycle import KEEP_DWELL
from ur_energy_model.optimization.optimize import (
    in_session_of,
    optimize_cycle,
    predicted_saving,
)
from ur_energy_model.optimization.recorded_cycle import find_cycle
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.trajectory.named_motions import named_motion

AWAY = CB3_HOME + np.array([0.7, -0.3, 0.5, 0.1, 0.0, 0.8])
OVER = CB3_HOME + np.array([-0.6, -0.2, 0.4, 0.0, 0.1, -0.5])
FETCH = (
    f"movel({vector(beside(AWAY, z=-0.1))}, a=1.2, v=0.25)",
    "set_digital_out(0, True)",
    "sleep(0.3)",
    f"movel({vector(AWAY)}, a=1.2, v=0.25)",
    "sleep(0.8)",
)
PLACES = [beside(OVER, x=0.008 * place) for place in range(3)]
PROGRAMS = {
    "waits get shorter, a slow approach stays": program([
        f"movej({vector(AWAY)}, a=4, v=2)",
        f"movej({vector(beside(AWAY, z=-0.1))}, a=1.4, v=0.5)",
        "sleep(0.4)",
        f"movej({vector(OVER)}, a=4, v=2.5)",
        f"movej({vector(CB3_HOME)}, a=3, v=1.5)",
        "sleep(1.5)",
    ]),
    "moveL, and a wait at the begin": program([
        "sleep(1.2)",
        f"movel({vector(beside(CB3_HOME, z=-0.12))}, a=1.2, v=0.25)",
        "sleep(0.3)",
        f"movel({vector(CB3_HOME)}, a=1.2, v=0.4)",
        f"movej({vector(AWAY)}, a=2, v=1.5)",
        f"movej({vector(CB3_HOME)}, a=2, v=2)",
    ]),
    "a function is called from several places": program(
        [
            f"movej({vector(AWAY)}, a=4, v=2)",
            "fetch()",
            f"movej({vector(OVER)}, a=4, v=2)",
            f"movej({vector(AWAY)}, a=4, v=2)",
            "fetch()",
            "fetch()",
            f"movej({vector(CB3_HOME)}, a=4, v=2)",
        ],
        {"fetch": FETCH},
    ),
    "a function is called in a row": program(
        [
            f"movej({vector(AWAY)}, a=4, v=2)",
            "fetch()",
            "fetch()",
            "fetch()",
            f"movej({vector(CB3_HOME)}, a=4, v=2)",
            "sleep(0.7)",
        ],
        {"fetch": FETCH},
    ),
    "a pallet": program([
        line
        for place in PLACES
        for line in (
            f"movej({vector(AWAY)}, a=3, v=1.5)",
            "sleep(0.3)",
            f"movej({vector(place)}, a=3, v=1.5)",
            "sleep(0.9)",
        )
    ]),
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> EnergyModel:
    """Identified from another motion of the same arm."""
    folder = tmp_path_factory.mktemp("identified")
    motion = named_motion("trajectory_a", CB3)
    bag = write_bag(
        folder / "bag", record_arm(SimulatedArm(CB3, motion=motion, seed=SEED), 30.0)
    )
    return identify([bag], ARM).model


@pytest.mark.truth
@pytest.mark.parametrize("script", PROGRAMS.values(), ids=PROGRAMS)
def test_the_sheet_as_typed_saves_what_it_promises(
    script: str, model: EnergyModel, tmp_path: Path
) -> None:
    before = run(script)
    bag = write_bag(tmp_path / "cell", before.recorded)
    found = optimize_cycle(model, bag)
    sheet = found.as_json()["sheet"]
    assert found.cycle.duration == pytest.approx(before.duration.mean(), abs=0.02)
    assert_covers(sheet, script)
    assert sum(step["energy"] for step in sheet) == pytest.approx(found.energy)
    assert sum(step["new_energy"] for step in sheet) == pytest.approx(found.typed_energy)

    after = run(typed_into(script, sheet))
    saved = 100.0 * (1.0 - after.energy.mean() / before.energy.mean())
    assert found.typed_interval[0] <= saved <= found.typed_interval[1]
    assert found.typed_saving_percent == pytest.approx(saved, abs=1.0)
    assert found.typed_duration == pytest.approx(after.duration.mean(), rel=0.01)
    assert found.typed_energy < found.energy
    assert found.typed_saving_percent <= found.ceiling.most_saving_percent
    if found.copied_saving_percent is not None:
        assert found.copied_saving_percent > found.typed_saving_percent - 0.1
    profile = profile_program(model, bag)
    assert len(profile.counted.cycles) == pytest.approx(found.cycle.count, abs=1)
    in_session = in_session_of(model, bag)
    quick = predicted_saving(in_session, find_cycle(in_session, bag, CB3, KEEP_DWELL))
    assert quick.saving == pytest.approx(found.energy - found.typed_energy)


def assert_covers(sheet: list[dict[str, Any]], script: str) -> None:
    """The sheet has every move and wait of the program, in its order, one value a line.

    What stays has a reason.
    """
    texts = script.split("\n")
    wanted = {
        k
        for k, text in enumerate(texts, 1)
        if text.strip()[:5] in ("movej", "movel", "sleep")
    }
    assert {line for step in sheet for line in step["lines"]} == wanted
    loop = next(k for k, text in enumerate(texts, 1) if "while" in text)
    assert sheet[0]["line"] == min(line for line in wanted if line > loop)
    values: dict[int, set[tuple[float, ...]]] = {}
    for step in sheet:
        new = (step["new_wait"], step["new_speed"], step["new_acceleration"])
        values.setdefault(step["line"], set()).add(new)
        assert step["kept"] == (step["reason"] is not None)
        if step["kept"]:
            old = (step["wait"], step["speed"], step["acceleration"])
            assert new == old
    assert all(len(each) == 1 for each in values.values())
