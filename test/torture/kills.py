# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SIGKILL and SIGSTOP at any moment on `record`, the logger, the estimator and the cell."""

from __future__ import annotations

import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from rosbags.highlevel import AnyReader

from test.torture.harness import PATIENCE, Case, Family, Verdict
from test.torture.subjects import Subject, readable_times

TARGETS = ("record", "logger", "estimator", "cell")
FLUSHED = 3.0  # age of a bag from which samples in it must survive a kill [s]
ALIVE = 3.0  # time after which a node must have shown that it works [s]


def run(case: Case) -> Verdict:
    """One signal on one process; targets and signals take turns."""
    target = TARGETS[case.number % len(TARGETS)]
    kill = case.number // len(TARGETS) % 2 == 0
    delay = case.random.uniform(0.0, 6.0)
    verdict = Verdict(
        f"{'SIGKILL' if kill else 'SIGSTOP'} on {target} after {delay:.1f} s"
    )
    subject = Subject(case, verdict, target, case.around.host)
    if kill:
        _kill(subject, verdict, delay)
        if target != "record":
            _check_state(case, verdict)
            again = Subject(case, verdict, target, case.around.host)
            again.process.wait(ALIVE)
            verdict.expect(again.process.running, "the node did not start again")
            again.end()
    else:
        subject.process.wait(delay)
        subject.process.send(signal.SIGSTOP)
        time.sleep(case.random.uniform(0.1, 4.0))
        subject.process.send(signal.SIGCONT)
        if target != "record":
            subject.process.wait(ALIVE)
        told = subject.conclude(patience=PATIENCE)
        reported = told is not None or target in ("record", "estimator")
        verdict.expect(reported, "the logger tells of no recording")
    _check_state(case, verdict)
    return verdict


def _kill(subject: Subject, verdict: Verdict, delay: float) -> None:
    """What is left is read by others in order, and has samples unless it is very young."""
    victim = subject.process
    appeared = dict[Path, float]()
    while time.monotonic() - victim.began < delay and victim.running:
        for bag in subject.bags:
            appeared.setdefault(bag, time.monotonic())
        time.sleep(0.02)
    killed = time.monotonic()
    victim.send(signal.SIGKILL)
    victim.finish()
    victim.judge(verdict)
    for bag in subject.bags:
        if (bag / "metadata.yaml").exists():
            try:
                with AnyReader([bag]) as reader:
                    times = [stamp for _, stamp, _ in reader.messages()]
                problem = "" if times == sorted(times) else "not in order"
            except Exception as error:  # whatever that reader raises
                problem = str(error)
            verdict.expect(not problem, f"{bag.name} is not read by rosbags: {problem}")
        age = killed - appeared.get(bag, killed)
        enough = age < FLUSHED or len(readable_times(bag, recover=True)) > 0
        verdict.expect(enough, f"{bag.name} has nothing readable after {age:.1f} s")


def _check_state(case: Case, verdict: Verdict) -> None:
    """The state file, where there is one, is whole."""
    path = case.folder / "state.db"
    if path.exists():
        try:
            with closing(sqlite3.connect(path)) as file:
                found = file.execute("PRAGMA integrity_check").fetchone()[0]
        except sqlite3.Error as error:
            found = str(error)
        verdict.expect(found == "ok", f"the state file is damaged: {found}")


FAMILY = Family("kills", 3.0, run, at_once=2)
