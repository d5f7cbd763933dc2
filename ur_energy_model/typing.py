# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Common types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self as Self
else:
    Self = Any  # Ubuntu 22.04 has neither typing.Self nor typing_extensions.Self

Array: TypeAlias = NDArray[np.float64]
"""Numbers; shape and unit are in the docstrings of functions that take or return them."""

Mask: TypeAlias = NDArray[np.bool_]  # selects elements of another array

Indices: TypeAlias = NDArray[np.intp]  # indices into another array

Bytes: TypeAlias = NDArray[np.uint8]  # raw memory, such as serialised messages

Progress: TypeAlias = Callable[[float, str], None]
"""Receives the finished share of the work (0 to 1; NaN if unknown) and the current step."""


class ClosedOnExit:
    """A context manager whose end closes it."""

    def close(self) -> None:
        """Release what it holds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
