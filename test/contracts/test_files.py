# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files: written before and written now, read alike by this package and by other readers."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from test.conftest import Simulate
from test.contracts.bag_readers import by_mcap, by_rosbags
from test.contracts.golden import check, numbers, shape
from test.contracts.surface import FIXTURES, fixture_copy, program, ur_energy

MODEL = FIXTURES / "model.yaml"
WORK = FIXTURES / "work"
PATIENCE = 240.0  # longest wait [s]
SAVED = ("total/energy", "bus/energy", "standby/energy", "shoulder_pan_joint/energy")


def topics_of(bag: Path) -> dict[str, Any]:
    """Topics with messages, the same for both readers; the metadata count the same messages."""
    one = by_mcap(bag)
    other = by_rosbags(bag)
    assert one.counts == other.counts
    metadata = yaml.safe_load((bag / "metadata.yaml").read_text())[
        "rosbag2_bagfile_information"
    ]
    said = metadata["topics_with_message_count"]
    counts = {each["topic_metadata"]["name"]: each["message_count"] for each in said}
    assert {name: count for name, count in counts.items() if count} == one.counts
    assert (
        ur_energy("inspect", bag, "--json").json["samples"]
        == counts["/rtde/joint_telemetry"]
    )
    return {name: one.topics[name] | other.topics[name] for name in sorted(one.topics)}


@pytest.fixture
def recorded(simulate: Simulate, fresh_host: Callable[[], str], tmp_path: Path) -> Path:
    """A folder with bags of two recorders of one controller: one ended, one was killed."""
    folder = tmp_path
    host = fresh_host()
    controller = simulate(host, "--speed", "1")
    command = program("ur_energy", "record", "--host", host, "--rate", "50", "--json")
    killed = subprocess.Popen(
        [*command, "-o", folder / "killed"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    ended = subprocess.run(
        [*command, "-o", folder / "ended", "--duration", "3"],
        capture_output=True,
        check=True,
    )
    (folder / "printed.json").write_bytes(ended.stdout)
    enough = 4.0
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:  # seconds of telemetry that are on the disk
        metadata = folder / "killed" / "metadata.yaml"
        if (
            metadata.exists()
            and sum(by_mcap(folder / "killed").counts.values()) > 50 * enough
        ):
            break
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    controller.send_signal(signal.SIGINT)
    return folder


def check_bags_written_before_and_now(recorded: Path) -> None:
    """Channels, schemas, type hashes and joint names of recordings."""
    before = topics_of(WORK)
    now = topics_of(recorded / "ended")
    assert now == {name: before[name] for name in now}
    # there is one only after a disturbance
    assert before.keys() - now.keys() <= {"/rtde/events"}
    check("bag_topics", before)
    check("bag_counts", by_mcap(WORK).counts)
    metadata = yaml.safe_load((recorded / "ended" / "metadata.yaml").read_text())
    check("bag_metadata", shape(metadata))


def check_record_prints(recorded: Path) -> None:
    found = json.loads((recorded / "printed.json").read_text())
    keys = shape(found)
    # The joints of which a short recording shows the constants depend on its moment.
    for name in ("std", "torque_per_ampere"):
        place = f"controller_constants.{name}[]"
        assert set(keys[place].split("|")) <= {"null", "number"}
        keys[place] = "number|null"
    check("keys/record", keys)
    assert found["samples"] == 150
    assert found["lost"] == 0


def check_a_killed_recorder_leaves_a_bag_that_others_read(recorded: Path) -> None:
    """Before and after its recovery; nothing that was readable goes."""
    bag = recorded / "killed"
    left = by_mcap(bag)
    assert left.counts == by_rosbags(bag).counts
    outcome = ur_energy("recover", bag, "--json")
    check("keys/recover", shape(outcome.json))
    assert topics_of(bag).items() <= topics_of(WORK).items()
    after = by_mcap(bag).counts
    assert all(after[topic] >= count for topic, count in left.counts.items())
    assert not [path for path in bag.iterdir() if path.suffix not in (".mcap", ".yaml")]


def test_learned_models_of_before_are_read(tmp_path: Path) -> None:
    found = ur_energy("evaluate", FIXTURES / "learned.yaml", WORK, "--json").json
    check("values/evaluate_learned", numbers(found), 1e-6, 1e-9)


def test_a_history_of_before_gives_the_same_sums(tmp_path: Path) -> None:
    plant = fixture_copy("plant", tmp_path)
    for name, words in {
        "arms": ("summary", plant),
        "programs": ("summary", plant, "--by", "program"),
        "joints": ("summary", plant, "--by", "joint"),
        "seconds": (
            "sql",
            plant,
            "SELECT count(*), sum(total_energy), sum(bus_energy) FROM seconds",
        ),
    }.items():
        found = ur_energy("history", *words, "--json").json
        check(f"values/plant_{name}", numbers(found), 1e-6, 1e-9)
    again = ur_energy(
        "history", "add", plant, WORK, "--model", MODEL, "--workers", "1", "--json"
    )
    check("values/plant_add_again", numbers(again.json))


def values_of_first_line(*words: object) -> tuple[dict[str, float], dict[str, Any]]:
    """Values of `live --json` in its first line with any."""
    command = program("ur_energy", "live", *words, "--json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            found = json.loads(line)
            if "values" in found:
                break
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, err
    return found["values"], found


def test_counters_of_before_continue(tmp_path: Path) -> None:
    """At or above what a killed command had published last, of which the journal has the end."""
    state = fixture_copy("state", tmp_path) / "energy.db"
    published = json.loads((FIXTURES / "state" / "published.json").read_text())
    values, line = values_of_first_line(
        *("--bag", WORK, "--model", MODEL, "--state-file", state)
    )
    assert line["reset_time"] == published["reset_time"]
    longest = line["accounted_s"] - published["accounted_s"] + 2.0
    for name in SAVED:
        gained = values[f"energy/{name}"] - published["values"][f"energy/{name}"]
        assert 0.0 <= gained <= 500.0 * longest, name


def test_bags(recorded: Path) -> None:
    """One test, since a controller must start."""
    check_bags_written_before_and_now(recorded)
    check_record_prints(recorded)
    check_a_killed_recorder_leaves_a_bag_that_others_read(recorded)
