"""Names of new bags."""

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.bag.files import bag_name
from ur_energy_model.telemetry.samples import RecordingInfo

NOON = 1_700_000_000.0
INFO = RecordingInfo(robot="ur5e", serial="2019/55")


@pytest.mark.parametrize(
    ("template", "pattern"),
    [
        ("{robot}", "ur5e"),
        ("cell 7/{serial}", "cell_7_2019_55"),
        ("run_{number:03d}", "run_000"),
        ("../{robot}", ".._ur5e"),
    ],
)
def test_templates_make_file_names(tmp_path, template, pattern):
    assert bag_name(template, INFO, tmp_path, NOON) == pattern


def test_names_that_are_taken_are_not_used_again(tmp_path):
    for expected in ("ur5e", "ur5e_1", "ur5e_2"):
        name = bag_name("{robot}", INFO, tmp_path)
        assert name == expected
        (tmp_path / name).mkdir()


@pytest.mark.parametrize("template", ["{gripper}", "{", "{0}", "", "..", "{robot.name}"])
def test_templates_that_make_no_name_are_refused(tmp_path, template):
    with pytest.raises(InputError, match="name"):
        bag_name(template, INFO, tmp_path)
