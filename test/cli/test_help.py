"""Help texts: every subcommand and argument is described, in 80 columns, with examples."""

from __future__ import annotations

import argparse

import pytest

from ur_energy_model.cli.main import build_parser

SUBCOMMANDS = next(
    action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
)


def test_every_subcommand_has_a_summary() -> None:
    summaries = {choice.dest: choice.help for choice in SUBCOMMANDS._choices_actions}
    assert set(summaries) == set(SUBCOMMANDS.choices)
    assert all(summaries.values())


@pytest.mark.parametrize("name", SUBCOMMANDS.choices)
def test_every_argument_is_described(name: str) -> None:
    for action in SUBCOMMANDS.choices[name]._actions:
        assert action.help, f"{name}: {action.dest} has no help text"


@pytest.mark.parametrize("name", SUBCOMMANDS.choices)
def test_description_fits_a_terminal_and_examples_are_shown(name: str) -> None:
    parser = SUBCOMMANDS.choices[name]
    assert max(map(len, (parser.description or "").splitlines())) <= 80
    assert f"examples:\n  ur_energy {name} " in parser.format_help()
