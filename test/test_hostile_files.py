"""Invalid values in files are refused in one line that names file, line and key."""

from __future__ import annotations

import csv
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from test.model.made_up import with_tensors
from test.plant.history.synthetic_plant import JOINTS, Arm, Work, write_plant
from ur_energy_model.energy.counters import EnergyCounters
from ur_energy_model.energy.cycles import Cycle, CycleLog
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import config_file, open_regular, real_path, user_path, write_text
from ur_energy_model.learning.state import StateStore, file_digest
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.geometry import read_capsules
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.urdf_import import robot_content
from ur_energy_model.optimization.pendant import Step, sheet_csv
from ur_energy_model.plant.database import export_csv
from ur_energy_model.plant.store import HistoryStore
from ur_energy_model.simulation.parameters import read_constants
from ur_energy_model.sinks.credentials import read_credentials
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.csv.rows import CsvText
from ur_energy_model.trajectory.fourier import load_trajectory
from ur_energy_model.trajectory.plan import read_plan

READERS: dict[str, Callable[[Path], Any]] = {
    "robot": load_robot,
    "seven": load_robot,
    "model": load_model,
    "trajectory": load_trajectory,
    "geometry": lambda path: read_capsules(path, "ur5e"),
    "simulation": read_constants,
}
SHIPPED = {
    "robot": "robots/ur5e.yaml",
    "seven": "robots/gen3.yaml",
    "trajectory": "excitation/ur5e.yaml",
    "geometry": "geometry/ur5e.yaml",
    "simulation": "simulation/arm.yaml",
}


@cache
def valid(kind: str) -> str:
    """Text of a valid file."""
    if kind != "model":
        return config_file(*SHIPPED[kind].split("/")).read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        save_model(with_tensors(), Path(folder) / "model.yaml")
        return (Path(folder) / "model.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", READERS)
def test_valid_files_are_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(valid(kind), encoding="utf-8")
    READERS[kind](path)


@pytest.mark.parametrize("path", sorted(config_file().rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_file_of_the_package_is_read(path: Path) -> None:
    match path.parent.name, path.name:
        case "robots", _:
            assert load_robot(path).name == path.stem
        case "excitation", _:
            assert load_trajectory(path).robot == path.stem
        case "models", _:
            assert is_generic(load_model(path))
        case "geometry", _:
            assert len(read_capsules(path, path.stem)[0]) > 6
        case _, "arm.yaml":
            assert read_constants(path)["bus"]["open_voltage"] > 40
        case _, name:  # parameters of the nodes, which ROS reads
            assert name.removesuffix(".yaml") in {
                "papers",
                "published_results",
                "logger",
                "identification",
                "estimator",
                "simulated_robot",
            }


# kind, what stands there, what is put in its place, what the message says
FAULTS: list[tuple[str, str, str, str]] = [
    # robot descriptions
    ("robot", "schema: 1", "schema: 99", "schema 99 .* update ur_energy_model"),
    ("robot", "schema: 1", "schema: '1'", "whole number"),
    ("robot", "name: ur5e", "nmae: ur5e", r"did you mean 'name'\?"),
    ("robot", "name: ur5e", "name: ../ur5e", "slashes"),
    ("robot", "name: ur5e", "name: 5", "quotes"),
    ("robot", "name: ur5e", "name: ur5e\nname: ur3", "'name' occurs twice"),
    ("robot", "generation: e-series", "generation: e-serie", "did you mean 'e-series'"),
    ("robot", "rate: 500", "rate: -500", "positive"),
    ("robot", "rate: 500", "rate: 500 Hz", "not a number"),
    ("robot", "rate: 500", "rate: true", "not a number"),
    ("robot", "rate: 500", "rate: 5e9", "Hz is impossible"),
    ("robot", "shoulder_lift_joint, ", "shoulder_pan_joint, ", "occurs twice"),
    ("robot", "shoulder_lift_joint, ", "", "describes 6 moving joints"),
    ("robot", "shoulder_lift_joint, ", "7, ", "quotes"),
    ("robot", "controller_gravity: 9.82", "controller_gravity: -9.82", "m/s.2 is impossible"),
    ("robot", "controller_gravity: 9.82", "controller_gravity: 0", "m/s.2 is impossible"),
    ("robot", "convention: standard", "convention: standart", "did you mean 'standard'"),
    ("robot", "alpha: [1.5707963267948966", "alpha: [90", "rad is impossible"),
    ("robot", "d: [0.1625", "d: [162.5", "m is impossible"),
    ("robot", "d: [0.1625", "d: ['0.1625'", "'0.1625' is not a number"),
    ("robot", "mass: [3.761", "mass: [-3.761", "negative"),
    ("robot", "mass: [3.761", "mass: [3761000", "kg is impossible"),
    ("robot", "mass: [3.761", "mass: [.nan", "finite"),
    ("robot", "mass: [3.761, ", "mass: [", "has 5 values, 6 are needed"),
    ("robot", "[0.0, -0.02561, 0.00193]", "[0.0, -25.61, 1.93]", "m is impossible"),
    ("robot", "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0002]", "[0.0, 0.0, 0.0, 0.0, 0.0, -0.0002]",
     "principal moment"),
    ("robot", "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0002]", "[0.0, 0.0, 0.0, 0.0, 0.0, 200]", "across"),
    ("robot", "torque: [150.0", "torqe: [150.0", r"did you mean 'torque'\?"),
    ("robot", "torque: [150.0", "torque: [-150.0", "positive"),
    ("robot", "position: [6.283185", "position: [360", "rad is impossible"),
    ("robot", "velocity: [3.141593", "velocity: [180", "rad/s is impossible"),
    ("robot", "gear_ratio: [101", "gear_ration: [101", r"did you mean 'gear_ratio'\?"),
    ("robot", "gear_ratio: [101", "gear_ratio: [-101", "positive"),
    ("robot", "gear_ratio: [101", "gear_ratio: [1010000", "is impossible"),
    ("robot", "rotor_inertia: [0.00018774", "rotor_inertia: [-0.00018774", "negative"),
    ("robot", "winding_resistance: [0.3", "winding_resistance: [-0.3", "positive"),
    ("robot", "winding_resistance: [0.3", "winding_resistance: [0", "positive"),
    ("robot", "torque_constant: [0.098322", "torque_constant: [-0.098322", "positive"),
    ("robot", "torque_constant: [0.098322", "torque_constant: [1e-300", "is impossible"),
    ("robot", "velocity: [3.141593", "velocity: [1e-300", "is impossible"),
    ("robot", "back_emf_constant: [0.065548", "back_emf_constant: [-0.065548", "positive"),
    ("robot", "[3.637679, -0.011074", "[3.637679, 11.074", "within one kelvin"),
    ("robot", "[3.637679, -0.011074", "[-36.37679, -0.011074", "not positive at"),
    ("robot", "nominal_voltage: 48.0", "nominal_voltage: -48.0", "positive"),
    ("robot", "standby_power: 29.3", "standby_power: 1e9", "W is impossible"),
    ("seven", "fixed: [0]", "fixed: [0, 0]", "named once only"),
    ("seven", "fixed: [0]", "fixed: [8]", "link 8 must be 0 to 7"),
    ("seven", "fixed: [0]", "fixed: [true]", "whole number"),
    # models
    ("model", "schema: 1", "schema: 2", "update ur_energy_model"),
    ("model", "gravity: [0.0, 6.94", "gravity: [0.0, 0.0", "m/s.2 is impossible"),
    ("model", "payload_mass: 1.2", "payload_mass: -1.2", "negative"),
    ("model", "payload_mass: 1.2", "payload_mass: 1.2e6", "kg is impossible"),
    ("model", "payload_mass: 1.2", "payload_maas: 1.2", "did you mean 'payload_mass'"),
    ("model", "torque_constant: {value: 0.1,", "torque_constant: {value: 1e-300,", "impossible"),
    ("model", "unit: '1', std: 0.0", "unit: '1', std: -0.1", "negative"),
    ("model", "gear_ratio: {value: 101.0", "gear_ratio: {value: -101.0", "positive"),
    ("model", "gear_ratio: {", "gear_ration: {", "did you mean 'gear_ratio'"),
    ("model", "reflected_inertia: {value: 1.9", "reflected_inertia: {value: -1.9", "negative"),
    ("model", "winding_resistance: {value: 0.3", "winding_resistance: {value: -0.3", "negative"),
    ("model", "winding_resistance: {value: 0.3", "winding_resistance: {value: 1e9",
     "ohm is impossible"),
    ("model", "winding_resistance: {value: 0.3, unit: ohm, std: 0.0",
     "winding_resistance: {value: -0.3, unit: ohm, std: 0.2", "must not be negative"),
    ("model", "driver: {unit: W/A, shoulder_pan_joint: 0.2",
     "driver: {unit: W/A, shoulder_pan_joint: -0.2", "must not be negative"),
    ("model", "back_emf_constant: {value: 0.098", "back_emf_constant: {value: -0.098", "negative"),
    ("model", "temperature_range: {lowest: 20.0", "temperature_range: {lowest: 50", "above"),
    ("model", "temperature_range: {lowest: 20.0", "temperature_range: {lowest: -1e6", "degC"),
    ("model", "presliding: {value: 0.001", "presliding: {value: -0.001", "negative"),
    ("model", "current_residual: {value: 0.02", "current_residual: {value: -1", "negative"),
    ("model", "current_delay: {value: 0.0012", "current_delay: {value: 5", "s is impossible"),
    ("model", "standby: {value: 25.0", "standby: {value: -25.0", "negative"),
    ("model", "kind: physical", "kind: pysical", "did you mean 'physical'"),
    ("model", "floor: {value: 0.0", "floor: {value: 1.0e+9", "W is impossible"),
    ("model", "floor: {value: 0.0", "floor: {value: 26", "above the standby power"),
    ("model", "storage: {value: 0.0", "storage: {value: -1", "negative"),
    ("model", "driver_std: {value: 0.01", "driver_std: {value: -0.01", "negative"),
    ("model", "idle: 12.5", "pwoer off: 12.5", "did you mean 'power off'"),
    ("model", "idle: 12.5", "idle: -500", "W is impossible"),
    ("model", "residual: {value: 1.5, unit: W", "residual: {value: 1.5, unit: mW", "'mW' must be"),
    # trajectories
    ("trajectory", "schema: 1", "schema: 2", "update ur_energy_model"),
    ("trajectory", "period: 10.0", "periode: 10.0", "did you mean 'period'"),
    ("trajectory", "period: 10.0", "period: 0", "positive"),
    ("trajectory", "period: 10.0", "period: 1e-300", "is impossible"),
    ("trajectory", "period: 10.0", "period: true", "not a number"),
    ("trajectory", "repetitions: 3", "repetitions: 2.5", "whole number"),
    ("trajectory", "repetitions: 3", "repetitions: 90000", "longer than a day"),
    ("trajectory", "repetitions: 3", "repetitions: 1e300", "must be 1 to"),
    ("trajectory", "q0: [", "q0: [9000, ", "rad is impossible"),
    # geometry
    ("geometry", "robot: ur5e", "robot: ur3", "must be ur5e"),
    ("geometry", "{link: 0", "{lnik: 0", "did you mean 'link'"),
    ("geometry", "{link: 0", "{link: -1", "must be 0 to"),
    ("geometry", "radius: ", "radius: -", "positive"),
    ("geometry", "[[0, 1]", "[[0, 1, 2]", "2 are needed"),
    ("geometry", "[[0, 1]", "[[1, 1]", "two links"),
    ("geometry", "[[0, 1]", "[[0, 99]", "must be 0 to"),
    # constants of simulated arms
    ("simulation", "schema: 1", "schema: 2", "update ur_energy_model"),
    ("simulation", "speed: [0.01", "speed: [-0.01", "positive"),
    ("simulation", "speed: [0.01, 0.5", "speed: [0.5, 0.5", "increase"),
    ("simulation", "speed: [0.01, ", "speed: [", "has 4 values, 3 are needed"),
    ("simulation", "breakaway: 1.12", "breakaway: 0.5", "is impossible"),
    ("simulation", "breakaway: 1.12", "brakeaway: 1.12", "did you mean 'breakaway'"),
    ("simulation", "max_torque: [9.0, 28.0", "max_torque: [28.0, 9.0", "increase"),
    ("simulation", "winding_resistance: [2.394, ", "winding_resistance: [", "5 are needed"),
    ("simulation", "standby_power: [24.2, 36.0]", "standby_power: [36.0, 24.2]", "above highest"),
    ("simulation", "torque_constant: 0.12", "torque_constant: 12", "is impossible"),
    ("simulation", "brake_voltage: 54.0", "brake_voltage: 0", "positive"),
    ("simulation", "temperature_step: 0.0625", "temperature_step: 0", "positive"),
    ("simulation", "voltage_noise: 0.015", "voltage_noise: -0.015", "negative"),
    # published figures
]  # fmt: skip

ELSEWHERE = ("shoulder_lift_joint, ", "speed: [0.01, ")
"""Wrong lengths that are reported for another list further down."""


@pytest.mark.parametrize(("kind", "old", "new", "problem"), FAULTS)
def test_faults_are_refused_with_file_line_and_key(
    tmp_path: Path, kind: str, old: str, new: str, problem: str
) -> None:
    text = valid(kind)
    assert old in text
    path = tmp_path / "x.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as refusal:
        READERS[kind](path)
    assert re.search(problem, str(refusal.value))
    line = place(refusal.value)
    first = text[: text.index(old)].count("\n") + 1
    assert old in ELSEWHERE or line in range(first, first + 1 + new.count("\n"))


def place(error: InputError) -> int:
    """The line number in an error message, which must be one line of text."""
    assert "\n" not in str(error)
    assert str(error).startswith(f"{error.source}: line ")
    return int(str(error.field).split(":")[0].split()[1])


VALUES = st.sampled_from([
    "-1", "0", "1e9", "-1e9", "1e999", ".nan", "-.inf", "null", "true", "'1'", "x", "[]", "{}",
    "[[1]]", "1:30", "0x1F", "&a 1", "*a", "!!float 1", "9" * 400, "[1, 2, 3]", "{a: 1}", "? ",
])  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(sorted(READERS)), at=st.floats(0, 0.9999), value=VALUES, key=st.booleans()
)
def test_any_other_value_or_key_loads_or_is_refused_in_one_line(kind, at, value, key) -> None:
    """Replace each number or key of each file in turn."""
    text = valid(kind)
    places = list(re.finditer(r"[A-Za-z_]\w*(?=:)" if key else r"(?<=[\[ ])-?\d[\d.e-]*", text))
    found = places[int(at * len(places))]
    check(kind, text[: found.start()] + value + text[found.end() :])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(sorted(READERS)),
    at=st.floats(0, 0.9999),
    length=st.integers(0, 200),
    junk=st.text(st.characters(codec="utf-8"), max_size=5),
)
def test_any_damage_loads_or_is_refused_in_one_line(kind, at, length, junk) -> None:
    text = valid(kind)
    start = int(at * len(text))
    check(kind, text[:start] + junk + text[start + length :])


def check(kind: str, text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        path.write_text(text, encoding="utf-8")
        message = str(path)
        try:
            READERS[kind](path)
        except UrEnergyError as error:
            message = str(error)
        assert str(path) in message
        assert "\n" not in message
        assert len(message) < 1500


CHANNELS = Channels(("a_joint", "b_joint"))


def _logged(path: Path) -> None:
    log = CycleLog(path)
    log.append(Cycle(1, 1.0, MeterReading.zero(len(CHANNELS)), 10.0), CHANNELS, "now")
    if log.problem:
        raise OSError(log.problem)


def _learned(path: Path) -> None:
    """The pipe is where a learning state is looked for."""
    path.rename(path.with_name("x.learning"))
    StateStore(path.with_name("x")).load(None)


def _journalled(path: Path) -> None:
    """The pipe is where the journal of a state file is looked for."""
    path.rename(path.with_name("x.journal"))
    EnergyCounters(CHANNELS, path.with_name("x"))


def _in_bag(path: Path) -> Path:
    """The pipe is a file of a bag."""
    (path.parent / "bag").mkdir()
    path.rename(path.parent / "bag" / "bag_0.mcap")
    return path.parent / "bag"


FILES: dict[str, Callable[[Path], Any]] = {
    **READERS,
    "plan": lambda path: read_plan(path, CHANNELS.joints),
    "cycles": _logged,
    "state": lambda path: EnergyCounters(CHANNELS, path),
    "journal": _journalled,
    "learned": _learned,
    "written": lambda path: write_text(path, ""),
    "opened": open_regular,
    "csv": lambda path: CsvText(path).head(1),
    "bag": lambda path: read_bag(_in_bag(path)),
    "recovered": lambda path: recover_bag(_in_bag(path)),
    "urdf": robot_content,
    "credentials": read_credentials,
}
"""What reads or writes a file that a user names."""


@pytest.mark.parametrize("kind", FILES)
def test_a_pipe_instead_of_a_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.yaml"
    os.mkfifo(path)
    signal.alarm(5)  # ends the tests where something blocks
    try:
        with pytest.raises((InputError, OSError, ValueError), match="not a regular file"):
            FILES[kind](path)
    finally:
        signal.alarm(0)
    assert file_digest(path) is None


@settings(max_examples=10, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=5),
       mark=st.sampled_from(["=", "+", "-", "@", "\t", ""]))  # fmt: skip
def test_no_text_in_csv_files_is_a_formula(text: str, mark: str) -> None:
    name = mark + text
    names = (f"{name}1", f"{name}2", *JOINTS[2:])
    with TemporaryDirectory() as folder:
        cycles, rows, sheet = (Path(folder) / f"{k}.csv" for k in range(3))
        log = CycleLog(cycles)
        channels = Channels(names)
        cycle = Cycle(1, 1.0, MeterReading.zero(len(channels)), 10.0, program=name)
        log.append(cycle, channels, name)
        write_plant(Path(folder) / "plant", [Arm("A1", names, programs=(name,))], Work(days=1))
        export_csv(HistoryStore(Path(folder) / "plant"), "cycles", rows)
        waypoint = (-90.0,) * 6
        sheet.write_text(sheet_csv([Step("moveJ", 0, waypoint, 3, 60.0, 30.0, 80.0, 40.0)]))
        for path in (cycles, rows, sheet):
            with path.open(encoding="utf-8", newline="") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            texts = [cell for cell in cells if cell and not is_number(cell)]
            assert len(texts) > 5
            assert not [
                cell for cell in texts if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")
            ]
            assert path == sheet or any(name in cell for cell in cells)


def is_number(cell: str) -> bool:
    """Whether a cell of a CSV file is a number."""
    return re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell) is not None


def test_a_journal_that_is_a_link_is_refused_and_its_target_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"x" * 4096)
    (tmp_path / "state.journal").symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        EnergyCounters(CHANNELS, tmp_path / "state")
    assert victim.read_bytes() == b"x" * 4096


@pytest.mark.parametrize("path", ["~no-such-user-at-all/x", "a\0b"])
def test_paths_that_cannot_be(path: str) -> None:
    with pytest.raises(InputError, match="write"):
        user_path(path)


@pytest.mark.parametrize("kind", FILES)
def test_a_link_to_itself_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.yaml"
    path.symlink_to(path)
    with suppress(InputError, OSError, ValueError):
        FILES[kind](path)
    assert real_path(path) == path


def test_a_file_of_the_kernel_that_is_regular_and_cannot_be_read_is_refused() -> None:
    if not Path("/proc/self/mem").is_file():
        pytest.skip("this system has no /proc/self/mem")
    with pytest.raises(OSError, match="error"):
        open_regular("/proc/self/mem")
