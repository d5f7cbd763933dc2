# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Friction laws of users: files that define them, what is refused, and models that have them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.model.made_up import made_up_model
from ur_energy_model.errors import InputError, ModelFileError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import (
    LAWS,
    Friction,
    FrictionBank,
    FrictionLaw,
)
from ur_energy_model.model.friction_checks import problem_of
from ur_energy_model.model.friction_files import add_friction_law, load_friction_laws
from ur_energy_model.model.friction_terms import TERMS, OperatingPoint, Term
from ur_energy_model.model.model_file import load_model, model_text, save_model
from ur_energy_model.model.regressor import friction_regressor

LAW = """\
import numpy as np
from ur_energy_model.model.friction import FrictionLaw
from ur_energy_model.model.friction_terms import TERMS, ShapeConstant, Term


def breakaway(point, shape):
    slow = np.exp(-((np.abs(point.speed) / shape["slow_speed"]) ** shape["form"]))
    return point.coulomb(shape) * slow


USES = ("smoothing", "slow_speed", "form")
LUGRE = FrictionLaw(
    "lugre",
    "steady state of the LuGre model",
    {
        "coulomb": TERMS["coulomb"],
        "breakaway": Term("N m", breakaway, USES, kind="coulomb"),
        "viscous": TERMS["viscous"],
    },
    {
        "slow_speed": ShapeConstant("rad/s", 0.01, 0.05, 0.5),
        "form": ShapeConstant("1", 1.0, 1.0, 1.0),
    },
)
"""


pytestmark = pytest.mark.usefixtures("package_laws")


def law_file(folder: Path, text: str = LAW, name: str = "laws.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lugre(folder: Path) -> FrictionLaw:
    return load_friction_laws(law_file(folder))[0]


def with_law(law: FrictionLaw) -> EnergyModel:
    """A model whose first joint has a law of three parameters."""
    model = made_up_model()
    values = dict(zip(law.parameters, (0.05, 0.02, 4e-4), strict=True))
    joint = model.joints[0]
    joint = replace(
        joint,
        friction=Friction(law, values, law.default_shape),
        std={**joint.std, **dict.fromkeys(values, 1e-4)},
        source={**joint.source, **dict.fromkeys(values, "current")},
        current_covariance=1e-6 * np.eye(4),
    )
    return replace(model, joints=(joint, *model.joints[1:]))


def test_a_law_of_a_file_has_the_values_of_its_formula(tmp_path: Path) -> None:
    law = lugre(tmp_path)
    speed = np.array([-1.0, -0.02, 0.02, 0.4])
    values = {"coulomb": 0.05, "breakaway": 0.02, "viscous": 4e-4}
    found = friction_regressor(
        law, speed[:, None], gear_ratio=101.0, shape={"slow_speed": 0.1, "form": 1.5}
    )
    assert found.columns == tuple(f"{name}_1" for name in values)
    assert found.units == ("N m", "N m", "N m s/rad")
    slow = np.exp(-((np.abs(speed) / 0.1) ** 1.5))
    wanted = np.sign(speed) * (0.05 + 0.02 * slow) + 101.0 * 4e-4 * speed
    torque = found.values[:, 0] @ list(values.values()) / 101.0  # motor side
    np.testing.assert_allclose(torque, wanted, rtol=1e-9)
    bank = FrictionBank([Friction(law, values)], np.array([101.0]))
    torque = bank.torque(speed[:, None], np.zeros((4, 1)))[:, 0]
    slow = np.exp(-np.abs(speed) / 0.05)
    wanted = np.sign(speed) * (0.05 + 0.02 * slow) + 101.0 * 4e-4 * speed
    np.testing.assert_allclose(torque, wanted, rtol=1e-9)


def test_a_file_is_run_once_and_its_law_is_one_object_everywhere(tmp_path: Path) -> None:
    law = lugre(tmp_path)
    assert LAWS["lugre"] is law
    assert load_friction_laws(tmp_path / "laws.py")[0] is law
    assert pickle.loads(pickle.dumps(law)) is law
    commented = law_file(tmp_path, LAW + "# a comment\n", "again.py")
    assert load_friction_laws(commented)[0] is law


def test_another_process_gets_a_law_without_its_file(tmp_path: Path) -> None:
    law = lugre(tmp_path)
    pickled = pickle.dumps(law)
    del LAWS["lugre"]  # as in a new process
    (tmp_path / "laws.py").unlink()
    again: FrictionLaw = pickle.loads(pickled)
    point = OperatingPoint(np.array([0.3]), np.array([5.0]), 101.0)
    np.testing.assert_array_equal(
        again.regressor(point, again.default_shape),
        law.regressor(point, law.default_shape),
    )
    assert LAWS["lugre"] is again


def test_a_model_file_has_its_law_back(tmp_path: Path) -> None:
    model = with_law(lugre(tmp_path))
    save_model(model, tmp_path / "model.yaml")
    again = load_model(tmp_path / "model.yaml")
    assert again.joints[0].friction == model.joints[0].friction
    assert model_text(again) == (tmp_path / "model.yaml").read_text(encoding="utf-8")
    assert "friction_laws" not in model_text(made_up_model())


def test_a_model_file_whose_law_is_not_loaded_names_file_and_option(
    tmp_path: Path,
) -> None:
    save_model(with_law(lugre(tmp_path)), tmp_path / "model.yaml")
    del LAWS["lugre"]
    with pytest.raises(ModelFileError, match=r"--friction-laws laws\.py") as caught:
        load_model(tmp_path / "model.yaml")
    assert "friction_laws laws.py" in caught.value.with_names(
        {"--friction-laws": "friction_laws"}
    )
    assert "lugre" not in LAWS  # a model file does not run code


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("** shape", "** 1.01 * shape", False),
        ("0.01, 0.05, 0.5", "0.02, 0.06, 0.4", True),
        ('"slow_speed"', '"slower"', False),
        ("np.abs(point.speed)", "abs(point.speed)", True),
        ("steady state", "stationary state", True),
    ],
)
def test_a_model_is_refused_with_another_law_of_the_same_name(
    tmp_path: Path, old: str, new: str, is_same: bool
) -> None:
    """A law has changed between identification and use; its bounds and words may change."""
    save_model(with_law(lugre(tmp_path)), tmp_path / "model.yaml")
    del LAWS["lugre"]
    load_friction_laws(law_file(tmp_path, LAW.replace(old, new)))
    if is_same:
        load_model(tmp_path / "model.yaml")
        return
    with pytest.raises(ModelFileError, match="was another one when this model was made"):
        load_model(tmp_path / "model.yaml")


REFUSED = {
    "is not Python in line 2": LAW.replace("from ur", "form ur", 1),
    "line 2: ModuleNotFoundError": LAW.replace("from ur_energy", "from my_energy", 1),
    "SystemExit": "raise SystemExit(3)",
    "line 1: ZeroDivisionError": "1 / 0",
    "defines no friction law": "x = 1",
    "is the name of a law of the package": LAW.replace('"lugre"', '"stribeck"'),
    "the name 'auto' has another meaning": LAW.replace('"lugre"', '"auto"'),
    "is not made of a-z": LAW.replace('"lugre"', '"LuGre 1"'),
    "breakaway is nan at": LAW.replace("return point", "return np.nan * point"),
    "does not return one number for each sample, but a float": LAW.replace(
        "return point.coulomb(shape) * slow", "return 1.0"
    ),
    r"one number for each sample, but an array \[375, 1\]": LAW.replace(
        "* slow", "[:, None]"
    ),
    "is above 1e": LAW.replace("* slow", "* slow * 1e12"),
    "is zero everywhere": LAW.replace("* slow", "* 0.0"),
    "cannot be computed: KeyError: 'speed'": LAW.replace(
        'shape["slow_speed"]', 'shape["speed"]'
    ),
    r"cannot be computed: ValueError: .* \(line 8\)": LAW.replace(
        "    return", "    point.speed[0] = 0.0\n    return"
    ),
    "is not the opposite": LAW.replace("return point", "return np.abs(point").replace(
        "* slow", ") * slow"
    ),
    "depends on other samples": LAW.replace("* slow", "* np.cumsum(slow)"),
    "each sample must be computed by itself": LAW.replace("* slow", "* slow.mean()"),
    "for several joints together": LAW.replace(
        'shape["slow_speed"]', 'np.max(shape["slow_speed"])'
    ),
    "gives other values the second time": LAW.replace(
        "* slow", "* slow * np.random.uniform()"
    ),
    "not independent": LAW.replace("* slow", "* 2.0"),
    "needs 0 < low": LAW.replace("0.01, 0.05, 0.5", "0.01, 0.9, 0.5"),
    "must be finite numbers": LAW.replace("0.01, 0.05, 0.5", "0.01, float('nan'), 0.5"),
    "no term uses the constant": LAW.replace('"slow_speed": Shape', '"other": Shape').replace(
        'USES = ("smoothing", "slow_speed"', 'USES = ("smoothing", "stribeck_speed"'
    ),
    "uses 'fast', which is not among": LAW.replace('"form")', '"fast")'),
    "must be a tuple of names": LAW.replace("breakaway, USES", "breakaway, 'smoothing'"),
    "is a term of the package": LAW.replace('TERMS["coulomb"]', 'TERMS["rise"]'),
    "is that of another constant": LAW.replace('"breakaway":', '"torque_constant":'),
    "the unit of breakaway is not text": LAW.replace('Term("N m"', "Term(None"),
    "start of breakaway must be": LAW.replace("breakaway, USES", "breakaway, USES, (0, 0)"),
    "kind of breakaway": LAW.replace('kind="coulomb"', 'kind="viscous"'),
    "depends on the temperature": LAW.replace(
        "* slow", "* slow * (1.0 if point.temperature is None else 2.0)"
    ),
    "cannot be computed: TypeError": LAW.replace("* slow", "* slow * point.temperature"),
    "terms must be a dictionary": LAW + 'B = FrictionLaw("b", "", [])\n',
    "the name 3 is not made of": LAW + 'B = FrictionLaw(3, "", LUGRE.terms)\n',
    "defines the law 'lugre' twice": LAW
    + 'B = FrictionLaw("lugre", "", LUGRE.terms, LUGRE.constants)\n',
    "constant 'form' is not a ShapeConstant": LAW.replace(
        'ShapeConstant("1", 1.0, 1.0, 1.0)', "1.0"
    ),
}  # fmt: skip
"""Files that are refused, by what the message states."""


@pytest.mark.parametrize("message", REFUSED)
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, message: str) -> None:
    before = dict(LAWS)
    with pytest.raises(InputError, match=message) as caught:
        load_friction_laws(law_file(tmp_path, REFUSED[message]))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "laws.py"))
    assert before == LAWS


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00")
    large = law_file(tmp_path, "#" * 1_000_001, "large.py")
    for path in (tmp_path / "missing.py", tmp_path, binary, large, Path("/dev/zero")):
        with pytest.raises(InputError):
            load_friction_laws(path)


def test_two_laws_of_one_name_are_refused(tmp_path: Path) -> None:
    lugre(tmp_path)
    other = LAW.replace("** shape", "** 1.01 * shape")
    with pytest.raises(InputError, match="another law 'lugre' is there already"):
        load_friction_laws(law_file(tmp_path, other, "other.py"))


def test_output_of_a_file_does_not_enter_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_friction_laws(law_file(tmp_path, LAW + "print('hello')\n"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err


def test_the_packages_laws_pass_the_checks_of_users_laws() -> None:
    for law in LAWS.values():
        problem = problem_of(law, {})
        assert problem is None or "is a term of the package" in problem, law.name


def test_a_law_with_a_share_of_the_load_alone_is_part_of_a_torque() -> None:
    terms = {"viscous": TERMS["viscous"], "load": TERMS["load"]}
    law = FrictionLaw("load_only", "", terms)
    add_friction_law(law)
    friction = Friction(law, {"viscous": 4e-4, "load": 0.05}, law.default_shape)
    bank = FrictionBank([friction], np.array([101.0]))
    speed = np.array([[0.5], [-0.5], [1.0]])
    load = np.array([[20.0], [20.0], [-30.0]])
    torque = bank.torque(speed, load)
    np.testing.assert_allclose(bank.torque_within(speed, load / 101.0 + torque), torque)


def test_a_program_adds_a_law() -> None:
    arctan = Term("N m", lambda point, shape: np.arctan(point.speed / shape["smoothing"]))
    law = FrictionLaw("arctan_law", "", {"arctan": arctan})
    add_friction_law(law)
    assert pickle.loads(pickle.dumps(law)) is law
    with pytest.raises(InputError, match="name of a law of the package"):
        add_friction_law(replace(law, name="coulomb_viscous"))
