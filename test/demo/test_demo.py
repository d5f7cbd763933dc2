# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The demo end to end: results against the true values, files, and interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ur_energy_model.cli.main import main
from ur_energy_model.demo import results
from ur_energy_model.demo.processes import Processes
from ur_energy_model.demo.run import MARK, _fresh_folder
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.interrupts import raised_once


def children_of(session_text: str) -> list[str]:
    """Command lines of running processes that mention a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if session_text in line and int(path.parent.name) != os.getpid():
            found.append(line)
    return found


def _wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds, at most this long; returns whether it does."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return met


def test_demo_finds_the_energy_of_the_simulated_arm(
    tmp_path: Path,
    fresh_host: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # figures take a third of the time
    monkeypatch.setattr(results, "save_chart", lambda *_: [])
    output = tmp_path / "demo_output"
    words = ["--robot", "ur5", "--seed", "7", "--host", fresh_host(), "--seconds", "6"]
    assert main(["demo", *words, "-o", str(output)]) == 0
    shown = capsys.readouterr()
    result = json.loads((output / "result.json").read_text())
    truth = result["truth"]
    estimate = result["estimate"]
    assert estimate["bus_energy"] == pytest.approx(truth["bus_energy"], rel=0.01)
    assert estimate["total"]["supply_energy"] == pytest.approx(
        truth["bus_energy"], rel=0.03
    )
    assert estimate["total"]["electrical_energy"] == pytest.approx(
        sum(truth["electrical_energy"]), rel=0.06
    )
    assert "samples lost by the logger: 0" in shown.err
    assert "live /energy/total/energy" in shown.err
    names = [line.split()[0] for line in shown.out.rpartition(":\n")[2].splitlines()]
    assert {"model.yaml", "result.json", "truth_trajectory_b.json"} <= set(names)
    assert all((output / name).exists() for name in names)
    assert not children_of(str(output))


def test_demo_leaves_nothing_running_when_interrupted(
    tmp_path: Path, fresh_host: Callable[[], str]
) -> None:
    output = str(tmp_path / "demo_output")
    command = [sys.executable, "-m", "ur_energy_model.cli.main", "demo"]
    with subprocess.Popen(
        [*command, "--host", fresh_host(), "-o", output], stderr=subprocess.DEVNULL
    ) as demo:
        # the simulated arm, too
        assert _wait_for(lambda: len(children_of(output)) > 1, 240.0)
        demo.send_signal(signal.SIGINT)
        demo.wait(timeout=240)
    assert demo.returncode == 130
    assert not children_of(output)


def test_processes_report_a_child_that_ended_and_take_sigterm_like_ctrl_c(
    tmp_path: Path,
) -> None:
    with Processes(tmp_path, {}) as processes:
        processes.start(
            "short", [sys.executable, "-c", "print('over'); raise SystemExit(3)"]
        )
        with pytest.raises(UrEnergyError, match="short ended with exit code 3"):
            processes.wait_until(lambda: False, "short", timeout=240.0)
        assert processes.log("short").read_text() == "over\n"
    seconds = f"1000.{os.getpid()}"

    def interrupted() -> None:
        with raised_once(), Processes(tmp_path, {}) as processes:
            processes.start("sleeper", ["sleep", seconds])
            assert _wait_for(lambda: bool(children_of(f"sleep {seconds}")), 240.0)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not children_of(f"sleep {seconds}")


def test_a_folder_not_made_by_the_demo_is_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not from an earlier demo"):
        _fresh_folder(tmp_path)
    (tmp_path / MARK).touch()
    assert _fresh_folder(tmp_path) == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == [MARK]
