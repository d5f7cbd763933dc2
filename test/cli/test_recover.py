"""`ur_energy recover`, as a user calls it."""

import json

from test.telemetry.bag.test_bags import write_bag
from test.telemetry.conftest import make_telemetry
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bag.reader import read_bag


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


def test_a_missing_bag_is_refused(tmp_path, capsys):
    assert main(["recover", str(tmp_path / "none")]) == 1
    assert "no such bag" in capsys.readouterr().err
