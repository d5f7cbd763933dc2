"""CSV recordings in many forms: without a header, with units, decimal commas and dates."""

import math

import numpy as np
import pytest

from test.telemetry.csv.test_reader import table, write
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import CsvOptions, read_csv

RATE = 50.0


def swings(count=200):
    """Time [count], positions and speeds [count, 6] of a smooth motion."""
    time = 100.0 + np.arange(count) / RATE
    phase = np.outer(time, np.linspace(0.5, 2.0, 6))
    return time, np.sin(phase), np.cos(phase) * np.linspace(0.5, 2.0, 6)


def plain(path, *columns, delimiter=",", header=None, comma=False):
    rows = [delimiter.join(f"{value:.9f}" for value in row) for row in np.column_stack(columns)]
    if comma:
        rows = [row.replace(".", ",") for row in rows]
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n")
    return path


def refusal(path, **options):
    with pytest.raises(RecordingError) as caught:
        read_csv([path], "ur5e", options=CsvOptions(**options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("delimiter", [",", " ", ";", "\t"])
def test_a_file_without_header_is_described_and_names_asked_for(tmp_path, delimiter):
    path = plain(tmp_path / "x.csv", *swings(), delimiter=delimiter)
    said = refusal(path)
    assert "no header line: 13 columns, column 1 rises steadily" in said
    assert "--columns timestamp,actual_q,actual_qd" in said


def test_the_names_suggested_read_the_file(tmp_path):
    time, q, qd = swings()
    path = plain(tmp_path / "x.csv", time, q, qd)
    columns = refusal(path).rpartition("--columns ")[2]
    telemetry = read_csv([path], "ur5e", options=CsvOptions(columns=columns))
    assert telemetry["actual_q"] == pytest.approx(q, abs=1e-8)
    assert telemetry["actual_qd"] == pytest.approx(qd, abs=1e-8)
    assert telemetry.info.rate == RATE


def test_a_known_layout_is_suggested_and_read(tmp_path):
    time, q, qd = swings()
    path = plain(tmp_path / "x.csv", time, q, qd, 2 * q, 3 * q, 4 * q)
    assert "--layout dynamic_calibration" in refusal(path)
    telemetry = read_csv([path], "ur10e", options=CsvOptions(layout="dynamic_calibration"))
    assert telemetry["target_moment"] == pytest.approx(4 * q, abs=1e-8)
    assert "use one of dynamic_calibration" in refusal(path, layout="mine")
    assert "exclude each other" in refusal(path, layout="ur_rtde", columns="timestamp")


@pytest.mark.parametrize(
    "columns",
    [
        "timestamp,actual_q,actual_qd",
        "time,actual_q[6],actual_qd_0..5",
        "timestamp," + ",".join(f"actual_q_{i}" for i in range(6)) + ",Actual_QD",
    ],
)
def test_ways_to_name_columns(tmp_path, columns):
    time, q, qd = swings()
    telemetry = read_csv(
        [plain(tmp_path / "x.csv", time, q, qd)], "ur5e", options=CsvOptions(columns=columns)
    )
    assert telemetry["actual_qd"] == pytest.approx(qd, abs=1e-8)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("timestamp,actual_q", "has 13 columns, and --columns names 7"),
        ("timestamp,actual_qq,-[6]", "did you mean actual_q?"),
        ("timestamp,actual_q[7],-[5]", "has 6 values, not 7"),
        ("actual_q,actual_qd,-", "timestamp: column is missing"),
        ("timestamp,actual_q,actual_q", "appears twice"),
    ],
)
def test_wrong_names_are_refused(tmp_path, columns, said):
    assert said in refusal(plain(tmp_path / "x.csv", *swings()), columns=columns)


def test_names_replace_a_foreign_header(tmp_path):
    time, q, qd = swings()
    header = "zeit," + ",".join(f"achse{i},tempo{i}" for i in range(6))
    path = plain(tmp_path / "x.csv", time, q, qd, header=header)
    assert "it has zeit, achse0" in refusal(path)
    telemetry = read_csv([path], "ur5e", options=CsvOptions(columns="timestamp,actual_q,-[6]"))
    assert len(telemetry) == 200


def test_counted_columns_and_comments_are_no_samples(tmp_path):
    time, q, qd = swings()
    counted = plain(tmp_path / "x.csv", time, q, qd, header=",".join(map(str, range(13))))
    telemetry = read_csv([counted], "ur5e", options=CsvOptions(columns="timestamp,actual_q,-[6]"))
    assert len(telemetry) == 200
    names = "# made by hand\n# timestamp," + ",".join(f"actual_q_{i}" for i in range(6))
    commented = plain(tmp_path / "y.csv", time, q, header=names)
    assert len(read_csv([commented], "ur5e")) == 200


@pytest.mark.parametrize("delimiter", [" ", ";", "\t"])
def test_decimal_commas(tmp_path, delimiter):
    time, q, _ = swings()
    names = delimiter.join(["timestamp", *(f"actual_q_{i}" for i in range(6))])
    path = plain(tmp_path / "x.csv", time, q, delimiter=delimiter, header=names, comma=True)
    said = []
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert telemetry["actual_q"] == pytest.approx(q, abs=1e-8)
    assert any("decimal commas" in line for line in said)


@pytest.mark.parametrize(
    "style", ["{}_{}", "{}[{}]", "{}{}", "{}.{}", "{}_{} [rad]", "{}_{} (rad)"]
)
def test_ways_to_write_names(tmp_path, style):
    time, q, _ = swings()
    header = "timestamp," + ",".join(style.format("actual_q", i) for i in range(6))
    telemetry = read_csv([plain(tmp_path / "x.csv", time, q, header=header)], "ur5e")
    assert telemetry["actual_q"] == pytest.approx(q, abs=1e-8)


FORMS = (
    "{} [%s]",
    "{}[%s]",
    "{} (%s)",
    "{}_[%s]",
    "[%s] {}",
    "{}_%s",
    "{} %s",
    "{}.%s",
    "{} in %s",
)
UNITS = [("deg", 57.29577951308232), ("DEG", 57.29577951308232), ("\xb0", 57.29577951308232)]


@pytest.mark.parametrize("stated", [range(6), [1, 2]], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_a_unit_counts_for_all_joints_or_is_refused(tmp_path, form, stated):
    time, q, _ = swings()
    speeds = [("deg/s", 57.29577951308232), ("rpm", 9.549296585513721)]
    for field, choices in (("actual_q", UNITS), ("actual_qd", speeds)):
        for unit, per_si in choices:
            names, values = [f"{field}_{i}" for i in range(6)], q.copy()
            for i in stated:
                names[i] = form.format(names[i]) % unit
                values[:, i] *= per_si
            path = plain(tmp_path / "x.csv", time, values, header="t," + ",".join(names))
            if len(stated) == 6:
                assert read_csv([path], "ur5e")[field] == pytest.approx(q, abs=1e-8)
            else:
                assert "state the unit of each" in refusal(path)


@pytest.mark.parametrize("rate", [5.0, 50.0, 500.0])
@pytest.mark.parametrize(("factor", "unit"), [(1.0, None), (1e3, "ms"), (1e6, "us"), (1e9, "ns")])
def test_the_unit_of_time_shows_in_its_steps(tmp_path, rate, factor, unit):
    time = 100.0 + np.arange(200) / rate
    path = tmp_path / "x.csv"
    rows = [f"{factor * t:.6f},1.5" for t in time]
    path.write_text("\n".join(["timestamp,payload", *rows]) + "\n")
    said = []
    telemetry = read_csv([path], "ur5e", note=said.append)
    assert telemetry.time == pytest.approx(time)
    assert telemetry.info.rate == rate
    assert any(f"counts in {unit}" in line for line in said) == (unit is not None)


@pytest.mark.parametrize(
    ("start", "zone", "seconds"),
    [
        ("2024-03-31T01:59:58.{}+02:00", "+02:00", 1711843198),
        ("2024-03-31T01:59:58.{}Z", "Z", 1711850398),
        ("2024-03-31 01:59:58.{}", None, 1711850398),
    ],
)
def test_dates_become_seconds(tmp_path, start, zone, seconds):
    path = tmp_path / "x.csv"
    rows = [f"{start.format(f'{20 * i:03d}')},1.5" for i in range(50)]
    path.write_text("\n".join(["datetime,payload", *rows]) + "\n")
    telemetry = read_csv([path], "ur5e")
    assert telemetry.time == pytest.approx(seconds + 0.02 * np.arange(50), abs=1e-5)
    assert telemetry.info.rate == RATE
    assert telemetry.info.extra.get("time_zone") == zone
    assert telemetry.gaps == ()


@pytest.mark.parametrize("rate", [5, 8, 10, 94, 125])
def test_rounded_times_make_no_gaps(tmp_path, rate):
    path = tmp_path / "x.csv"
    time = np.float32(np.arange(300) / rate)
    path.write_text("timestamp,payload\n" + "".join(f"{t:.9g},1.5\n" for t in time))
    telemetry = read_csv([path], "ur5e")
    assert telemetry.gaps == ()
    assert telemetry.info.rate == pytest.approx(rate, rel=1e-3)


def test_many_lost_samples_are_missing(tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{i * 0.1:.1f},1.5\n" for i in range(300) if i % 5]
    path.write_text("timestamp,payload\n" + "".join(rows))
    telemetry = read_csv([path], "ur5e")
    assert telemetry.info.rate == 10.0
    assert telemetry.lost == 59


def test_quoted_cells_are_read(tmp_path):
    path = write(tmp_path / "x.csv", table())
    header, *rows = path.read_text().splitlines()
    quoted = [",".join(f'"{cell}"' for cell in row.split(",")) for row in rows]
    path.write_text("\n".join([header, *quoted]) + "\n")
    assert read_csv([path], "ur5e")["actual_q"].tobytes() == table()["actual_q"].tobytes()
    assert math.isfinite(read_csv([path], "ur5e").time[0])


def test_real_recordings_hold_nothing_impossible(recordings):
    for path in sorted(recordings.glob("*.csv.gz")):
        robot = load_robot(path.name.partition("_")[0])
        said = []
        options = CsvOptions(limits=rated_limits(robot))
        read_csv([path], robot.name, options=options, note=said.append)
        assert not any("left out" in line or "out of order" in line for line in said), path.name
