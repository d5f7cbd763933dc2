# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the room adds to the package: a server for Foxglove, and MCAP files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.options import option
from ur_energy_model.rooms import Extension, Room
from ur_energy_model.sinks.options import SUBJECT, SinkKind, SinkOptions


@dataclass(frozen=True)
class FoxgloveOptions:
    """Options of the servers for Foxglove, and of the files with the same messages.

    Attributes:
        foxglove: ADDRESS:PORT of each server.
        foxglove_origins: accepted so that command lines and parameter files of earlier
            versions still work.
        mcap: path of each file, which must not exist yet.
    """

    # fmt: off
    foxglove: tuple[str, ...] = option(
        (), "addresses of servers for Foxglove and Lichtblick, such as 127.0.0.1:8765",
        metavar="A:P", bare="", launch=True,
    )
    foxglove_origins: tuple[str, ...] = option(
        (), "no effect any more: pages of all sites may connect to a server for Foxglove, where a "
        "browser reaches its address",
        flags=("--foxglove-origin",), metavar="ORIGIN", launch=True,
    )
    mcap: tuple[Path, ...] = option(
        (), "MCAP files that get what a Foxglove server sends", metavar="FILE", launch=True
    )
    # fmt: on


FOXGLOVE_PORT = 8765
"""Default port of the servers of Foxglove's SDK, which its app suggests."""
FOXGLOVE = SinkKind(
    "foxglove",
    "Foxglove",
    FoxgloveOptions,
    "ur_energy_model.sinks.foxglove.sink:foxglove_sink",
    default_port=FOXGLOVE_PORT,
)
MCAP = SinkKind(
    "mcap",
    "MCAP files",
    FoxgloveOptions,
    "ur_energy_model.sinks.foxglove.sink:mcap_sink",
)
ROOM = Room(
    name="sinks/foxglove",
    purpose="live values for Foxglove and Lichtblick, and MCAP files",
    extensions=tuple(
        Extension(
            SUBJECT,
            f"ur_energy_model.sinks.foxglove.room:{kind}",
            options=FoxgloveOptions,
            shared=SinkOptions,
        )
        for kind in ("FOXGLOVE", "MCAP")
    ),
    tests=("test/sinks/foxglove",),
    pages=("docs/sinks/foxglove",),
)
