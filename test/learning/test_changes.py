"""Changes of the arm are reported once, in words; what is usual is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from test.learning.made_up_motion import N, generic, motion
from test.learning.surrogate_work import DAY, SurrogateWork
from ur_energy_model.learning.changes import ChangeMonitor
from ur_energy_model.learning.history import Change, change_from_json
from ur_energy_model.learning.minute import StandbyMinutes
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

SEED = 41


def work(
    monitor: ChangeMonitor, arm: SurrogateWork, number: int, minutes: int, standby: float = 0.0
) -> list[Change]:
    """A session; its changes."""
    start = number * DAY
    monitor.start_session(start, 1.0)
    for work in arm.session(number, start, minutes):
        monitor.observe_minute(work.minute)
        power = monitor.model.bus.standby + work.standby + standby
        monitor.observe_standby(work.minute.time, power, 0.4)
    return list(monitor.take())


@pytest.fixture
def known() -> tuple[ChangeMonitor, SurrogateWork]:
    """A monitor that has seen some sessions of an arm, without a word."""
    monitor, arm = ChangeMonitor(generic()), SurrogateWork(SEED)
    for number in range(1, 6):
        assert work(monitor, arm, number, 40) == []
    return monitor, arm


def during(monitor: ChangeMonitor, arm: SurrogateWork, inject) -> list[tuple[float, Change]]:
    """Changes of a session in which something happens after 30 minutes; minutes since then."""
    start = 6 * DAY
    monitor.start_session(start, 1.0)
    out = []
    for k, work in enumerate(arm.session(6, start, 90)):
        standby = inject(arm) if k >= 30 else 0.0
        if k == 30:
            continue  # the minute in which it happens has both
        monitor.observe_minute(work.minute)
        power = monitor.model.bus.standby + work.standby + (standby or 0.0)
        monitor.observe_standby(work.minute.time, power, 0.4)
        out += [(k - 29.0, change) for change in monitor.take()]
    return out


def test_fifteen_percent_more_friction_is_found_while_the_arm_warms_up(known):
    monitor, arm = known

    def inject(arm):
        arm.friction[3] = math.log(1.15)

    ((minutes, change),) = during(monitor, arm, inject)
    assert minutes <= 10
    assert (change.joint, change.what) == ("wrist_1_joint", "friction")
    assert abs(change.size - 0.15) < 0.04
    assert change.interval[0] < 0.15 < change.interval[1]
    assert "wrist_1_joint friction" in change.words
    assert "above its usual at" in change.words
    assert "N m instead of" in change.words
    assert change_from_json(change.as_json()) == change


def test_an_undeclared_payload(known):
    monitor, arm = known

    def inject(arm):
        arm.setup[0] = 0.8

    ((minutes, change),) = during(monitor, arm, inject)
    assert minutes <= 10
    assert (change.joint, change.what) == (None, "payload")
    assert abs(change.size - 0.8) < 0.15
    assert "controller was not told" in change.words


def test_an_unannounced_mounting(known):
    monitor, arm = known

    def inject(arm):
        arm.setup[2] = math.radians(4.0)

    ((minutes, change),) = during(monitor, arm, inject)
    assert minutes <= 10
    assert change.what == "mounting"
    assert abs(abs(math.degrees(change.size)) - 4.0) < 0.7


def test_standby_power(known):
    monitor, arm = known
    ((minutes, change),) = during(monitor, arm, lambda arm: 5.0)
    assert minutes <= 20
    assert change.what == "standby"
    assert abs(change.size - 5.0) < 1.5


def test_a_restart_continues(known):
    monitor, arm = known
    other = ChangeMonitor(generic())
    other.restore(monitor.state())
    arm.friction[0] = math.log(1.4)
    found = work(monitor, arm, 6, 30)
    again = ChangeMonitor(generic())
    again.restore(other.state())
    assert len(found) == 1
    assert found[0].joint == "shoulder_pan_joint"
    with pytest.raises(ValueError, match="another arm"):
        again.restore({**other.state(), "shift": np.zeros(N + 1)})


def test_another_model_is_no_change():
    """The next model has a fifth less friction; the arm is the same."""
    joints = tuple(joint.with_friction_scaled(0.8) for joint in generic().joints)
    other = replace(generic(), joints=joints)
    monitor, dynamics = ChangeMonitor(generic()), generic().dynamics()
    found = []
    for k in range(35):
        if k == 25:
            monitor.use_model(other)
        part = motion(60.0, start=60.0 * (k + 1), seed=3)
        window = Telemetry(part.time, {"actual_qd": part.qd})
        monitor.observe(window, [(part, dynamics)])
        found += monitor.take()
    assert found == []
    scale, std = monitor.friction.scale(np.full(N, 35.0))
    np.testing.assert_allclose(scale, 1.25, atol=0.06)
    assert std.max() < 0.1


def still_samples(model: EnergyModel, seconds: float, power: float) -> Telemetry:
    """The arm at rest with this standby power [W]."""
    time = 60.0 + np.arange(round(50 * seconds)) / 50.0
    zero = np.zeros((len(time), N))
    volts = np.full(len(time), 48.0)
    columns = {
        "actual_qd": zero,
        "actual_current": zero,
        "actual_robot_voltage": volts,
        "actual_robot_current": np.full(len(time), power / 48.0),
        "robot_mode": np.full(len(time), 7.0),
    }
    return Telemetry(time, columns, RecordingInfo(rate=50.0))


def test_standby_minutes():
    model = generic()
    found = StandbyMinutes(model).observe(still_samples(model, 130.0, 31.0))
    assert [time for time, _, _ in found] == [120.0, 180.0]
    for _, power, std in found:
        assert abs(power - 31.0) < 0.1
        assert 0.1 < std < 1.0
