"""Proxies between a simulated controller and `record`, the logger and the estimator."""

from __future__ import annotations

import time

from test.running import fresh_host
from test.torture.accounting import Recorded, check_counts, check_duration, check_received
from test.torture.case import Case, Family, Verdict
from test.torture.nodes import check_recording, end_node, start_node, stop_recording
from test.torture.proxy import Proxy, draw_mischief
from test.torture.recordings import readable_times, start_recording, summary
from test.torture.ros_client import no_ros
from test.torture.surroundings import PATIENCE

DURATION = 4.0
NODE_SECONDS = 5.0


def run(case: Case) -> Verdict:
    """Two of three cases record; the third runs a node."""
    mischief = draw_mischief(case.random)
    other = case.around.other_host if mischief.other else None
    with Proxy(case.around.host, fresh_host(), mischief, case.random, other=other) as proxy:
        if case.number % 3 < 2:
            return _record(case, proxy, str(mischief))
        return _node(case, proxy, str(mischief))


def _record(case: Case, proxy: Proxy, mischief: str) -> Verdict:
    verdict = Verdict(f"record: {mischief}")
    recording = start_recording(case.around, proxy.host, case.folder, "--duration", str(DURATION))
    code = recording.finish(PATIENCE)
    verdict.seconds = time.monotonic() - recording.began
    told = summary(recording.output)
    if told is None:  # refused before it began, such as lies during the negotiation
        recording.judge(verdict, (1, 3))
        return verdict
    recording.judge(verdict, (0, 1, 3))
    recorded = Recorded.of(readable_times(case.folder / "bag"), told)
    check_counts(verdict, recorded, honest=not proxy.lied)
    if not proxy.lied:
        check_received(verdict, recorded, proxy.count.times)
        check_duration(verdict, recorded, DURATION, code, proxy.count.times)
    return verdict


def _node(case: Case, proxy: Proxy, mischief: str) -> Verdict:
    name = ("logger", "estimator", "cell")[case.number // 3 % 3]
    verdict = Verdict(f"{name}: {mischief}", skipped=no_ros())
    if verdict.skipped:
        return verdict
    environment = case.around.ros_environment()
    node = start_node(case, name, environment, robot_ip=proxy.host)
    node.wait(NODE_SECONDS)
    verdict.expect(node.running, "the node ended by itself")
    if name != "estimator":
        recorded = check_recording(
            case, verdict, stop_recording(environment), honest=not proxy.lied
        )
        began = (case.folder / "bags").exists() or not proxy.count.times
        verdict.expect(began, "samples arrive, but nothing is recorded")
        if recorded is not None and not proxy.lied:
            check_received(verdict, recorded, proxy.count.times)
    end_node(case, node, verdict)
    return verdict


FAMILY = Family("network", 3.0, run, at_once=2)
