"""SIGKILL at any moment on `history add`, alone or beside another one.

The store must read at any time, with all rows of the sources that are complete; adding again must
make it the store that was never disturbed.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from test.plant.made_up_bags import HOUR, NOON, Session, complete_sources, file_count, rows
from test.torture.harness import Case, Family, Verdict, Watched, command
from ur_energy_model.plant.store import HistoryStore

STARTS = (0, HOUR, HOUR + 4 * 10**9, 12 * HOUR - 3 * 10**9, 0, HOUR)
"""Of bags of two arms, two of which overlap; one crosses midnight."""
ADDED_AGAIN = 60.0  # time to add all bags [s]


def start(case: Case, store: Path) -> Watched:
    """Start `history add` of all bags."""
    paths = [case.around.folder / "history_bags" / f"bag_{k}" for k in range(len(STARTS))]
    for k, path in enumerate(paths):
        if not path.exists():
            Session(at=NOON + STARTS[k], serial=f"arm-{k // 4}", shift=k, cycle=1.0).bag(path)
    words = [str(store), *map(str, paths), "--model", str(case.around.model), "--workers", "1"]
    return Watched(command("history", "add", *words), case.folder, case.around.environment)


def run(case: Case) -> Verdict:
    """One kill; every third time another adder is at work."""
    whole, store = case.around.folder / "history_whole", case.folder / "store"
    if not (whole / "sources").exists():
        start(case, whole).finish()
    two, random = case.number % 3 == 2, case.random
    files = random.randrange(0, 20)
    verdict = Verdict(f"SIGKILL after {files} files{' beside another adder' if two else ''}")
    victim = start(case, store)
    other = start(case, store) if two else None
    while victim.running and file_count(store) < files:
        time.sleep(0.001)
    victim.wait(random.uniform(0.0, 0.02) if files else random.uniform(0.0, 2.0))
    victim.send(signal.SIGKILL)
    victim.finish()
    if other is not None:
        other.finish()
        other.judge(verdict)
    _check(verdict, store)
    again = start(case, store)
    verdict.expect(again.finish(ADDED_AGAIN) == 0, "adding again failed")
    again.judge(verdict)
    _check(verdict, store)
    for table in ("seconds", "cycles"):
        same = rows(store, table) == rows(whole, table)
        verdict.expect(two or same, f"{table} is not what it is without a kill")
    complete = len(complete_sources(store))
    verdict.expect(complete == len(STARTS), f"{complete} of {len(STARTS)} sources are complete")
    warnings = HistoryStore(store).holdings().warnings
    verdict.expect(not warnings, f"the store has warnings: {warnings}")
    times = [sum(row["accounted"] for row in rows(each)) for each in (store, whole)]
    verdict.expect(abs(times[0] - times[1]) < 0.02, f"time differs: {times}")
    return verdict


def _check(verdict: Verdict, store: Path) -> None:
    """The store reads, and no complete source lacks rows of its record."""
    try:
        found = rows(store)
    except Exception as error:  # whatever a reader raises
        verdict.problems.append(f"the store does not read: {error}")
        return
    for row in complete_sources(store):
        count, stated = sum(each["source"] == row["source"] for each in found), row["seconds"]
        verdict.expect(count == stated, f"{row['bag']} has {count} rows of {stated}")


FAMILY = Family("history", 1.0, run)
