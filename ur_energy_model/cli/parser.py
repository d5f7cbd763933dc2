"""The parser of `ur_energy`: options described by the lines of their help, and plain refusals."""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from ur_energy_model.cli.output import WIDTH
from ur_energy_model.errors import InputError, one_line, printable
from ur_energy_model.options import number

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Payload

BAG_SUFFIXES = (".mcap", ".db3")
"""Of files that are recordings."""
USAGE = 2
"""Exit code of a usage error."""
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_Subparsers = argparse._SubParsersAction
_FILES = ("FILE", "FOLDER", "BAG", "DIR", "OUT", "PATH", "CSV")
"""What stands for paths in the help; so do names with an ending, such as MODEL.yaml."""
_LIMITS = re.compile(r"-?[\d.]+(e\d+)?:-?[\d.]+(e\d+)?")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_FEW = 9
"""Fewer words than these are listed."""
_SYNONYMS = dict.fromkeys(("ip", "address", "robot-ip", "robot_ip"), ("host",)) | dict.fromkeys(
    ("time", "duration"), ("duration", "period", "cycle-time")
)
"""Names that other programs or commands have for options."""


class Parser(argparse.ArgumentParser):
    """A parser whose messages, which quote the command line, cannot control the terminal.

    Options may stand between positional arguments, also if one of these is optional.
    """

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
        notes = self.get_default("notes")
        text = notes() if callable(notes) else notes
        return f"{super().format_help()}\n{text}\n" if text else super().format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = tuple(map(str, action.choices))
        if isinstance(action, _Subparsers):
            text = f"there is no command {value!r}{_suggestion(value, known)}"
            raise argparse.ArgumentError(None, text)
        raise argparse.ArgumentError(action, f"there is no {value!r}{_suggestion(value, known)}")

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
            nested = next((a for a in parser._actions if isinstance(a, _Subparsers)), None)
            if nested is not None and word in nested.choices:
                parser = nested.choices[word]
            elif word == "--":
                return
            elif option.startswith("--") and " " not in option:
                known = parser._option_string_actions
                if not any(each.startswith(option) for each in known):
                    longer = tuple(each[2:] for each in known if each.startswith("--"))
                    meant = (each for each in _SYNONYMS.get(option[2:], ()) if each in longer)
                    word = next(meant, option[2:])
                    text = f"there is no {option}{_suggestion(word, longer, '--')}"
                    parser.error(text)


def _suggestion(word: str, known: Sequence[str], before: str = "") -> str:
    """The known word that is meant, and all if they are few."""
    near = get_close_matches(word.lower(), known, 1)
    text = f": did you mean {before}{near[0]}?" if near else ""
    few = not before and len(known) < _FEW
    return f"{text}{':' if not near else ''} use one of {', '.join(known)}" if few else text


Kinds: TypeAlias = Mapping[str, Callable[[str], Any]]
Adders: TypeAlias = Mapping[str, Callable[[argparse._ActionsContainer, str], None]]


@dataclass(frozen=True)
class Command:
    """A subcommand, as a section of the text of `read_commands` describes it.

    Attributes:
        name: as the user types it, with the command that it belongs to, such as "history add".
        run: module of `cli` and function, such as "energies.estimate".
        summary, description, examples, options, notes: parts of the section.
        kinds, adders: see `read_commands`.
    """

    name: str
    run: str | None
    summary: str
    description: str
    examples: str
    options: str
    notes: str | Callable[[], str]
    kinds: Kinds
    adders: Adders

    def add_to(self, subparsers: Subparsers) -> argparse.ArgumentParser:
        """Add the parser of this command to those of what it belongs to."""
        parser = subparsers.add_parser(
            self.name.rpartition(" ")[2],
            help=self.summary,
            description=textwrap.fill(" ".join(self.description.split()), WIDTH),
            epilog=textwrap.indent(f"examples:\n{self.examples}", "  ")[2:].replace("$ ", ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.set_defaults(parser=parser, notes=self.notes, run=self.run)
        group: argparse._ActionsContainer = parser
        for entry in re.split(r"\n(?=\S)", self.options.strip()):
            words, *rest = re.split(r"\s{2,}", entry, maxsplit=1)
            if rest:
                _add_option(group, words.split(), " ".join(rest[0].split()), self.kinds)
            elif words.endswith(":"):
                group = parser.add_argument_group(words[:-1])
            elif words.endswith("one of"):
                group = parser.add_mutually_exclusive_group(required="exactly" in words)
            elif words == "@end":
                group = parser
            elif words:
                name, _, given = words[1:].partition(" ")
                self.adders[name](group, given)
        return parser


def read_commands(
    text: str, kinds: Kinds, adders: Adders, notes: Mapping[str, Callable[[], str]]
) -> dict[str, Command]:
    """Subcommands by name, from a text that reads like their help.

    A section begins with `== name (module.function): summary`. Then come a paragraph of
    description, command lines with `$` in front, options, and below `notes:` what the help ends
    with. An option is `words  help`, with two blanks between them; further lines are indented:

        --csv FILE             file to write (FILE, BAG, MODEL.yaml and others are paths)
        --rate HZ =50.0 1:500  a number with its default and its range; N is a whole number
        --by arm|day           one of these words, the first by default
        bags BAG...            positional, one or more, which `bags` holds; [BAG] may be left out
        --from first DATE      an option that `first` holds
        --arm NAME*            may be repeated
        -o --output FILE!      required

    Options below a line that ends with a colon are a group of the help, those between
    `@one of` or `@exactly one of` and `@end` exclude each other. `@name words` stands for the
    options in the section `== @name`, with the words in place of `...`, or for those that a
    function adds.

    Args:
        text: the sections.
        kinds: types of values by what stands for them in the help, besides paths and numbers.
        adders: functions by name, called with the parser or group and the words.
        notes: further notes by command, made when the help is shown.
    """
    sections = [each.partition("\n")[::2] for each in re.split(r"^== ", text, flags=re.M)[1:]]
    shared = {head[1:]: body.strip() for head, body in sections if head.startswith("@")}

    def expanded(body: str) -> str:
        def options(found: re.Match[str]) -> str:
            return expanded(shared[found[1]].replace(" ...", f" {found[2]}"))

        known = "|".join(shared)
        return re.sub(rf"^@({known})(?: (.*))?$", options, body, flags=re.M)

    commands = {}
    for head, body in sections:
        found = re.fullmatch(r"([\w -]+?)(?: \((.*?)\))?: (.*)", head)
        if found is None:
            continue
        name, run, summary = found.groups()
        parts = re.fullmatch(
            r"((?:.*\n)*?)((?:\$ .*\n(?: .*\n)*)+)((?:.*\n)*?)(?:notes:\n((?:.*\n)*))?", body
        )
        assert parts is not None, name
        ending = notes.get(name, (parts[4] or "").strip())
        commands[name] = Command(
            name,
            run,
            summary,
            parts[1],
            parts[2].strip(),
            expanded(parts[3]),
            ending,
            kinds,
            adders,
        )
    return commands


def _add_option(
    parser: argparse._ActionsContainer,
    words: list[str],
    description: str,
    kinds: Kinds,
) -> None:
    limits = next((word for word in words if _LIMITS.fullmatch(word)), None)
    default = next((word[1:] for word in words if word.startswith("=")), None)
    words = [word for word in words if word != limits and not word.startswith("=")]
    flags = [words.pop(0) for word in words[:] if word.startswith("-")]
    named: dict[str, Any] = {"default": default}
    if not flags:
        flags, named = [words.pop(0)], {}
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
        named["nargs"], values = "?", values[1:-1]
    elif values.endswith("...") and not values.endswith(",..."):
        named["nargs"], values = "+", values[:-3]
        if "default" in named:
            named["default"] = []
    if re.fullmatch(r"[a-z0-9_-]+(\|[a-z0-9_-]+)+", values):
        named["choices"] = tuple(values.split("|"))
        if "action" in named:
            named["default"] = None
        elif "default" in named:
            default = named["default"] = named["choices"][0]
    else:
        several = (*words[:-1], values)
        named["metavar"] = several if len(several) > 1 else values
        if len(several) > 1:
            named["nargs"] = len(several)
        if limits is not None or (default is not None and _NUMBER.fullmatch(default)):
            kind: Any = int if values == "N" else float
            low, high = map(float, (limits or "-1e9:1e9").split(":"))
            named["type"] = number(kind, low, high)
            if default is not None:
                named["default"] = kind(default)
        else:
            is_path = values in _FILES or re.search(r"\.[a-z]+$", values)
            named["type"] = kinds.get(values) or (Path if is_path else None)
            if default == "()":
                default, named["default"] = None, ()
            elif is_path and default is not None:
                named["default"] = Path(default)
    if default and "(default:" not in description:
        description += " (default: %(default)s)"
    parser.add_argument(*flags, **named, help=description)


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


# `--payload`: the payload on the flange, as several subcommands take it.

IDENTIFY = "identify"
"""In place of a mass: the payload is identified from the motor currents."""


def add_payload(
    parser: argparse._ActionsContainer, default: str, identifiable: bool = False
) -> None:
    """Add `--payload`: a Payload, or IDENTIFY; `default` in words applies without it."""
    word = f", or '{IDENTIFY}' to identify it from the currents" if identifiable else ""
    parser.add_argument(
        "--payload",
        nargs="+",
        action=_PayloadAction,
        identifiable=identifiable,
        metavar="KG",
        help="actual payload: mass [kg], optionally followed by its centre of mass X Y Z in the "
        f"flange frame [m], also in one word as KG,X,Y,Z{word} (default: {default})",
    )


class _PayloadAction(argparse.Action):
    def __init__(self, *arguments: Any, identifiable: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._identifiable = identifiable

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Convert the words."""
        if values == [IDENTIFY] and not self._identifiable:
            raise argparse.ArgumentError(self, "cannot be identified here; give KG")
        try:
            payload = IDENTIFY if values == [IDENTIFY] else payload_of(values)
        except InputError as error:
            raise argparse.ArgumentError(self, f"{error.problem}; {error.remedy}") from None
        setattr(namespace, self.dest, payload)


def payload_of(words: Sequence[str]) -> Payload:
    """The payload of KG, KG X Y Z or KG,X,Y,Z.

    Raises:
        InputError: not a mass, or a mass and a centre.
    """
    import numpy as np

    from ur_energy_model.model.setup import Payload
    from ur_energy_model.ranges import LENGTH, PAYLOAD_MASS

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
