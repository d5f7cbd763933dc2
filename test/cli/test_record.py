"""`ur_energy record`, as a user calls it, against the test peer."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from test.telemetry.rtde.rtde_peer import START_TIME, PeerBehaviour, RtdePeer, value_of
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.rtde import connection as client

FIELDS = "actual_q,payload,robot_mode"


class PacedPeer(RtdePeer):
    """Sends some 500 packets a second once a client has started."""

    def __enter__(self):
        super().__enter__()
        self._over = threading.Event()
        self._pacer = threading.Thread(target=self._pace, daemon=True)
        self._pacer.start()
        return self

    def __exit__(self, *arguments):
        self._over.set()
        self._pacer.join(5.0)
        super().__exit__(*arguments)

    def _pace(self):
        tick = 0
        while not self._over.wait(0.02):
            if self.started.is_set():
                with suppress(OSError, AssertionError):  # the client left in between
                    self.send_ticks(range(tick, tick + 10))
                    tick += 10


@pytest.fixture
def host(fresh_host):
    """An own address: `record` has no port option, since all controllers use the same port."""
    return fresh_host()


@pytest.fixture
def peer(host):
    with PacedPeer(host=host, port=client.PORT) as peer_:
        yield peer_


@pytest.fixture
def record(host):
    return lambda *arguments: main(
        ["record", "--host", host, "--robot", "ur5e", "--fields", FIELDS, *arguments]
    )


def test_every_sample_of_the_duration_is_recorded(tmp_path, capsys, peer, record):
    assert record("--duration", "1", "-o", str(tmp_path / "bag"), "--json") == 0
    out = capsys.readouterr().out
    result = json.loads(out.splitlines()[-1])
    assert result["samples"] == 500
    assert (result["lost"], result["duplicates"], result["gaps"]) == (0, 0, [])
    assert result["seconds"] > 0
    assert result["cpu_percent"] > 0
    telemetry = read_bag(tmp_path / "bag")
    assert set(telemetry.columns) == {"timestamp", *FIELDS.split(",")}
    ticks = np.rint((telemetry.time - START_TIME) * 500).astype(int)
    assert (np.diff(ticks) == 1).all()
    expected = np.array([value_of("actual_q", tick) for tick in ticks])
    assert np.array_equal(telemetry["actual_q"], expected)


def gone(peer):
    peer.refuse()
    peer.disconnect()


def without_a_field(peer):
    peer.behaviours = [PeerBehaviour(missing=frozenset({"payload"}))]
    peer.disconnect()


def with_other_software(peer):
    peer.behaviours = [PeerBehaviour(version=(5, 12, 0, 1))]
    peer.disconnect()


@pytest.mark.parametrize(
    ("leave", "why"),
    [
        (gone, "connection refused"),
        (without_a_field, "no longer offers payload"),
        (with_other_software, "software changed"),
    ],
)
def test_a_robot_that_stays_away_is_counted(tmp_path, capsys, peer, record, leave, why):
    timer = threading.Timer(1.0, leave, [peer])
    timer.start()
    assert record("--duration", "2", "-o", str(tmp_path / "bag"), "--json") == 3
    timer.join()
    out, err = capsys.readouterr()
    result = json.loads(out.splitlines()[-1])
    telemetry = read_bag(tmp_path / "bag")
    assert telemetry.time[0] == START_TIME  # the first packet that was sent
    assert 0 < result["samples"] == len(telemetry) < 1000
    assert result["samples"] + result["lost"] == 1000
    assert result["lost_seconds"] == pytest.approx(result["lost"] / 500, abs=0.01)
    (gap,) = result["gaps"]
    assert why in gap["cause"]
    assert gap["away"] == result["lost_seconds"]
    assert [each.cause for each in telemetry.gaps] == [gap["cause"]]
    assert "less was recorded than asked for" in err.splitlines()[-1]
    assert main(["inspect", str(tmp_path / "bag")]) == 0
    assert f"{result['lost']} lost in 1 gaps" in capsys.readouterr().out


def test_a_bag_that_was_deleted_is_not_reported_as_recorded(tmp_path, capsys, peer, record):
    timer = threading.Timer(1.0, lambda: (tmp_path / "bag" / "bag_0.mcap").unlink())
    timer.start()
    assert record("--duration", "3", "-o", str(tmp_path / "bag"), "--json") == 3
    timer.join()
    out, err = capsys.readouterr()
    result = json.loads(out.splitlines()[-1])
    assert result["samples"] == len(read_bag(tmp_path / "bag"))
    assert result["samples"] + result["lost"] == 1500
    assert result["unreadable"] == result["lost"] > 0
    assert "can no longer be read" in result["gaps"][0]["cause"]
    assert "cannot be read back" in err.splitlines()[-1]


def test_a_rate_other_than_requested_is_reported(tmp_path, capsys, peer, record):
    assert record("--duration", "0.2", "--rate", "200", "-o", str(tmp_path / "bag")) == 0
    assert "recording at 500 Hz, not 200" in capsys.readouterr().err


def test_splitting_makes_several_files(tmp_path, capsys, peer, record):
    arguments = ["--duration", "2", "--split-minutes", "0.012", "-o", str(tmp_path / "bag")]
    assert record(*arguments) == 0
    assert len(list((tmp_path / "bag").glob("*.mcap"))) >= 2
    assert len(read_bag(tmp_path / "bag")) == 1000
    assert "1000" in capsys.readouterr().out


def start(bag, peer):
    """`ur_energy record` in a process of its own, once it has written samples."""
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "record",
        "--host",
        peer.host,
        "--robot",
        "ur5e",
        "--fields",
        FIELDS,
        "-o",
        str(bag),
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30.0
    while not (bag / "bag_0.mcap").exists() or (bag / "bag_0.mcap").stat().st_size < 20_000:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_finishes_the_bag(tmp_path, peer, number):
    bag = tmp_path / "bag"
    process = start(bag, peer)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=20.0)
    assert process.returncode == 0, err.decode()
    result = json.loads(out.decode().splitlines()[-1])
    assert result["samples"] == len(read_bag(bag)) > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_in_an_outage_counts_it(tmp_path, peer, number):
    process = start(tmp_path / "bag", peer)
    peer.refuse()
    peer.disconnect()
    time.sleep(1.0)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=20.0)
    assert process.returncode == 0, err.decode()  # what was asked for
    result = json.loads(out.decode().splitlines()[-1])
    assert result["samples"] == len(read_bag(tmp_path / "bag")) > 0
    assert result["lost"] > 400
    assert result["lost_seconds"] > 0.8
    assert b"connection refused" in err


def test_an_unreachable_robot_is_one_line(tmp_path, capsys, host, record):
    assert record("-o", str(tmp_path / "bag")) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"{host}: no connection to port 30004" in err
    assert not (tmp_path / "bag").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--fields", "actual_q,no_such_field"], "no_such_field: is not an RTDE field"),
        (["--robot", "ur99"], "ur99"),
        (["--rate", "9999"], "rate"),
    ],
)
def test_unavailable_requests_are_refused(tmp_path, capsys, record, arguments, text):
    assert record(*arguments, "-o", str(tmp_path / "bag")) == 1
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert text in err
    assert not (tmp_path / "bag").exists()


def test_an_existing_bag_is_not_touched(tmp_path, capsys, record):
    (tmp_path / "bag").mkdir()
    assert record("-o", str(tmp_path / "bag")) == 1
    assert "exists already" in capsys.readouterr().err
    assert list((tmp_path / "bag").iterdir()) == []


@pytest.mark.parametrize("arguments", [["--duration", "0"], ["--duration", "x"], ["--rate", "-1"]])
def test_invalid_numbers_are_usage_errors(tmp_path, record, arguments):
    with pytest.raises(SystemExit) as end:
        record(*arguments, "-o", str(tmp_path / "bag"))
    assert end.value.code == 2
