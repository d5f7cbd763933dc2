"""Options of the live estimator from the parameters of its node, and checks of these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ur_energy_model.energy.live.options import LiveOptions
from ur_energy_model.energy.power_options import PowerOptions
from ur_energy_model.errors import InputError


def check_parameters(value: Callable[[str], Any]) -> None:
    """Refuse parameters without which the estimator cannot work.

    Args:
        value: returns the value of a parameter by its name.

    Raises:
        InputError: model_file, or bag where the source is a bag, is empty.
    """
    if not value("model_file"):
        remedy = "give the path of a model.yaml made by ur_energy identify"
        raise InputError("estimator", "is not set", remedy, field="model_file")
    if value("source") == "bag" and not value("bag").strip():
        remedy = "give the path of the bag to play, or another source"
        raise InputError("estimator", "is not set, but source is bag", remedy, field="bag")


def live_options(value: Callable[[str], Any]) -> LiveOptions:
    """Options of the live estimator.

    Args:
        value: returns the value of a parameter by its name.
    """
    return LiveOptions(
        power=PowerOptions(
            method=value("method"),
            track_standby=value("track_standby"),
            standby_limit=value("standby_limit"),
            idle_power=value("idle_power") or None,
            gap_limit=value("gap_limit"),
        ),
        drift_alarm=value("drift_alarm"),
        drift_time=value("drift_time"),
        # A driver's joint_states carry neither program state nor outputs.
        cycle_trigger="none" if value("source") == "joint_states" else value("cycle_trigger"),
        cycle_output=value("cycle_output"),
        state_file=Path(value("state_file")) if value("state_file") else None,
        cycle_log=Path(value("cycle_log")) if value("cycle_log") else None,
    )
