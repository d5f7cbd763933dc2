# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Model files: an EnergyModel as YAML that people can read and edit.

`MODEL` declares the format, with the sections of joint_format.py and supply_format.py. It
serves `load_model`, `save_model` and the page docs/formats.md. Each quantity has value,
unit, standard deviation and source. Inertia is joint side; torque constants, friction and
motor constants are motor side.

Keys that files of earlier versions do not have are optional here and always written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from ur_energy_model import ranges
from ur_energy_model.codec import plain
from ur_energy_model.errors import ModelFileError, RobotFileError
from ur_energy_model.files import write_text
from ur_energy_model.formats import Found, Key, Section
from ur_energy_model.forms import ANY_KEYS, TEXT, Constant, Measured, Plain, Schema, Scope
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction_files import law_records
from ur_energy_model.model.joint_format import (
    CABLE,
    CONTROLLER_CONSTANTS,
    FREE_FIT,
    JOINT,
    JOINTS,
    LAW,
    LAW_CONSTANT,
    LAW_RECORDS,
    LINK_TENSORS,
    PAYLOAD_CALIBRATION,
    SESSIONS,
    SETUP,
)
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.model.supply_format import BUS, MODE, STATE, WALL
from ur_energy_model.model.wall import STATES
from ur_energy_model.robot_modes import ROBOT_MODES
from ur_energy_model.yaml_nodes import DUMPER, Origin
from ur_energy_model.yaml_reader import YamlTree

KIND = "ur_energy_model"
SCHEMA = 1
_DIGITS = 8
"""Significant digits: more than any measurement has, and still readable."""
_REMEDY = "correct the line or identify again with ur_energy identify"
_HEADER = """\
# Electro-mechanical model of a robot arm, made by ur_energy identify.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""


def load_model(path: str | Path) -> EnergyModel:
    """Read a model file.

    Args:
        path: path of the file, of this version or an earlier one.

    Returns:
        The model, with its joints in the order of the arm.

    Raises:
        ModelFileError: the file cannot be read, or is no valid model file; the error names
            the line and the key to correct.
    """
    return _model(YamlTree.read(path, ModelFileError, _REMEDY))


def model_from_document(content: dict[str, Any], source: str) -> EnergyModel:
    """The model that `document` turned into plain data.

    Args:
        content: what `document` returned, for example after a way through JSON.
        source: origin of the text, for error messages.

    Raises:
        ModelFileError: names the key at fault.
    """
    origin = Origin(Path(source), ModelFileError, _REMEDY)
    return _model(YamlTree.from_content(content, origin))


def document(model: EnergyModel) -> dict[str, Any]:
    """The content of the model file as plain data: mappings, lists, text and numbers."""
    names = tuple(joint.name for joint in model.joints)
    return dict(plain(MODEL.write(model, _scope(names)), digits=_DIGITS))


def model_text(model: EnergyModel, *, header: str = _HEADER) -> str:
    """Content of the model file as YAML.

    Args:
        model: model to write.
        header: comment lines at the beginning of the file.
    """
    return header + yaml.dump(
        document(model),
        Dumper=DUMPER,
        sort_keys=False,
        default_flow_style=None,
        width=100,
        allow_unicode=True,
    )


def save_model(model: EnergyModel, path: str | Path, *, header: str = _HEADER) -> None:
    """Write a model file atomically, after checking that it can be read again.

    Args:
        model: model to write.
        path: path of the file, which is replaced.
        header: comment lines at the beginning of the file.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    try:
        model_from_document(document(model), str(path))
    except ModelFileError as error:
        problem = f"would not be a valid model file ({error.problem})"
        remedy = "identify from a recording with more motion of every joint"
        raise ModelFileError(path, problem, remedy, field=error.field) from None
    write_text(path, model_text(model, header=header), ModelFileError)


def _scope(joints: tuple[str, ...]) -> Scope:
    """Keys and lengths in the format that depend on the arm.

    Args:
        joints: names of the joints in the order of the arm [n].
    """
    # A list over the wall's terms has an entry for each state of the control box, and two for
    # the power at the supply and its square.
    names = {JOINT: joints, MODE: tuple(ROBOT_MODES.values()), STATE: STATES}
    names |= {LAW: (), LAW_CONSTANT: ()}  # any names
    return Scope(names, {"n": len(joints), "w": len(STATES) + 2})


def _model(root: YamlTree) -> EnergyModel:
    """The model at the root of a file.

    Joints are in the order of the arm, whatever the order in the file: other programs may
    have sorted the keys of the file. Joints stay in the order of the file where the arm is
    not known, or has other joints.

    Raises:
        ModelFileError: the content is no valid model file.
    """
    top = root.mapping()
    kind = top.get("kind")
    if kind is None or kind.plain() != KIND:
        problem = f"is not a model file of this package (no 'kind: {KIND}')"
        raise root.refuse(problem)
    names: tuple[str, ...] = ()
    if "joints" in top:
        names = tuple(top["joints"].mapping())
        if not names:
            raise top["joints"].refuse("has no joints")
    try:
        of_arm = load_robot(TEXT.reader(top["robot"])).joint_names
    except (KeyError, RobotFileError):
        of_arm = names
    is_same_arm = sorted(of_arm) == sorted(names)
    scope = _scope(of_arm if is_same_arm else names)
    if "bus" in top:  # ranges of the joints' constants depend on the kind of bus, too
        power_model = top["bus"].mapping().get("kind")
        if power_model is not None and power_model.is_scalar:
            scope.words[FREE_FIT[0]] = power_model.written()
    return MODEL.read(root, scope)


# The file.


def _energy_model(found: Found) -> EnergyModel:
    """The model with the values of the keys that were read."""
    setup, source = found.pop("setup")
    found.pop("friction_laws")  # the joints have them
    return EnergyModel(setup=setup, setup_source=source, **found)


def _parts_of_model(model: EnergyModel) -> Mapping[str, Any]:
    """Values of a model by the keys of the file; more values than keys are allowed."""
    spread = model.sessions
    of_all_joints = replace(spread, friction=spread.friction_of(model.dof))
    return {
        **vars(model),
        "setup": (model.setup, model.setup_source),
        "sessions": of_all_joints,
        "friction_laws": law_records([joint.friction.law for joint in model.joints]),
    }


_METRICS = Plain(
    lambda tree: tuple(ANY_KEYS.reader(item) for item in tree.items()),
    "list of mappings with any keys",
)

MODEL = Section(
    _energy_model,
    (
        Key("kind", Constant(KIND), "what the file is"),
        Key("schema", Schema(SCHEMA), "version of the format"),
        Key("robot", TEXT, "name of the robot description, or path of a robot file"),
        Key("setup", SETUP, "mounting and payload of the recordings"),
        Key(
            "friction_laws",
            LAW_RECORDS,
            "friction laws of your own that the joints have",
            default={},
        ),
        Key("joints", JOINTS, "identified constants by joint"),
        Key(
            "current_delay",
            Measured(ranges.DELAY),
            "of recorded currents behind recorded speeds",
            default=0.0,
            always=True,
        ),
        Key(
            "link_tensors",
            LINK_TENSORS,
            "identified inertia tensors; else those of the robot file are used",
            default=None,
        ),
        Key(
            "controller_constants",
            CONTROLLER_CONSTANTS,
            "torque constants as the controller states them",
            default=None,
        ),
        Key(
            "payload_calibration",
            PAYLOAD_CALIBRATION,
            "corrections from recordings with a known payload",
            default=None,
        ),
        Key("bus", BUS, "power model of the whole arm"),
        Key(
            "sessions",
            SESSIONS,
            "spread between sessions",
            default=SessionSpread(),
            always=True,
        ),
        Key("wall", WALL, "power at the mains, from a power meter", default=None),
        Key("cable", CABLE, "cable that supplies the joints", default=None),
        Key("fit", _METRICS, "metrics of the fitted recordings"),
        Key("validation", _METRICS, "metrics of the recordings held out"),
        Key("provenance", ANY_KEYS, "recordings, version and date that it was made with"),
    ),
    _parts_of_model,
)
"""The format of model files."""
