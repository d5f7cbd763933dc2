# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stages in processes of their own, several at once, with their results in one folder.

An interrupted run is continued: stages with a verdict are kept, all others are repeated.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import write_text
from ur_energy_model.interrupts import postponed
from ur_energy_model.papers.protocol import VERDICT
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.processes import ChildProcess, single_threaded_children
from ur_energy_model.typing import Progress

SETTINGS = "settings.json"  # settings of a run in the output folder
ERROR = "error.txt"  # reason of a failed stage in its folder
_POLL = 0.2  # time between looks at the running stages [s]


class StageResult(NamedTuple):
    """Result of a stage, as found in its folder.

    Attributes:
        name: name of the stage.
        protocol: "s0" to "s4".
        verdict: content of verdict.json; None if the stage failed or was not run.
        error: why the stage failed or was not run; empty if there is a verdict.
    """

    name: str
    protocol: str
    verdict: dict[str, Any] | None
    error: str


def run_stages(
    folder: Path,
    *,
    seed: int = 0,
    quick: bool = False,
    draw: bool = True,
    stages: Sequence[Stage] = STAGES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Run all stages in their order, and keep the ones that an earlier run has finished.

    Args:
        folder: new, empty, or of an earlier run with the same settings.
        seed: seed of all arms and searches, see `Stage.run`.
        quick: whether motions and searches are short, see `Stage.run`.
        draw: whether pictures are drawn, see `Stage.run`.
        stages: stages to run.
        workers: number of processes at once; None for one per core.
        progress: called with the share of stages done and a text.

    Returns:
        Results in the order of the stages.

    Raises:
        InputError: the folder contains something else.
    """
    prepare(folder, {"version": __version__, "seed": seed, "quick": quick})
    waiting = [stage for stage in stages if stage_result(folder, stage).verdict is None]
    running: dict[Stage, ChildProcess] = {}
    most = workers or os.cpu_count() or 1
    try:
        while waiting or running:
            while waiting and len(running) < most:
                stage = waiting.pop(0)
                own = folder / stage.name
                shutil.rmtree(own, ignore_errors=True)
                process = ChildProcess(target=_run, args=(stage, own, seed, quick, draw))
                # An interrupt between both lines would leave a process that nobody ends.
                with postponed(), single_threaded_children():
                    process.start()
                    running[stage] = process
            time.sleep(_POLL)
            _remove_ended(running, folder)
            if progress is not None:
                done = len(stages) - len(waiting) - len(running)
                names = ", ".join(stage.name for stage in running)
                text = f"{done} of {len(stages)} done; running {names}"
                progress(done / len(stages), text)
    finally:
        for process in running.values():
            process.kill()
        for process in running.values():
            process.join()
    return [stage_result(folder, stage) for stage in stages]


def _remove_ended(running: dict[Stage, ChildProcess], folder: Path) -> None:
    """Remove stages whose process has ended; a crash is written to the folder of the stage.

    Args:
        running: processes by stage.
        folder: folder with the folders of all stages.
    """
    ended = [stage for stage, process in running.items() if not process.is_alive()]
    for stage in ended:
        code = running.pop(stage).exitcode
        own = folder / stage.name
        if not (own / VERDICT).is_file() and not (own / ERROR).is_file():
            write_text(own / ERROR, f"its process ended with exit code {code}\n")


def stage_result(folder: Path, stage: Stage) -> StageResult:
    """The result of a stage from its folder; a damaged verdict counts as none.

    Args:
        folder: folder with the folders of all stages.
        stage: stage to read.
    """
    verdict = folder / stage.name / VERDICT
    error = folder / stage.name / ERROR
    if verdict.is_file():
        with suppress(ValueError):  # a stage with a damaged verdict is repeated
            content = json.loads(verdict.read_text(encoding="utf-8"))
            return StageResult(stage.name, stage.protocol, content, "")
    reason = "was not run"
    if error.is_file():
        reason = error.read_text(encoding="utf-8").strip()
    return StageResult(stage.name, stage.protocol, None, reason)


def prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Make the output folder, or accept one that was begun with the same settings.

    Args:
        folder: output folder.
        settings: settings that determine the results.

    Raises:
        InputError: the folder contains something else, or other settings.
    """
    file = folder / SETTINGS
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(settings) + "\n")
        return
    remedy = "choose another folder, or delete this one"
    if not file.is_file():
        raise InputError(
            folder, "exists and was not begun by 'ur_energy protocol all'", remedy
        )
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        earlier = None
    if earlier != settings:
        raise InputError(folder, f"was begun with other settings ({earlier})", remedy)


def _run(stage: Stage, folder: Path, seed: int, quick: bool, draw: bool) -> None:
    """Run one stage in its own process, and write an error to the folder of the stage.

    Args:
        stage: stage to run.
        folder: folder of the stage.
        seed: see `Stage.run`.
        quick: see `Stage.run`.
        draw: see `Stage.run`.
    """
    try:
        stage.run(folder, seed=seed, quick=quick, progress=lambda *_: None, draw=draw)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())
