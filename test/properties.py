# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Property tests of hypothesis: few examples in `make test`, many in `make truth`.

Both run the tests with the mark `pytest.mark.examples`. `make truth` sets the variable
EXAMPLES_FACTOR of the environment, by which the number of examples of each test is
multiplied there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

FACTOR = int(os.environ.get("EXAMPLES_FACTOR", "1"))

Test = TypeVar("Test", bound=Callable[..., Any])


def examples(number: int, **others: Any) -> Callable[[Test], Test]:
    """Decorator of a test with `given`, which limits its examples.

    Args:
        number: number of examples in `make test`.
        others: further settings of hypothesis, by name.
    """

    def limited(test: Test) -> Test:
        of_this_run = settings(max_examples=number * FACTOR, **others)
        return pytest.mark.examples(of_this_run(test))

    return limited
