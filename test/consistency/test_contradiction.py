# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contradictions: words, JSON, and which of them are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ur_energy_model.consistency.contradiction import (
    Contradiction,
    ContradictionError,
    refuse,
)

WRONG_ARM = Contradiction(
    subject="robot",
    stated="imported as ur5e",
    shown="the torques are those of a ur10e",
    evidence="R2 of target_moment 0.9998, as ur5e 0.075",
    remedy="import again with --robot ur10e",
    refused=True,
)


def test_json_has_all_that_the_words_are_made_of() -> None:
    entry = WRONG_ARM.as_json()
    assert entry["subject"] == "robot"
    assert entry["refused"] is True
    for key in ("stated", "shown", "evidence", "remedy"):
        assert entry[key] in entry["words"]


def test_only_contradictions_that_make_results_wrong_are_refused() -> None:
    warning = replace(WRONG_ARM, refused=False)
    refuse("bag", [])
    refuse("bag", [warning])
    with pytest.raises(ContradictionError) as caught:
        refuse("bag", [warning, WRONG_ARM])
    assert caught.value.contradiction is WRONG_ARM
    assert "--robot ur10e" in str(caught.value)
    assert "\n" not in str(caught.value)
