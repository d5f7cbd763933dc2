"""Charts of the parameters for every friction law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import LAWS, Friction
from ur_energy_model.report.model_charts import temperature_law_chart

WARM_LAWS = sorted(name for name, law in LAWS.items() if law.uses_temperature)


def with_law(model: EnergyModel, name: str) -> EnergyModel:
    """The model with a law on its first joint whose every parameter is 0.01."""
    law = LAWS[name]
    friction = Friction(
        law,
        dict.fromkeys(law.parameters, 0.01),
        law.default_shape,
        temperature_model=(0.402, -0.09083, 0.9553, -0.01831),
        temperature_range=(20.0, 40.0),
    )
    return replace(model, joints=(replace(model.joints[0], friction=friction), *model.joints[1:]))


@pytest.mark.parametrize("name", WARM_LAWS)
def test_friction_against_temperature_for_every_law(model: EnergyModel, name: str) -> None:
    chart = temperature_law_chart(with_law(model, name))
    assert chart is not None
    (line,) = chart.panels[0].lines
    assert line.x[[0, -1]] == pytest.approx([20.0, 40.0])
    assert np.isfinite(line.y).all()
    assert np.ptp(line.y) > 0.0


def test_no_chart_if_no_joint_depends_on_temperature(model: EnergyModel) -> None:
    joints = tuple(
        replace(joint, friction=Friction(LAWS["coulomb_viscous"], {"coulomb": 1.0, "viscous": 0.1}))
        for joint in model.joints
    )
    assert temperature_law_chart(replace(model, joints=joints)) is None
