"""Negotiation: connects to a controller and agrees on the data; checks what its packets show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.errors import ControllerError, WrongRobotError
from ur_energy_model.telemetry.rtde import dashboard_client
from ur_energy_model.telemetry.rtde.connection import PORT, RtdeConnection
from ur_energy_model.telemetry.rtde.dashboard_client import (
    SIMULATED_SERIAL_PREFIX,
    ControllerIdentity,
    description_name,
    identify_controller,
)
from ur_energy_model.telemetry.rtde.recipe import Recipe, Records, Subscription, in_type_order
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Array

SILENCE = 4.0
RATE_TOLERANCE = 0.2
"""Relative deviation from the negotiated rate from which the timestamps count instead."""


@dataclass(frozen=True)
class LinkOptions:
    """How to reach a controller, and when its connection counts as lost.

    Attributes:
        port: of the RTDE server.
        dashboard_port: of the dashboard server.
        silence: time without a packet after which the connection is lost [s].
    """

    port: int = PORT
    dashboard_port: int = dashboard_client.PORT
    silence: float = SILENCE


class Negotiation:
    """Makes connections to one controller that all send the same fields at the same rate.

    Args:
        host: address of the controller.
        robot: description name of the expected model, None for any.
        fields: RTDE names to ask for.
        rate: to ask for [Hz]; None for every cycle of the controller.
        link: ports of the controller.

    Attributes:
        recipe: of the data packages of the last connection.
        missing_fields: asked for, and not offered by the controller.
        software_change: how the controller's software differs from that on the first connection.
        same_serial: whether the last connection is to the serial number of the first one.
        identity: what distinguishes the controller of the last connection.
    """

    def __init__(
        self,
        host: str,
        robot: str | None,
        fields: Sequence[str],
        rate: float | None,
        link: LinkOptions,
    ) -> None:
        self.recipe = Recipe((), ())
        self.missing_fields: tuple[str, ...] = ()
        self.software_change: str | None = None
        self.same_serial = False
        self.identity = "not known: not connected yet"
        self._host, self._robot, self._rate, self._link = host, robot, rate, link
        self._fields = in_type_order({"timestamp", *fields})
        self._first: Subscription | None = None
        self._identity = ControllerIdentity()

    def connect(self, batch_seconds: float) -> RtdeConnection:
        """Connect, check the robot's identity, agree on fields and rate, start the data.

        Args:
            batch_seconds: time span of the packets that one read waits for.

        Raises:
            ControllerError: one of these failed.
            WrongRobotError: it is another robot than expected, or than on the first connection.
        """
        connection = RtdeConnection(self._host, self._link.port)
        try:
            identity = identify_controller(self._host, self._link.dashboard_port)
            identity.check(self._host, self._robot, self._identity)
            self.identity = identity.text
            self.same_serial = None is not identity.serial == self._identity.serial
            first = self._first
            if first is None:
                subscription = connection.subscribe(self._fields, self._rate)
                self._first, self._identity = subscription, identity
                self.missing_fields = subscription.missing
            else:
                subscription = connection.subscribe(first.recipe.names, self._rate)
                self._check_unchanged(first, subscription)
            self.recipe = subscription.recipe
            connection.start(max(1, round(batch_seconds * subscription.rate)))
        except BaseException:
            connection.close()
            raise
        return connection

    def info(self) -> RecordingInfo:
        """Robot (the one expected, else the controller's own) and rate of the first connection."""
        info = RecordingInfo(source=self._host, robot=self._robot)
        first, serial, model = self._first, self._identity.serial, self._identity.model
        if first is None:
            return info
        named = None if model is None else description_name(model, first.version)
        return RecordingInfo(
            source=self._host,
            robot=self._robot or named,
            serial=serial,
            program=self._identity.program,
            controller_version=first.version_text,
            rate=first.rate,
            simulated=serial is not None and serial.startswith(SIMULATED_SERIAL_PREFIX),
        )

    def _check_unchanged(self, first: Subscription, now: Subscription) -> None:
        """Refuse to continue a recording with other fields, another rate or another controller.

        Raises:
            ControllerError: fields or rate differ.
            WrongRobotError: the software differs, and no serial number shows that the arm does not.
        """
        problem = None
        if now.missing:
            problem = f"no longer offers {', '.join(now.missing)}"
        elif now.rate != first.rate:
            problem = f"now sends at {now.rate} Hz instead of {first.rate}"
        elif now.recipe.kinds != first.recipe.kinds:
            problem = "now sends fields of other types"
        if problem is not None:
            raise ControllerError(self._host, problem, "start a new recording")
        if now.version == first.version:
            return
        change = f"from {first.version_text} to {now.version_text}"
        if not self.same_serial:
            raise WrongRobotError(
                self._host,
                f"its software changed {change}, and no serial number shows that it is the same",
                "start a new recording",
            )
        self.software_change = f"software changed {change}"


def with_payload(info: RecordingInfo, records: Records) -> RecordingInfo:
    """Recording info with the payload that the first of the records [n >= 1] carries."""
    names = records.dtype.names or ()
    if "payload" in names:
        info = replace(info, payload_mass=float(records["payload"][0]))
    if "payload_cog" in names:
        x, y, z = records["payload_cog"][0].tolist()
        info = replace(info, payload_center_of_mass=(x, y, z))
    return info


def observed_rate(times: Array, negotiated: float | None) -> float | None:
    """Rate [Hz] of timestamps [n], s, where it clearly differs from the negotiated one.

    Returns:
        None where they agree, where the steps are irregular, or where either is unknown.
    """
    steps = np.diff(times)
    steps = steps[steps > 0]
    if negotiated is None or steps.size == 0:
        return None
    step = float(np.median(steps))
    agrees = abs(step * negotiated - 1.0) <= RATE_TOLERANCE
    irregular = np.ptp(steps) >= RATE_TOLERANCE * step
    return None if agrees or irregular else 1.0 / step
