"""BagSource: a bag as a telemetry source."""

import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.samples import concatenate


def test_a_source_gives_the_bag_and_then_ends(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    parts = []
    with BagSource(bag, batch_seconds=0.6) as source:
        assert source.info.robot == "ur5e"
        assert set(source.fields) == set(telemetry.columns)
        while len(parts) < 4:
            part = source.read(0.1)
            assert part is not None
            parts.append(part)
        with pytest.raises(EOFError):
            source.read(0.1)
    assert_same_samples(concatenate(parts), telemetry)


def test_a_real_time_source_waits(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    with BagSource(bag, batch_seconds=1.0, real_time=True) as source:
        assert source.read(0.01) is None
        batch = source.read(5.0)
        assert batch is not None
        assert len(batch) == 500
