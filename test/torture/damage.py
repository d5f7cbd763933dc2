"""Damage to the bytes of a file: flips, cuts, swaps, duplicates."""

from __future__ import annotations

from random import Random

KINDS = ("flip", "cut", "swap", "duplicate", "erase", "overwrite")


def damaged(data: bytes, random: Random, kind: str | None = None) -> bytes:
    """The data with damage that depends on the random numbers alone; never unchanged.

    Args:
        data: at least two bytes.
        random: random numbers.
        kind: one of KINDS; any of them if None.
    """
    for _ in range(100):
        changed = _damage(data, random, kind or random.choice(KINDS))
        if changed != data:
            return changed
    return data[:-1]  # such as a swap in equal bytes


def _damage(data: bytes, random: Random, kind: str) -> bytes:
    size = len(data)
    first, second = sorted(random.sample(range(size + 1), 2))
    if random.random() < 0.7:  # most damage is small
        second = min(second, first + random.choice((1, 8, 64, 4096)))
    match kind:
        case "flip":
            body = bytearray(data)
            for _ in range(random.choice((1, 1, 5, 50))):
                body[random.randrange(size)] ^= 1 << random.randrange(8)
            return bytes(body)
        case "cut":
            return data[:first]
        case "swap":
            middle = random.randint(first, second)
            return data[:first] + data[middle:second] + data[first:middle] + data[second:]
        case "duplicate":
            return data[:second] + data[first:second] + data[second:]
        case "erase":
            return data[:first] + data[second:]
        case "overwrite":
            return data[:first] + random.randbytes(second - first) + data[second:]
    raise ValueError(f"{kind} is not a kind of damage")
