# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A store that is killed, written by several at once, and damaged: `history add` and `compact`.

The store must read at any time, with all rows of the sources that it has; adding again,
or following what the store advises, must make it the store that was never disturbed.
Nothing outside is touched.
"""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

from test.plant.damage import (
    all_damages,
    content,
    content_elsewhere,
    follow_advice,
    listing,
)
from test.plant.made_up_bags import HOUR, NOON, Session, file_count, rows, sources_of
from test.torture.harness import Case, Family, Verdict, Watched, command
from ur_energy_model.plant.store import HistoryStore

STARTS = (0, HOUR, HOUR + 4 * 10**9, 12 * HOUR - 3 * 10**9, 0, HOUR)
"""Of bags of two arms, two of which overlap; one crosses midnight."""
ADDED_AGAIN = 60.0  # time to add all bags [s]
MOST_DAMAGES = 2


def _bags(case: Case) -> list[Path]:
    """Bags that all cases add."""
    paths = [case.around.folder / "history_bags" / f"bag_{k}" for k in range(len(STARTS))]
    for k, path in enumerate(paths):
        if not path.exists():
            session = Session(
                at=NOON + STARTS[k], serial=f"arm-{k // 4}", shift=k, cycle=1.0
            )
            Session(**{**vars(session), "lines": True}).bag(path)
    return paths


def _start(case: Case, *words: str) -> Watched:
    """Start `history` with some words."""
    return Watched(command("history", *words), case.folder, case.around.environment)


def _adder(case: Case, store: Path, bags: list[Path] | None = None) -> Watched:
    """Start `history add` of some bags, or of all."""
    paths = map(str, bags or _bags(case))
    model = str(case.around.model)
    return _start(case, "add", str(store), *paths, "--model", model, "--workers", "1")


def _whole(case: Case, *, compacted: bool = False) -> Path:
    """A store of all bags that was never disturbed."""
    whole = case.around.folder / "history_whole"
    if not (whole / "sources").exists():
        _adder(case, whole).finish()
    joined = case.around.folder / "history_compacted"
    if not (joined / "sources").exists():
        shutil.copytree(whole, joined)
        _start(case, "compact", str(joined)).finish()
    return joined if compacted else whole


def _killed(case: Case, verdict: Verdict, *, two: bool) -> None:
    """SIGKILL on `history add`, alone or beside another one."""
    store = case.folder / "store"
    random = case.random
    files = random.randrange(0, 60)
    verdict.name = f"SIGKILL after {files} files{' beside another adder' if two else ''}"
    victim = _adder(case, store)
    other = _adder(case, store) if two else None
    while victim.running and file_count(store) < files:
        time.sleep(0.001)
    victim.wait(random.uniform(0.0, 0.02) if files else random.uniform(0.0, 2.0))
    victim.send(signal.SIGKILL)
    victim.finish()
    if other is not None:
        other.finish()
        other.judge(verdict)
    _check(verdict, store)
    again = _adder(case, store)
    verdict.expect(again.finish(ADDED_AGAIN) == 0, "adding again failed")
    again.judge(verdict)
    _compare(verdict, store, _whole(case), same=not two)


def _beside_others(case: Case, verdict: Verdict) -> None:
    """Three processes add different bags, while a fourth one compacts again and again."""
    verdict.name = "three adders and a compaction at once"
    store = case.folder / "store"
    bags = _bags(case)
    parts = [bags[k::3] for k in case.random.sample(range(3), 3)]
    adders = [_adder(case, store, part) for part in parts]
    while any(adder.running for adder in adders):
        if (store / "_store").exists():
            compaction = _start(case, "compact", str(store))
            compaction.finish()
            compaction.judge(verdict, (0,))
        time.sleep(0.1)
    for adder in adders:
        verdict.expect(adder.finish(ADDED_AGAIN) == 0, "adding failed")
        adder.judge(verdict)
    _compare(verdict, store, _whole(case), same=False)


def _damaged(case: Case, verdict: Verdict, *, killed: bool) -> None:
    """Damages, and what the store advises; perhaps with SIGKILL while that is done."""
    random = case.random
    store = case.folder / "store"
    outside = case.folder / "outside"
    whole = _whole(case, compacted=random.random() < 0.5)
    shutil.copytree(whole, store)
    outside.mkdir()
    (outside / "victim.parquet").write_text("victim")
    names = []
    for _ in range(random.randint(1, MOST_DAMAGES)):
        try:
            damage = random.choice(list(all_damages(store, outside)))
            damage.strike()
        except Exception:  # the first damage leaves nothing for this one
            continue
        names.append(damage.name)
    verdict.name = (
        f"{whole.name}: {', '.join(names)}{', SIGKILL while mending' if killed else ''}"
    )
    before = listing(outside)
    turns = 0

    def run(arguments: list[str]) -> tuple[int, str]:
        nonlocal turns
        workers = ["--workers", "1"] if arguments[1] == "add" else []
        process = _start(case, *arguments[1:], *workers)
        turns += 1
        if killed and turns == 1:
            process.wait(random.uniform(0.0, 6.0))
            process.send(signal.SIGKILL)
            process.finish()
            return 0, ""
        code = process.finish(ADDED_AGAIN)
        process.judge(verdict)
        return code, process.output.splitlines()[-1] + "\n" if process.output else ""

    verdict.problems += follow_advice(store, run)
    run(["history", "compact", str(store)])
    _compare(verdict, store, whole, same=True)
    verdict.expect(listing(outside) == before, "something outside was touched")


def _check(verdict: Verdict, store: Path) -> None:
    """The store reads, and no source that it has lacks rows of its record."""
    try:
        found = rows(store)
        records = HistoryStore(store).records() if (store / "_store").exists() else []
    except Exception as error:  # whatever a reader raises
        verdict.problems.append(f"the store does not read: {error}")
        return
    names = {row["source"] for row in found}
    for record in records:
        if record.source in names:  # the log of the table may follow later
            count = sum(row["source"] == record.source for row in found)
            stated = record.rows["seconds"]
            verdict.expect(count == stated, f"{record.bag} has {count} rows of {stated}")


def _compare(verdict: Verdict, store: Path, whole: Path, *, same: bool) -> None:
    """The store is what it is without any disturbance; `same` if rows cannot depend on an order."""
    try:
        there = content(store)
        expected = content(whole)
        read = content_elsewhere(store)
    except Exception as error:  # whatever a reader raises
        verdict.problems.append(f"the store does not read: {error}")
        return
    for table, found in expected.items():
        if same:
            number = len(set(there[table]) & set(found))
            problem = f"{table}: {number} of {len(found)} rows are as before, {len(there[table])}"
            verdict.expect(there[table] == found, problem)
        known = len(there[table]) == len(read[table])
        verdict.expect(
            known, f"{table}: others read {len(read[table])} of {len(there[table])}"
        )
    complete = len(sources_of(store))
    verdict.expect(
        complete == len(STARTS), f"{complete} of {len(STARTS)} sources are complete"
    )
    warnings = HistoryStore(store).holdings().warnings
    verdict.expect(not warnings, f"the store has warnings: {warnings}")
    times = [sum(row["accounted"] for row in rows(each)) for each in (store, whole)]
    verdict.expect(abs(times[0] - times[1]) < 0.02, f"time differs: {times}")


def run(case: Case) -> Verdict:
    """One case; the kinds take turns."""
    verdict = Verdict("history")
    kind = case.number % 6
    if kind in (0, 3):
        _killed(case, verdict, two=kind == 3)
    elif kind == 1:
        _beside_others(case, verdict)
    else:
        _damaged(case, verdict, killed=kind == 5)
    return verdict


FAMILY = Family("history", 2.0, run)
