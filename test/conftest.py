"""Fixtures that more than one room's tests use."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Folder with recordings of real arms, kept beside the checkout and never inside it."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"recordings of real arms are not at {folder}")
    return folder


@pytest.fixture(scope="session")
def facts() -> Path:
    """Folder with published constants, kept beside the checkout."""
    folder = SHARED / "facts"
    if not folder.is_dir():
        pytest.skip(f"published constants are not at {folder}")
    return folder
