"""Ctrl-C raises once, and never leaves a traceback."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from test.identification.exact_arm import ExactArm
from test.interrupting import assert_quiet, interrupted
from ur_energy_model import interrupts


def test_repeated_signals_of_one_interrupt_raise_once(monkeypatch):
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    with interrupts.raised_once():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(interrupts, "ECHO", 0.0)  # a later one
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before


def test_an_interrupt_that_python_swallows_is_raised_later():
    class Thing:
        pass

    things = [Thing()]
    held = weakref.ref(things[0], lambda _: signal.raise_signal(signal.SIGINT))

    def work() -> None:
        with interrupts.raised_once():
            things.clear()  # the callback cannot raise
            threading.Event().wait(30.0)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert held() is None
    assert time.monotonic() - began < 25.0


def test_an_interrupt_during_an_import_is_raised_after_it(tmp_path, monkeypatch):
    source = "import signal\nsignal.raise_signal(signal.SIGINT)\ndone = True\n"
    (tmp_path / "interrupted_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> None:
        with interrupts.raised_once():
            importlib.import_module("interrupted_module")
            threading.Event().wait(30.0)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert sys.modules.pop("interrupted_module").done
    assert time.monotonic() - began < 25.0


def test_a_postponed_interrupt_is_raised_at_the_end():
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)  # receives signals that the main thread blocks
    other.start()
    done = []

    def work() -> None:
        with interrupts.raised_once(), interrupts.postponed():
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            ended.set()
            other.join()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_interrupts_stay_ignored_at_exit():
    code = (
        "import os, signal\nfrom ur_energy_model import interrupts\ninterrupts.ignore()\n"
        "for _ in range(100): os.kill(os.getpid(), signal.SIGINT)\nprint('alive')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "alive\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--robot", "ur5e", "--wait", "60", "-o", "bag"],
        ["excite", "--robot", "ur5e", "--time-limit", "60", "-o", "motion.yaml"],
        ["estimate", "bag", "bag", "--robot", "ur5e", "--workers", "2"],
    ],
    ids=["record", "excite", "workers"],
)
def test_a_command_ends_quietly_whenever_it_is_interrupted(
    arguments: list[str], tmp_path: Path, fresh_host
) -> None:
    """Nothing is left behind: the output's pipe is closed only when all of its processes end."""
    if arguments[0] == "record":
        arguments = [*arguments, "--host", fresh_host()]
    elif arguments[0] == "estimate":
        ExactArm().bag(tmp_path, seed=1, seconds=20)
    delays = [0.0, 0.4, 1.2]
    ends = interrupted("ur_energy", arguments, delays, tmp_path, code=130)
    assert_quiet(ends, 130)
