"""Protocols s0 and s2 on a simulated arm: every figure has its place and definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.papers.protocol import Outcome, papers
from ur_energy_model.papers.stages import Stage

pytestmark = pytest.mark.timeout(400)  # the first test of each fixture runs a whole protocol
PLACES = {paper.key: {item.place for item in paper.items if not item.reason} for paper in papers()}


def outcome_of(protocol: str, folder: Path) -> Outcome:
    """A quick run on an arm whose controller has the lowest rate."""
    stage = Stage(protocol, protocol, "ur5")
    return stage.run(folder, seed=4, quick=True, progress=lambda fraction, text: None)


def check_places(outcome: Outcome, folder: Path, models: set[str]) -> None:
    """Every table and figure has its row or picture, and every file is there."""
    shown = {row.place for row in outcome.rows}
    shown |= {caption.partition(":")[0] for _, caption in outcome.pictures}
    assert PLACES[outcome.protocol] <= shown
    assert all(row.how for row in outcome.rows if row.here is not None)
    assert all((folder / file).is_file() for file, _ in outcome.pictures)
    assert {path.stem for path in folder.glob("model*.yaml")} == models


def here(outcome: Outcome, figure: str) -> np.ndarray:
    """What was found for a figure of this name."""
    (row,) = (row for row in outcome.rows if row.figure == figure)
    return np.asarray(row.here, dtype=float)


def test_s0_has_the_papers_definition_beside_ours(tmp_path: Path) -> None:
    outcome = outcome_of("s0", tmp_path)
    check_places(outcome, tmp_path, {"model", "model_catalogue"})
    assert here(outcome, "torque, R2 by joint, A").min() > 0.999
    # Noise that the filter takes out stays in the paper's errors.
    ours = here(outcome, "current, RMS error by joint, ours, A [A]")
    unfiltered = here(outcome, "current, RMS error by joint, our law, A [A]")
    assert (unfiltered > 1.3 * ours).all()
    theirs, measured, catalogue = here(
        outcome, "energy at the supply, B: ours, measured, catalogue [J]"
    )
    assert theirs == pytest.approx(measured, rel=0.03)
    assert abs(catalogue - measured) > abs(theirs - measured)
    constants = here(outcome, "k_t by joint [N m/A]")
    np.testing.assert_allclose(constants, here(outcome, "k_t by joint [N m/A], ours"), rtol=0.2)
    assert here(outcome, "gear ratio") == 101
    mechanical, electrical, efficiency = here(
        outcome, "mechanical, electrical energy [J] and efficiency of the arm, A"
    )
    assert efficiency == pytest.approx(mechanical / electrical)
    parts = here(outcome, "electrical energy by joint [J], A")
    assert parts.sum() == pytest.approx(electrical)
    assert here(outcome, "k_t/k_b of the catalogue model") == pytest.approx(0.89)


def test_s2_predicts_power_from_the_motion_alone(tmp_path: Path) -> None:
    outcome = outcome_of("s2", tmp_path)
    check_places(outcome, tmp_path, {"model_ecbot", "model_physical"})
    motion = here(outcome, "RMSE of power [W], testing")
    current = here(outcome, "RMSE of power from measured current [W], testing")
    assert current < motion < 5.0
    assert here(outcome, "r2 of power, testing") > 0.9
    for row in outcome.rows:
        assert row.published is None or row.place != "Table II"  # none for this arm
