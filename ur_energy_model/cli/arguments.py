"""Subcommands, and the arguments that several of them take: each is described once."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from ur_energy_model.cli.output import WIDTH
from ur_energy_model.telemetry.rtde.address import is_address

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a command registers its subcommands."""

Run: TypeAlias = Callable[[argparse.Namespace], None]
"""Runs a subcommand with its parsed arguments."""


N = TypeVar("N", int, float)
SEEDS = (0, 2**32 - 1)
"""Range of seeds of random numbers."""


def add_command(
    subparsers: Subparsers,
    name: str,
    run: Run | None,
    summary: str,
    description: str,
    examples: str,
    notes: str = "",
) -> argparse.ArgumentParser:
    """Add a subcommand and return its parser.

    Args:
        subparsers: of `ur_energy`.
        name: as the user types it.
        run: called with the parsed arguments; None for a command that has subcommands only.
        summary: one line of `ur_energy --help`.
        description: one paragraph; it is wrapped here.
        examples: command lines.
        notes: shown below the examples, laid out by the caller.
    """
    epilog = "examples:\n" + textwrap.indent(examples.strip(), "  ")
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=textwrap.fill(" ".join(description.split()), WIDTH),
        epilog=f"{epilog}\n\n{notes}" if notes else epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    if run is not None:
        parser.set_defaults(run=run)
    return parser


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


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL.yaml."""
    parser.add_argument("model", type=Path, metavar="MODEL.yaml", help="identified model")


def add_bag(parser: argparse.ArgumentParser, description: str = "recording") -> None:
    """One BAG."""
    parser.add_argument(
        "bag", type=Path, metavar="BAG", help=f"{description} (a rosbag2 directory)"
    )


def add_bags(parser: argparse.ArgumentParser, description: str) -> None:
    """One BAG or more."""
    parser.add_argument(
        "bags", nargs="+", type=Path, metavar="BAG", help=f"{description} (rosbag2 directories)"
    )


def add_same_arm(parser: argparse.ArgumentParser) -> None:
    """`--same-arm`."""
    parser.add_argument(
        "--same-arm",
        action="store_true",
        help="the model is of this very arm, whatever the serial numbers are, as after an exchange "
        "of its control box",
    )


def add_validate(parser: argparse.ArgumentParser) -> None:
    """`--validate`, for held-out recordings."""
    parser.add_argument(
        "--validate",
        action="append",
        default=[],
        type=Path,
        metavar="BAG",
        help="held-out recording: predicted, not fitted (may be repeated)",
    )


def add_robot(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """`--robot`.

    Args:
        parser: of the subcommand.
        default: what applies without the option; None makes the option required.
    """
    help_ = "name of the robot, such as ur5e, or its YAML file"
    parser.add_argument(
        "--robot",
        required=default is None,
        metavar="NAME",
        help=help_ if default is None else f"{help_} (default: {default})",
    )


def add_output(parser: argparse.ArgumentParser, metavar: str, description: str) -> None:
    """`-o`/`--output`, required."""
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar=metavar, help=description
    )


def host_address(text: str) -> str:
    """An address or name of a host, as a type of arguments."""
    if not is_address(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an address of a host")
    return text


def add_controller(parser: argparse._ActionsContainer, *, required: bool = True) -> None:
    """`--host`, the address of a controller."""
    parser.add_argument(
        "--host",
        type=host_address,
        required=required,
        metavar="ADDRESS",
        help="address of the robot controller",
    )


def add_consent(parser: argparse._ActionsContainer) -> None:
    """`--yes` and `--another-arm`, on subcommands that move a robot."""
    parser.add_argument("--yes", action="store_true", help="move the robot without asking")
    parser.add_argument(
        "--another-arm",
        action="store_true",
        help="run although serial number, mounting, payload, tool or pose are not those that the "
        "motion was recorded with or planned for (never on another model)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, on subcommands that print figures."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object on stdout and nothing else"
    )


def number(kind: type[N], least: float, most: float) -> Callable[[str], N]:
    """A finite number within a range, as a type of arguments."""

    def read(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            word = "a whole number" if kind is int else "a number"
            hint = _plain_number(text)
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {word}{hint}") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} must be {least:g} to {most:g}")
        return value

    return read


def _plain_number(text: str) -> str:
    """How to write a number that has a unit or a decimal comma, "" for other texts."""
    found = re.match(r"\s*([-+]?\d{1,20})(?:([.,])(\d{1,20}))?\s*([^\d.,]{0,10})$", text)
    if found is None:
        return ""
    digits, point, decimals, unit = found.groups()
    reason = "without a unit" if unit else "with a point"
    return f", write it {reason}: {digits}{'.' if point else ''}{decimals or ''}"


def add_number(
    parser: argparse._ActionsContainer,
    flag: str,
    default: float,
    metavar: str,
    description: str,
    limits: tuple[float, float] = (-1e9, 1e9),
) -> None:
    """An option for a number of the type of its default, within limits."""
    parser.add_argument(
        flag,
        type=number(type(default), *limits),
        default=default,
        metavar=metavar,
        help=f"{description} (default: %(default)s)",
    )


def add_choice(
    parser: argparse._ActionsContainer, flag: str, choices: Sequence[str], description: str
) -> None:
    """An option for one of a few words, the first by default."""
    parser.add_argument(
        flag, choices=choices, default=choices[0], help=f"{description} (default: %(default)s)"
    )
