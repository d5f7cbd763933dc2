"""What others put into a store is named and left; what is lost, changed or copied is reported."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from test.plant.made_up_bags import HOUR, NOON, Session
from ur_energy_model.cli.main import main
from ur_energy_model.errors import printable
from ur_energy_model.plant import store as holdings

Capture = pytest.CaptureFixture[str]
BAGS = ("monday", "tuesday", "new")
"""The last one is not in the store."""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two bags, and a third bag."""
    folder = tmp_path_factory.mktemp("made")
    for number, name in enumerate(BAGS):
        Session(at=NOON + number * 30 * HOUR, cycle=2.0).bag(folder / name)
    added = ["--robot", "ur5e", "--json"]
    assert main(["history", "add", str(folder / "store"), *_bags(folder)[:2], *added]) == 0
    return folder


def _bags(folder: Path) -> list[str]:
    return [str(folder / name) for name in BAGS]


@pytest.fixture
def cell(made: Path, tmp_path: Path) -> Path:
    """A copy of it, with files outside of the store that nothing may touch."""
    shutil.copytree(made, tmp_path / "cell")
    outside = tmp_path / "cell" / "outside"
    (outside / "begun").mkdir(parents=True)
    for name in ("victim", "victim.json", "begun/x.json", "x.parquet"):
        (outside / name).write_text('["../outside/victim"]')
    return tmp_path / "cell"


VERBS: dict[str, Callable[[Path], list[str]]] = {
    "add": lambda cell: ["add", f"{cell}/store", f"{cell}/new", "--robot", "ur5e"],
    "summary": lambda cell: ["summary", f"{cell}/store", "--by", "day"],
    "sql": lambda cell: ["sql", f"{cell}/store", "SELECT sum(total_energy) FROM seconds"],
    "export": lambda cell: ["export", f"{cell}/store", "-o", f"{cell}/out.csv"],
    "report": lambda cell: ["report", f"{cell}/store", "-o", f"{cell}/out.html"],
    "health": lambda cell: ["health", f"{cell}/store"],
    "watch": lambda cell: ["watch", f"{cell}/store", f"{cell}/new", "--once", "--robot", "ur5e"],
}


OUTSIDE = "../outside/victim"
WRITTEN: dict[str | bytes, str | bytes] = {
    "begun/outside.json": json.dumps([OUTSIDE]),
    "begun/deeper.json": json.dumps([f"seconds/../{OUTSIDE}"]),
    "begun/another.json": json.dumps(["seconds/day=2026-05-04/20235512345/x.parquet"]),
    "begun/null.json": "null",
    "begun/number.json": "5",
    "begun/list.json": "[null, 1, [], {}]",
    "begun/mapping.json": json.dumps({OUTSIDE: {"size": 1, "crc32": None}}),
    "begun/broken.json": b"\xff\xfe[",
    "begun/empty.json": "",
    "begun/nested.json": "[" * 100_000,
    "begun/folder.json/y.json": json.dumps([OUTSIDE]),
    "begun/notes.txt": "x",
    b"begun/\xff\xfe.json": "[]",
    "sources/null.json": "null",
    "sources/number.json": "5",
    "sources/list.json": "[]",
    "sources/nothing.json": "{}",
    "sources/huge.json": '{"start": 1e999}',
    b"sources/\xff.json": "{}",
    "writers/live-12ab-0.2026-05-04.json": "null",
    "writers/live-12ac-0.2026-05-04.json": json.dumps([OUTSIDE]),
    b"seconds/day=2026-05-04/\xff\xfe/name.parquet": "x",
    "seconds/day=2026-99-99/7/noday.parquet": "x",
    "seconds/day=99999-01-01/7/far.parquet": "x",
    "seconds/bare.parquet": "x",
    "seconds/..parquet": "x",
    "health/notes.txt": "x",
}
"""What is put into a store, by name."""
LINKED = {
    "begun/link.json": "outside/victim.json",
    "sources/link.json": "outside/victim.json",
    "seconds/day=2026-05-04/7/link.parquet": "outside/x.parquet",
    "seconds/day=2026-05-04/linked": "outside",
}
PIPES = ("begun/pipe.json", "sources/pipe.json", "cycles/day=2026-05-04/7/pipe.parquet")


def _put_all(cell: Path) -> set[str]:
    """Everything at once; returns the names."""
    names = {os.fsdecode(name): content for name, content in WRITTEN.items()}
    for name in (*names, *LINKED, *PIPES):
        (cell / "store" / name).parent.mkdir(parents=True, exist_ok=True)
    for name, content in names.items():
        data = content.encode() if isinstance(content, str) else content
        (cell / "store" / name).write_bytes(data)
    for name, target in LINKED.items():
        (cell / "store" / name).symlink_to(cell / target)
    for name in PIPES:
        os.mkfifo(cell / "store" / name)
    return {*names, *LINKED, *PIPES}


def _link(name: str) -> Callable[[Path], set[str]]:
    """A folder of the store leads out of it."""

    def put(cell: Path) -> set[str]:
        path = cell / "store" / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(cell / "outside")
        return {name}

    return put


FOREIGN = {
    "everything": _put_all,
    **{name: _link(name) for name in ("begun", "sources", "health", ".writing", ".lock")},
}


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _history(arguments: list[str], capsys: Capture) -> tuple[int, str, list[str]]:
    """Exit code, what is printed on stdout and on stderr: lines without a traceback."""
    capsys.readouterr()
    code = main(["history", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err.splitlines()


@pytest.mark.parametrize("what", FOREIGN)
def test_foreign_content_is_named_and_left(
    cell: Path, what: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "MOST_LINES", 1000)
    names = FOREIGN[what](cell)
    outside = _tree(cell / "outside")
    for verb, command in VERBS.items():
        code, _, lines = _history(command(cell), capsys)
        assert _tree(cell / "outside") == outside, verb
        assert all(os.path.lexists(cell / "store" / name) for name in names), verb
        if what != "everything":  # a store that cannot be written is refused
            assert code == 0 or len(lines) == 1, (verb, lines)
            continue
        assert code == 0, (verb, lines)
        named = {name for name in names if any(printable(name) in line for line in lines)}
        if verb == "add":
            assert named == {name for name in names if name.startswith("begun")}
        elif verb != "watch":
            assert named == names


def _energy(cell: Path, capsys: Capture) -> tuple[float, list[str]]:
    code, out, lines = _history(["summary", f"{cell}/store", "--json"], capsys)
    assert code == 0
    answer = json.loads(out)
    assert [f"warning: {line}" for line in answer["warnings"]] == lines
    return answer["total"]["energy"], answer["warnings"]


def _rows_of_monday(cell: Path) -> Path:
    return next((cell / "store" / "seconds" / "day=2026-05-04").rglob("*.parquet"))


def _remove(cell: Path) -> None:
    _rows_of_monday(cell).unlink()


def _replace(cell: Path) -> None:
    shutil.copy(next((cell / "store" / "seconds" / "day=2026-05-05").rglob("*.parquet")),
                _rows_of_monday(cell))  # fmt: skip


def _change(cell: Path) -> None:
    """Of the same size."""
    path = _rows_of_monday(cell)
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)


def _truncate(cell: Path) -> None:
    os.truncate(_rows_of_monday(cell), 100)


def _forget(cell: Path) -> None:
    (cell / "store" / "sources" / f"{_rows_of_monday(cell).stem}.json").unlink()


def _damage_record(cell: Path) -> None:
    (cell / "store" / "sources" / f"{_rows_of_monday(cell).stem}.json").write_text("null")


@pytest.mark.parametrize("damage", [_remove, _replace, _change, _truncate, _forget, _damage_record])
def test_what_is_lost_or_changed_is_said_and_added_again(
    cell: Path, damage: Callable[[Path], None], capsys: Capture
) -> None:
    whole, nothing = _energy(cell, capsys)
    assert nothing == []
    monday = json.loads(_history(["summary", f"{cell}/store", "--by", "day", "--json"], capsys)[1])
    damage(cell)
    lacking, warnings = _energy(cell, capsys)
    assert lacking == pytest.approx(whole - monday["rows"][0]["energy"])
    assert 1 <= len(warnings) <= 2
    arguments = ["add", f"{cell}/store", *_bags(cell)[:2], "--robot", "ur5e", "--json"]
    answer = json.loads(_history(arguments, capsys)[1])
    assert (answer["added"], answer["skipped"]) == (1, 1)
    assert _energy(cell, capsys) == (pytest.approx(whole), [])


@pytest.mark.parametrize(
    "place",
    [
        "seconds/day=2026-05-04/20235512345/copy.parquet",
        "seconds/day=2026-05-04/20235512345/{name} (copy).parquet",
        "seconds/day=2026-05-04/other/{name}.parquet",
        "seconds/day=2026-05-06/20235512345/{name}.parquet",
        "seconds/arm=20235512345/day=2026-05-04/{name}.parquet",
        "seconds/backup/day=2026-05-04/20235512345/{name}.parquet",
    ],
)
def test_a_copy_does_not_count(cell: Path, place: str, capsys: Capture) -> None:
    whole, _ = _energy(cell, capsys)
    original = _rows_of_monday(cell)
    copy = cell / "store" / place.format(name=original.stem)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(original, copy)
    energy, (warning,) = _energy(cell, capsys)
    assert energy == pytest.approx(whole)
    assert copy.name in warning


@pytest.mark.parametrize("verb", ["summary", "sql", "export", "report", "health"])
def test_a_folder_that_is_no_store_is_refused(verb: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "notes.txt").write_text("x")
    code, out, lines = _history(VERBS[verb](tmp_path), capsys)
    assert (code, out, len(lines)) == (1, "", 1)
