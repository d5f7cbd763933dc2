"""BagSource: a bag as a telemetry source."""

from dataclasses import replace

import numpy as np
import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import assert_same_samples
from ur_energy_model.telemetry.bag.reader import BagSource
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


@pytest.mark.parametrize("stated", [None, 500.0])
def test_batches_have_their_time_span_whatever_rate_the_bag_states(tmp_path, telemetry, stated):
    """Imported recordings state no rate, and drivers may send at another one than they state."""
    every_tenth = telemetry.select(np.arange(len(telemetry)) % 10 == 0)
    info = replace(every_tenth.info, rate=stated)
    bag = write_bag(tmp_path / "bag", replace(every_tenth, info=info))
    with BagSource(bag, batch_seconds=0.1) as source:
        batches = [source.read(0.0) for _ in range(10)]
    ends = [batch.time[-1] for batch in batches if batch is not None]
    assert np.diff(ends) == pytest.approx(0.1)
