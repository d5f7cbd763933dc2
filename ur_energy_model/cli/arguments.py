# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What arguments of several subcommands stand for: models, robots, and work on many bags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import note, progress, warn
from ur_energy_model.cli.parser import BAG_SUFFIXES, is_recording
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import (
    UrEnergyError,
    WrongRobotError,
)
from ur_energy_model.many_bags import BagExecutor, BagResult, Result
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_entry, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import check_payload, load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.telemetry.bag.reader import recorded_robot
from ur_energy_model.typing import Progress

# The model of a subcommand: a file, or without one the generic model of the arm.


PAYLOAD = "--payload"  # the option


def with_payload(model: EnergyModel, payload: Payload | None) -> EnergyModel:
    """The model with the payload of --payload, if any, in place of its own.

    Raises:
        InputError: the arm cannot carry it.
    """
    if payload is None:
        return model
    warn(check_payload(model.description(), payload.mass, PAYLOAD))
    return model.with_payload(payload)


@dataclass(frozen=True)
class ChosenModel:
    """The model of a subcommand, and its file; None for the generic model."""

    model: EnergyModel
    path: Path | None

    @property
    def entry(self) -> str:
        """`model` in JSON output: the path, or "generic"."""
        return model_entry(self.path)

    @property
    def words(self) -> str:
        """The model in words, for people."""
        return model_words(self.model, self.path)


def chosen_model(
    model: Path | None, robot: str | None, recordings: Sequence[Path] = ()
) -> ChosenModel:
    """The model of a file, else the generic one of a robot, which recordings may name.

    Raises:
        InputError: no such model or robot, the model of another robot, or nothing names
            the robot.
    """
    if model is None:
        return ChosenModel(generic_model(robot or recorded_robot(recordings)), None)
    loaded = load_model(model)
    if robot is not None and load_robot(robot).name != loaded.robot_name:
        problem = (
            f"is a model of a {loaded.robot_name}, not of a {load_robot(robot).name}"
        )
        raise WrongRobotError(model, problem, "leave out --robot, or give another model")
    return ChosenModel(loaded, model)


def split_model(
    model: Path | None, bags: Sequence[Path]
) -> tuple[Path | None, list[Path]]:
    """A model that may have been left out, so that the first bag took its place, and the bags."""
    if model is not None and (model.is_dir() or model.suffix in BAG_SUFFIXES):
        return None, [model, *bags]
    return model, list(bags)


def model_needed(options: argparse.Namespace, recording: Path) -> EnergyModel:
    """The model of a command that has no use for a generic one; a usage error where it is missing.

    Args:
        options: of the command; `model` is None, or a recording, where only those were
            given.
        recording: the first one, for the remedy.
    """
    given: Path | None = options.model
    if given is None or given.is_dir() or is_recording(given):
        first = recording if given is None else given
        options.parser.error(
            f"the model is missing: {first} is a recording; give MODEL.yaml before it, "
            f"which `ur_energy identify {first} -o model.yaml` makes"
        )
    assert given is not None
    return load_model(given)


def tariff_given(options: argparse.Namespace) -> Tariff:
    """The tariff that the options describe; InputError for an efficiency that is no share."""
    given = Tariff(
        options.tariff, options.currency, options.co2, options.supply_efficiency
    )
    hours = getattr(options, "hours_per_year", None)  # of commands that state savings
    return given if hours is None else replace(given, hours_per_year=hours)


# `--scheduler` and `--workers`: where a command works on many bags, and bags that fail
# there.


def is_distributed(options: argparse.Namespace) -> bool:
    """Whether the bags may be worked on elsewhere than in this process."""
    given = options.scheduler is not None or options.workers is not None
    return given or len(options.bags) > 1


def for_each_bag(
    options: argparse.Namespace, further: Sequence[Path] = ()
) -> AbstractContextManager[BagExecutor]:
    """What works on the bags of a command, and on further ones, for a `with` statement."""
    from ur_energy_model.plant.cluster import bag_work

    return bag_work([*options.bags, *further], options.scheduler, options.workers)


def results_of_bags(
    options: argparse.Namespace,
    text: str,
    here: Callable[[Path, Progress], Result],
    work: Callable[[Path], Result],
) -> list[BagResult[Result]]:
    """Results of the work on a command's bags; `text` names it for progress.

    A single bag in this process is worked on `here`, with progress within the bag.

    Raises:
        UrEnergyError: the only bag fails, or the cluster cannot be used.
    """
    with progress(text) as report:
        if not is_distributed(options):
            (bag,) = options.bags
            return [BagResult(bag, here(bag, report))]
        with for_each_bag(options) as each:
            results = list(each(work, options.bags, report))
    if len(results) == 1 and results[0].value is None:
        raise UrEnergyError(results[0].reason)
    return results


def failed_of(results: Sequence[BagResult[Any]]) -> list[BagResult[Any]]:
    """The bags without a result."""
    return [result for result in results if result.value is None]


def failed_json(failed: Sequence[BagResult[Any]]) -> list[dict[str, Any]]:
    """Entry "failed" of JSON output."""
    return [{"bag": result.bag, "reason": result.reason} for result in failed]


def report_failed(failed: Sequence[BagResult[Any]], bags: int) -> None:
    """Name the bags that failed, and end the command; the exit code shows whether others did not.

    Raises:
        UrEnergyError: there are any.
    """
    for result in failed[1:]:
        note(f"failed: {result.reason}")
    if failed:
        more = "" if len(failed) == 1 else f" (and {len(failed) - 1} more)"
        error = UrEnergyError(
            f"{len(failed)} of {bags} bags failed: {failed[0].reason}{more}"
        )
        error.exit_code = 3 if len(failed) < bags else 1
        raise error
