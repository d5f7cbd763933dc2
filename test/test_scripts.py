"""The console scripts, where a package that only some of them need is not installed."""

from __future__ import annotations

import sys

import pytest

from ur_energy_model import scripts


@pytest.mark.parametrize(
    ("module", "remedy"),
    [
        ("numba", "apt install python3-numba"),
        ("rclpy.node", "source ROS 2's setup file"),
        ("rosbags", "pip install rosbags"),
    ],
)
def test_missing_package_is_one_line(
    module: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("ur_energy_model.cli.main.main", main)
    monkeypatch.setattr(scripts, "exit_quietly", lambda code: None)
    monkeypatch.setattr("ur_energy_model.interrupts.ignore", lambda: None)
    assert scripts.ur_energy() == scripts.NOT_INSTALLED
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert module.partition(".")[0] in said
    assert remedy in said


def test_missing_module_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ur_energy_model.cli.main", None)
    monkeypatch.setattr(scripts, "exit_quietly", lambda code: None)
    monkeypatch.setattr("ur_energy_model.interrupts.ignore", lambda: None)
    with pytest.raises(ModuleNotFoundError):
        scripts.ur_energy()
