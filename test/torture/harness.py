# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Families of faults, the processes they are tried on, and what was found."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from test.energy.known_arm import known_model
from test.running import claim_domain, fresh_host, simulator_command
from ur_energy_model.model.model_file import save_model

MEMORY_LIMIT = 500.0  # most memory of a process [MB]
PATIENCE = 45.0
"""Longest wait for the start or the end of a process [s]; a bound, not an expectation."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Verdict:
    """What one case found."""

    name: str  # the fault that was tried
    problems: list[str] = field(default_factory=list)  # what did not hold, one line each
    memory: float = 0.0  # largest peak of the processes concerned [MB]
    seconds: float = 0.0  # longest time of one action under test [s]
    skipped: str = ""  # why the case could not be run

    def expect(self, condition: bool, problem: str) -> bool:
        """Note a problem unless the condition holds; returns the condition."""
        if not condition:
            self.problems.append(problem)
        return condition

    def weigh(self, memory: float) -> None:
        """Take the peak memory of a process into account [MB]."""
        self.memory = max(self.memory, memory)
        limit = f"memory: {memory:.0f} MB, limit {MEMORY_LIMIT:.0f} MB"
        self.expect(memory < MEMORY_LIMIT, limit)

    def time_since(self, began: float) -> None:
        """Take the time of an action into account, which began at this monotonic time [s]."""
        self.seconds = max(self.seconds, time.monotonic() - began)


class Case(NamedTuple):
    """One case of a family."""

    number: int
    random: Random  # of its own
    folder: Path  # empty
    around: Surroundings


class Family(NamedTuple):
    """A family of faults."""

    name: str
    share: float  # of the total time
    run: Callable[[Case], Verdict]
    finish: Callable[[Surroundings], Verdict] | None = None  # checks what the cases share
    at_once: int = 1  # cases that run at the same time, where they mostly wait


# options of the simulated controller that moves its arm
MOVING = ("--motion", "trajectory_a")


class Surroundings:
    """What cases share: started on first use, ended with the block.

    `kept` holds what the cases of a family keep for their next ones, by name.
    """

    def __init__(self) -> None:
        self._held = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="torture_"))
        self._held.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.at_end = self._held.callback
        self._lock = threading.RLock()
        self._controllers: dict[tuple[str, ...], tuple[str, Watched]] = {}
        self.kept: dict[str, Any] = {}
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(":")
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.environment = {**os.environ, "PYTHONPATH": path, **one}

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        for each in Watched.started:  # such as after an error of the harness
            each.finish(0.0)
        Watched.started.clear()

    def controller(self, *options: str) -> tuple[str, Watched]:
        """Address and process of a simulated controller with these options."""
        with self._lock:
            found = self._controllers.get(options)
            if found is None or not found[1].running:
                host = fresh_host()
                process = Watched(
                    simulator_command(host, *options), self.folder, self.environment
                )
                self.at_end(process.end)
                end = time.monotonic() + PATIENCE
                while f"ready {host}" not in process.output:
                    if not process.running or time.monotonic() > end:
                        raise RuntimeError(
                            f"the controller did not start: {process.output}"
                        )
                    time.sleep(SAMPLING)
                found = self._controllers[options] = host, process
            return found

    @property
    def host(self) -> str:
        """Address of a simulated controller that moves its arm."""
        return self.controller(*MOVING)[0]

    def ros_environment(self) -> dict[str, str]:
        """Variables of ROS nodes in a domain of their own on this machine."""
        with self._lock:
            domain = claim_domain(self._held)
        if domain is None:
            raise RuntimeError("all ROS domains are taken")
        ros = {"DOMAIN_ID": str(domain), "AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        ros["LOG_DIR"] = str(self.folder / "ros_log")
        return self.environment | {f"ROS_{name}": value for name, value in ros.items()}

    @property
    def model(self) -> Path:
        """A model file of a UR5e."""
        path = self.folder / "model.yaml"
        with self._lock:
            if not path.exists():
                save_model(known_model(), path)
        return path


def command(*arguments: str) -> list[str]:
    """Command line of `ur_energy`."""
    return [sys.executable, "-m", "ur_energy_model.cli.main", *arguments]


SAMPLING = 0.05  # period of the memory measurement [s]
ADDRESS_SPACE = 6 << 30
"""Bound of the address space of a process [bytes]: what runs wild must not end the machine."""
_COMPLAINTS = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored|Fatal Python error|"
    r"Segmentation fault|terminate called"
)
_CRASHES = {
    -signal.SIGSEGV,
    -signal.SIGABRT,
    -signal.SIGBUS,
    -signal.SIGFPE,
    -signal.SIGILL,
}


def bound_memory(pid: int) -> None:
    """Bound the address space of a process."""
    with suppress(OSError):
        resource.prlimit(pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


def peak_memory(pid: int) -> float:
    """Peak memory of a running process [MB], 0 if it has ended."""
    with suppress(OSError):
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(match[1]) / 1024 if match else 0.0
    return 0.0


class Watched:
    """A process in a session of its own, in a folder; what it prints goes to a file there."""

    started: ClassVar[list[Watched]] = []

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        with_children: bool = True,
    ) -> None:
        """Start it; its memory is the largest of its own and that of the children it waits for."""
        self._with_children = with_children
        self.began = time.monotonic()
        self.memory = 0.0
        self.hung = False
        self._path = folder / f"output_{time.monotonic_ns()}.txt"
        with self._path.open("wb") as file:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        bound_memory(self._child.pid)
        self._code = 0
        self._ended = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()
        self.started.append(self)

    def _watch(self) -> None:
        """Sample the memory until the end; the kernel knows the exact peak then.

        Its figure begins with the memory of the process that starts another, so it counts
        only above that of the harness.
        """
        ended = 0
        while not ended:
            self.memory = max(self.memory, peak_memory(self._child.pid))
            ended, status, usage = os.wait4(self._child.pid, os.WNOHANG)
            time.sleep(0.0 if ended else SAMPLING)
        if (
            self._with_children
            and usage.ru_maxrss / 1024 > peak_memory(os.getpid()) + 1.0
        ):
            self.memory = max(self.memory, usage.ru_maxrss / 1024)
        self._code = self._child.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended.is_set()

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._path.read_text(encoding="utf-8", errors="replace")

    def send(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end, at most this long; returns whether it has ended."""
        return self._ended.wait(seconds)

    def end(self) -> int:
        """Ctrl-C, and kill it if it does not end; returns the exit code."""
        self.send(signal.SIGINT)
        return self.finish()

    def finish(self, seconds: float = PATIENCE) -> int:
        """Wait for its end, and kill it if that takes longer; returns the exit code."""
        if not self.wait(seconds):
            self.hung = True
            with suppress(OSError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._ended.wait()
        return self._code

    def judge(self, verdict: Verdict, codes: Sequence[int] | None = None) -> None:
        """Note tracebacks, crashes, hangs, too much memory, and an exit code not in `codes`."""
        output = self.output
        verdict.weigh(self.memory)
        verdict.expect(not self.hung, "hang: it did not end in time and was killed")
        if complaint := _COMPLAINTS.search(output):
            raised = re.search(
                r"(?m)^[\w.]+(?:Error|Exception)\b.*", output[complaint.end() :]
            )
            text = f"{complaint[0]} {'' if raised is None else raised[0]}"
            verdict.problems.append(f"traceback: {text[:300]}")
        if self.running or self.hung:
            return
        verdict.expect(self._code not in _CRASHES, f"crash: exit code {self._code}")
        if codes is not None:
            last = (output.strip().splitlines() or ["no output"])[-1]
            problem = f"exit code {self._code}, not {[*codes]}: {last[:200]}"
            verdict.expect(self._code in codes, problem)


class Tree:
    """A process and all that it starts; `memory` is the peak memory of each by number [MB]."""

    def __init__(self, pid: int) -> None:
        self.memory: dict[int, float] = {pid: 0.0}

    def look(self) -> None:
        """Find new processes, and measure all."""
        for pid in list(self.memory):
            with suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for task in Path(f"/proc/{pid}/task").iterdir():
                    children += (task / "children").read_text().split()
                for child in map(int, children):
                    self.memory.setdefault(child, 0.0)
        for pid in self.living():
            self.memory[pid] = max(self.memory[pid], peak_memory(pid))

    def living(self) -> list[int]:
        """Numbers of the processes that have not ended."""
        return [pid for pid in self.memory if peak_memory(pid) > 0.0]


Results = dict[str, list[tuple[str, Verdict]]]  # by family: each case, and what it found


def run_families(
    families: Sequence[Family], seed: int, seconds: float, only_case: int | None = None
) -> Results:
    """Run each family for its share of the time [s], or only the case of this number."""
    total = sum(family.share for family in families)
    results: Results = {}
    end = time.monotonic()
    with Surroundings() as around:
        for family in families:
            # what one overruns, the next ones do not have
            end += seconds * family.share / total
            found = _run_family(family, seed, end, only_case, around)
            results[family.name] = sorted(found.items(), key=lambda item: int(item[0]))
            if family.finish is not None:
                results[family.name].append(("end", family.finish(around)))
            print(f"{family.name}: {len(found)} cases", flush=True)
    return results


def _run_family(
    family: Family, seed: int, end: float, only_case: int | None, around: Surroundings
) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    numbers = iter(range(sys.maxsize) if only_case is None else [only_case])
    following = threading.Lock()

    def run_cases() -> None:
        while not found or time.monotonic() < end:
            with following:
                number = next(numbers, None)
            if number is None:
                return
            folder = around.folder / f"{family.name}_{number}"
            folder.mkdir()
            case = Case(number, Random(f"{seed}/{family.name}/{number}"), folder, around)
            began = time.monotonic()
            try:
                verdict = family.run(case)
            except Exception as error:  # of the harness itself: a failure too
                place = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__} at {place.name}:{place.lineno}: {error}"
                verdict = Verdict("the harness itself", [what])
            verdict.seconds = verdict.seconds or time.monotonic() - began
            found[str(number)] = verdict

    with ThreadPoolExecutor(family.at_once) as pool:
        for done in [pool.submit(run_cases) for _ in range(family.at_once)]:
            done.result()
    return found


def report(results: Results, seed: int) -> int:
    """Print the table, what was skipped and what failed; returns the exit code."""
    print("\nfamily      cases  skipped  failures  worst memory [MB]  longest time [s]")
    for family, found in results.items():
        verdicts = [verdict for _, verdict in found]
        skipped = sum(bool(verdict.skipped) for verdict in verdicts)
        failed = sum(bool(verdict.problems) for verdict in verdicts)
        memory, longest = (
            max(getattr(v, key) for v in verdicts) for key in ("memory", "seconds")
        )
        cells = (
            f"{len(found) - skipped:7}{skipped:9}{failed:10}{memory:19.0f}{longest:18.1f}"
        )
        print(f"{family:10}{cells}")
        for reason in sorted({verdict.skipped for verdict in verdicts} - {""}):
            print(f"skipped in {family}: {reason}")
    failures = [
        (f, *each) for f, found in results.items() for each in found if each[1].problems
    ]
    for family, case, verdict in failures:
        print(f"\nFAILED {family} case {case}: {verdict.name}")
        print(*(f"  {problem}" for problem in verdict.problems), sep="\n")
        repeat = "" if case == "end" else f" --case {case}"
        print(f"  repeat: python -m test.torture --seed {seed} --only {family}{repeat}")
    print(f"\nseed {seed}: {len(failures)} failures")
    return bool(failures)
