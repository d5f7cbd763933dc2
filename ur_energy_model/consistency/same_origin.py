# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whether recordings, and what is compared with them, are of one arm and one program.

A bag holds the serial number of its arm and the name of its program, where the controller's
dashboard server had them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ur_energy_model.consistency.contradiction import Contradiction, ContradictionError
from ur_energy_model.telemetry.samples import RecordingInfo, same_serial


def check_one_arm(recordings: Sequence[tuple[str | Path, RecordingInfo]]) -> None:
    """Refuse recordings of several arms, which are to be fitted together.

    Args:
        recordings: names of the bags, and what they state; unknown serial numbers contradict
            nothing.

    Raises:
        ContradictionError: the first recording of another arm, with both serial numbers.
    """
    known = [(name, info.serial) for name, info in recordings if info.serial]
    for name, serial in known[1:]:
        first_name, first = known[0]
        if same_serial(first, serial) is False:
            contradiction = Contradiction(
                subject="arm",
                stated=f"is fitted together with {first_name}, which is of arm {first}",
                shown=f"is itself of arm {serial}",
                evidence="serial numbers in the bags",
                remedy="identify each arm from its own recordings (--per-arm), or give "
                "--same-arm if it is one arm, as with an exchanged control box",
                refused=True,
            )
            raise ContradictionError(name, contradiction)


_NO_LETTER = re.compile(r"[^a-z0-9]+")


def another_program(script: str, recorded: str | None) -> list[Contradiction]:
    """What contradicts that a recording is of the program of a script.

    Args:
        script: name of the program in the script; PolyScope has underscores in place of blanks.
        recorded: name of the program in the recording; None if it is unknown.
    """
    if recorded is None:
        return []
    names = (_NO_LETTER.sub("_", name.lower()).strip("_") for name in (script, recorded))
    if len(set(names)) == 1:
        return []
    return [
        Contradiction(
            subject="program",
            stated=f"the script is that of the program {script}",
            shown=f"the recording is of the program {recorded}",
            evidence="names in the script and in the bag",
            remedy="lines and nodes may be those of another program; give the script of the "
            "recorded one, as the controller saves it beside the .urp file",
        )
    ]
