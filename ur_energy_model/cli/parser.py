# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The parser of `ur_energy`: made of the text in `commands`, with plain refusals."""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ur_energy_model import __version__
from ur_energy_model.cli.commands import GROUPS, TEXT
from ur_energy_model.cli.output import WIDTH
from ur_energy_model.errors import closest, one_line, printable
from ur_energy_model.options import add_options, host_address, number
from ur_energy_model.rooms import tables_of
from ur_energy_model.typed_numbers import likely_form, right_form

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Payload

BAG_SUFFIXES = (".mcap", ".db3", ".zstd")  # of files that are recordings


def is_recording(path: Path) -> bool:
    """Whether a path is that of a bag, or of a file of one."""
    return path.suffix in BAG_SUFFIXES or (path / "metadata.yaml").is_file()


ALL = tuple(name for names in GROUPS.values() for name in names)  # the subcommands
USAGE = 2  # exit code of a usage error
_Subparsers = argparse._SubParsersAction
_FEW = 9  # fewer words than these are listed
_SYNONYMS = dict.fromkeys(
    ("ip", "address", "robot-ip", "robot_ip"), ("host",)
) | dict.fromkeys(("time", "duration"), ("duration", "period", "cycle-time"))
"""Names that other programs or commands have for options."""


class Parser(argparse.ArgumentParser):
    """A parser whose messages, which quote the command line, cannot control the terminal.

    Options may stand between positional arguments, also if one of these is optional.
    Subcommands are listed by `GROUPS`; `notes` makes what the help ends with.
    """

    notes: Callable[[], str] = str
    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The options and the words that are none; see argparse."""
        optional = any(a.nargs == "?" and not a.option_strings for a in self._actions)
        if self._mixing or not optional:
            return super().parse_known_args(args, namespace)
        self._mixing = True  # argparse calls this method again, for options and the rest
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)

    def error(self, message: str) -> NoReturn:
        """One line on stderr, and the exit code of a usage error."""
        text = message.replace("unrecognized arguments", "not understood")
        self.exit(USAGE, one_line(f"{self.prog}: {text}; see {self.prog} --help") + "\n")

    def format_help(self) -> str:
        """The help, with the notes of the subcommand at its end."""
        subparsers = next((a for a in self._actions if isinstance(a, _Subparsers)), None)
        if subparsers is None or subparsers.dest != "command":
            notes = self.notes()
            return (
                f"{super().format_help()}\n{notes}\n" if notes else super().format_help()
            )
        commands = {action.dest: action for action in subparsers._choices_actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        groups = {
            title: [commands[name] for name in names if name in commands]
            for title, names in GROUPS.items()
        }
        groups["options"] = [
            action for action in self._actions if action is not subparsers
        ]
        for title, actions in groups.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = tuple(map(str, action.choices))
        if isinstance(action, _Subparsers):
            text = f"there is no command {value!r}{_suggestion(value, known)}"
            raise argparse.ArgumentError(None, text)
        raise argparse.ArgumentError(
            action, f"there is no {value!r}{_suggestion(value, known)}"
        )

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """The value of an argument; a refusal names what it is, with its unit."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            if isinstance(action.metavar, str):
                error.message = f"{error.message} ({action.metavar})"
            raise

    def check_options(self, arguments: Sequence[str]) -> None:
        """Refuse the first option that does not exist, before anything that is missing."""
        parser: argparse.ArgumentParser = self
        for word in arguments:
            option = word.partition("=")[0]
            nested = next(
                (a for a in parser._actions if isinstance(a, _Subparsers)), None
            )
            if nested is not None and word in nested.choices:
                parser = nested.choices[word]
            elif word == "--":
                return
            elif option.startswith("--") and " " not in option:
                known = parser._option_string_actions
                if not any(each.startswith(option) for each in known):
                    longer = tuple(each[2:] for each in known if each.startswith("--"))
                    meant = (
                        each for each in _SYNONYMS.get(option[2:], ()) if each in longer
                    )
                    word = next(meant, option[2:])
                    text = f"there is no {option}{_suggestion(word, longer, '--')}"
                    parser.error(text)


def _suggestion(word: str, known: Sequence[str], before: str = "") -> str:
    """The known word that is meant, and all if they are few."""
    near = closest(word, known)
    text = "" if near is None else f": did you mean {before}{near}?"
    if before or len(known) >= _FEW:
        return text
    return f"{text or ':'} use one of {', '.join(known)}"


# The text of `commands`, section by section.

_SECTIONS = dict(each.split("\n", 1) for each in re.split(r"^== ", TEXT, flags=re.M)[1:])
_SHARED = {
    head[1:]: body.strip() for head, body in _SECTIONS.items() if head.startswith("@")
}
_HEADS = {head.split(" (")[0].split(":")[0]: head for head in _SECTIONS}
"""Heads of the sections by name, such as "history add"."""


def build_parser(commands: Iterable[str] = ALL) -> Parser:
    """The parser of the command line with these subcommands."""
    parser = Parser(
        prog="ur_energy",
        description="Record, identify and estimate the energy of Universal Robots arms.",
        epilog="Only 'excite --execute', 'optimize --execute' and 'protocol --host' move a robot, "
        "after they have asked. All other commands only read from it.",
    )
    parser.add_argument("--version", action="version", version=f"ur_energy {__version__}")
    subparsers: Any = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=Parser
    )
    for command in commands:
        subparser = _add_command(subparsers, command)
        if nested := [name for name in _HEADS if name.startswith(f"{command} ")]:
            below = subparser.add_subparsers(
                dest=f"{command}_command",
                metavar="COMMAND",
                required=True,
                help="(see COMMAND --help)",
            )
            for name in nested:
                _add_command(below, name)
    return parser


def _add_command(subparsers: Any, name: str) -> Parser:
    """Add the parser of a section."""
    head = re.fullmatch(r"[\w -]+?(?: \((.*?)\))?: (.*)", _HEADS[name])
    parts = re.fullmatch(
        r"((?:.*\n)*?)((?:\$ .*\n(?: .*\n)*)+)((?:.*\n)*?)(?:notes:\n((?:.*\n)*))?",
        _SECTIONS[_HEADS[name]],
    )
    assert head is not None, name
    assert parts is not None, name
    description, examples, options, notes = parts.groups()
    parser: Parser = subparsers.add_parser(
        name.rpartition(" ")[2],
        help=head[2],
        description=textwrap.fill(" ".join(description.split()), WIDTH),
        epilog=textwrap.indent(f"examples:\n{examples.strip()}", "  ")[2:].replace(
            "$ ", ""
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser, run=head[1])
    parser.notes = partial(_notes, name, (notes or "").strip())
    group: argparse._ActionsContainer = parser
    for entry in re.split(r"\n(?=\S)", _expanded(options).strip()):
        words, *rest = re.split(r"\s{2,}", entry, maxsplit=1)
        if rest:
            _add_option(group, words.split(), " ".join(rest[0].split()))
        elif words.endswith(":"):
            group = parser.add_argument_group(words[:-1])
        elif words.endswith("one of"):
            group = parser.add_mutually_exclusive_group(required="exactly" in words)
        elif words == "@end":
            group = parser
        elif words == "@sinks":
            for table in tables_of(object, ("sinks",))[1:]:
                add_options(group, table)
        elif words:
            _add_payload(group, *words.split(" ", 1))
    return parser


def _expanded(options: str) -> str:
    """Options with those that sections share in place of `@name words`."""

    def shared(found: re.Match[str]) -> str:
        return _expanded(_SHARED[found[1]].replace(" ...", f" {found[2]}"))

    return re.sub(rf"^@({'|'.join(_SHARED)})(?: (.*))?$", shared, options, flags=re.M)


def _add_option(
    parser: argparse._ActionsContainer, words: list[str], description: str
) -> None:
    limits = next(
        (each for each in words if re.fullmatch(r"-?[\d.e]+:-?[\d.e]+", each)), None
    )
    default = next((each[1:] for each in words if each.startswith("=")), None)
    words = [each for each in words if each != limits and not each.startswith("=")]
    flags = [words.pop(0) for each in words[:] if each.startswith("-")]
    named: dict[str, Any] = {"default": default}
    if not flags:
        flags = [words.pop(0)]
        named = {}
    elif words and words[0].isidentifier() and words[0].islower():
        named["dest"] = words.pop(0)
    if not words:
        switch = flags[0].startswith("--[no-]")
        action: Any = argparse.BooleanOptionalAction if switch else "store_true"
        flag = flags.pop().replace("[no-]", "")
        parser.add_argument(*flags, flag, action=action, default=switch, help=description)
        return
    values = words[-1].rstrip("*!")
    if words[-1].endswith("*"):
        named |= {"action": "append", "default": []}
    if words[-1].endswith("!"):
        named["required"] = True
    if values.startswith("["):
        named["nargs"] = "?"
        values = values[1:-1]
    elif values.endswith("...") and not values.endswith(",..."):
        named["nargs"] = "+"
        values = values[:-3]
        if "default" in named:
            named["default"] = []
    is_path = values in ("FILE", "FOLDER", "BAG", "DIR", "OUT", "PATH", "CSV")
    if re.fullmatch(r"[a-z0-9_-]+(\|[a-z0-9_-]+)+", values):
        named["choices"] = tuple(values.split("|"))
        if "action" in named:
            named["default"] = None
        elif "default" in named:
            default = named["default"] = named["choices"][0]
    else:
        named["metavar"] = values
        if len(words) > 1:
            named |= {"metavar": (*words[:-1], values), "nargs": len(words)}
        if limits is not None or re.fullmatch(r"-?\d+(\.\d+)?", default or ""):
            kind: Any = int if values == "N" else float
            least, most = map(float, (limits or "-1e9:1e9").split(":"))
            named["type"] = number(kind, least, most, _UNIT_OF.get(values, ""))
            if default is not None:
                named["default"] = kind(default)
        elif default == "()":
            default = None
            named["default"] = ()
            named["type"] = _KINDS[values]
        elif is_path or re.search(r"\.[a-z]+$", values):
            named["type"] = Path
            if default is not None:
                named["default"] = Path(default)
        else:
            named["type"] = _KINDS.get(values)
    if default and "(default:" not in description:
        description += " (default: %(default)s)"
    parser.add_argument(*flags, **named, help=description)


# Values of options that are neither paths, numbers nor words of a list.

# in place of a mass: the payload is identified from the motor currents
IDENTIFY = "identify"


def _add_payload(parser: argparse._ActionsContainer, name: str, default: str) -> None:
    """Add `--payload`: a Payload, or IDENTIFY; `default` in words applies without it."""
    identifiable = name == "@payload-or-identify"

    class PayloadAction(argparse.Action):
        def __call__(
            self, parser: Any, namespace: Any, values: Any, option: Any = None
        ) -> None:
            try:
                payload = IDENTIFY if values == [IDENTIFY] else _payload(*values)
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, str(error)) from None
            if payload == IDENTIFY and not identifiable:
                raise argparse.ArgumentError(self, "cannot be identified here; give KG")
            setattr(namespace, self.dest, payload)

    word = f", or '{IDENTIFY}' to identify it from the currents" if identifiable else ""
    parser.add_argument(
        "--payload",
        nargs="+",
        action=PayloadAction,
        metavar="KG",
        help="actual payload: mass [kg], optionally followed by its centre of mass X Y Z in the "
        f"flange frame [m], also in one word as KG,X,Y,Z{word} (default: {default})",
    )


def _payload(*words: str) -> Payload:
    """The payload of KG, KG X Y Z or KG,X,Y,Z."""
    import numpy as np

    from ur_energy_model.model.setup import Payload
    from ur_energy_model.ranges import LENGTH, PAYLOAD_MASS

    try:
        numbers = [float(number) for word in words for number in word.split(",")]
    except ValueError:
        numbers = []
    farthest = max(map(abs, numbers[1:]), default=0.0)
    valid = len(numbers) in (1, 4) and all(map(math.isfinite, numbers))
    if valid and 0 <= numbers[0] <= PAYLOAD_MASS.high and farthest <= LENGTH.high:
        return Payload(numbers[0], np.array(numbers[1:] or [0.0, 0.0, 0.0]))
    typed = " ".join(words)
    right = right_form(typed, "kg") if not valid else None
    if valid and numbers[0] > PAYLOAD_MASS.high:
        right = likely_form(numbers[0], "kg", 0.0, PAYLOAD_MASS.high)
    if right is not None:
        raise argparse.ArgumentTypeError(f"'{typed}' is not a mass in kg, write {right}")
    if valid and farthest > LENGTH.high:
        raise argparse.ArgumentTypeError(
            f"'{typed}' has a centre of mass that is not in m"
        )
    raise argparse.ArgumentTypeError(
        f"'{typed}' is not a mass; give KG, or KG and the centre X Y Z, or KG,X,Y,Z in one word"
    )


def _listed(
    pattern: str, what: str, kind: Callable[[str], Any], mark: str = ",", unit: str = ""
) -> Callable[[str], tuple[Any, ...]]:
    """Reads a list of values of this form, in a unit."""

    def read(text: str) -> tuple[Any, ...]:
        if not re.fullmatch(pattern, text):
            right = right_form(text, unit) if unit else None
            hint = "" if right is None else f", write {right}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}{hint}")
        return tuple(kind(part.strip()) for part in text.split(mark) if part.strip())

    return read


_UNIT_OF = {
    "S": "s", "MIN": "min", "HZ": "Hz", "KG": "kg", "M": "m", "RADIUS": "m", "OFFSET": "m",
    "M/S": "m/s", "RAD/S^3": "rad/s^3", "C": "degC", "MB": "MB", "PRICE": "price",
    "SHARE": "share", "F": "share", "FACTOR": "share", "X": "share",
}  # fmt: skip
"""Units of numbers by what stands for them in the help."""
_DEGREES = r" *-?[0-9]{1,9}([.][0-9]*)? *"
_STEPS = r" *[1-9][0-9]*( *, *[1-9][0-9]*)* *"
_KINDS: dict[str, Callable[[str], Any]] = {
    "ADDRESS": host_address,
    "NAME,...": _listed(r".*[^ ,].*", "a list of field names", str),
    "X.Y.Z": _listed(r"[0-9]+([.][0-9]+){1,3}", "a version such as 5.11.1", int, "."),
    "KG[,X,Y,Z]": _payload,
    "TILT[,ROTATION]": _listed(
        rf"{_DEGREES}(,{_DEGREES})?",
        "TILT or TILT,ROTATION in degrees",
        float,
        unit="deg",
    ),
    "MOVE[,MOVE]": _listed(_STEPS, "a list of step numbers such as 3,5", int),
}
"""Types of values by what stands for them in the help."""


# What the help of a command ends with.


def _notes(command: str, text: str) -> str:
    """The notes of a section, or what they list of the package."""
    if command == "identify":
        from ur_energy_model.model.friction import LAWS

        return _defined(
            "friction laws", {name: law.description for name, law in LAWS.items()}
        )
    if command == "import":
        from ur_energy_model.telemetry.csv.columns import LAYOUTS

        return _defined(
            "layouts", {name: layout.source for name, layout in LAYOUTS.items()}
        )
    if command == "simulate":
        from ur_energy_model.simulation.faults import FAULTS

        effects = {
            kind.name: f"{kind.effect} (:{kind.argument}, {kind.default} by default)"
            if kind.argument
            else kind.effect
            for kind in FAULTS.values()
        }
        return f"{text}\n\n{_defined('faults', effects)}"
    return text


def _defined(title: str, entries: Mapping[str, str]) -> str:
    """Terms and their descriptions side by side."""
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
