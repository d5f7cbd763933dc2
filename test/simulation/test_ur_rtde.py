# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""ur_rtde, unchanged, against `ur_energy simulate`.

The client runs in its own process: a constructor of ur_rtde that waits for an answer
holds the GIL, so a test could not be stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("rtde_receive", reason="ur_rtde is not installed")

HOME = [0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0]
PROGRAM = """
import json, sys, time
from rtde_receive import RTDEReceiveInterface
from rtde_control import RTDEControlInterface
from rtde_io import RTDEIOInterface
from dashboard_client import DashboardClient
host, result = sys.argv[1], {}
def until(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.002)
    return value
r = RTDEReceiveInterface(host, 500.0)
until(lambda: r.getTimestamp() > 0.0)
result["start"] = r.getTimestamp()
c = RTDEControlInterface(host)
io = RTDEIOInterface(host)
def error(q):
    return max(abs(a - b) for a, b in zip(q, r.getActualQ()))
def arrived(q):
    until(lambda: error(q) < 2e-3)
    return error(q)
def speed():
    return max(map(abs, r.getTargetQd()))
def running():
    return c.getAsyncOperationProgressEx().isAsyncOperationRunning()

# Reading and moving
q0 = result["q"] = r.getActualQ()
result["moment"] = r.getTargetMoment()
result["power"] = r.getActualRobotVoltage() * r.getActualRobotCurrent()
result["modes"] = [r.getRobotMode(), r.getSafetyMode(), *r.getJointMode()]
q1 = [a + b for a, b in zip(q0, (0.2, 0.1, -0.2, 0.1, 0.1, 0.4))]
result["moved"] = c.moveJ(q1, 2.0, 5.0)
result["errors"] = [arrived(q1)]
c.moveJ(q0, 1.0, 5.0, True)
result["running"] = until(running)
until(lambda: not running())
result["errors"].append(arrived(q0))
c.moveJ(q1, 0.1, 2.0, True)
until(lambda: speed() > 0.05)
c.stopJ(5.0)
until(lambda: speed() == 0.0)
result["stopped_short"] = error(q1)
c.moveJ(q0, 2.0, 5.0)

# Streams, straight moves and kinematics
for _ in range(3000):  # on a busy machine the arm is behind
    period = c.initPeriod()
    c.speedJ([0, 0, 0, 0, 0, 0.3], 2.0, 0.002)
    c.waitPeriod(period)
    if r.getTargetQd()[5] > 0.29:
        break
result["speed"] = r.getTargetQd()[5]
result["stopped"] = c.speedStop()
until(lambda: speed() == 0.0)
q = r.getTargetQ()
goal = q[4] + 0.05
for _ in range(200):
    period = c.initPeriod()
    q[4] += 0.2 * (goal - q[4])
    c.servoJ(q, 0.5, 0.5, 0.002, 0.05, 500)
    c.waitPeriod(period)
c.servoStop()
until(lambda: abs(r.getTargetQ()[4] - goal) < 5e-3)
result["servo_error"] = abs(r.getTargetQ()[4] - goal)
q0, pose = r.getActualQ(), r.getActualTCPPose()
result["forward"] = [pose, c.getForwardKinematics()]
result["inverse"] = [r.getTargetQ(), c.getInverseKinematics(pose)]
bend = [a + b for a, b in zip(q0, (0.1, -0.2, 0.3, 0.1, 0.2, 0.0))]
c.moveJ(bend, 2.0, 5.0)
arrived(bend)
goal = r.getActualTCPPose()
goal[2] += 0.05
result["straight"] = c.moveL(goal, 0.25, 1.2)
until(lambda: abs(r.getActualTCPPose()[2] - goal[2]) < 1e-3)
result["pose"] = [goal, r.getActualTCPPose()]
result["limits"] = [c.isPoseWithinSafetyLimits(goal), c.isJointsWithinSafetyLimits([7] * 6)]

# Payload, slider, signals, script and protective stop
c.setPayload(1.2, [0.01, 0.02, 0.03])
io.setSpeedSlider(0.5)
io.setStandardDigitalOut(3, True)
io.setAnalogOutputVoltage(0, 0.5)
until(lambda: r.getPayload() > 1.0 and r.getStandardAnalogOutput0() > 4.0)
until(lambda: r.getTargetSpeedFraction() < 0.6 and abs(r.getSpeedScaling() - 1.0) < 1e-6)
result["output"] = until(lambda: r.getDigitalOutState(3))
result["payload"] = [r.getPayload(), *r.getPayloadCog()]
result["slider"] = [r.getTargetSpeedFraction(), r.getSpeedScaling()]
result["voltage"] = r.getStandardAnalogOutput0()
io.setSpeedSlider(1.0)
c.setPayload(0.0, [0.0, 0.0, 0.001])
result["tcp"] = [c.setTcp([0, 0, 0.1, 0, 0, 0]), c.getTCPOffset()]
result["program"] = [c.isProgramRunning()]
c.stopScript()
result["program"].append(not until(lambda: not c.isProgramRunning()))
c.reuploadScript()
result["program"].append(until(c.isProgramRunning))
q = r.getActualQ()
q[3] += 10.0
result["impossible"] = until(lambda: c.moveJ(q, 1.0, 2.0), 0.1)
result["protective"] = until(r.isProtectiveStopped)
d = DashboardClient(host)
d.connect()
result["serial"], result["safety"] = d.getSerialNumber(), d.safetymode()
d.closeSafetyPopup()
d.unlockProtectiveStop()
result["unlocked"] = until(lambda: not r.isProtectiveStopped())
c.reuploadScript()
result["moves"] = until(lambda: c.moveJ(r.getActualQ(), 1.0, 1.0))
c.disconnect()
print("RESULT", json.dumps(result))
"""


def test_ur_rtde_reads_moves_streams_and_recovers(simulate: Any, fresh_host: Any) -> None:
    host: str = fresh_host()
    simulate(host, "--motion", "hold")
    command = [sys.executable, "-c", PROGRAM, host]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.rsplit("RESULT", 1)[1])
    assert result["start"] >= 40.0, "clients read less as a controller that is booting"
    assert result["q"] == pytest.approx(HOME, abs=2e-3)
    assert result["modes"] == [7, 1] + [253] * 6
    assert 10.0 < result["power"] < 250.0
    assert 20.0 < abs(result["moment"][1]) < 80.0, (
        "the shoulder holds the arm against gravity"
    )
    for name in (
        "moved",
        "running",
        "stopped",
        "straight",
        "output",
        "protective",
        "unlocked",
    ):
        assert result[name], name
    assert max(result["errors"]) < 2e-3
    assert result["stopped_short"] > 0.1
    assert result["speed"] == pytest.approx(0.3, abs=0.02)
    assert result["servo_error"] < 5e-3
    assert result["forward"][0] == pytest.approx(result["forward"][1], abs=1e-3)
    assert result["inverse"][0] == pytest.approx(result["inverse"][1], abs=5e-3)
    assert result["pose"][0][:3] == pytest.approx(result["pose"][1][:3], abs=2e-3)
    assert result["limits"] == [True, False]
    assert result["payload"] == pytest.approx([1.2, 0.01, 0.02, 0.03])
    assert result["slider"] == pytest.approx([0.5, 1.0])  # scaling excludes the slider
    assert result["voltage"] == pytest.approx(5.0)
    assert result["tcp"] == [True, [0, 0, 0.1, 0, 0, 0]]
    assert result["program"] == [True, False, True]
    assert not result["impossible"]
    assert result["serial"].startswith("2000000")
    assert result["safety"] == "Safetymode: PROTECTIVE_STOP"
    assert result["moves"]
