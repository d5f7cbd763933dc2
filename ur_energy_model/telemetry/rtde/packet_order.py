# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which packets follow the controller's clock, which begin another one, and which are left out.

A packet is taken if its time follows the time of the last packet taken. All others are
suspect: the controller may have restarted, or its clock may have been set, or the packet
is damaged (zeros, or bytes of something else in a well-formed packet). They wait until
`CONFIRMED` of them follow each other, which makes them the begin of another clock. If the
first clock goes on before that, they are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.telemetry.gaps import NOMINAL_LIMIT
from ur_energy_model.typing import Array, Mask

MAX_TIMESTAMP = 1e9  # decades after a controller's start [s]
CONFIRMED = 3  # packets that follow each other and make another clock
FOLLOWS = 1.0
FOLLOWS_PERIODS = 3.0
"""Longest step between these, in seconds and in sample periods."""
LEAST_JUMP = 0.5
"""Longest step that is a gap, also if the controller's clock is ahead of the host's by it [s]; at
low rates it is the limit of gaps."""


@dataclass
class PacketOrder:
    """Decision on consecutive packets, given by their indices.

    Attributes:
        stretches: packets that are taken, each list with one clock; the first list
            follows the clock before unless `first_jumps`.
        waiting: suspect packets, to be judged again together with the next packets.
        duplicates: number of packets with the time of the packet before.
        skipped: number of packets that are left out for their times.
        first_jumps: whether the first stretch begins another clock.
    """

    stretches: list[list[int]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    duplicates: int = 0
    skipped: int = 0
    first_jumps: bool = False


def is_possible(times: Array) -> Mask:
    """Which times [packets], s, a controller's clock can have.

    The clock starts with the controller, which sends packets some seconds later at the
    earliest: a time of 0 comes from a packet of zeros.
    """
    return np.asarray((times > 0.0) & (times < MAX_TIMESTAMP))


def order_of_packets(
    times: Array, last: float, ahead: Mask, period: float
) -> PacketOrder:
    """Decide which of the next packets are taken.

    Args:
        times: controller times [packets], s; some may be impossible.
        last: time of the last packet taken [s]; NaN before the first one.
        ahead: whether each packet [packets] is from a time that the host's clock has not
            reached.
        period: time between packets [s].
    """
    order = PacketOrder()
    longest_step = max(FOLLOWS, FOLLOWS_PERIODS * period)
    longest_gap = max(LEAST_JUMP, NOMINAL_LIMIT * period)
    possible = is_possible(times)
    taken: list[int] = []
    for i, time in enumerate(times.tolist()):
        suspect = float(times[order.waiting[-1]]) if order.waiting else np.nan
        if not possible[i] or time == suspect:
            order.skipped += 1
        elif time == last:
            order.duplicates += 1
        elif time > last and not (ahead[i] and time - last > longest_gap):
            order.skipped += len(order.waiting)
            order.waiting = []
            taken.append(i)
            last = time
        elif 0.0 < time - suspect <= longest_step:
            order.waiting.append(i)
            if len(order.waiting) == CONFIRMED:
                order.first_jumps |= not (taken or order.stretches)
                if taken:
                    order.stretches.append(taken)
                taken = order.waiting
                order.waiting = []
                last = time
        else:
            order.skipped += len(order.waiting)
            order.waiting = [i]
    if taken:
        order.stretches.append(taken)
    return order
