# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinds of sinks and their options, addresses, ports, and the file of credentials."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from test.sinks.peers import free_port
from ur_energy_model import rooms
from ur_energy_model.errors import InputError
from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Given, Room, tables_of
from ur_energy_model.sinks.credentials import existing_file, read_section
from ur_energy_model.sinks.options import (
    SUBJECT,
    Address,
    SinkKind,
    SinkOptions,
    check_ports,
    common_options,
    server_address,
    sink_kinds,
)
from ur_energy_model.sinks.sink import ArmActions, Sink, open_sinks
from ur_energy_model.yaml_reader import YamlTree


@dataclass(frozen=True)
class RadioOptions:
    """Of a kind of sink that the package does not have."""

    radio: tuple[str, ...] = option((), "addresses of radios")


RADIO = SinkKind(
    "radio",
    "radios",
    RadioOptions,
    f"{__name__}:radio_sink",
    default_port=8765,
    secrets="radio",
)


def radio_sink(
    place: str, given: Given, actions: ArmActions | None, state_file: Path | None
) -> Sink:
    return cast("Sink", Radio(server_address(RADIO, place, common_options(given))))


class Radio:
    """What was made; `closed` has the addresses of the sinks that were closed."""

    closed: list[Address] = []  # noqa: RUF012

    def __init__(self, address: Address) -> None:
        self.address = address

    def close(self) -> None:
        self.closed.append(self.address)


@pytest.fixture
def only_radio(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the room of this kind were the only one."""
    added = Extension(
        SUBJECT, f"{__name__}:RADIO", options=RadioOptions, shared=SinkOptions
    )
    room = Room("sinks/radio", "radio", extensions=(added, added))
    monkeypatch.setattr(rooms, "rooms", lambda: (room,))


@pytest.mark.usefixtures("only_radio")
def test_a_room_adds_a_kind_of_sink_and_its_options() -> None:
    assert tables_of(object, (SUBJECT,)) == (object, RadioOptions, SinkOptions)
    assert sink_kinds() == (RADIO, RADIO)
    given = Given(RadioOptions(("127.0.0.1:1",)), SinkOptions())
    made = cast("list[Radio]", open_sinks(given))
    assert [each.address for each in made] == [Address("127.0.0.1", 1)] * 2
    assert Radio.closed == []
    stated = RadioOptions(("127.0.0.1:2", "0.0.0.0:1"))
    with pytest.raises(InputError, match="other machines"):
        open_sinks(Given(stated, SinkOptions()))
    assert Radio.closed == [Address("127.0.0.1", 2)]


def test_without_rooms_there_are_no_sinks_and_no_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rooms, "rooms", lambda: ())
    assert tables_of(object, (SUBJECT,)) == (object,)
    assert open_sinks(Given()) == ()
    assert common_options(Given()) == SinkOptions()
    check_ports(Given())


@pytest.mark.usefixtures("only_radio")
def test_ports_in_use_are_refused() -> None:
    port = free_port()
    given = Given(RadioOptions((f"127.0.0.1:{port}",)), SinkOptions())
    with pytest.raises(InputError, match=f"--radio: 127.0.0.1:{port}.*in use"):
        check_ports(given)  # by the other one of the two kinds
    with socket.create_server(("127.0.0.1", port)), pytest.raises(InputError):
        check_ports(given)
    check_ports(Given(RadioOptions((":0",)), SinkOptions()))


def test_addresses() -> None:
    for text, expected in {
        "": Address("127.0.0.1", 8765),
        ":9000": Address("127.0.0.1", 9000),
        "localhost:80": Address("localhost", 80),
        "[::1]": Address("::1", 8765),
    }.items():
        found = server_address(RADIO, text, SinkOptions())
        assert (found, found.is_loopback) == (expected, True)
    allowed = SinkOptions(allow_network=True)
    assert str(server_address(RADIO, "0.0.0.0:1", allowed)) == "0.0.0.0:1"
    with pytest.raises(InputError):
        server_address(RADIO, "0.0.0.0:1", SinkOptions())
    for text in ("127.0.0.1:x", "127.0.0.1:70000", "host.example:1", "1.2.3:4"):
        with pytest.raises(InputError):
            server_address(RADIO, text, allowed)


@pytest.mark.usefixtures("only_radio")
def test_each_kind_reads_its_section_of_the_credentials(tmp_path: Path) -> None:
    """A section of no kind that is there is refused, whatever it holds."""
    file = tmp_path / "credentials.yaml"
    file.write_text("radio: {word: secret}")
    assert read_section(file, "radio", YamlTree.plain, None) == {"word": "secret"}
    file.write_text("{}")
    assert read_section(file, "radio", YamlTree.plain, "none") == "none"
    file.write_text("rdio: {word: secret}")
    with pytest.raises(InputError, match="did you mean 'radio'"):
        read_section(file, "radio", YamlTree.plain, None)
    file.write_text("radio: credentials.yaml")
    assert read_section(file, "radio", existing_file, None) == file
    file.write_text("radio: certificate.pem")
    with pytest.raises(InputError, match="is not a file"):
        read_section(file, "radio", existing_file, None)


CODE = """
import sys
from ur_energy_model.errors import MissingPackageError
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.options import SinkOptions, sink_kinds
from ur_energy_model.sinks.sink import open_sinks
none = [kind.options() for kind in sink_kinds()]
assert open_sinks(Given(SinkOptions(), *none)) == ()
places = {"mqtt": "mqtt://127.0.0.1:1", "opcua": "opc.tcp://127.0.0.1:0"}
packages = {"mqtt": "paho", "opcua": "asyncua", "prometheus": "prometheus_client"}
for kind in sink_kinds():
    package = packages.get(kind.name, "foxglove")
    sys.modules[package] = None
    stated = kind.options(**{kind.name: (places.get(kind.name, "127.0.0.1:0"),)})
    try:
        open_sinks(Given(stated, SinkOptions(), *none))
    except MissingPackageError as error:
        assert f"'{package}'" in str(error) and "'.[sinks]'" in str(error), error
    else:
        sys.exit(kind.name)
"""


def test_a_package_is_imported_by_its_option_only() -> None:
    """In a process of its own: a module that is imported already is not missing."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
