"""`ur_energy completion`: shell completion, generated from the command line's own grammar."""

from __future__ import annotations

import argparse
from pathlib import Path

from ur_energy_model.cli import arguments

_EXAMPLES = """\
ur_energy completion bash > ~/.local/share/bash-completion/completions/ur_energy
ur_energy completion zsh > ~/.zfunc/_ur_energy       # a folder of your $fpath
ur_energy completion fish > ~/.config/fish/completions/ur_energy.fish
"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "completion",
        run,
        summary="print a completion script for bash, zsh or fish",
        description="Print a script that completes subcommands, options, their values and file "
        "names in a shell. Needs the Python package shtab.",
        examples=_EXAMPLES,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="shell to complete in")


def run(options: argparse.Namespace) -> None:
    """Print the script.

    Raises:
        MissingPackageError: shtab is not installed.
        InputError: it is too old for this shell.
    """
    from ur_energy_model.cli.main import build_parser
    from ur_energy_model.errors import InputError, optional_import

    with optional_import():
        import shtab
    if options.shell not in shtab.SUPPORTED_SHELLS:
        raise InputError(
            options.shell,
            f"shtab {shtab.__version__} does not support this shell",
            "pip install --upgrade shtab",
        )
    parser = build_parser()
    (subcommands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for choice in subcommands._choices_actions:
        subparser = subcommands.choices[choice.dest]
        subparser.description = choice.help  # one line, for the menus of zsh and fish
        for action in subparser._actions:
            _complete(action, shtab.FILE)
    print(shtab.complete(parser, options.shell))


def _complete(action: argparse.Action, files: object) -> None:
    """Offer known words for an argument, or files where it may name one."""
    action.choices = action.choices or _known_words(action)
    if action.choices is None and action.nargs != 0 and action.type in (None, Path):
        action.complete = files  # type: ignore[attr-defined]  # as shtab documents


def _known_words(action: argparse.Action) -> tuple[str, ...] | None:
    """Words to offer for an option that accepts others too."""
    from ur_energy_model.model.friction import LAWS
    from ur_energy_model.model.robots import available_robots
    from ur_energy_model.telemetry.csv.layouts import LAYOUTS

    return {
        "robot": available_robots(),
        "friction": ("auto", *LAWS),
        "layout": tuple(LAYOUTS),
    }.get(action.dest)
