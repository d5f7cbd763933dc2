"""Options of the live estimator from the parameters of its node, and checks of these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ur_energy_model.energy.live.options import LiveOptions
from ur_energy_model.energy.power_options import PowerOptions
from ur_energy_model.errors import InputError
from ur_energy_model.files import user_path
from ur_energy_model.nodes.watched_model import WatchedModel


def check_parameters(value: Callable[[str], Any]) -> None:
    """Refuse parameters without which the estimator cannot work.

    Args:
        value: returns the value of a parameter by its name.

    Raises:
        InputError: bag is empty where the source is a bag, model_file where a learned model is to
            be kept in it, or nothing names the arm.
    """
    if value("source") == "bag" and not value("bag").strip():
        remedy = "give the path of the bag to play, or another source"
        raise InputError("estimator", "is not set, but source is bag", remedy, field="bag")
    if value("model_file"):
        return
    if value("learn") == "keep":
        remedy = "give the path where the learned model is to be kept, or learn:=on"
        raise InputError("estimator", "is not set, but learn is keep", remedy, field="model_file")
    if value("source") == "joint_states" and not value("robot_model"):
        problem = "is not set, and neither is model_file: joint_states does not tell the arm"
        raise InputError("estimator", problem, "name the arm, such as ur5e", field="robot_model")


def first_model(value: Callable[[str], Any], robot: str) -> WatchedModel | None:
    """The model that the estimator begins with; None if the arm must be known first.

    Args:
        value: returns the value of a parameter by its name.
        robot: name of the arm or path of its robot file; empty if it is not known.

    Raises:
        ModelFileError: the file cannot be used, or the robot has no generic model.
        WrongRobotError: the model is of another arm.
        RobotFileError: no such robot.
    """
    path = user_path(value("model_file")) if value("model_file") else None
    keep = value("learn") == "keep"
    if not robot and (path is None or (keep and not path.exists())):
        return None
    return WatchedModel(path, robot, value("reload_period"), to_be_written=keep)


def live_options(value: Callable[[str], Any]) -> LiveOptions:
    """Options of the live estimator.

    Args:
        value: returns the value of a parameter by its name.
    """
    by_motion = value("source") == "joint_states" and value("cycle_trigger") != "none"
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
        # A driver's joint_states carry neither program state nor outputs, but the motion.
        cycle_trigger="auto" if by_motion else value("cycle_trigger"),
        cycle_output=value("cycle_output"),
        state_file=Path(value("state_file")) if value("state_file") else None,
        cycle_log=Path(value("cycle_log")) if value("cycle_log") else None,
        same_arm=value("same_arm"),
    )
