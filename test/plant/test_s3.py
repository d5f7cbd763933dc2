"""A store on an S3 server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from test.plant.made_up_bags import HOUR, NOON, Session, add, estimated
from ur_energy_model.plant import places as s3_place
from ur_energy_model.plant.places import S3Place, StoreError
from ur_energy_model.plant.store import HistoryStore

BUCKET = "energy-of-arms"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a store on a server of this machine."""
    moto = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"]).create_bucket(Bucket=BUCKET)
    yield f"s3://{BUCKET}/plant"
    server.stop()


def test_bags_are_added_once(server, tmp_path) -> None:
    bags = [Session(at=NOON + k * HOUR).bag(tmp_path / f"bag_{k}") for k in range(2)]
    truth = sum(estimated(bag).supply for bag in bags)
    assert add(server, *bags).sum("energy") == pytest.approx(truth)
    again = add(server, *bags)
    assert (len(again.records), len(again.skipped)) == (0, 2)
    store = HistoryStore(server)
    holdings = store.holdings()
    table = store.rows("seconds", holdings).to_table(columns=["total_energy", "arm"])
    assert holdings.warnings == ()
    assert sum(table.column("total_energy").to_pylist()) == pytest.approx(truth)
    assert {record.bag for record in store.sources()} == {str(bag) for bag in bags}
    over = Session(at=NOON + 10**9, moving=1.0, still=1.0).bag(tmp_path / "over")
    assert add(server, over).seconds == 0


def test_one_at_a_time(server) -> None:
    inside, most = [], []

    def work() -> None:
        place = S3Place(f"{BUCKET}/plant")
        for _ in range(3):
            with place.exclusive() as in_turn:
                inside.append(threading.get_ident())
                most.append(len(inside))
                time.sleep(0.01)
                assert in_turn()
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1] * 9
    assert S3Place(f"{BUCKET}/plant").files(s3_place.TICKETS) == {}


def test_the_ticket_of_a_killed_process_expires(server, monkeypatch) -> None:
    place = S3Place(f"{BUCKET}/plant")
    place.write(f"{s3_place.TICKETS}/abandoned", b"turn")
    monkeypatch.setattr(s3_place, "TURN", 0.5)
    with place.exclusive():
        assert f"{s3_place.TICKETS}/abandoned" not in place.files(s3_place.TICKETS)


def test_a_server_that_is_not_there_is_named(server, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StoreError, match=r"s3://nowhere/plant: cannot be read"):
        HistoryStore("s3://nowhere/plant").has("x")


def test_a_bucket_that_is_not_there_is_named(server, tmp_path) -> None:
    bag = Session().bag(tmp_path / "bag")
    with pytest.raises(StoreError, match="s3://no-such-bucket/plant"):
        add("s3://no-such-bucket/plant", bag)
