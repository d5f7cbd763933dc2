"""A peer that speaks RTDE."""

import pytest

from test.telemetry.rtde.rtde_peer import RtdePeer


@pytest.fixture
def peer():
    with RtdePeer() as peer_:
        yield peer_
