"""Text for terminals."""

import pytest

from ur_energy_model.errors import one_line, printable, unsigned_zeros


@pytest.mark.parametrize("text", ["a b", "Motor 1 \u2013 25 \u00b0C", "line\n\tnext"])
def test_ordinary_text_is_unchanged(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\rb\x07", r"a\rb\x07"),
        ("\u202eabc", r"\u202eabc"),
        ("\udc80", r"\udc80"),
        ("\x9b2J", r"\x9b2J"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-0.0 W", "0.0 W"),
        ("\u22120.00 to \u22120.01 %", "0.00 to \u22120.01 %"),
        ("[-0.0, 0.0, -9.82]", "[0.0, 0.0, -9.82]"),
        ("+0.0 %, at -0.", "0.0 %, at 0."),
        *((text, text) for text in ("-0.05", "run-0.0", "/bags/-0", "2026-01-05", "-0e-5", "-0h")),
    ],
)
def test_zero_has_no_sign(text, shown):
    assert unsigned_zeros(text) == shown


def test_line_breaks_are_escaped_in_one_line():
    assert one_line("a\nb\tc\x1b[2J") == r"a\nb\tc\x1b[2J"
    assert one_line("Motor 1") == "Motor 1"


def test_the_middle_of_a_long_line_is_left_out():
    line = one_line("first" + "\n" * 100_000 + "last")
    assert line.startswith("first")
    assert line.endswith("last")
    assert len(line) < 2500
