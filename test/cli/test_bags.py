"""`ur_energy import` and `ur_energy recover`, as a user calls them."""

import json

import pytest

from test.telemetry.conftest import make_telemetry
from test.telemetry.test_bags import write_bag
from test.telemetry.test_csv_import import table, write
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bags import read_bag


def contents(folder):
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}  # fmt: skip


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
        "bag_0.mcap", "metadata.yaml",
    ]  # fmt: skip


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


def test_an_existing_bag_is_kept_unless_asked_for(tmp_path, capsys):
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


def test_recover_rebuilds_a_bag(tmp_path, capsys):
    bag = write_bag(tmp_path / "bag", make_telemetry(600, fields=("actual_q",)))
    (bag / "metadata.yaml").unlink()
    data = (bag / "bag_0.mcap").read_bytes()
    (bag / "bag_0.mcap").write_bytes(data[: int(0.6 * len(data))])
    assert main(["recover", str(bag), "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert 0 < result["samples"] < 600
    assert result["samples"] == len(read_bag(bag))
    assert "metadata.yaml was missing" in err
    assert len(result["problems"]) == 2


def test_recover_refuses_what_is_no_bag(tmp_path, capsys):
    assert main(["recover", str(tmp_path / "none")]) == 1
    assert "no such bag" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["import", "recover", "record"])
def test_help_shows_an_example(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert f"ur_energy {command} " in capsys.readouterr().out.split("example:")[1]
