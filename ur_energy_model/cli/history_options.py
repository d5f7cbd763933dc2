"""Options of questions to the history: which days and arms, in which time zone, and shifts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.plant.database import HistoryDatabase, Period
    from ur_energy_model.plant.store import HistoryStore


def add_period_options(parser: argparse.ArgumentParser) -> None:
    """`--from`, `--to`, `--time-zone` and `--arm`."""
    parser.add_argument(
        "--from",
        dest="first",
        metavar="DATE",
        help="first day, YYYY-MM-DD, or time, YYYY-MM-DDTHH:MM (default: where the store begins)",
    )
    parser.add_argument(
        "--to",
        dest="last",
        metavar="DATE",
        help="last day, included, or time at which it ends (default: where the store ends)",
    )
    parser.add_argument(
        "--time-zone",
        default="UTC",
        metavar="NAME",
        help="in which days, hours and shifts begin, such as Europe/Berlin (default: %(default)s)",
    )
    parser.add_argument(
        "--arm",
        action="append",
        default=[],
        metavar="NAME",
        help="only this arm (may be repeated; default: all)",
    )


def add_shift_option(parser: argparse.ArgumentParser) -> None:
    """`--shifts`."""
    parser.add_argument(
        "--shifts",
        metavar="TIMES",
        help="when the shifts of a day begin, such as 06:00,14:00,22:00",
    )


def period_given(options: argparse.Namespace) -> Period:
    """The period that the options describe.

    Raises:
        InputError: invalid dates or time zone.
    """
    from ur_energy_model.plant.database import Period

    return Period.from_text(options.first, options.last, options.time_zone)


def shifts_given(options: argparse.Namespace) -> tuple[int, ...]:
    """Begins of shifts [min since midnight]; () without the option.

    Raises:
        InputError: no such list.
    """
    from ur_energy_model.plant.database import shift_starts

    return () if options.shifts is None else shift_starts(options.shifts)


def store_given(options: argparse.Namespace) -> HistoryStore:
    """STORE, to be read.

    Raises:
        UrEnergyError: it is no folder, cannot be read, or a package is missing.
    """
    from ur_energy_model.files import user_path
    from ur_energy_model.plant.store import HistoryStore
    from ur_energy_model.plant.store_files import StoreError

    store = HistoryStore(options.store)
    if "://" not in options.store and not user_path(options.store).is_dir():
        raise StoreError(options.store, "is not there", "make a store with ur_energy history add")
    return store


def database_given(options: argparse.Namespace) -> HistoryDatabase:
    """The tables of STORE, as far as the options ask for them.

    Raises:
        UrEnergyError: a store that cannot be read, invalid options, or a missing package.
    """
    from ur_energy_model.plant.database import HistoryDatabase

    return HistoryDatabase(store_given(options), period_given(options), arms=tuple(options.arm))
