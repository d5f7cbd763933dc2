"""LiveView: what matters is visible at every size, and nothing is wider than the terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from test.sinks.terminal.live_states import away, full, state, waiting
from ur_energy_model.sinks.estimator_reading import LiveState
from ur_energy_model.sinks.terminal import FOOTER, WIDEST, LiveView
from ur_energy_model.telemetry.bag.layout import JOINT_NAMES

SIZES = [(80, 24), (120, 40), (60, 20), (40, 12), (20, 5), (300, 100), (1, 1), (80, 1), (80, 2)]
STATES: dict[str, Callable[[], LiveState]] = {
    "waiting": waiting,
    "running": state,
    "away": away,
    "full": full,
}


def shown(what: LiveState, width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    view = LiveView(ascii_only=ascii_only)
    for _ in range(70):
        view.history.add(what)
    return [line.plain for line in view.lines(what, width, height)]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("kind", STATES)
def test_the_view_fits(kind: str, width: int, height: int) -> None:
    lines = shown(STATES[kind](), width, height)
    assert 1 <= len(lines) <= height
    assert max(map(len, lines)) <= min(width, WIDEST)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 20)])
def test_what_matters_is_visible(width: int, height: int) -> None:
    what = full()
    lines = shown(what, width, height)
    text = "\n".join(lines)
    for joint in JOINT_NAMES:
        (row,) = [line for line in lines if line.startswith(joint)]
        assert " W " in row
        assert " J " in row
        assert "°C" in row
    for word in (
        "total",
        "bus",
        "standby",
        "residual",
        "cycle 1",
        "3 samples lost",
        "interruption",
    ):
        assert word in text, word
    assert "energy.json: cannot be written" in text
    assert "mqtt" in text
    assert "arm-1" in lines[0]
    assert lines[-1] == FOOTER
    (total,) = [line for line in lines if line.startswith("total")]
    assert "█" in total
    assert "±" in total


def test_all_sinks_are_listed_where_there_is_room() -> None:
    text = "\n".join(shown(full(), 80, 24))
    assert "foxglove 127.0.0.1:8765: 2 clients, 12 sent" in text
    assert "mqtt 127.0.0.1:1883: nobody listens, 50 waiting, 40 dropped" in text
    assert "opcua 127.0.0.1:4840: 12 sent, 3 dropped" in text


def test_sinks_share_a_line_where_there_is_little_room() -> None:
    lines = shown(full(), 60, 21)
    assert [line for line in lines if "sink" in line] == [
        "sinks with a problem: mqtt 127.0.0.1:1883"
    ]


def test_blank_lines_go_first() -> None:
    assert "" in shown(state(), 80, 24)
    assert "" not in shown(state(), 80, 18)


def test_while_no_samples_come_it_says_why() -> None:
    assert shown(waiting(), 80, 24)[0].startswith("waiting for 192.168.0.9: sent nothing for 3 s")
    assert "no samples: sent nothing for 3 s" in shown(away(), 80, 24)[0]
    view = LiveView()
    view.history.add(away())
    assert view.history.total == ()


def test_terminals_without_block_characters() -> None:
    text = "".join(shown(state(), 80, 24, ascii_only=True))
    assert not set(text) & set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


def test_the_scale_of_the_bars_holds_the_largest_power() -> None:
    view, what = LiveView(), state()
    (heading,) = [line.plain for line in view.lines(what, 80, 24) if line.plain.startswith("joint")]
    assert what.reading is not None
    powers = [abs(what.reading.numbers()[f"energy/{name}/power"]) for name in JOINT_NAMES]
    scale = float(heading.split(" to ")[1].split(" W")[0])
    assert max(powers) <= scale <= 2.5 * max(powers)


def test_the_whole_reason_is_visible_before_the_first_sample() -> None:
    text = " ".join(shown(waiting(), 40, 12))
    assert "waiting for 192.168.0.9: sent nothing for 3 s; check the network" in text
