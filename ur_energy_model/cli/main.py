"""The `ur_energy` command: its subcommands, and how errors become exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ur_energy_model import __version__
from ur_energy_model.cli.arguments import BAG_SUFFIXES, REGISTERED
from ur_energy_model.errors import InputError, UrEnergyError, one_line, optional_import, printable
from ur_energy_model.interrupts import raised_once
from ur_energy_model.scripts import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

# With many small matrices, linear algebra threads only wait for each other (ten times slower on a
# busy machine). Must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

DONE, REFUSED, USAGE = 0, 1, 2

GROUPS: dict[str, tuple[str, ...]] = {
    "everyday": (
        "demo", "record", "live", "inspect", "identify", "learn", "evaluate", "estimate", "predict",
        "optimize", "payload", "report", "import", "recover", "completion",
    ),
    "plant, many arms over months": ("history", "layouts"),
    "research": ("base-parameters", "excite", "protocol", "simulate"),
}  # fmt: skip
"""Subcommands, as the help lists them."""
COMMANDS: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
_CHAPTERS: dict[str, tuple[str, ...]] = {
    "recordings": ("record", "import", "recover", "inspect"),
    "energies": ("estimate", "evaluate", "predict", "report"),
    "parameters": ("learn", "payload", "base-parameters"),
    "desk": ("demo", "simulate", "layouts", "completion"),
}
"""Modules with several subcommands; others have the name of theirs."""
_FEW = 9
"""Fewer words than these are listed."""
_SYNONYMS = dict.fromkeys(("ip", "address", "robot-ip", "robot_ip"), ("host",)) | dict.fromkeys(
    ("time", "duration"), ("duration", "period", "cycle-time")
)
"""Names that other programs or commands have for options."""


class _Parser(argparse.ArgumentParser):
    """A parser whose messages, which quote the command line, cannot control the terminal.

    Options may stand between positional arguments, also if one of these is optional.
    """

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
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


class _GroupedParser(_Parser):
    """The parser of all subcommands, which its help lists by `GROUPS`."""

    def format_help(self) -> str:
        """Usage, description, subcommands and options."""
        (subparsers,) = (action for action in self._actions if isinstance(action, _Subparsers))
        commands = {action.dest: action for action in subparsers._choices_actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for title, names in GROUPS.items():
            formatter.start_section(title)
            formatter.add_arguments([commands[name] for name in names if name in commands])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([a for a in self._actions if a is not subparsers])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


_Subparsers = argparse._SubParsersAction


def build_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line with these subcommands."""
    parser = _GroupedParser(
        prog="ur_energy",
        description="Record, identify and estimate the energy of Universal Robots arms.",
        epilog="Only 'excite --execute', 'optimize --execute' and 'protocol --host' move a robot, "
        "after they have asked. All other commands only read from it.",
    )
    parser.add_argument("--version", action="version", version=f"ur_energy {__version__}")
    subparsers: Any = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    chapters = {name: chapter for chapter, names in _CHAPTERS.items() for name in names}
    for command in commands:
        importlib.import_module(f"ur_energy_model.cli.{chapters.get(command, command)}")
        REGISTERED[command](subparsers)
    return parser


def _suggestion(word: str, known: Sequence[str], before: str = "") -> str:
    """The known word that is meant, and all if they are few."""
    near = get_close_matches(word.lower(), known, 1)
    text = f": did you mean {before}{near[0]}?" if near else ""
    few = not before and len(known) < _FEW
    return f"{text}{':' if not near else ''} use one of {', '.join(known)}" if few else text


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line; only the module of its subcommand is imported."""
    command = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    parser = build_parser(command)
    assert isinstance(parser, _Parser)
    parser.check_options(arguments)
    options: argparse.Namespace
    options, rest = parser.parse_known_args(arguments)
    if rest:
        options.parser.error(f"{' '.join(rest)}: one word too many, or an option that is not there")
    return options


def _check_kinds(options: argparse.Namespace) -> None:
    """Refuse a model where a recording is expected, and the reverse.

    Raises:
        InputError: one of them is in the place of another.
    """
    models: list[tuple[argparse.Action, Path]] = []
    recordings: list[Path] = []
    for action in options.parser._actions:
        value = getattr(options, action.dest, None)
        paths = [each for each in (value if isinstance(value, list) else [value]) if each]
        if action.dest in ("bag", "bags", "validate", "session", "empty"):
            recordings += [each for each in paths if isinstance(each, Path)]
        elif action.dest == "trajectory" or (action.dest in ("model", "for_gap")):
            models += [(action, each) for each in paths if isinstance(each, Path)]
        elif action.dest == "csv" and isinstance(value, list):
            for path in filter(_is_recording, paths):
                raise InputError(path, "is a bag already", "use it as it is")
    for path in (*recordings, *(each for _, each in models)):
        if path.name == "metadata.yaml" and path.is_file():
            raise InputError(
                path, "is a file of a bag", f"name the folder of the bag: {path.parent}"
            )
    for action, path in models:
        others = [*recordings, *(each for _, each in models if each is not path)]
        wrong = _is_recording(path) or path.suffix == ".csv"
        if action.dest == "model" and wrong and any(map(_is_yaml, others)):
            options.parser.error(f"the model comes first, then {path}")
        if _is_recording(path) and action.nargs != "?":
            raise InputError(path, "is a recording", f"give {action.metavar} instead")
    for path in recordings:
        if _is_yaml(path) and path.is_file():
            alone = len(recordings) == 1 and not models and options.__dict__.keys() >= {"model"}
            remedy = "the bag is missing, add it" if alone else "give a bag"
            raise InputError(path, "is a model or robot file, not a recording", remedy)
        if path.name.endswith((".csv", ".csv.gz", ".txt")) and path.is_file():
            raise InputError(path, "is no bag", "make a bag of a CSV file with: ur_energy import")


def _is_recording(path: Path) -> bool:
    return path.suffix in BAG_SUFFIXES or (path / "metadata.yaml").is_file()


def _is_yaml(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code.

    0 done, 1 refused, 2 usage error, 3 done in part (`record`, or some of many bags failed),
    130 Ctrl-C.
    """
    name = "ur_energy"
    try:
        options = _parsed(sys.argv[1:] if arguments is None else arguments)
        name = f"ur_energy {options.command}"
        with raised_once():
            return _outcome(options)
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return INTERRUPTED


def _outcome(options: argparse.Namespace) -> int:
    """Run a subcommand; an error of this package becomes one line on stderr."""
    try:
        _check_kinds(options)
        with optional_import():
            options.run(options)
        sys.stdout.flush()
        return DONE
    except UrEnergyError as error:
        print(f"ur_energy {options.command}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # the reading end of the pipe is closed, as by `| head`
        _discard_output()
        return DONE
    except OSError as error:  # a path that is too long, a full disk behind stdout
        place = "" if error.filename is None else f"{error.filename}: "
        problem = f"{place}{error.strerror or error}; check path and disk"
        print(one_line(f"ur_energy {options.command}: {problem}"), file=sys.stderr)
        if error.filename is None:
            _discard_output()
        return REFUSED


def _discard_output() -> None:
    """Let Python find nothing to complain about when it closes stdout at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
