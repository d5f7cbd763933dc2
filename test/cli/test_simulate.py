"""`ur_energy simulate`: its contract with scripts and people."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ur_energy_model.cli.main import main
from ur_energy_model.simulation.faults import FAULTS
from ur_energy_model.telemetry.rtde.source import RtdeSource

Host = Callable[[], str]
Simulate = Callable[..., "subprocess.Popen[str]"]


def ask_dashboard(host: str, line: str) -> str:
    with socket.create_connection((host, 29999), timeout=3.0) as client:
        stream = client.makefile("rw")
        stream.readline()
        stream.write(f"{line}\n")
        stream.flush()
        return stream.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_soon_with_the_truth_written(
    simulate: Simulate, fresh_host: Host, tmp_path: Path, number: signal.Signals
) -> None:
    truth = tmp_path / "truth.json"
    host = fresh_host()
    child = simulate(host, "--motion", "trajectory_a", "--truth", str(truth))
    assert ask_dashboard(host, "programState").startswith("PLAYING")
    child.send_signal(number)
    out, err = child.communicate(timeout=10)
    assert child.returncode == 0, err
    assert out == "", "the line that says ready is all there is on stdout"
    assert "ticks" in err
    content = json.loads(truth.read_text())
    assert content["robot"] == "ur5e"
    assert content["simulated"] is True


def test_a_duration_ends_it_by_itself(simulate: Simulate, fresh_host: Host, tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    child = simulate(
        fresh_host(),
        "--duration",
        "2",
        "--speed",
        "4",
        "--session",
        "2",
        "--truth",
        str(truth),
        robot="ur10",
    )
    child.communicate(timeout=20)
    assert child.returncode == 0
    assert json.loads(truth.read_text())["session"]["number"] == 2


def test_several_robots_stand_side_by_side(simulate: Simulate, fresh_host: Host) -> None:
    first, second = fresh_host(), fresh_host()
    simulate(first, "--seed", "3", "--controller-version", "5.23.0")
    simulate(second, "--motion", "hold", robot="ur5")
    assert ask_dashboard(first, "PolyscopeVersion").startswith("URSoftware 5.23.0.")
    assert ask_dashboard(second, "PolyscopeVersion").startswith("URSoftware 3.15.")
    serials = {ask_dashboard(host, "get serial number") for host in (first, second)}
    assert serials == {"20000000003", "20000000000"}
    assert ask_dashboard(first, "programState") == "PLAYING trajectory_a.urp"
    assert ask_dashboard(second, "programState") == "STOPPED hold.urp"
    for host in (first, second):
        with RtdeSource(host) as source:
            assert source.info.simulated, "what is recorded must not pass for a real arm"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--robot", "ur99"], ["ur99", "no such robot"]),
        (["--robot", "ur5e", "--motion", "dance"], ["dance", "no such motion"]),
        (["--robot", "ur5e", "--fault", "gremlin"], ["gremlin", "stalled_stream"]),
        (["--robot", "ur5e", "--host", "192.168.56.101"], ["192.168.56.101", "--allow-network"]),
        (["--robot", "ur5e", "--host", "robot.example"], ["robot.example", "127.0.0.2"]),
        (["--robot", "ur5", "--controller-version", "5.11.0"], ["5.11.0", "ur5", "3.x"]),
        (["--robot", "ur5e", "--controller-version", "3.15"], ["3.15", "ur5e", "5.x"]),
        (["--robot", "ur5e", "--speed", "0"], ["--speed", "positive"]),
        (["--robot", "ur5e", "--session", "-1"], ["--session", "-1"]),
        (["--robot", "ur5e", "--truth", "/no/such/folder/t.json"], ["/no/such/folder", "folder"]),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    options: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *options]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_an_address_in_use_is_refused(
    simulate: Simulate, fresh_host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host = fresh_host()
    simulate(host, "--motion", "hold")
    assert main(["simulate", "--robot", "ur5e", "--host", host]) == 1
    assert f"{host}: port 30004 cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    [
        ["--controller-version", "five"],
        ["--payload", "heavy"],
        ["--payload", "-1"],
        ["--mounting", "1,2,3"],
        ["--controller", "fuzzy"],
    ],
)
def test_wrong_spelling_is_a_usage_error(option: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["simulate", "--robot", "ur5e", *option])
    assert exit_.value.code == 2


def test_help_has_an_example_and_names_every_fault() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "ur_energy_model.cli.main", "simulate", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "ur_energy simulate --robot ur5e --host 127.0.0.2" in text
    for name in FAULTS:
        assert name in text
