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
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import ClassVar

from test.running import claim_domain, fresh_host, simulator_command

MEMORY_LIMIT = 500.0
"""Most memory of a process [MB]."""


@dataclass
class Verdict:
    """What one case found.

    Attributes:
        name: the fault that was tried.
        problems: what did not hold, one line each.
        memory: largest peak memory of the processes concerned [MB].
        seconds: longest time of one action under test [s].
        skipped: why the case could not be run; empty if it was.
    """

    name: str
    problems: list[str] = field(default_factory=list)
    memory: float = 0.0
    seconds: float = 0.0
    skipped: str = ""

    def expect(self, condition: bool, problem: str) -> bool:
        """Note a problem unless the condition holds; returns the condition."""
        if not condition:
            self.problems.append(problem)
        return condition

    def weigh(self, memory: float) -> None:
        """Take the peak memory of a process into account [MB]."""
        self.memory = max(self.memory, memory)


@dataclass(frozen=True)
class Case:
    """One case of a family: what it may use, and the random numbers that determine it.

    Attributes:
        number: number of the case in its family.
        random: random numbers of this case alone, so that it can be repeated alone.
        folder: empty folder of the case.
        around: what cases share.
    """

    number: int
    random: Random
    folder: Path
    around: Surroundings


@dataclass(frozen=True)
class Family:
    """A family of faults.

    Attributes:
        name: for the table and `--only`.
        share: of the total time.
        run: runs one case.
        count: most cases, None for as many as the time allows.
        finish: checks after the last case what the cases share; None if there is nothing.
        at_once: cases that run at the same time, where they mostly wait.
    """

    name: str
    share: float
    run: Callable[[Case], Verdict]
    count: int | None = None
    finish: Callable[[Surroundings], Verdict] | None = None
    at_once: int = 1


PATIENCE = 45.0
"""Longest wait for the start or the end of a process [s]; a bound, not an expectation."""
ROOT = Path(__file__).resolve().parents[2]


class Surroundings:
    """Started on first use, ended with the block."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="torture_"))
        self._held.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._lock = threading.RLock()
        self._robot: tuple[str, Watched] | None = None
        self._other: tuple[str, Watched] | None = None
        self.kept: dict[str, object] = {}
        """What the cases of a family keep for their next ones, by name."""

    def __enter__(self) -> Surroundings:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        Watched.kill_the_rest()

    def at_end(self, action: object, *arguments: object) -> None:
        """Call `action` with arguments when the block ends."""
        self._held.callback(action, *arguments)  # type: ignore[arg-type]

    @property
    def host(self) -> str:
        """Address of a simulated controller in a process of its own, which moves its arm."""
        with self._lock:
            if self._robot is None or not self._robot[1].running:
                self._robot = self.start_robot("--motion", "trajectory_a")
            return self._robot[0]

    @property
    def other_host(self) -> str:
        """Address of another simulated controller: another arm of the same model."""
        with self._lock:
            if self._other is None or not self._other[1].running:
                self._other = self.start_robot("--motion", "trajectory_a", "--seed", "5")
            return self._other[0]

    def start_robot(self, *options: str) -> tuple[str, Watched]:
        """Start another simulated controller; returns its address and process.

        Raises:
            RuntimeError: it did not start.
        """
        host = fresh_host()
        robot = Watched(simulator_command(host, *options), self.folder, self.environment)
        self._held.callback(robot.end, PATIENCE)
        if not robot.wait_for(f"ready {host}", PATIENCE):
            raise RuntimeError(f"the simulated controller did not start: {robot.output}")
        return host, robot

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the processes under test: this tree, one thread each."""
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def ros_environment(self) -> dict[str, str]:
        """Variables of ROS nodes in a domain of their own on this machine.

        Raises:
            RuntimeError: all domains are taken.
        """
        with self._lock:
            domain = claim_domain(self._held)
        if domain is None:
            raise RuntimeError("all ROS domains are taken")
        return {
            **self.environment,
            "ROS_DOMAIN_ID": str(domain),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(self.folder / "ros_log"),
        }

    @property
    def model(self) -> Path:
        """A model file of a UR5e."""
        path = self.folder / "model.yaml"
        with self._lock:
            if not path.exists():
                from test.energy.known_arm import known_model
                from ur_energy_model.model.model_file import save_model

                save_model(known_model(), path)
        return path


def command(*arguments: str) -> list[str]:
    """Command line of `ur_energy`."""
    return [sys.executable, "-m", "ur_energy_model.cli.main", *arguments]


SAMPLING = 0.05
"""Period of the memory measurement [s]."""
ADDRESS_SPACE = 6 << 30
"""Bound of the address space of a process [bytes]: what runs wild must not end the machine."""
_COMPLAINTS = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored|Fatal Python error|"
    r"Segmentation fault|terminate called|exceptiongroup"
)
_CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}


def peak_memory(pid: int) -> float:
    """Peak memory of a running process [MB], 0 if it has ended."""
    with suppress(OSError, ValueError):
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        match = re.search(r"VmHWM:\s+(\d+) kB", text)
        return int(match[1]) / 1024 if match else 0.0
    return 0.0


def complaint(output: str) -> str | None:
    """The lines of an output around a traceback or the like; None without one."""
    match = _COMPLAINTS.search(output)
    if match is None:
        return None
    lines = [line for line in output[match.start() :].splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return " / ".join([lines[0], *raised[:1]])[:300]


class Watched:
    """A process in a session of its own; what it prints goes to a file.

    Args:
        command: to run.
        folder: to run in; its output goes to a file there.
        environment: variables; those of this process by default.
    """

    _started: ClassVar[list[Watched]] = []

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
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
        with suppress(OSError):
            resource.prlimit(self.pid, resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        self._code: int | None = None
        self._ended = threading.Event()
        for work in (self._reap, self._sample):
            threading.Thread(target=work, daemon=True).start()
        self._started.append(self)

    @classmethod
    def kill_the_rest(cls) -> None:
        """Kill the processes that cases left behind, such as after an error of the harness."""
        for each in cls._started:
            if each.running:
                each.finish(0.0)
        cls._started.clear()

    @property
    def pid(self) -> int:
        """Process number."""
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
                os.kill(self.pid, number)

    def wait(self, seconds: float) -> int | None:
        """Exit code, None if it has not ended within this time."""
        self._ended.wait(seconds)
        return self._code

    def wait_for(self, text: str, seconds: float) -> bool:
        """Wait until it has printed a text; returns False if it has not, or has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if text in self.output:
                return True
            if not self.running:
                return text in self.output
            time.sleep(SAMPLING)
        return False

    def end(self, seconds: float, number: int = signal.SIGINT) -> int:
        """Ask it to end, and kill it if it does not within this time; returns the exit code."""
        self.send(number)
        return self.finish(seconds)

    def finish(self, seconds: float) -> int:
        """Wait for its end, and kill it if that takes longer; returns the exit code."""
        code = self.wait(seconds)
        if code is None:
            self.hung = True
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            self._ended.wait()
        return -signal.SIGKILL if self._code is None else self._code

    def judge(self, verdict: Verdict, codes: Sequence[int] | None = None) -> None:
        """Note tracebacks, crashes, hangs, too much memory, and an exit code not in `codes`."""
        verdict.weigh(self.memory)
        verdict.expect(not self.hung, "hang: it did not end in time and was killed")
        found = complaint(self.output)
        verdict.expect(found is None, f"traceback: {found}")
        limit = f"memory: {self.memory:.0f} MB, limit {MEMORY_LIMIT:.0f} MB"
        verdict.expect(self.memory < MEMORY_LIMIT, limit)
        code = self._code
        if code is None or self.hung:
            return
        verdict.expect(code not in _CRASHES, f"crash: exit code {code}")
        if codes is not None:
            last = (self.output.strip().splitlines() or ["no output"])[-1]
            verdict.expect(code in codes, f"exit code {code}, not {[*codes]}: {last[:200]}")

    def _sample(self) -> None:
        while self.running:
            self.memory = max(self.memory, peak_memory(self.pid))
            time.sleep(SAMPLING)

    def _reap(self) -> None:
        """Wait for the end; the exact peak is known then, where it is above that of the harness.

        The kernel's figure begins with the memory of the process that starts another.
        """
        _, status, usage = os.wait4(self.pid, 0)
        if usage.ru_maxrss / 1024 > peak_memory(os.getpid()) + 1.0:
            self.memory = max(self.memory, usage.ru_maxrss / 1024)
        self._code = self._child.returncode = os.waitstatus_to_exitcode(status)
        self._ended.set()


_HEAD = ("family", "cases", "skipped", "failures", "worst memory [MB]", "longest time [s]")


@dataclass
class Result:
    """What the cases of one family found.

    Attributes:
        family: name.
        verdicts: by case, in order.
    """

    family: str
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)

    @property
    def failed(self) -> list[tuple[str, Verdict]]:
        """Cases with problems."""
        return [(case, verdict) for case, verdict in self.verdicts if verdict.problems]

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of the table."""
        verdicts = [verdict for _, verdict in self.verdicts]
        skipped = [verdict for verdict in verdicts if verdict.skipped]
        memory = max((verdict.memory for verdict in verdicts), default=0.0)
        longest = max((verdict.seconds for verdict in verdicts), default=0.0)
        counts = (len(verdicts) - len(skipped), len(skipped), len(self.failed))
        return (self.family, *map(str, counts), f"{memory:.0f}", f"{longest:.1f}")


def run_families(
    families: Sequence[Family], seed: int, seconds: float, only_case: int | None = None
) -> list[Result]:
    """Run each family for its share of the time.

    Args:
        families: to run.
        seed: of all random numbers.
        seconds: for all together.
        only_case: number of the only case to run; None for all.
    """
    total = sum(family.share for family in families)
    results: list[Result] = []
    end = time.monotonic()
    with Surroundings() as around:
        for family in families:
            end += seconds * family.share / total  # what one overruns, the next ones do not have
            results.append(_run_family(family, seed, end, only_case, around))
            print(_line(results[-1].row), flush=True)
    return results


def _run_family(
    family: Family, seed: int, end: float, only_case: int | None, around: Surroundings
) -> Result:
    result = Result(family.name)
    numbers = iter(range(family.count or sys.maxsize) if only_case is None else [only_case])
    following = threading.Lock()

    def run_cases() -> None:
        first = True
        while first or time.monotonic() < end:
            first = False
            with following:
                number = next(numbers, None)
            if number is None:
                return
            folder = around.folder / f"{family.name}_{number}"
            folder.mkdir()
            case = Case(number, Random(f"{seed}/{family.name}/{number}"), folder, around)
            result.verdicts.append((str(number), _guarded(family, case)))

    with ThreadPoolExecutor(family.at_once) as pool:
        for done in [pool.submit(run_cases) for _ in range(family.at_once)]:
            done.result()
    result.verdicts.sort(key=lambda item: int(item[0]))
    if family.finish is not None:
        result.verdicts.append(("end", family.finish(around)))
    return result


def _guarded(family: Family, case: Case) -> Verdict:
    """Run a case; whatever goes wrong in the harness itself counts as a failure too."""
    began = time.monotonic()
    try:
        verdict = family.run(case)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        verdict = Verdict("the harness itself")
        verdict.problems.append(f"{type(error).__name__} at {place.name}:{place.lineno}: {error}")
    verdict.seconds = verdict.seconds or time.monotonic() - began
    return verdict


def report(results: Iterable[Result], seed: int) -> int:
    """Print the table, what was skipped and what failed; returns the exit code."""
    results = list(results)
    print("\n" + _line(_HEAD))
    for result in results:
        print(_line(result.row))
    for result in results:
        for reason in sorted({verdict.skipped for _, verdict in result.verdicts} - {""}):
            print(f"skipped in {result.family}: {reason}")
    failures = [(result.family, *failed) for result in results for failed in result.failed]
    for family, case, verdict in failures:
        print(f"\nFAILED {family} case {case}: {verdict.name}")
        for problem in verdict.problems:
            print(f"  {problem}")
        repeat = "" if case == "end" else f" --case {case}"
        print(f"  repeat: python -m test.torture --seed {seed} --only {family}{repeat}")
    print(f"\nseed {seed}: {len(failures)} failures")
    return 1 if failures else 0


def _line(cells: Sequence[str]) -> str:
    name, *others = cells
    widths = [len(cell) + 2 for cell in _HEAD[1:]]
    return f"{name:10}" + "".join(f"{cell:>{n}}" for cell, n in zip(others, widths, strict=True))
