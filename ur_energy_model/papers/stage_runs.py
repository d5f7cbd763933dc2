# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stages in processes of their own, several at once, with their results in one folder.

An interrupted run is continued: stages with a verdict are kept, all others are repeated. A
run of other code is refused, so that a page has the numbers of one code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import share_directory, write_text
from ur_energy_model.many_bags import WorkerProcesses
from ur_energy_model.papers.protocol import VERDICT
from ur_energy_model.papers.stages import STAGES, Stage
from ur_energy_model.typing import Progress

SETTINGS = "settings.json"  # settings of a run in the output folder
ERROR = "error.txt"  # reason of a failed stage in its folder


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
        folder: new, empty, or of an earlier run with the same code and settings.
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
    settings = {
        "version": __version__,
        "code": code_digest(),
        "seed": seed,
        "quick": quick,
    }
    prepare(folder, settings)
    waiting = [stage for stage in stages if stage_result(folder, stage).verdict is None]
    work = partial(_run, seed=seed, quick=quick, draw=draw)
    folders = [folder.absolute() / stage.name for stage in waiting]
    finished = len(stages) - len(waiting)

    def report(fraction: float, _: str) -> None:
        """Report the progress of all stages."""
        done = finished + round(fraction * len(waiting))
        if progress is not None:
            progress(done / len(stages), f"{done} of {len(stages)} stages done")

    with WorkerProcesses(workers or os.cpu_count() or 1) as processes:
        for ended in processes(work, folders, report, given=waiting):
            if ended.reason is not None:  # its process died
                ended.bag.mkdir(parents=True, exist_ok=True)
                write_text(ended.bag / ERROR, f"{ended.reason}\n")
    report(1.0, "")
    return [stage_result(folder, stage) for stage in stages]


def code_digest() -> str:
    """12 hexadecimal digits of the code and the configuration that determine the results."""
    package = Path(__file__).resolve().parents[1]
    files = [*package.rglob("*.py"), *(share_directory() / "config").rglob("*.yaml")]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


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
        raise InputError(
            folder, f"was begun with other code or settings ({earlier})", remedy
        )


def _run(folder: Path, stage: Stage, seed: int, quick: bool, draw: bool) -> None:
    """Run one stage into its folder, and write an error to this folder.

    Args:
        folder: folder of the stage; what an interrupted run has left there is removed.
        stage: stage to run.
        seed: see `Stage.run`.
        quick: see `Stage.run`.
        draw: see `Stage.run`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        stage.run(folder, seed=seed, quick=quick, progress=lambda *_: None, draw=draw)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())
