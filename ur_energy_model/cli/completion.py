"""`ur_energy completion`: shell completion, generated from the command's own grammar."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_EXAMPLE = """examples:
  ur_energy completion bash > ~/.local/share/bash-completion/completions/ur_energy
  ur_energy completion zsh > ~/.zfunc/_ur_energy       # a folder of your $fpath
  ur_energy completion fish > ~/.config/fish/completions/ur_energy.fish
"""


@dataclass(frozen=True)
class Option:
    """One option of a subcommand.

    Attributes:
        flags: its spellings.
        text: one line of help.
        takes_value: False for switches.
        choices: the values it accepts, empty where any.
    """

    flags: tuple[str, ...]
    text: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """One subcommand, as far as completion needs it.

    Attributes:
        name: as typed.
        text: one line of help.
        options: in the order of its help.
        positional_choices: words that its arguments accept, empty where they are files.
    """

    name: str
    text: str
    options: tuple[Option, ...]
    positional_choices: tuple[str, ...]


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "completion",
        help="shell completion for bash, zsh or fish",
        description="Print a completion script for a shell: subcommands, options, the values they "
        "accept, and files elsewhere.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(_SHELLS))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from ur_energy_model.cli.main import build_parser
    from ur_energy_model.model.friction.law import LAWS
    from ur_energy_model.model.robots import available_robots

    known = {"--robot": available_robots(), "--friction": ("auto", *LAWS)}
    grammar = list(commands(build_parser(), known))
    print(_SHELLS[options.shell](grammar), end="")
    return 0


def commands(
    parser: argparse.ArgumentParser, known: Mapping[str, tuple[str, ...]] | None = None
) -> Iterator[Command]:
    """The subcommands of a parser, in the order of its help.

    Args:
        parser: the whole grammar.
        known: words to offer for options that accept more than them.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, subparser in action.choices.items():
                yield _command(name, texts.get(name, ""), subparser, known or {})


def _command(
    name: str, text: str, parser: argparse.ArgumentParser, known: Mapping[str, tuple[str, ...]]
) -> Command:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return Command(
        name=name,
        text=_line(text),
        options=tuple(
            Option(
                flags=tuple(action.option_strings),
                text=_line(action.help or ""),
                takes_value=action.nargs != 0,
                choices=_words(action.choices) or known.get(action.option_strings[-1], ()),
            )
            for action in shown
            if action.option_strings
        ),
        positional_choices=tuple(
            word for action in shown if not action.option_strings for word in _words(action.choices)
        ),
    )


def _words(choices: Any) -> tuple[str, ...]:
    return () if choices is None else tuple(str(choice) for choice in choices)


def _line(text: str) -> str:
    """Help as one line without argparse's formats and without what shells would interpret."""
    return re.sub(r"[\"'`$\\\[\]:;]", "", re.sub(r"%\(\w+\)\w|\s+", " ", text)).strip()


def bash(grammar: list[Command]) -> str:
    """Completion for bash."""
    cases, values = [], []
    for command in grammar:
        words = [flag for option in command.options for flag in option.flags]
        cases.append(
            f'        {command.name}) options="{" ".join(words)}"; '
            f'words="{" ".join(command.positional_choices)}" ;;\n'
        )
        values += [
            f"        {command.name}:{flag}) COMPREPLY=($(compgen -W "
            f'"{" ".join(option.choices)}" -- "$current")); return ;;\n'
            for option in command.options
            for flag in option.flags
            if option.choices
        ]
    names = " ".join(command.name for command in grammar)
    return (
        "# ur_energy completion for bash\n"
        "_ur_energy() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    local options words\n"
        "    COMPREPLY=()\n"
        '    if [ "$COMP_CWORD" -eq 1 ]; then\n'
        f'        COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))\n'
        "        return\n"
        "    fi\n"
        '    case "${COMP_WORDS[1]}:$previous" in\n' + "".join(values) + "    esac\n"
        "    case ${COMP_WORDS[1]} in\n" + "".join(cases) + "    esac\n"
        "    if [[ $current == -* ]]; then\n"
        '        COMPREPLY=($(compgen -W "$options" -- "$current"))\n'
        '    elif [ -n "$words" ]; then\n'
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))\n'
        "    else\n"
        '        COMPREPLY=($(compgen -f -- "$current"))\n'
        "    fi\n"
        "}\n"
        "complete -o filenames -F _ur_energy ur_energy\n"
    )


def zsh(grammar: list[Command]) -> str:
    """Completion for zsh."""
    described = "\n".join(f"        '{command.name}:{command.text}'" for command in grammar)
    cases = "".join(
        f"        {command.name}) _arguments {' '.join(_zsh_arguments(command))} ;;\n"
        for command in grammar
    )
    return (
        "#compdef ur_energy\n"
        "_ur_energy() {\n"
        "    local -a subcommands=(\n" + described + "\n    )\n"
        "    if (( CURRENT == 2 )); then\n"
        "        _describe subcommand subcommands\n"
        "        return\n"
        "    fi\n"
        "    local command=${words[2]}\n"
        "    shift words; (( CURRENT-- ))\n"
        "    case $command in\n" + cases + "    esac\n"
        "}\n"
        'if [ "$funcstack[1]" = _ur_energy ]; then _ur_energy "$@"; '
        "else compdef _ur_energy ur_energy; fi\n"
    )


def _zsh_arguments(command: Command) -> Iterator[str]:
    for option in command.options:
        value = ""
        if option.takes_value:
            value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
        for flag in option.flags:
            yield f"'*{flag}[{option.text}]{value}'"
    if command.positional_choices:
        yield f"'*:argument:({' '.join(command.positional_choices)})'"
    else:
        yield "'*:file:_files'"


def fish(grammar: list[Command]) -> str:
    """Completion for fish."""
    lines = ["# ur_energy completion for fish"]
    for command in grammar:
        lines.append(
            f"complete -c ur_energy -n __fish_use_subcommand -f -a {command.name} "
            f"-d '{command.text}'"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                for flag in option.flags
            )
            value = ""
            if option.takes_value:
                value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r"
            lines.append(f"complete -c ur_energy {seen} {flags}{value} -d '{option.text}'")
        if command.positional_choices:
            words = " ".join(command.positional_choices)
            lines.append(f"complete -c ur_energy {seen} -f -a '{words}'")
    return "\n".join(lines) + "\n"


_SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
