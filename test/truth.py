# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cases of tests of which only the first are fast.

`make test` leaves out the tests with the mark `pytest.mark.truth`, `make truth` runs them,
and the property tests of `test.properties` again.
What they show of the code's behaviour has a fast test as well; theirs is that figures and
intervals hold for many simulated arms, long recordings and whole experiments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_fast(cases: Iterable[Any], fast: int = 1) -> list[Any]:
    """Cases for `parametrize`; those after the first `fast` ones have the mark `truth`.

    Args:
        cases: values of one parameter, or tuples of several.
        fast: number of cases that `make test` runs.
    """
    marked = []
    for number, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        marks = () if number < fast else pytest.mark.truth
        marked.append(pytest.param(*values, marks=marks))
    return marked
