# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy record` against the test peer; `import`, `inspect` and `recover`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from functools import partial

import numpy as np
import pytest

from test.cli.conftest import answer, refused
from test.telemetry.csv.moving_arm import energy, moving_arm, write_table
from test.telemetry.csv.test_reader import table, write
from test.telemetry.rtde_peer import FAULT_TICK, START_TIME, PacedPeer, value_of
from ur_energy_model.cli.main import main
from ur_energy_model.telemetry.bag.files import new_bag
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.rtde import connection as client

FIELDS = "actual_q,payload,robot_mode"


@pytest.fixture
def host(fresh_host):
    """An own address: `record` has no port option, since all controllers use the same port."""
    return fresh_host()


@pytest.fixture
def peer(host):
    with PacedPeer(host=host, port=client.PORT) as peer_:
        yield peer_


@pytest.fixture
def record(host, capsys):
    """Exit code, JSON and errors of `ur_energy record`."""

    def run(*arguments):
        words = [
            "record",
            "--host",
            host,
            "--robot",
            "ur5e",
            "--fields",
            FIELDS,
            *arguments,
        ]
        code = main([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out.splitlines()[-1]), err

    return run


def test_every_sample_of_the_duration_is_recorded(tmp_path, peer, record):
    bag = tmp_path / "bag"
    words = ["--duration", "1", "--split-minutes", "0.01", "--rate", "200", "-o", bag]
    code, result, err = record(*words)
    assert code == 0
    assert (result["samples"], result["lost"], result["duplicates"]) == (500, 0, 0)
    assert result["gaps"] == []
    assert min(result["seconds"], result["cpu_percent"]) > 0
    assert "recording at 500 Hz, not 200" in err
    assert len(list(bag.glob("*.mcap"))) >= 2
    telemetry = read_bag(bag)
    assert set(telemetry.columns) == {"timestamp", *FIELDS.split(",")}
    ticks = np.rint((telemetry.time - START_TIME) * 500).astype(int)
    assert (np.diff(ticks) == 1).all()
    expected = np.array([value_of("actual_q", tick) for tick in ticks])
    assert np.array_equal(telemetry["actual_q"], expected)


def gone(peer, bag):
    peer.refuse()
    peer.disconnect()


def deleted(peer, bag):
    path = bag / "bag_0.mcap"
    wait_until(path.exists)
    path.unlink()


def wait_until(condition):
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("fault", "why"), [(gone, "connection refused"), (deleted, "can no longer be read")]
)
def test_what_is_missing_is_counted(tmp_path, peer, record, fault, why):
    bag = tmp_path / "bag"
    peer.fault = partial(fault, peer, bag)
    code, result, err = record("--duration", "2", "-o", bag)
    assert code == 3
    assert "less was recorded than asked for" in err.splitlines()[-1]
    telemetry = read_bag(bag)
    assert result["samples"] == len(telemetry)
    assert result["samples"] + result["lost"] == 1000
    assert why in result["gaps"][0]["cause"]
    if fault is deleted:
        assert result["unreadable"] == result["lost"] > 0
        return
    assert telemetry.time[0] == START_TIME  # the first packet that was sent
    assert result["lost_seconds"] == pytest.approx(result["lost"] / 500, abs=0.01)
    (gap,) = result["gaps"]
    assert gap["away"] == result["lost_seconds"]
    assert [each.cause for each in telemetry.gaps] == [gap["cause"]]


def jump(values, tick):
    return values | {
        "timestamp": values["timestamp"] + (1e6 if tick >= FAULT_TICK else 0.0)
    }


def restart(values, tick):
    return values | {
        "timestamp": values["timestamp"] - (950.0 if tick >= FAULT_TICK else 0.0)
    }


def some_zeros(values, tick):
    return dict.fromkeys(values, 0) if tick % 100 == 50 else values


def some_jumps(values, tick):
    return values | {
        "timestamp": values["timestamp"] + (1e6 if tick % 100 == 50 else 0.0)
    }


def only_zeros(values, tick):
    return dict.fromkeys(values, 0) if tick >= FAULT_TICK else values


@pytest.mark.parametrize("fault", [jump, restart, some_zeros, some_jumps, only_zeros])
def test_times_that_are_wrong_neither_end_a_recording_nor_are_they_losses(
    tmp_path, peer, record, fault
):
    """It lasts as long as asked, by the clock of the host.

    Where the controller's clock changes, the host's decides how many packets are missing:
    on a busy machine some, since the peer sent them late, but not those of a jump.
    """
    values = peer.values
    peer.package = lambda tick: peer.recipe.pack(
        fault({name: values(name, tick) for name in peer.recipe.names}, tick)
    )
    code, result, err = record("--duration", "2", "-o", tmp_path / "bag")
    few = fault in (some_zeros, some_jumps)
    assert result["samples"] + result["lost"] == pytest.approx(1000, abs=2)
    assert len(read_bag(tmp_path / "bag")) == result["samples"]
    if fault is only_zeros:
        assert code == 3
        assert "nothing that can be used" in err.splitlines()[-1]
        assert result["skipped"] > 0
        return
    assert code == 0
    if few:
        assert result["lost"] == 10
        assert result["skipped"] >= 10
    else:
        assert result["lost"] < 1000 - FAULT_TICK
    assert result["seconds"] > 1.5  # the first packets had been sent before


def test_a_signal_in_an_outage_finishes_the_bag(tmp_path, peer):
    bag = tmp_path / "bag"
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "record",
        "--host",
        peer.host,
    ]
    command += ["--robot", "ur5e", "--fields", FIELDS, "-o", str(bag), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60.0
    while (
        not (bag / "bag_0.mcap").exists() or (bag / "bag_0.mcap").stat().st_size < 20_000
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    gone(peer, bag)
    time.sleep(1.0)  # the outage that is counted
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err.decode()  # what was asked for
    result = json.loads(out.decode().splitlines()[-1])
    assert result["samples"] == len(read_bag(bag)) > 0
    assert result["lost"] > 400
    assert result["lost_seconds"] > 0.8
    assert b"connection refused" in err


@pytest.mark.parametrize("nohup", [False, True])
def test_a_closed_terminal_finishes_the_bag(nohup, tmp_path, peer):
    """With nohup, which redirects what is printed, it goes on, and SIGTERM finishes it."""
    bag = tmp_path / "bag"
    command = [
        sys.executable,
        "-m",
        "ur_energy_model.cli.main",
        "record",
        "--host",
        peer.host,
    ]
    command += ["--robot", "ur5e", "--fields", FIELDS, "-o", str(bag)]
    terminal, line = pty.openpty()

    def begin():
        fcntl.ioctl(line, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)

    out = subprocess.DEVNULL if nohup else line
    process = subprocess.Popen(
        command,
        stdin=line,
        stdout=out,
        stderr=out,
        start_new_session=True,
        preexec_fn=begin,
    )
    os.close(line)
    file = bag / "bag_0.mcap"
    grows_to(file, 20_000, terminal)
    os.close(terminal)
    if nohup:
        grows_to(file, file.stat().st_size + 20_000)
        process.terminate()
    assert process.wait(240) == 0
    assert len(read_bag(bag)) > 100
    assert (bag / "metadata.yaml").is_file()


def grows_to(file, size, terminal=None):
    """Wait until a file has a size; what is shown on a terminal meanwhile is read."""

    def grown():
        if terminal is not None and select.select([terminal], [], [], 0.0)[0]:
            os.read(terminal, 65536)
        return file.exists() and file.stat().st_size > size

    wait_until(grown)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_import_makes_a_bag_and_keeps_the_old_one_until_it_is_whole(tmp_path, capsys):
    # else a further line
    pytest.importorskip("zstandard", reason="bags are packed with zstandard")
    csv = tmp_path / "x.csv"
    bad = tmp_path / "bad.csv"
    bag = tmp_path / "bag"
    write(csv, table())
    bad.write_text("timestamp\n1\nx\n")
    words = ["--robot", "ur5e", "-o", str(bag)]
    result = answer(capsys, "import", csv, *words)
    assert (result["robot"], result["samples"], result["rate"]) == ("ur5e", 50, 50.0)
    assert sorted(path.name for path in bag.iterdir()) == ["bag_0.mcap", "metadata.yaml"]
    before = contents(tmp_path)
    for files in ([bad], [csv, bad]):
        assert main(["import", *map(str, files), *words, "--overwrite"]) == 1
    assert contents(tmp_path) == before
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter1.tex").write_text("words")
    words = ["--robot", "ur5e", "-o", str(folder), "--overwrite"]
    refused(["import", str(csv), *words], capsys, "is not a bag")
    assert (folder / "chapter1.tex").exists()


def test_import_of_another_arm_is_refused_and_the_right_one_named(
    tmp_path, capsys, recordings
):
    csv = recordings / "ur5e_pick_place_50hz_24s.csv.gz"
    bag = tmp_path / "bag"
    assert main(["import", str(csv), "--robot", "ur10e", "-o", str(bag)]) == 1
    assert "--robot ur5e" in capsys.readouterr().err.splitlines()[-1]
    assert not bag.exists()
    with pytest.raises(SystemExit) as caught:
        main(["import", str(csv), "-o", str(bag)])
    assert caught.value.code == 2
    assert "--robot ur5e" in capsys.readouterr().err
    assert not bag.exists()
    result = answer(capsys, "import", csv, "--robot", "UR7", "-o", bag)
    assert result["robot"] == "ur7e"
    assert result["contradictions"] == []


def test_bag_of_another_arm_than_it_names(tmp_path, capsys, recordings):
    bag = tmp_path / "bag"
    telemetry = read_csv([recordings / "ur5e_streamed_move_500hz_6s.csv.gz"], "ur10e")
    with (
        new_bag(bag) as folder,
        BagWriter(folder, telemetry.info, tuple(telemetry.columns), name="bag") as writer,
    ):
        writer.write(telemetry)
    found = answer(capsys, "inspect", bag)
    (contradiction,) = found["contradictions"]
    assert (contradiction["subject"], contradiction["refused"]) == ("robot", True)
    assert "ur5e" in contradiction["shown"]
    assert found["verdict"].startswith("not usable")
    for words in (["estimate", bag], ["identify", bag, "-o", tmp_path / "model.yaml"]):
        refused([*map(str, words)], capsys, "its samples are those of a ur5e")


@pytest.mark.parametrize(
    ("step", "unit", "options"),
    [
        (2.0, 1.0, ()),
        (0.02, 1e-3, ()),
        (1.0, 1e-3, ("--time-unit", "ms")),
        (0.02, None, ("--rate", "50")),
    ],
)
def test_energies_of_imported_files_are_those_of_their_own_time(
    tmp_path, capsys, step, unit, options
):
    seconds = step * np.arange(300)
    columns = moving_arm(seconds)
    texts = None if unit is None else [f"{time / unit:.6f}" for time in seconds]
    path = write_table(tmp_path / "x.csv", texts, columns)
    bag = tmp_path / "bag"
    result = answer(capsys, "import", path, "--robot", "ur5e", "-o", bag, *options)
    assert result["contradictions"] == []
    assert result["time"]["reason"]
    found = answer(capsys, "estimate", bag)
    assert found["unaccounted_time"] == 0.0
    assert found["bus_energy"] == pytest.approx(energy(seconds, columns), rel=1e-6)


def test_times_that_the_motion_contradicts_make_no_bag(tmp_path, capsys):
    seconds = 0.02 * np.arange(300)
    path = write_table(
        tmp_path / "x.csv", [f"{time:.6f}" for time in seconds], moving_arm(seconds)
    )
    words = ["import", str(path), "--robot", "ur5e", "-o", str(tmp_path / "bag")]
    assert main([*words, "--time-unit", "ms"]) == 1
    assert "--time-unit s" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "bag").exists()


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    evil = "\x1b[31mred\x1b]0;title\x07"
    path = write(tmp_path / f"x{evil}.csv", table(), extra=(evil,))
    assert (
        main(["import", str(path), "--robot", "ur5e", "-o", str(tmp_path / "bag")]) == 0
    )
    assert main(["inspect", str(tmp_path / f"none{evil}")]) == 1
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x07"} & set(out + err)
    assert r"\x1b[31mred" in err
