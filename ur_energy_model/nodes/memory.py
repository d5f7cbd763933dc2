# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Memory of large messages: a node gives it back once it has read, or refused, a message.

Any node of a network may publish a message of any size. The middleware receives it as a
whole before a node sees its size, so that its memory can only be bounded in time. Two
parties keep memory that was freed:

- The allocator of glibc: each large block that is freed raises the size from which blocks
  come from the operating system, up to 32 MB; smaller ones stay with the process
  (mallopt(3)).
- Fast DDS, the default middleware: a subscription keeps buffers as large as the largest
  messages.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

from ur_energy_model.files import config_file

_M_MMAP_THRESHOLD = -3
LARGE_BLOCK = 1 << 20
"""Size from which blocks are given back at once [bytes]: above what samples and messages
of an arm need, whose blocks are reused."""

OWN_SETTINGS = (
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "RMW_FASTRTPS_USE_QOS_FROM_XML",
    "RMW_FASTRTPS_PUBLICATION_MODE",
)
"""Variables with which users configure Fast DDS."""
_OWN_FILES = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")
"""Files that Fast DDS reads in the working directory."""


def give_back_memory() -> None:
    """Configure allocator and middleware of this process; before ROS is initialized."""
    give_back_large_blocks()
    # relative: the working directory may be deleted
    configure_middleware(os.environ, Path())


def give_back_large_blocks() -> bool:
    """Let glibc give freed blocks of LARGE_BLOCK back; False with other libraries."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # such as musl
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK))


def configure_middleware(environment: MutableMapping[str, str], folder: Path) -> bool:
    """Set the variables for Fast DDS to use config/fastdds.xml.

    Args:
        environment: variables of the process.
        folder: working directory of the process.

    Returns:
        False where the user has configured Fast DDS, whose settings then hold, or where
        another middleware is chosen.
    """
    chosen = environment.get("RMW_IMPLEMENTATION", "")
    if chosen and not chosen.startswith("rmw_fastrtps"):
        return False
    if any(environment.get(name) for name in OWN_SETTINGS):
        return False
    if any((folder / name).exists() for name in _OWN_FILES):
        return False
    profiles = str(config_file("fastdds.xml"))
    environment["FASTRTPS_DEFAULT_PROFILES_FILE"] = profiles  # up to Fast DDS 2
    environment["FASTDDS_DEFAULT_PROFILES_FILE"] = profiles  # from Fast DDS 3 on
    environment["RMW_FASTRTPS_USE_QOS_FROM_XML"] = "1"
    return True
