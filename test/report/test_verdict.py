"""The verdict follows from the metrics, and gives remedies."""

from __future__ import annotations

from typing import Any

import pytest

from ur_energy_model.identification.quality import Motion
from ur_energy_model.report.verdict import judge

JOINTS = ("base", "elbow")


def metrics(
    torque: float = 0.999,
    current: float = 0.98,
    rmse: float = 1.5,
    energy: float = 0.4,
    motion: float | None = 5.0,
) -> dict[str, Any]:
    return {
        "torque": [{"r2": 0.9999}, {"r2": torque}],
        "current": [{"r2": 0.995}, {"r2": current}],
        "power": {"rmse": rmse, "rmse_percent": 2.0 * rmse, "energy_error_percent": energy},
        "motion_energy_error_percent": motion,
    }


@pytest.mark.parametrize(
    ("change", "grade", "words"),
    [
        ({}, "good", "elbow is the weakest"),
        ({"current": 0.7}, "fair", "moves this joint more"),
        ({"current": -0.5}, "poor", "for elbow the mean would be a better model"),
        ({"torque": 0.5}, "poor", "mounting and payload"),
        ({"energy": -2.0}, "fair", "identify with a new"),
        ({"rmse": 9.0}, "poor", "standby"),
        ({"motion": -14.0}, "fair", "recordings of several days"),
        ({"motion": 30.0}, "poor", "30.0 %"),
        ({"motion": None}, "good", "elbow is the weakest"),
        ({"torque": 0.99899}, "good", "at least 99.89 %"),  # never rounded up
    ],
)
def test_the_worst_finding_determines_the_grade(
    change: dict[str, float], grade: str, words: str
) -> None:
    verdict = judge([metrics(), metrics(**change)], JOINTS, motions={"held out"})
    assert verdict.grade == grade
    assert any(words in statement.text for statement in verdict.statements)


@pytest.mark.parametrize(
    ("motions", "words"),
    [
        ({"fitted"}, "fitted to"),
        ({"fitted", "same motion again"}, "the same motion again"),
        ({"unknown"}, "does not say"),
    ],
)
def test_fitted_motions_alone_are_at_most_fair(motions: set[Motion], words: str) -> None:
    verdict = judge([metrics()], JOINTS, motions=motions)
    assert verdict.grade == "fair"
    assert any(words in statement.text for statement in verdict.statements)
    assert any("another motion" in statement.text for statement in verdict.statements)


@pytest.mark.parametrize("good", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_model_of_another_arm_is_never_called_trustworthy(known: bool, good: bool) -> None:
    line = "the model is of arm 1, the recording of arm 2"
    found = [metrics()] if good else [metrics(energy=9.0)]
    another = line if known else None
    verdict = judge(found, JOINTS, motions={"held out"}, another_arm=another, doubts=[line])
    assert verdict.grade == ("fair" if good else "poor")
    assert "trusted" not in verdict.headline
    assert ("another arm" in verdict.headline) == known
    assert sum("arm 2" in statement.text for statement in verdict.statements) == 1


def test_missing_channels_are_named() -> None:
    empty = {"torque": None, "current": [{"r2": None}, {"r2": None}], "power": None}
    texts = " ".join(s.text for s in judge([empty], JOINTS, motions={"held out"}).statements)
    assert "no information about the joint torques" in texts
    assert "actual_robot_voltage" in texts
