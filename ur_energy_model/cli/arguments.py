"""Arguments that several subcommands take, each described once, and what they stand for."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ur_energy_model.cli.output import WIDTH, note, progress
from ur_energy_model.errors import InputError, RecordingError, UrEnergyError, WrongRobotError
from ur_energy_model.many_bags import BagExecutor, BagResult, Result
from ur_energy_model.options import host_address, number

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.setup import Payload
    from ur_energy_model.report.tariff import Tariff
    from ur_energy_model.typing import Progress

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a command registers its subcommands."""
Run = TypeVar("Run", bound="Callable[[argparse.Namespace], None] | None")
"""What a subcommand does; None for one that has subcommands only."""
Adder: TypeAlias = "Callable[..., Any] | tuple[Any, ...]"
"""What adds options to a parser: a function `add_...`, or one with its further arguments."""

SEEDS = (0, 2**32 - 1)
"""Range of seeds of random numbers."""
REGISTERED: dict[str, Callable[[Subparsers], None]] = {}
"""Subcommands whose module has been imported, by name."""


def command(
    name: str,
    summary: str,
    description: str,
    examples: str,
    *options: Adder,
    notes: str | Callable[[], str] = "",
) -> Callable[[Run], Run]:
    """Register the function below as a subcommand: it is called with the parsed arguments.

    Args:
        name: as the user types it, with the command that it belongs to, such as "history add".
        summary: one line of the help of what it belongs to.
        description: one paragraph; it is wrapped here.
        examples: command lines.
        options: what adds its options, in order.
        notes: shown below the examples, laid out by the caller; made when the help of this command
            is shown, where it is a function.
    """

    def register(run: Run) -> Run:
        def add(subparsers: Subparsers) -> None:
            parser = subparsers.add_parser(
                name.rpartition(" ")[2],
                help=summary,
                description=textwrap.fill(description, WIDTH),
                epilog="examples:\n" + textwrap.indent(examples.strip(), "  "),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            parser.set_defaults(parser=parser, notes=notes, run=run)
            add_all(parser, *options)

        REGISTERED[name] = add
        return run

    return register


def add_all(parser: argparse._ActionsContainer, *options: Adder) -> None:
    """Add options to a parser or a group of its options."""
    for each in options:
        adder, *rest = each if isinstance(each, tuple) else (each,)
        adder(parser, *rest)


def add_group(parser: argparse.ArgumentParser, title: str, *options: Adder) -> None:
    """Options below a heading."""
    add_all(parser.add_argument_group(title), *options)


def option(*flags: str, **named: Any) -> Callable[[argparse._ActionsContainer], Any]:
    """What adds an option as argparse describes it."""
    return lambda parser: parser.add_argument(*flags, **named)


def definition_list(title: str, entries: Mapping[str, str]) -> str:
    """Terms and their descriptions side by side, for the notes of a subcommand."""
    column = 4 + max(map(len, entries))
    lines = (
        textwrap.fill(
            f"  {term}".ljust(column) + description,
            WIDTH,
            subsequent_indent=" " * column,
            break_on_hyphens=False,
        )
        for term, description in entries.items()
    )
    return "\n".join((f"{title}:", *lines))


# Arguments of one line each.


def add_flag(parser: argparse._ActionsContainer, flag: str, description: str) -> None:
    """An option without a value."""
    parser.add_argument(flag, action="store_true", help=description)


def add_path(parser: argparse._ActionsContainer, flags: str, metavar: str, text: str) -> None:
    """An option for a file or folder; its flags are separated by a blank."""
    parser.add_argument(*flags.split(), type=Path, metavar=metavar, help=text)


def add_text(
    parser: argparse._ActionsContainer,
    flag: str,
    metavar: str,
    description: str,
    default: str | None = None,
) -> None:
    """An option for a word."""
    parser.add_argument(flag, default=default, metavar=metavar, help=description)


def add_number(
    parser: argparse._ActionsContainer,
    flag: str,
    default: float | None,
    metavar: str,
    description: str,
    limits: tuple[float, float] = (-1e9, 1e9),
) -> None:
    """An option for a number of the type of its default, within limits.

    Without a default, it is a floating-point number, and the description states what applies.
    """
    parser.add_argument(
        flag,
        type=number(int if isinstance(default, int) else float, *limits),
        default=default,
        metavar=metavar,
        help=description if default is None else f"{description} (default: %(default)s)",
    )


def add_choice(
    parser: argparse._ActionsContainer, flag: str, choices: Sequence[str], description: str
) -> None:
    """An option for one of a few words, the first by default."""
    parser.add_argument(
        flag, choices=choices, default=choices[0], help=f"{description} (default: %(default)s)"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL.yaml."""
    parser.add_argument("model", type=Path, metavar="MODEL.yaml", help="identified model")


def add_bag(parser: argparse.ArgumentParser, description: str = "recording") -> None:
    """One BAG."""
    text = f"{description} (a rosbag2 directory)"
    parser.add_argument("bag", type=Path, metavar="BAG", help=text)


def add_bags(parser: argparse.ArgumentParser, description: str) -> None:
    """One BAG or more."""
    text = f"{description} (rosbag2 directories)"
    parser.add_argument("bags", nargs="+", type=Path, metavar="BAG", help=text)


def add_same_arm(parser: argparse.ArgumentParser) -> None:
    """`--same-arm`."""
    text = "the model is of this very arm, whatever the serial numbers are, as after an exchange "
    add_flag(parser, "--same-arm", text + "of its control box")


def add_validate(parser: argparse.ArgumentParser) -> None:
    """`--validate`, for held-out recordings."""
    text = "held-out recording: predicted, not fitted (may be repeated)"
    parser.add_argument(
        "--validate", action="append", default=[], type=Path, metavar="BAG", help=text
    )


def add_robot(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """`--robot`, required unless `default` states what applies without it."""
    text = "name of the robot, such as ur5e, or its YAML file"
    text += "" if default is None else f" (default: {default})"
    parser.add_argument("--robot", required=default is None, metavar="NAME", help=text)


def add_output(parser: argparse.ArgumentParser, metavar: str, text: str) -> None:
    """`-o`/`--output`, required."""
    parser.add_argument("-o", "--output", required=True, type=Path, metavar=metavar, help=text)


def add_controller(parser: argparse._ActionsContainer, required: bool = False) -> None:
    """`--host`, the address of a controller."""
    text = "address of the robot controller"
    parser.add_argument(
        "--host", type=host_address, required=required, metavar="ADDRESS", help=text
    )


def add_consent(parser: argparse._ActionsContainer) -> None:
    """`--yes` and `--another-arm`, on subcommands that move a robot."""
    add_flag(parser, "--yes", "move the robot without asking")
    text = "run although serial number, mounting, payload, tool or pose are not those that the "
    text += "motion was recorded with or planned for (never on another model)"
    add_flag(parser, "--another-arm", text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, on subcommands that print figures."""
    add_flag(parser, "--json", "print one JSON object on stdout and nothing else")


# `--payload`: the payload on the flange, as several subcommands take it.

IDENTIFY = "identify"
"""Word in place of a mass: the payload is identified from the motor currents."""


def add_payload_option(
    parser: argparse._ActionsContainer, default: str, identifiable: bool = False
) -> None:
    """`--payload`; `default` applies without it, `identifiable` adds the word `IDENTIFY`."""
    word = f", or '{IDENTIFY}' to identify it from the currents" if identifiable else ""
    parser.add_argument(
        "--payload",
        nargs="+",
        action=_Payload,
        identifiable=identifiable,
        metavar="KG",
        help="actual payload: mass [kg], optionally followed by its centre of mass X Y Z in the "
        f"flange frame [m], also in one word as KG,X,Y,Z{word} (default: {default})",
    )


class _Payload(argparse.Action):
    """Refuses words that state no payload, as a usage error."""

    def __init__(self, *arguments: Any, identifiable: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._identifiable = identifiable

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Keep the words."""
        if is_identified(values) and not self._identifiable:
            raise argparse.ArgumentError(self, "cannot be identified here; give KG")
        try:
            payload_given(values)
        except InputError as error:
            raise argparse.ArgumentError(self, f"{error.problem}; {error.remedy}") from None
        setattr(namespace, self.dest, values)


def payload_given(words: Sequence[str] | None) -> Payload | None:
    """The payload that --payload states; None without the option or where it is to be identified.

    Raises:
        InputError: not a mass, or a mass and a centre.
    """
    import numpy as np

    from ur_energy_model.model.setup import Payload
    from ur_energy_model.ranges import LENGTH, PAYLOAD_MASS

    if words is None or is_identified(words):
        return None
    try:
        numbers = [float(number) for word in words for number in word.split(",")]
    except ValueError:
        numbers = []
    farthest = max(map(abs, numbers[1:]), default=0.0)
    valid = len(numbers) in (1, 4) and all(map(math.isfinite, numbers))
    if not valid or not 0 <= numbers[0] <= PAYLOAD_MASS.high or farthest > LENGTH.high:
        raise InputError(
            "--payload",
            f"'{' '.join(words)}' is not a mass",
            "give KG, or KG and the centre X Y Z, or KG,X,Y,Z in one word",
        )
    return Payload(numbers[0], np.array(numbers[1:] or [0.0, 0.0, 0.0]))


def is_identified(words: Sequence[str] | None) -> bool:
    """Whether --payload requests to identify the payload."""
    return words is not None and list(words) == [IDENTIFY]


def with_given_payload(model: EnergyModel, words: Sequence[str] | None) -> EnergyModel:
    """The model, with the payload of --payload, if any, in place of its own.

    Raises:
        InputError: the payload is not valid.
    """
    payload = payload_given(words)
    return model if payload is None else model.with_payload(payload)


# The model of a subcommand: a file, or without one the generic model of the arm.

BAG_SUFFIXES = (".mcap", ".db3")
"""Of files that are recordings."""


@dataclass(frozen=True)
class ChosenModel:
    """The model of a subcommand, and its file; None for the generic model."""

    model: EnergyModel
    path: Path | None

    @property
    def entry(self) -> str:
        """`model` in JSON output: the path, or "generic"."""
        from ur_energy_model.model.generic import model_entry

        return model_entry(self.path)

    @property
    def words(self) -> str:
        """The model in words, for people."""
        from ur_energy_model.model.generic import model_words

        return model_words(self.model, self.path)


def add_optional_model(parser: argparse.ArgumentParser) -> None:
    """MODEL.yaml, which may be left out, and `--robot`; before other positional arguments."""
    text = "identified model (default: the generic one of --robot)"
    parser.add_argument("model", nargs="?", type=Path, metavar="MODEL.yaml", help=text)
    text = "name of the robot, such as ur5e (default: the one of the model, or of the bag)"
    add_text(parser, "--robot", "NAME", text)


def chosen_model(
    model: Path | None, robot: str | None, recordings: Sequence[Path] = ()
) -> ChosenModel:
    """The model of a subcommand.

    Args:
        model: its file; None for the generic model.
        robot: name of the robot, or None.
        recordings: bags that may name the robot.

    Raises:
        InputError: no such model or robot, the model of another robot, or nothing names the robot.
    """
    from ur_energy_model.model.generic import generic_model
    from ur_energy_model.model.model_file import load_model
    from ur_energy_model.model.robots import load_robot

    if model is None:
        return ChosenModel(generic_model(robot or recorded_robot(recordings)), None)
    loaded = load_model(model)
    if robot is not None and load_robot(robot).name != loaded.robot_name:
        raise WrongRobotError(
            model,
            f"is a model of a {loaded.robot_name}, not of a {load_robot(robot).name}",
            "leave out --robot, or give another model",
        )
    return ChosenModel(loaded, model)


def split_model(model: Path | None, bags: Sequence[Path]) -> tuple[Path | None, list[Path]]:
    """A model that may have been left out, so that the first bag took its place, and the bags."""
    if model is not None and (model.is_dir() or model.suffix in BAG_SUFFIXES):
        return None, [model, *bags]
    return model, list(bags)


def recorded_robot(recordings: Sequence[Path]) -> str:
    """The robot that the first readable recording names.

    Raises:
        InputError: none names it, or none can be read.
    """
    from ur_energy_model.telemetry.bag.reader import read_info

    source: Path | str = "--robot"
    for bag in recordings:
        try:
            name = read_info(bag).robot
        except RecordingError:  # one of several may be damaged
            if bag == recordings[-1]:
                raise
            continue
        if name is not None:
            return name
        source = bag
    raise InputError(
        source,
        "does not name the robot" if recordings else "is missing, and there is no model",
        "give --robot NAME, such as --robot ur5e, or a model file",
    )


# Options for the cost and CO2 of energy.


def add_tariff_options(energy: argparse._ArgumentGroup) -> None:
    """`--tariff`, `--currency`, `--co2` and `--supply-efficiency`."""
    add_number(energy, "--tariff", None, "PRICE", "price per kWh (default: no cost)", (-1e6, 1e6))
    add_text(energy, "--currency", "NAME", "of the price (default: %(default)s)", "EUR")
    co2 = "kg of CO2 per kWh (default: no emission)"
    add_number(energy, "--co2", None, "KG", co2, (0, 1e6))
    share = "share of the wall power that reaches the robot bus"
    add_number(energy, "--supply-efficiency", 1.0, "SHARE", share)


def tariff_given(options: argparse.Namespace) -> Tariff:
    """The tariff that the options describe.

    Raises:
        InputError: a supply efficiency that is no share.
    """
    from ur_energy_model.report.tariff import Tariff

    return Tariff(options.tariff, options.currency, options.co2, options.supply_efficiency)


# `--scheduler` and `--workers`: where a command works on many bags, and bags that fail there.

_MOST_WORKERS = 1024


class FailedBagsError(UrEnergyError):
    """Some bags failed; the exit code shows whether there are results of others.

    Attributes:
        failed: the bags, with reasons.
    """

    def __init__(self, failed: Sequence[BagResult[Any]], bags: int) -> None:
        self.failed = tuple(failed)
        self.exit_code = 3 if len(failed) < bags else 1
        more = "" if len(failed) == 1 else f" (and {len(failed) - 1} more)"
        super().__init__(f"{len(failed)} of {bags} bags failed: {failed[0].reason}{more}")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """`--scheduler` and `--workers`."""
    add_text(
        parser,
        "--scheduler",
        "ADDRESS",
        "work on the bags on a running Dask cluster, such as tcp://10.0.0.5:8786 (default: on the "
        "cores of this machine)",
    )
    parser.add_argument(
        "--workers",
        type=number(int, 1, _MOST_WORKERS),
        metavar="N",
        help="number of processes of this machine (default: as many as save time)",
    )


def is_distributed(options: argparse.Namespace) -> bool:
    """Whether the bags may be worked on elsewhere than in this process."""
    given = options.scheduler is not None or options.workers is not None
    return given or len(options.bags) > 1


def for_each_bag(
    options: argparse.Namespace, further: Sequence[Path] = ()
) -> AbstractContextManager[BagExecutor]:
    """What works on the bags of a command, for a `with` statement.

    Args:
        options: with `bags`, `scheduler` and `workers`.
        further: bags besides those.
    """
    from ur_energy_model.plant.cluster import bag_work

    return bag_work([*options.bags, *further], options.scheduler, options.workers)


def results_of_bags(
    options: argparse.Namespace,
    text: str,
    here: Callable[[Path, Progress], Result],
    work: Callable[[Path], Result],
) -> list[BagResult[Result]]:
    """Results of the work on a command's bags.

    Args:
        options: with `bags`, `scheduler` and `workers`.
        text: what is done, for progress.
        here: the work on a single bag in this process, with progress within the bag.
        work: the same anywhere.

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
    """Name the bags that failed, and end the command accordingly.

    Raises:
        FailedBagsError: there are any.
    """
    for result in failed[1:]:
        note(f"failed: {result.reason}")
    if failed:
        raise FailedBagsError(failed, bags)
