"""The fingerprint of the manufacturer's offline simulator."""

import numpy as np
import pytest

from ur_energy_model.telemetry.plausibility import OfflineSimulatorCheck
from ur_energy_model.telemetry.samples import Telemetry


def made(*, factor=1.02, voltage=48.0, noise=0.0, voltage_noise=0.0, count=400):
    random = np.random.default_rng(1)
    target = random.normal(size=(count, 6))
    return Telemetry(
        np.arange(count) * 0.01,
        {
            "target_current": target,
            "actual_current": factor * target + noise * random.normal(size=(count, 6)),
            "actual_robot_voltage": voltage + voltage_noise * random.normal(size=count),
        },
    )


def found(telemetry, parts=1):
    check = OfflineSimulatorCheck()
    size = -(-len(telemetry) // parts)
    for start in range(0, len(telemetry), size):
        check.update(telemetry.cut(slice(start, start + size)))
    return check.found


@pytest.mark.parametrize("parts", [1, 7])
def test_proportional_currents_at_exactly_48_volts_are_found(parts):
    assert found(made(), parts)


@pytest.mark.parametrize("real", [{"noise": 0.05}, {"voltage_noise": 0.05}, {"voltage": 47.0}])
def test_one_sign_alone_is_no_proof(real):
    assert not found(made(**real))


def test_without_voltage_currents_alone_tell():
    columns = dict(made().columns)
    del columns["actual_robot_voltage"]
    assert found(Telemetry(made().time, columns))


def test_nothing_is_found_in_nothing():
    assert not OfflineSimulatorCheck().found
    assert not found(Telemetry(np.arange(5.0), {"actual_q": np.zeros((5, 6))}))
