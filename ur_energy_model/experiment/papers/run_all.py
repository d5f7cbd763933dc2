"""Runs all stages, several at once in processes of their own, and continues a stopped run."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ur_energy_model import __version__
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.experiment.child_process import (
    single_threaded_children,
    start_ignoring_interrupts,
)
from ur_energy_model.experiment.papers.stages import STAGES, Stage
from ur_energy_model.experiment.protocols.protocol_run import VERDICT
from ur_energy_model.files import write_text
from ur_energy_model.typing import Progress

SETTINGS, ERROR = "settings.json", "error.txt"
_POLL = 0.2
"""Time between polls of the processes [s]."""


@dataclass(frozen=True)
class StageResult:
    """What a stage left in its folder.

    Attributes:
        name: of the stage and its folder.
        protocol: "s0" to "s4".
        verdict: content of verdict.json, None if the stage failed.
        error: why it failed, "" if it did not.
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
    stages: Sequence[Stage] = STAGES,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[StageResult]:
    """Run all stages; those finished by an earlier, interrupted run in this folder are kept.

    Args:
        folder: new, empty, or of an earlier run with the same settings.
        seed: of the arms and searches.
        quick: shorter motions and searches.
        stages: to run, the longest first.
        workers: processes at once, None for one per core.
        progress: called with the share of stages done and a text.

    Returns:
        In the order of `stages`. A stage that fails does not stop the others.

    Raises:
        InputError: the folder contains something else.
    """
    prepare(folder, {"version": __version__, "seed": seed, "quick": quick})
    waiting = [stage for stage in stages if stage_result(folder, stage).verdict is None]
    running: dict[Stage, BaseProcess] = {}
    context = multiprocessing.get_context("spawn")
    count = workers or os.cpu_count() or 1
    try:
        while waiting or running:
            while waiting and len(running) < count:
                stage = waiting.pop(0)
                shutil.rmtree(folder / stage.name, ignore_errors=True)
                process: BaseProcess = context.Process(
                    target=_run, args=(stage, folder / stage.name, seed, quick)
                )
                with single_threaded_children():
                    start_ignoring_interrupts(process)
                running[stage] = process
            time.sleep(_POLL)
            for stage in [stage for stage, process in running.items() if not process.is_alive()]:
                _record_sudden_end(folder / stage.name, running.pop(stage).exitcode)
            if progress is not None:
                done = len(stages) - len(waiting) - len(running)
                names = ", ".join(stage.name for stage in running)
                progress(done / len(stages), f"{done} of {len(stages)} done; running {names}")
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.join()
    return [stage_result(folder, stage) for stage in stages]


def stage_result(folder: Path, stage: Stage) -> StageResult:
    """What a stage left in its folder below `folder`."""
    verdict, error = folder / stage.name / VERDICT, folder / stage.name / ERROR
    if verdict.is_file():
        with suppress(ValueError):  # one that is damaged is repeated
            content = json.loads(verdict.read_text(encoding="utf-8"))
            return StageResult(stage.name, stage.protocol, content, "")
    reason = error.read_text(encoding="utf-8").strip() if error.is_file() else "was not run"
    return StageResult(stage.name, stage.protocol, None, reason)


def prepare(folder: Path, settings: dict[str, Any]) -> None:
    """Make the output folder, or accept one that was begun with the same settings.

    Raises:
        InputError: it contains something else, or other settings.
    """
    file = folder / SETTINGS
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(settings) + "\n")
        return
    remedy = "choose another folder, or delete this one"
    if not file.is_file():
        raise InputError(folder, "exists and was not begun by 'ur_energy protocol all'", remedy)
    try:
        earlier = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        earlier = None
    if earlier != settings:
        raise InputError(folder, f"was begun with other settings ({earlier})", remedy)


def _run(stage: Stage, folder: Path, seed: int, quick: bool) -> None:
    """One stage, in its process; what goes wrong is left in the folder."""
    try:
        stage.run(folder, seed=seed, quick=quick, progress=_unheard)
    except UrEnergyError as error:
        write_text(folder / ERROR, f"{error}\n")
    except Exception:
        write_text(folder / ERROR, traceback.format_exc())


def _record_sudden_end(folder: Path, exit_code: int | None) -> None:
    """Note the end of a process that left neither verdict nor error, such as for want of memory."""
    if not (folder / VERDICT).is_file() and not (folder / ERROR).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ERROR, f"its process ended with exit code {exit_code}\n")


def _unheard(fraction: float, text: str | None = None) -> None:
    """Progress of a stage; that of all stages is reported by their parent."""
