"""Help texts: every subcommand and argument is described, in 80 columns, with examples."""

from __future__ import annotations

import argparse

import pytest

from ur_energy_model.cli.main import build_parser

SUBCOMMANDS = next(
    action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
)


PARSERS = dict(SUBCOMMANDS.choices)
for command, parser in SUBCOMMANDS.choices.items():
    for nested in parser._actions:
        if isinstance(nested, argparse._SubParsersAction):
            PARSERS |= {f"{command} {name}": each for name, each in nested.choices.items()}


def test_every_subcommand_has_a_summary() -> None:
    summaries = {choice.dest: choice.help for choice in SUBCOMMANDS._choices_actions}
    assert set(summaries) == set(SUBCOMMANDS.choices)
    assert all(summaries.values())


@pytest.mark.parametrize("name", PARSERS)
def test_every_argument_is_described(name: str) -> None:
    for action in PARSERS[name]._actions:
        assert action.help, f"{name}: {action.dest} has no help text"


@pytest.mark.parametrize("name", PARSERS)
def test_description_fits_a_terminal_and_examples_are_shown(name: str) -> None:
    parser = PARSERS[name]
    assert max(map(len, (parser.description or "").splitlines())) <= 80
    assert f"examples:\n  ur_energy {name} " in parser.format_help()


def test_the_help_lists_every_command_and_names_those_that_move_a_robot() -> None:
    text = build_parser().format_help()
    listed = [
        line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] > " "
    ]
    assert sorted(set(SUBCOMMANDS.choices) & set(listed)) == sorted(SUBCOMMANDS.choices)
    assert len(listed) == len(set(listed))
    moving = {name for name, each in PARSERS.items() if "--another-arm" in each.format_help()}
    end = text[text.index("Only '") :]
    assert moving == {name for name in PARSERS if f"'{name} " in end}
