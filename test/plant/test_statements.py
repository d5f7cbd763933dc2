"""What is reported: words, figures and JSON."""

from __future__ import annotations

import json
import re

import numpy as np

from test.plant.surrogate_health import JOINTS, elbow, health_table, minutes_of
from ur_energy_model.codec import plain
from ur_energy_model.plant.plant_health import arm_health

DAYS, SINCE = 150, 122.0  # 3 May


def test_a_change_in_words():
    made = health_table(7301, DAYS, friction=elbow(0.18, SINCE))
    (change,) = arm_health("7", minutes_of(made)).changes
    pattern = r"elbow_joint of arm 7: friction \+(\d+) % since (\d+ \w+), at \d\d degC"
    match = re.fullmatch(pattern, change.words)
    assert match is not None, change.words
    assert 13 <= int(match[1]) <= 23
    assert match[2].split()[1] in ("April", "May")
    assert change.interval[0] < 0.18 < change.interval[1]
    entry = json.loads(json.dumps(plain(change.as_json())))
    assert set(entry) == {
        "arm",
        "joint",
        "what",
        "since",
        "gradual",
        "size",
        "interval",
        "temperature",
        "words",
    }
    assert (entry["joint"], entry["what"]) == ("elbow_joint", "friction")
    assert entry["since"].startswith("2026-0")


def test_standby_power_is_of_the_whole_arm():
    made = health_table(7302, DAYS, standby=lambda day: 5.0 * (day >= 80))
    (change,) = arm_health("arm7", minutes_of(made)).changes
    assert (change.joint, change.what) == (None, "standby power")
    assert re.match(r"arm7: standby power \+\d\.\d W since \d+ \w+", change.words)
    assert change.interval[0] < 5.0 < change.interval[1]


def test_a_torque_constant():
    def constant(day):
        return np.log(0.94) * (day >= 80) * np.eye(len(JOINTS))[1]

    (change,) = arm_health("7", minutes_of(health_table(7303, DAYS, constant=constant))).changes
    assert change.words.startswith("shoulder_lift_joint of arm 7: torque constant -")
    assert change.interval[0] < -0.06 < change.interval[1]


def test_levels_of_each_day():
    health = arm_health("7", minutes_of(health_table(7304, 30)))
    assert health.changes == ()
    entry = json.loads(json.dumps(plain(health.as_json())))
    assert entry["arm"] == "7"
    assert [level["what"] for level in entry["levels"]] == (
        ["friction"] * 6 + ["torque constant"] * 6 + ["standby power"]
    )
    friction = entry["levels"][0]
    assert (friction["joint"], friction["unit"]) == (JOINTS[0], "N m")
    low, high = friction["interval"]
    assert 8.0 < low < friction["value"] < high < 16.0
    days = [day["day"] for day in friction["days"]]
    assert days == sorted(days)
    assert len(days) in (22, 23)  # evening work runs past midnight
    for day in friction["days"]:
        assert day["interval"][0] < day["value"] < day["interval"][1]
