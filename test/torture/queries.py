# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""SQL that wants all memory, all time or the machine, by `history sql`; signals while it runs.

The query has a process of its own: its memory, and that of `ur_energy`, must keep their
limits, the time as well; an error is one line, and no process stays, also after SIGINT
and SIGKILL.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from random import Random

from test.plant.made_up_bags import Session, add
from test.torture.harness import Case, Family, Tree, Verdict, Watched, command
from ur_energy_model.plant.query import MEMORY

TIMEOUT = 4.0  # given to each query [s]
PATIENCE = 40.0  # for all of a command, its start on a busy machine included [s]
AFTER_SIGNAL = 20.0  # on a busy machine, in which all processes must have ended [s]
SLACK = 100.0  # libraries that are mapped beside the data of the process [MB]


def _number(random: Random, low: float, high: float) -> int:
    """A number with an even logarithm."""
    return int(10 ** random.uniform(low, high))


def _table(random: Random) -> str:
    """Something to select from, of any size."""
    return random.choice(
        (
            f"range({_number(random, 0, 13)}) r(x)",
            "(SELECT epoch(second) AS x FROM seconds) r",
            f"(SELECT unnest(range({_number(random, 1, 9)})) AS x) r",
            f"range({_number(random, 3, 8)}) r(x), range({_number(random, 3, 8)}) s(y)",
            "seconds a, seconds b, seconds c, (SELECT 1 AS x) r",
            f"generate_series(1, {_number(random, 1, 13)}) r(x)",
        )
    )


def _value(random: Random, depth: int = 2) -> str:
    """An expression of any size."""
    size = _number(random, 0, 10)
    if depth == 0:
        return random.choice(
            ("1", "x", "'x'", "NULL", "random()", "x::text", "1e308", "x::hugeint")
        )
    inner = _value(random, depth - 1)
    return random.choice(
        (
            f"repeat('x', {size})",
            f"repeat(({inner})::text, {size})",
            f"list_sort(range({size}))",
            f"length(list_sort(range({size})))",
            f"list_reverse(range({size}))",
            f"format('{{:>{size}}}', 'x')",
            f"printf('%{size}d', 1)",
            f"rpad('x', {min(size, 2**31 - 1)}, 'y')",
            f"list_transform(range({size}), y -> repeat('x', 1000))",
            f"length(list_aggregate(range({size}), 'string_agg', ','))",
            f"md5(({inner})::text)",
            f"[{inner}, {inner}]",
            f"{{'a': {inner}, 'b': {inner}}}",
            f"array_agg({inner})",
            f"string_agg(({inner})::text, '')",
            f"count(DISTINCT {inner})",
            f"median({_value(random, 0)})",
            f"histogram({_value(random, 0)})",
            f"map_from_entries([({_value(random, 0)}, {inner})])",
            f"regexp_replace(repeat('a', {min(size, 10**7)}), '(a*)*b', '')",
            "array_agg(x ORDER BY random()) OVER ()",
            f"sum(1) OVER (ORDER BY x ROWS BETWEEN {size} PRECEDING AND {size} FOLLOWING)",
            f"bit_count(repeat('1', {size})::bit)",
            f"json_object('a', {inner})",
        )
    )


RECURSIONS = (
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT * FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x FROM t, range(2)) SELECT count(*) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM t) SELECT max(len(x)) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT [1] UNION ALL SELECT x || x FROM t) SELECT max(len(x)) FROM t",
)


def hostile_query(random: Random) -> str:
    """SQL of any kind."""
    kind = random.randrange(10)
    if kind == 0:
        return random.choice(RECURSIONS)
    if kind == 1:
        depth = _number(random, 1, 4.4)
        return f"SELECT {'(' * depth}1{')' * depth}"
    if kind == 2:
        terms = " + ".join("1" for _ in range(_number(random, 1, 4.4)))
        return f"SELECT {terms}"
    if kind == 3:
        columns = ", ".join(f"x AS c{k}" for k in range(_number(random, 1, 3.5)))
        return f"SELECT {columns} FROM {_table(random)}"
    if kind == 4:
        views = ", ".join(
            f"t{k} AS MATERIALIZED (SELECT a.x FROM t{k - 1} a, t{k - 1} b)"
            for k in range(1, 20)
        )
        return (
            f"WITH t0 AS (SELECT * FROM range(10) r(x)), {views} SELECT count(*) FROM t19"
        )
    tail = random.choice(
        (
            "",
            "",
            " ORDER BY hash(x)",
            " ORDER BY random()",
            " GROUP BY x",
            " GROUP BY ALL",
            " GROUP BY CUBE (x, x + 1, x + 2, x + 3)",
            f" LIMIT {_number(random, 0, 12)}",
            f" WHERE x > {_number(random, 0, 12)}",
            " WHERE EXISTS (SELECT 1 FROM seconds a, seconds b WHERE a.samples > x)",
        )
    )
    verb = random.choice(
        ("SELECT", "SELECT", "SELECT", "SELECT DISTINCT", "EXPLAIN ANALYZE SELECT")
    )
    return f"{verb} {_value(random, random.randrange(1, 3))} FROM {_table(random)}{tail}"


def _store(case: Case) -> Path:
    """A small store that all cases read."""
    store = case.around.folder / "queried"
    if not (store / "seconds").exists():
        add(store, Session(cycle=1.0).bag(case.around.folder / "queried_bag"))
    return store


def run(case: Case) -> Verdict:
    """One query; every eighth time it gets SIGINT, every eighth time SIGKILL."""
    random = case.random
    query = hostile_query(case.random)
    verdict = Verdict(query[:300])
    words = [str(_store(case)), query, "--timeout", str(TIMEOUT)]
    words += ["--json"] if random.random() < 0.3 else []
    began = time.monotonic()
    process = Watched(
        command("history", "sql", *words),
        case.folder,
        case.around.environment,
        with_children=False,
    )
    tree = Tree(process.pid)
    number = {6: signal.SIGINT, 7: signal.SIGKILL}.get(case.number % 8)
    end = began + (random.uniform(0.2, TIMEOUT) if number is not None else PATIENCE)
    while process.running and time.monotonic() < end:
        tree.look()
        time.sleep(0.02)
    codes: tuple[int, ...] = (0, 1)
    if number is not None:
        process.send(number)
        signalled = time.monotonic()
        process.finish(PATIENCE)
        while tree.living() and time.monotonic() < signalled + AFTER_SIGNAL:
            time.sleep(0.02)
        passed = time.monotonic() - signalled
        verdict.seconds = passed
        verdict.expect(
            passed < AFTER_SIGNAL, f"it took {passed:.1f} s to end after {number.name}"
        )
        verdict.expect(not tree.living(), f"processes stay: {tree.living()}")
        codes = (0, 1, 130, -number)
    else:
        process.finish(1.0)
        verdict.time_since(began)
        verdict.expect(not tree.living(), f"processes stay: {tree.living()}")
    process.judge(verdict, codes)
    error = [
        line
        for line in process.output.splitlines()
        if line.startswith("ur_energy history")
    ]
    verdict.expect(len(error) <= 1, f"{len(error)} lines of errors")
    largest = max(tree.memory.values(), default=0.0)
    verdict.memory = largest
    limit = MEMORY / 1e6 + SLACK
    verdict.expect(largest < limit, f"memory: {largest:.0f} MB, limit {limit:.0f} MB")
    return verdict


FAMILY = Family("queries", 1.0, run, at_once=1)
