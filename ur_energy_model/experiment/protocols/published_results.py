"""Published figures by protocol: config/published_results.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ur_energy_model.errors import InputError
from ur_energy_model.reading import ranges
from ur_energy_model.reading.readers import Quantity, list_of, mapping_of, text, unique_names
from ur_energy_model.reading.record import Reader, Record
from ur_energy_model.reading.yaml_tree import YamlTree
from ur_energy_model.resources import config_file

SCHEMA = 1
_NUMBER = Quantity("1", 0, 1e6)
_ERRORS = mapping_of({
    "measured": text,
    "dynamics_train": list_of(_NUMBER, 2),
    "dynamics_test": list_of(_NUMBER, 2),
    "train": list_of(_NUMBER, 3),
    "test": list_of(_NUMBER, 3),
})  # fmt: skip
_SIX_TEMPERATURES = list_of(ranges.TEMPERATURE, 6)

_SIGNED = Quantity("1", -1e12, 1e12)
_GEAR = mapping_of({
    "stiffness": list_of(_SIGNED, 3),
    "knees": list_of(_NUMBER, 2),
    "rotor_inertia": _NUMBER,
    "rotor_damping": _NUMBER,
    "rotor_coulomb": list_of(_NUMBER, 2),
    "flex_damping": _NUMBER,
    "flex_coulomb": list_of(_NUMBER, 2),
})  # fmt: skip

_PROTOCOLS: dict[str, Reader[dict[str, Any]]] = {
    "s0": mapping_of({
        "source": text,
        "torque_peak": text,
        "torque_r2": text,
        "current_rms_large_joints": text,
        "current_rms_wrists": text,
        "current_r2": text,
        "motor_inertia_large_joints": ranges.DRIVE_INERTIA,
        "motor_inertia_wrists": ranges.DRIVE_INERTIA,
        "torque_constant_large_joints": ranges.TORQUE_CONSTANT,
        "torque_constant_wrists": ranges.TORQUE_CONSTANT,
        "reducer_inertia": list_of(ranges.DRIVE_INERTIA, 6),
        "gear_ratio": _NUMBER,
        "max_speed": ranges.SPEED,
        "max_acceleration": _NUMBER,
        "points": YamlTree.integer,
        "tool_speed_limit": _NUMBER,
        "motor_constants": list_of(_NUMBER, 6),
        "kt_over_kb": _NUMBER,
    }),
    "s1": mapping_of({
        "source": text,
        "condition_number": YamlTree.integer,
        "base_parameters": YamlTree.integer,
        "alone": YamlTree.integer,
        "combined": YamlTree.integer,
        "lost": YamlTree.integer,
        "gear_ratio": _NUMBER,
        "normalised_error": _NUMBER,
        "torque_constants": list_of(ranges.TORQUE_CONSTANT, 6),
        "temperatures_cold": _SIX_TEMPERATURES,
        "temperatures_warm": _SIX_TEMPERATURES,
        "viscous_friction_change": text,
    }),
    "s2": mapping_of({
        "source": text,
        "data": text,
        "samples": YamlTree.integer,
        "test_seconds": _NUMBER,
        "ur3e": _ERRORS,
        "ur10e": _ERRORS,
        "gen3": _ERRORS,
        "fr3": _ERRORS,
    }),
    "s3": mapping_of({
        "source": text,
        "d": list_of(_SIGNED, 6),
        "a": list_of(_SIGNED, 6),
        "alpha": list_of(_SIGNED, 6),
        "gear_ratio": _NUMBER,
        "hfus_20": _GEAR,
        "hfus_14": _GEAR,
        "numerator": _SIGNED,
        "denominator": list_of(_SIGNED, 5),
    }),
    "s4": mapping_of({
        "source": text,
        "base_parameters": YamlTree.integer,
        "harmonics": YamlTree.integer,
        "base_frequency": _NUMBER,
        "population": YamlTree.integer,
        **{
            name: list_of(_SIGNED, 6)
            for name in ("a", "d", "max_velocity", "max_acceleration", "coulomb", "viscous")
        },
        "base_names": unique_names,
        "theoretical": list_of(_SIGNED, 36),
        "simulated": list_of(_SIGNED, 36),
        "torque_coefficients": list_of(_NUMBER, 6),
        "gear_ratios": list_of(_NUMBER, 6),
        "load_differences": list_of(_NUMBER, 8),
        "load_mass": ranges.MASS,
        "load_arm": ranges.LENGTH,
        "payload_torque_applied": ranges.TORQUE,
        "payload_torque_estimated": ranges.TORQUE,
    }),
}  # fmt: skip


def published_results(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """Published figures by protocol.

    Args:
        path: of the file; None for the one in the package.

    Raises:
        InputError: the file is damaged; names its line.
    """
    path = config_file("published_results.yaml") if path is None else path
    root = YamlTree.read(path, InputError, "correct the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        keys.expect(_PROTOCOLS)
        return {name: reader(keys[name]) for name, reader in _PROTOCOLS.items()}
