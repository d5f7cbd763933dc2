"""ur_rtde, unchanged, against `ur_energy simulate`.

Each client runs in its own process: a constructor of ur_rtde that waits for an answer holds the
GIL, so a test could not be stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import Any

import pytest

pytest.importorskip("rtde_receive", reason="ur_rtde is not installed")

HOME = [0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0]

UNTIL = """
def until(condition, seconds=15.0):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.002)
    return value
"""


def run_client(host: str, *program: str, timeout: float = 30.0) -> dict[str, Any]:
    """Run a client program, given in parts, that reads `host` and fills `result`; return that."""
    head = f"import json, time\nhost, result = {host!r}, {{}}\n{UNTIL}"
    tail = "\nprint('RESULT', json.dumps(result))\n"
    text = head + "".join(map(textwrap.dedent, program)) + tail
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.rsplit("RESULT", 1)[1]))


@pytest.fixture(scope="module")
def host(simulate: Any, fresh_host: Any) -> str:
    """Address of a simulated UR5e at rest."""
    address: str = fresh_host()
    simulate(address, "--motion", "hold")
    return address


RECEIVE = """
from rtde_receive import RTDEReceiveInterface
r = RTDEReceiveInterface(host, 500.0)
until(lambda: r.getTimestamp() > 0.0)
"""
CONTROL = (
    RECEIVE
    + """
from rtde_control import RTDEControlInterface
from rtde_io import RTDEIOInterface
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
"""
)
END = """
c.disconnect()
"""


def test_receive_reads_right_values(host: str) -> None:
    result = run_client(
        host,
        RECEIVE,
        """
        result["start"] = r.getTimestamp()
        result["elapsed"] = until(lambda: r.getTimestamp() - result["start"])
        result["q"] = r.getActualQ()
        result["moment"] = r.getTargetMoment()
        result["voltage"] = r.getActualRobotVoltage()
        result["power"] = r.getActualRobotVoltage() * r.getActualRobotCurrent()
        result["modes"] = [r.getRobotMode(), r.getSafetyMode(), r.getRuntimeState()]
        result["joint_mode"] = r.getJointMode()
        result["pose"] = r.getActualTCPPose()
        """,
    )
    assert result["start"] >= 40.0, "clients read less as a controller that is booting"
    assert result["elapsed"] > 0.0
    assert result["q"] == pytest.approx(HOME, abs=2e-3)
    assert result["modes"] == [7, 1, 1]
    assert result["joint_mode"] == [253] * 6
    assert 40.0 < result["voltage"] < 52.0
    assert 10.0 < result["power"] < 250.0
    assert 20.0 < abs(result["moment"][1]) < 80.0, "the shoulder holds the arm against gravity"
    assert 0.3 < result["pose"][0] ** 2 + result["pose"][1] ** 2 + result["pose"][2] ** 2 < 1.0


def test_moves_synchronous_and_asynchronous(host: str) -> None:
    result = run_client(
        host,
        CONTROL,
        """
        q0 = r.getActualQ()
        q1 = [a + b for a, b in zip(q0, (0.2, 0.1, -0.2, 0.1, 0.1, 0.4))]
        result["moved"] = c.moveJ(q1, 1.0, 2.0)
        result["error"] = arrived(q1)
        c.moveJ(q0, 0.2, 2.0, True)
        result["running"] = until(running)
        until(lambda: not running())
        result["error_back"] = arrived(q0)
        c.moveJ(q1, 0.1, 2.0, True)
        until(lambda: speed() > 0.05)
        c.stopJ(5.0)
        until(lambda: speed() == 0.0)
        result["stopped_short"] = error(q1)
        result["speed"] = speed()
        c.moveJ(q0, 1.0, 2.0)
        """,
        END,
    )
    assert result["moved"]
    assert result["error"] < 2e-3
    assert result["running"]
    assert result["error_back"] < 2e-3
    assert result["stopped_short"] > 0.1
    assert result["speed"] == pytest.approx(0.0, abs=1e-9)


def test_streamed_speeds_and_positions(host: str) -> None:
    result = run_client(
        host,
        CONTROL,
        """
        for _ in range(150):
            period = c.initPeriod()
            c.speedJ([0, 0, 0, 0, 0, 0.3], 2.0, 0.002)
            c.waitPeriod(period)
        result["speed"] = r.getTargetQd()
        result["stopped"] = c.speedStop()
        until(lambda: speed() == 0.0)
        result["rest"] = speed()
        q = r.getTargetQ()
        goal = q[4] + 0.05
        for _ in range(400):
            period = c.initPeriod()
            q[4] += 0.2 * (goal - q[4])
            result["servo"] = c.servoJ(q, 0.5, 0.5, 0.002, 0.05, 500)
            c.waitPeriod(period)
        result["servo_stop"] = c.servoStop()
        until(lambda: abs(r.getTargetQ()[4] - goal) < 5e-3)
        result["servo_error"] = abs(r.getTargetQ()[4] - goal)
        """,
        END,
    )
    assert result["speed"][5] == pytest.approx(0.3, abs=0.02)
    assert result["stopped"]
    assert result["rest"] == pytest.approx(0.0, abs=1e-9)
    assert result["servo"]
    assert result["servo_stop"]
    assert result["servo_error"] < 5e-3


def test_straight_moves_and_kinematics(host: str) -> None:
    result = run_client(
        host,
        CONTROL,
        """
        q0 = r.getActualQ()
        pose = r.getActualTCPPose()
        result["forward"] = [pose, c.getForwardKinematics()]
        result["inverse"] = [r.getTargetQ(), c.getInverseKinematics(pose)]
        bend = [a + b for a, b in zip(q0, (0.1, -0.2, 0.3, 0.1, 0.2, 0.0))]
        c.moveJ(bend, 1.0, 2.0)
        arrived(bend)
        goal = r.getActualTCPPose()
        goal[2] += 0.05
        result["moved"] = c.moveL(goal, 0.25, 1.2)
        until(lambda: abs(r.getActualTCPPose()[2] - goal[2]) < 1e-3)
        result["pose"] = [goal, r.getActualTCPPose()]
        result["limits"] = [c.isPoseWithinSafetyLimits(goal), c.isJointsWithinSafetyLimits([7] * 6)]
        c.moveJ(q0, 1.0, 2.0)
        """,
        END,
    )
    assert result["forward"][0] == pytest.approx(result["forward"][1], abs=1e-3)
    assert result["inverse"][0] == pytest.approx(result["inverse"][1], abs=5e-3)
    assert result["moved"]
    assert result["pose"][0][:3] == pytest.approx(result["pose"][1][:3], abs=2e-3)
    assert result["limits"] == [True, False]


def test_payload_slider_signals_and_script(host: str) -> None:
    result = run_client(
        host,
        CONTROL,
        """
        result["payload_set"] = c.setPayload(1.2, [0.01, 0.02, 0.03])
        result["slider_set"] = io.setSpeedSlider(0.5)
        io.setStandardDigitalOut(3, True)
        io.setAnalogOutputVoltage(0, 0.5)
        until(lambda: r.getPayload() > 1.0 and r.getStandardAnalogOutput0() > 4.0)
        until(lambda: r.getTargetSpeedFraction() < 0.6 and abs(r.getSpeedScaling() - 1.0) < 1e-6)
        until(lambda: r.getDigitalOutState(3))
        result["payload"] = [r.getPayload(), *r.getPayloadCog()]
        result["slider"] = [r.getTargetSpeedFraction(), r.getSpeedScaling()]
        result["output"] = r.getDigitalOutState(3)
        result["voltage"] = r.getStandardAnalogOutput0()
        io.setSpeedSlider(1.0)
        c.setPayload(0.0, [0.0, 0.0, 0.001])
        result["tcp"] = [c.setTcp([0, 0, 0.1, 0, 0, 0]), c.getTCPOffset()]
        result["running"] = [c.isProgramRunning()]
        c.stopScript()
        result["running"].append(not until(lambda: not c.isProgramRunning()))
        result["uploaded"] = c.reuploadScript()
        result["running"].append(until(c.isProgramRunning))
        result["moves"] = until(lambda: c.moveJ(r.getActualQ(), 1.0, 1.0))
        """,
        END,
    )
    assert result["payload_set"]
    assert result["payload"] == pytest.approx([1.2, 0.01, 0.02, 0.03])
    assert result["slider_set"]
    assert result["slider"] == pytest.approx([0.5, 1.0])  # scaling excludes the slider
    assert result["output"]
    assert result["voltage"] == pytest.approx(5.0)
    assert result["tcp"] == [True, [0, 0, 0.1, 0, 0, 0]]
    assert result["running"] == [True, False, True]
    assert result["uploaded"]
    assert result["moves"]


def test_protective_stop_when_limits_are_exceeded(host: str) -> None:
    result = run_client(
        host,
        CONTROL,
        """
        from dashboard_client import DashboardClient
        q = r.getActualQ()
        q[3] += 10.0
        result["moved"] = c.moveJ(q, 1.0, 2.0)
        result["stopped"] = until(r.isProtectiveStopped)
        d = DashboardClient(host)
        d.connect()
        result["serial"] = d.getSerialNumber()
        result["safety"] = d.safetymode()
        d.closeSafetyPopup()
        d.unlockProtectiveStop()
        result["unlocked"] = until(lambda: not r.isProtectiveStopped())
        c.reuploadScript()
        result["moves"] = until(lambda: c.moveJ(r.getActualQ(), 1.0, 1.0))
        """,
        END,
    )
    assert not result["moved"]
    assert result["stopped"]
    assert result["serial"].startswith("2000000")
    assert result["safety"] == "Safetymode: PROTECTIVE_STOP"
    assert result["unlocked"]
    assert result["moves"]
