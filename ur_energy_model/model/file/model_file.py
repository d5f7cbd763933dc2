"""Model files: an EnergyModel as YAML that people can read and edit.

Each quantity has value, unit, standard deviation and source. Reading is strict: unknown keys,
missing joints, NaN, wrong units and impossible values are refused with the line to correct. To add
an optional key, read it in `load_model`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from ur_energy_model.errors import ModelFileError, RobotFileError
from ur_energy_model.files import write_text
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import KIND, SCHEMA, document
from ur_energy_model.model.file.estimates import with_unit
from ur_energy_model.model.file.joint_reader import read_joint
from ur_energy_model.model.file.section_readers import (
    link_tensors,
    payload_calibration,
    read_bus,
    read_setup,
    sessions,
)
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import SessionSpread
from ur_energy_model.reading import ranges
from ur_energy_model.reading.readers import text
from ur_energy_model.reading.record import Record
from ur_energy_model.reading.yaml_tree import Origin, YamlTree

_REMEDY = "correct the line or identify again with ur_energy identify"
_HEADER = """\
# Electro-mechanical model of a robot arm, made by ur_energy identify.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""


def model_text(model: EnergyModel, *, header: str = _HEADER) -> str:
    """Content of the model file.

    Args:
        model: of the file.
        header: comment lines at its beginning.
    """
    return header + yaml.safe_dump(
        document(model), sort_keys=False, default_flow_style=None, width=100, allow_unicode=True
    )


def save_model(model: EnergyModel, path: str | Path, *, header: str = _HEADER) -> None:
    """Write a model file atomically, after checking that it can be read again.

    Args:
        model: to write.
        path: of the file.
        header: comment lines at its beginning.

    Raises:
        ModelFileError: the path cannot be written, or the model has impossible values.
    """
    content = model_text(model, header=header)
    with TemporaryDirectory() as folder:
        trial = Path(folder) / "model.yaml"
        trial.write_text(content, encoding="utf-8")
        try:
            load_model(trial)
        except ModelFileError as error:
            raise ModelFileError(
                path,
                f"would not be a valid model file ({error.problem})",
                "identify from a recording with more motion of every joint",
                field=error.field,
            ) from None
    write_text(path, content, ModelFileError)


def load_model(path: str | Path) -> EnergyModel:
    """Read a model file.

    Raises:
        ModelFileError: names the line and key to correct.
    """
    return _model(YamlTree.read(path, ModelFileError, _REMEDY))


def model_from_document(content: dict[str, Any], source: str) -> EnergyModel:
    """The model that `document` turned into plain data.

    Args:
        content: plain data.
        source: of the data, for error messages.

    Raises:
        ModelFileError: names the key at fault.
    """
    return _model(YamlTree.from_content(content, Origin(Path(source), ModelFileError, _REMEDY)))


def _model(root: YamlTree) -> EnergyModel:
    kind = root.mapping().get("kind")
    if kind is None or kind.plain() != KIND:
        raise root.refuse("is not a model file of this package (no 'kind: ur_energy_model')")
    with Record(root) as keys:
        keys["kind"]
        keys.schema(SCHEMA)
        robot = text(keys["robot"])
        setup, source = read_setup(keys["setup"])
        joints = keys["joints"].mapping()
        if not joints:
            raise keys["joints"].refuse("has no joints")
        names = _in_order(tuple(joints), robot)
        bus = read_bus(keys["bus"], names)
        free = bus.kind == "ecbot"
        return EnergyModel(
            robot=robot,
            setup=setup,
            setup_source=source,
            joints=tuple(read_joint(name, joints[name], free=free) for name in names),
            bus=bus,
            fit=tuple(_metrics(node) for node in keys["fit"].items()),
            validation=tuple(_metrics(node) for node in keys["validation"].items()),
            provenance=_metrics(keys["provenance"]),
            current_delay=keys.read("current_delay", with_unit(ranges.DELAY), 0.0),
            link_tensors=keys.read("link_tensors", link_tensors(names), None),
            sessions=keys.read("sessions", sessions(names), SessionSpread()),
            payload_calibration=keys.read("payload_calibration", payload_calibration(names), None),
        )


def _in_order(names: tuple[str, ...], robot: str) -> tuple[str, ...]:
    """Names of joints in the order of the arm, whatever the order in the file, as of sorted keys.

    That order stays where the arm is not known, or has other joints.
    """
    try:
        known = load_robot(robot).joint_names
    except RobotFileError:
        return names
    return tuple(known) if sorted(known) == sorted(names) else names


def _metrics(node: YamlTree) -> dict[str, object]:
    """A mapping with any keys."""
    return {name: child.plain() for name, child in node.mapping().items()}
