# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generic models: what they contain, and who has one."""

from __future__ import annotations

import pytest

from tools.generic_models import ARMS, make
from ur_energy_model.codec import plain
from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.generic import (
    generic_model,
)
from ur_energy_model.model.model_file import document


@pytest.mark.parametrize("name", ARMS)
def test_the_file_is_what_the_command_makes(name: str) -> None:
    def check(stored: object, made: object, place: str = "") -> None:
        if isinstance(made, dict | list | tuple):
            assert len(stored) == len(made)  # type: ignore[arg-type]
            for key in made if isinstance(made, dict) else range(len(made)):
                check(stored[key], made[key], f"{place}/{key}")  # type: ignore[index]
        elif isinstance(made, float):
            assert stored == pytest.approx(made, rel=1e-4, abs=1e-9), place
        else:
            assert stored == made, f"{place}: run python -m tools.generic_models"

    check(*(plain(document(model)) for model in (generic_model(name), make(name))))


def test_other_robots_have_none() -> None:
    with pytest.raises(ModelFileError, match=r"gen3: .*ur5e.*; identify"):
        generic_model("gen3")
