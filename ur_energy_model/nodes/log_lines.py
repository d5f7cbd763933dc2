"""Lines for the operator into the log of ROS: terminal, log file and /rosout."""

from __future__ import annotations

from collections.abc import Iterable

from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import get_logger

from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.terminal_text import printable


def log_lines(logger: RcutilsLogger, lines: Iterable[Line], *, running: bool = True) -> None:
    """Log lines with their severities.

    Args:
        logger: of the node.
        lines: to log.
        running: False once ROS is shut down: /rosout is gone then, and a logger of another name
            does not try to publish there.
    """
    if not running:
        logger = get_logger(f"{logger.name}.end")
    for line in lines:
        text = printable(line.text)
        if line.level is Level.INFO:  # rclpy demands one severity of each place of a call
            logger.info(text)
        elif line.level is Level.WARN:
            logger.warning(text)
        else:
            logger.error(text)
