# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Meaning of arguments of several subcommands: models, robots, work on many bags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ur_energy_model.cli.output import note, progress, warn
from ur_energy_model.cli.tables import PAYLOAD, SavingsOptions, TariffOptions
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import (
    InputError,
    UrEnergyError,
    WrongRobotError,
)
from ur_energy_model.files import BAG_SUFFIXES, is_recording
from ur_energy_model.many_bags import BagExecutor, BagResult, Result, local_executor
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, model_entry, model_words
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import check_payload, load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.rooms import Given, extensions
from ur_energy_model.telemetry.bag.reader import recorded_robot
from ur_energy_model.typing import Progress

# The model of a subcommand: a file, or without one the generic model of the arm.


def stated_payload(numbers: tuple[float, ...] | None) -> Payload | None:
    """The payload of --payload; None where it is not stated.

    Args:
        numbers: mass [kg], and where it is stated the centre of mass in the flange
            frame [m], as `tables.payload_numbers` returns them.
    """
    if numbers is None:
        return None
    mass, *center = numbers
    return Payload(mass, np.array(center or [0.0, 0.0, 0.0]))


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
    """Model and bags, where the first bag is in place of a model that was left out.

    Args:
        model: model file, or the first recording; None for none.
        bags: the recordings behind it.

    Returns:
        The model file, None without one, and all recordings.
    """
    if model is not None and (model.is_dir() or model.suffix in BAG_SUFFIXES):
        return None, [model, *bags]
    return model, list(bags)


def model_needed(given: Given, model: Path | None, recording: Path | None) -> EnergyModel:
    """The model of a command that has no use for a generic one.

    A missing model is a usage error.

    Args:
        given: options of the command.
        model: MODEL.yaml; None, or a recording, where only recordings were given.
        recording: the first recording, for the remedy.

    Raises:
        ModelFileError: the file cannot be read.
    """
    if model is not None and not (model.is_dir() or is_recording(model)):
        return load_model(model)
    first = recording if model is None else model
    given.refuse(
        f"the model is missing: {first} is a recording; give MODEL.yaml before it, "
        f"which `ur_energy identify {first} -o model.yaml` makes"
    )


def tariff_of(options: TariffOptions) -> Tariff:
    """The tariff that options describe, with the hours of a year where they state them.

    Raises:
        InputError: an efficiency that is not a share, or a price in hundredths.
    """
    tariff = Tariff(
        options.tariff, options.currency, options.co2, options.supply_efficiency
    )
    if isinstance(options, SavingsOptions):
        return replace(tariff, hours_per_year=options.hours_per_year)
    return tariff


# Work on many bags, and bags that fail there.

EXECUTOR = "executor"
"""Subject of the rooms' extensions for work on many bags, each an `ExecutorOffer`."""


class ExecutorOffer(Protocol):
    """What a room provides for work on many bags elsewhere than on this machine."""

    def __call__(self, given: Given) -> AbstractContextManager[BagExecutor] | None:
        """The executor that the options ask for; None if they do not ask for it.

        Args:
            given: options of the command, and of the extension.
        """
        ...


def _elsewhere(given: Given) -> AbstractContextManager[BagExecutor] | None:
    """The executor that a room offers and the options ask for; None for this machine."""
    for extension in extensions(EXECUTOR):
        offer: ExecutorOffer = extension.load()
        executor = offer(given)
        if executor is not None:
            return executor
    return None


@dataclass(frozen=True)
class CommandBags:
    """The bags of a command, and where they are worked on.

    Attributes:
        given: options of the command.
        bags: all bags.
        workers: --workers, the number of processes of this machine; None for as many as
            save time.
    """

    given: Given
    bags: Sequence[Path]
    workers: int | None

    @property
    def is_distributed(self) -> bool:
        """Whether they may be worked on elsewhere than in this process."""
        here = len(self.bags) == 1 and self.workers is None
        return not here or _elsewhere(self.given) is not None

    def executor(self) -> AbstractContextManager[BagExecutor]:
        """What works on them, for a `with` statement.

        Raises:
            InputError: --workers is stated, and an executor elsewhere, too.
        """
        elsewhere = _elsewhere(self.given)
        if elsewhere is None:
            return local_executor(self.bags, self.workers)
        if self.workers is not None:
            problem = "is for this machine, and another option names a cluster"
            raise InputError("--workers", problem, "leave one out")
        return elsewhere

    def results(
        self,
        title: str,
        here: Callable[[Path, Progress], Result],
        work: Callable[[Path], Result],
    ) -> list[BagResult[Result]]:
        """The result of each bag, in order of the bags.

        Args:
            title: title of the work, for progress.
            here: works on a single bag in this process, with progress within the bag.
            work: works on one of many bags, perhaps in another process.

        Raises:
            UrEnergyError: the only bag fails, or the cluster cannot be used.
        """
        with progress(title) as report:
            if not self.is_distributed:
                (bag,) = self.bags
                return [BagResult(bag, here(bag, report))]
            with self.executor() as each:
                results = list(each(work, self.bags, report))
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
    """Name the bags that failed, and end the command with an error.

    The exit code of the error is 3 if other bags have a result, else 1.

    Args:
        failed: the bags without a result.
        bags: number of all bags.

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
