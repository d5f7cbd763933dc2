"""SIGKILL at any moment on `history add`, alone or beside another one.

The store must read at any time, with all rows of the sources that are complete; adding again must
make it the store that was never disturbed.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from test.plant.made_up_bags import HOUR, NOON, Session, file_count, rows
from test.torture.harness import PATIENCE, Case, Family, Surroundings, Verdict, Watched, command
from ur_energy_model.plant.store import HistoryStore

BAGS = 6
ADDED_AGAIN = 60.0
"""Time to add all bags [s]."""


def bags_of(around: Surroundings) -> list[Path]:
    """Bags of two arms, two of which overlap; one crosses midnight."""
    folder = around.folder / "history_bags"
    at = (0, HOUR, HOUR + 4 * 10**9, 12 * HOUR - 3 * 10**9, 0, HOUR)
    paths = [folder / f"bag_{k}" for k in range(BAGS)]
    for k, path in enumerate(paths):
        if not path.exists():
            Session(at=NOON + at[k], serial=f"arm-{k // 4}", shift=k, cycle=1.0).bag(path)
    return paths


def start(case: Case, store: Path) -> Watched:
    """Start `history add` of all bags."""
    arguments = [str(store), *map(str, bags_of(case.around)), "--model", str(case.around.model)]
    return Watched(
        command("history", "add", *arguments, "--workers", "1"),
        case.folder,
        case.around.environment,
    )


def run(case: Case) -> Verdict:
    """One kill; every third time another adder is at work."""
    whole = case.around.folder / "history_whole"
    if not (whole / "sources").exists():
        start(case, whole).finish(PATIENCE)
    store, two = case.folder / "store", case.number % 3 == 2
    random = case.random
    files = random.randrange(0, 20)
    verdict = Verdict(f"SIGKILL after {files} files{' beside another adder' if two else ''}")
    victim = start(case, store)
    other = start(case, store) if two else None
    while victim.running and file_count(store) < files:
        time.sleep(0.001)
    victim.wait(random.uniform(0.0, 0.02) if files else random.uniform(0.0, 2.0))
    victim.send(signal.SIGKILL)
    victim.finish(PATIENCE)
    if other is not None:
        other.finish(PATIENCE)
        other.judge(verdict)
    _check(verdict, store)
    again = start(case, store)
    verdict.expect(again.finish(ADDED_AGAIN) == 0, "adding again failed")
    again.judge(verdict)
    for table in ("seconds", "cycles"):
        same = rows(store, table) == rows(whole, table)
        verdict.expect(two or same, f"{table} is not what it is without a kill")
    complete = {record.source for record in HistoryStore(store).sources()}
    verdict.expect(len(complete) == BAGS, f"{len(complete)} of {BAGS} sources are complete")
    _check(verdict, store)
    warnings = HistoryStore(store).holdings().warnings
    verdict.expect(not warnings, f"the store has warnings: {warnings}")
    accounted = [sum(row["accounted"] for row in rows(each)) for each in (store, whole)]
    verdict.expect(abs(accounted[0] - accounted[1]) < 0.02, f"time differs: {accounted}")
    return verdict


def _check(verdict: Verdict, store: Path) -> None:
    """The store reads, and no complete source lacks rows of its record."""
    try:
        found = rows(store)
    except Exception as error:  # whatever a reader says
        verdict.problems.append(f"the store does not read: {error}")
        return
    for record in HistoryStore(store).sources():
        count = sum(row["source"] == record.source for row in found)
        verdict.expect(
            count == record.rows["seconds"],
            f"{record.bag} has {count} rows of {record.rows['seconds']}",
        )


FAMILY = Family("history", 1.0, run)
"""Kills of `history add`."""
