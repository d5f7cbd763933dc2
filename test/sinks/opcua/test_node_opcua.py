"""The OPC UA server, asked by node-opcua, a client of another project."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

pytest.importorskip("asyncua")

from test.sinks.made_up_reading import made_up_reading
from test.sinks.opcua.opcua_server import INTERVAL, OpcuaServer
from test.sinks.servers import NODE_PACKAGES, needs_node_package, program

SCRIPT = Path(__file__).with_name("ask_server.js")


@needs_node_package("node-opcua-client")
def test_node_opcua_reads_follows_and_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = OpcuaServer(tmp_path / "credentials.yaml")
    server.offer(made_up_reading(1))
    done = threading.Event()

    def feed() -> None:
        number = 1
        while not done.wait(0.02):
            number += 1
            server.sink.offer(made_up_reading(number))

    feeder = threading.Thread(target=feed)
    feeder.start()
    node = program("node")
    assert node is not None
    # The client keeps its certificate in the user's folders.
    home = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "NODE_PATH": str(NODE_PACKAGES),
    }
    try:
        found = subprocess.run(
            [node, str(SCRIPT), server.url, "plc", "secret"],
            env=os.environ | home,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
    finally:
        done.set()
        feeder.join()
        server.sink.close()
    assert found.returncode == 0, found.stderr
    answer = json.loads(found.stdout.splitlines()[-1])
    assert answer["machines"] == ["arm-1"]
    assert answer["type"] == 1006
    assert (answer["MeasurementID"], answer["unit"]) == (1029, 5720146)
    per_reading = made_up_reading(1).numbers()["energy/total/energy"]
    for energy in (*answer["seen"], 3600.0 * answer["energy"]):
        assert energy / per_reading == pytest.approx(round(energy / per_reading))
    assert answer["seen"] == sorted(answer["seen"])
    assert "BadUserAccessDenied" in answer["denied"]
    assert answer["reset"] == "Good"
    assert server.resets == ["node-opcua"]
    assert answer["interval"][:3] == [2.0, 0.0, 5.0]
    assert json.loads(answer["interval"][4]) == INTERVAL
    assert answer["resetStatistics"]
    assert answer["hasStatistics"]
