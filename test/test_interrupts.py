# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ctrl-C raises once, and never leaves a traceback."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from test.identification.exact_arm import ExactArm
from test.interrupting import assert_quiet, interrupted
from ur_energy_model import interrupts


def _raises(number: int) -> bool:
    """Whether a signal raises; the exit code of a command is then that of a shell."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt as interrupt:
        return interrupts.exit_code(interrupt) == 128 + number
    return False


@pytest.mark.parametrize("number", interrupts.END_SIGNALS)
def test_repeated_signals_of_one_request_raise_once(number: int) -> None:
    before = (
        [signal.getsignal(each) for each in interrupts.END_SIGNALS],
        sys.unraisablehook,
    )
    for echo, later in ((interrupts.ECHO, False), (0.0, True), (math.inf, False)):
        with interrupts.raised_once(echo):
            assert _raises(number)
            assert _raises(signal.SIGTERM) is later
    after = (
        [signal.getsignal(each) for each in interrupts.END_SIGNALS],
        sys.unraisablehook,
    )
    assert after == before


def test_a_signal_that_is_ignored_at_the_start_remains_ignored() -> None:
    """As after nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stopped = []
    try:
        with interrupts.raised_once(), interrupts.postponed():
            assert not _raises(signal.SIGHUP)
        with interrupts.on_stop_signal(lambda: stopped.append(True)):
            assert not _raises(signal.SIGHUP)
        interrupts.forward(signal.SIGHUP, signal.SIGKILL)
        assert interrupts.is_ignored(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not stopped


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


def test_a_postponed_interrupt_is_raised_at_the_end():
    ended = threading.Event()
    # receives signals that the main thread blocks
    other = threading.Thread(target=ended.wait)
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "--robot", "ur5e", "--wait", "60", "-o", "bag"],
        ["estimate", "bag", "bag", "--robot", "ur5e", "--workers", "2"],
    ],
    ids=["record", "workers"],
)
def test_a_command_ends_quietly_whenever_it_is_interrupted(
    arguments: list[str], tmp_path: Path, fresh_host
) -> None:
    """Nothing is left behind: the output's pipe is closed only when all of its processes end."""
    if arguments[0] == "record":
        arguments = [*arguments, "--host", fresh_host()]
    elif arguments[0] == "estimate":
        ExactArm().bag(tmp_path, seed=1, seconds=20)
    delays = [0.0, 1.2]
    ends = interrupted("ur_energy", arguments, delays, tmp_path)
    assert_quiet(ends, 130)
