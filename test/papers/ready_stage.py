# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A stage with a ready outcome, in a module that its process can import."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from ur_energy_model.codec import plain
from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.papers.pictures import Picture
from ur_energy_model.papers.protocol import Outcome
from ur_energy_model.papers.published import ResultRow
from ur_energy_model.papers.stages import Stage
from ur_energy_model.typing import Progress

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c6360000002000154a24f5d0000000049454e44ae426082"
)
ROWS = (
    ResultRow(
        "within",
        2.0,
        "a mean",
        ("method",),
        0.1,
        because="of arms",
        here=2.1,
        place="Table I",
    ),
    ResultRow("outside | of it", 2.0, "a mean", (), 0.1, here=3.0, place="Table I"),
    ResultRow("elsewhere", here=1.0, place="Appendix"),
)


@dataclass(frozen=True)
class ReadyStage(Stage):
    """A stage with a ready outcome, or one that fails as its name says."""

    def run(
        self,
        folder: Path,
        *,
        seed: int,
        quick: bool,
        progress: Progress,
        draw: bool = True,
    ) -> Outcome:
        folder.mkdir(parents=True)
        if self.name == "refused":
            raise MotionRefusedError("no way")
        if self.name == "killed":
            os._exit(7)
        (folder / "made").write_text(f"{seed} {quick}")
        (folder / "pictures").mkdir()
        (folder / "pictures" / "a.png").write_bytes(PIXEL)
        pictures = [Picture("pictures/a.png", "Fig. 1: a curve", {"model": {"": 0.5}})]
        outcome = Outcome("s1", "S", "ur5", True, ROWS, ("mind this",), pictures)
        (folder / "verdict.json").write_text(json.dumps(plain(outcome.as_dict())))
        return outcome
