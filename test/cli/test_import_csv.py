"""`ur_energy import`, as a user calls it."""

import json

import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from test.telemetry.csv.test_reader import table, write
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bag.reader import read_bag


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_import_makes_a_bag(tmp_path, capsys):
    csv = write(tmp_path / "x.csv", table())
    code = main(["import", str(csv), "--robot", "ur5e", "-o", str(tmp_path / "bag"), "--json"])
    out, err = capsys.readouterr()
    assert code == 0
    result = json.loads(out)
    assert (result["robot"], result["samples"], result["rate"]) == ("ur5e", 50, 50.0)
    assert "missing fields: " in err
    assert len(read_bag(tmp_path / "bag")) == 50
    assert sorted(path.name for path in (tmp_path / "bag").iterdir()) == [
        "bag_0.mcap",
        "metadata.yaml",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["x.csv", "--robot", "ur99"],
        ["none.csv", "--robot", "ur5e"],
        ["x.csv", "bad.csv", "--robot", "ur5e"],
    ],
)
def test_refused_input_leaves_nothing_behind(tmp_path, capsys, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.csv", table())
    (tmp_path / "bad.csv").write_text("timestamp\n1\nx\n")
    before = contents(tmp_path)
    assert main(["import", *arguments, "-o", "bag"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert contents(tmp_path) == before
    assert not (tmp_path / "bag").exists()


def test_an_existing_bag_is_kept_without_overwrite(tmp_path, capsys):
    csv = write(tmp_path / "x.csv", table())
    bag = write_bag(tmp_path / "bag", make_telemetry(10, fields=("actual_q",)))
    before = contents(bag)
    arguments = ["import", str(csv), "--robot", "ur5e", "-o", str(bag)]
    assert main(arguments) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert contents(bag) == before
    (tmp_path / "bad.csv").write_text("timestamp\n1\nx\n")
    assert main([*arguments[:1], str(tmp_path / "bad.csv"), *arguments[2:], "--overwrite"]) == 1
    assert contents(bag) == before
    assert main([*arguments, "--overwrite"]) == 0
    assert len(read_bag(bag)) == 50
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "bag", "x.csv"]


def test_what_is_not_a_bag_is_never_overwritten(tmp_path, capsys):
    csv = write(tmp_path / "x.csv", table())
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("words")
    output = str(tmp_path / "thesis")
    assert main(["import", str(csv), "--robot", "ur5e", "-o", output, "--overwrite"]) == 1
    assert "is not a bag" in capsys.readouterr().err
    assert (tmp_path / "thesis" / "chapter1.tex").exists()


def test_a_file_without_header_is_imported_with_columns_or_layout(tmp_path, capsys):
    _, *rows = write(tmp_path / "x.csv", table()).read_text().splitlines()
    (tmp_path / "bare.csv").write_text("\n".join(rows) + "\n")
    arguments = ["import", str(tmp_path / "bare.csv"), "--robot", "ur5e"]
    assert main([*arguments, "-o", str(tmp_path / "a")]) == 1
    refused = capsys.readouterr().err
    assert "no header line: 9 columns" in refused
    assert "--columns timestamp," in refused
    columns = ["--columns", "timestamp,actual_q,payload,robot_mode"]
    assert main([*arguments, "-o", str(tmp_path / "a"), *columns]) == 0
    assert read_bag(tmp_path / "a")["actual_q"].tobytes() == table()["actual_q"].tobytes()
    assert main([*arguments, "-o", str(tmp_path / "b"), "--layout", "ur_rtde"]) == 1
    assert "9 columns" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    evil = "\x1b[31mred\x1b]0;title\x07"
    path = write(tmp_path / f"x{evil}.csv", table(), extra=(evil,))
    bag = str(tmp_path / "bag")
    assert main(["import", str(path), "--robot", "ur5e", "-o", bag]) == 0
    assert main(["import", str(tmp_path / f"none{evil}"), "--robot", "ur5e", "-o", bag + "2"]) == 1
    assert main(["inspect", str(tmp_path / f"none{evil}")]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\x07" not in out + err
    assert r"\x1b[31mred" in err
