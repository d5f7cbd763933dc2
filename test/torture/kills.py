"""SIGKILL and SIGSTOP at any moment on `record`, the logger, the estimator and the cell."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

from rosbags.highlevel import AnyReader

from test.torture.harness import PATIENCE, Case, Family, Verdict, Watched
from test.torture.subjects import (
    Recorded,
    check_counts,
    check_duration,
    check_recording,
    end_node,
    no_ros,
    readable_times,
    start_node,
    start_recording,
    stop_recording,
    summary,
)

TARGETS = ("record", "logger", "estimator", "cell")
DURATION = 5.0
FLUSHED = 3.0
"""Age of a bag from which samples in it must survive a kill [s]."""
ALIVE = 3.0
"""Time after which a node must have shown that it works [s]."""


def run(case: Case) -> Verdict:
    """One signal on one process; targets and signals take turns."""
    target = TARGETS[case.number % len(TARGETS)]
    kill = case.number // len(TARGETS) % 2 == 0
    delay = case.random.uniform(0.0, 6.0)
    verdict = Verdict(f"{'SIGKILL' if kill else 'SIGSTOP'} on {target} after {delay:.1f} s")
    if target != "record" and no_ros():
        verdict.skipped = no_ros()
        return verdict
    (_kill if kill else _stop)(case, verdict, target, delay)
    return verdict


def _start(case: Case, target: str, environment: dict[str, str] | None = None) -> Watched:
    if target == "record":
        return start_recording(
            case.around, case.around.host, case.folder, "--duration", str(DURATION)
        )
    return start_node(case, target, environment, robot_ip=case.around.host)


def _kill(case: Case, verdict: Verdict, target: str, delay: float) -> None:
    victim = _start(case, target)
    appeared: dict[Path, float] = {}
    while time.monotonic() - victim.began < delay and victim.running:
        for bag in _bags(case, target):
            appeared.setdefault(bag, time.monotonic())
        time.sleep(0.02)
    killed = time.monotonic()
    victim.send(signal.SIGKILL)
    victim.finish(PATIENCE)
    victim.judge(verdict)
    for bag in _bags(case, target):
        problem = _other_reader(bag)
        verdict.expect(problem is None, f"{bag.name} is not read by rosbags: {problem}")
        age = killed - appeared.get(bag, killed)
        enough = age < FLUSHED or len(readable_times(bag, recover=True)) > 0
        verdict.expect(enough, f"{bag.name} has nothing readable after {age:.1f} s")
    _check_state(case, verdict)
    if target == "record":
        return
    again = _start(case, target)
    again.wait(ALIVE)
    verdict.expect(again.running, "the node did not start again")
    end_node(case, again, verdict)
    _check_state(case, verdict)


def _stop(case: Case, verdict: Verdict, target: str, delay: float) -> None:
    environment = None if target == "record" else case.around.ros_environment()
    victim = _start(case, target, environment)
    victim.wait(delay)
    victim.send(signal.SIGSTOP)
    time.sleep(case.random.uniform(0.1, 4.0))
    victim.send(signal.SIGCONT)
    if target == "record":
        code = victim.finish(PATIENCE)
        victim.judge(verdict, (0, 1, 3))
        summed = summary(victim.output)
        if summed is not None:
            recorded = Recorded.of(readable_times(case.folder / "bag"), summed)
            check_counts(verdict, recorded)
            check_duration(verdict, recorded, DURATION, code)
        return
    victim.wait(ALIVE)
    verdict.expect(victim.running, "the node ended by itself")
    if environment is not None and target != "estimator":
        told = stop_recording(environment, patience=PATIENCE)
        verdict.expect(told is not None, "the logger tells of no recording")
        check_recording(case, verdict, told)
    end_node(case, victim, verdict)
    _check_state(case, verdict)


def _other_reader(bag: Path) -> str | None:
    """Why another reader does not read a bag in order; None if it does, or nothing is in it yet."""
    if not (bag / "metadata.yaml").exists():
        return None
    try:
        with AnyReader([bag]) as reader:
            times = [stamp for _, stamp, _ in reader.messages()]
    except Exception as error:
        return str(error)
    return None if times == sorted(times) else "not in order"


def _bags(case: Case, target: str) -> list[Path]:
    bags = [case.folder / "bag"] if target == "record" else (case.folder / "bags").glob("*")
    return sorted(bag for bag in bags if bag.is_dir())


def _check_state(case: Case, verdict: Verdict) -> None:
    """The state file, where there is one, is whole."""
    path = case.folder / "state.json"
    if path.exists():
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            verdict.problems.append(f"the state file is damaged: {error}")


FAMILY = Family("kills", 3.0, run, at_once=2)
