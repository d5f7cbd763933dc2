# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The mains side of a simulated robot: control box, 48 V supply, and a power meter in front.

The meter is served as real ones are: as a Shelly device, over Modbus TCP, and to an MQTT
broker.
"""

from __future__ import annotations

import asyncio
import json
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.addresses import split_url
from ur_energy_model.errors import (
    ControllerError,
    InputError,
    optional_import,
    problem_words,
)
from ur_energy_model.robot_modes import BACKDRIVE, POWER_OFF
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.telemetry.fields import METER_FIELDS
from ur_energy_model.telemetry.meter_protocols import MODBUS_PORT, load_profile
from ur_energy_model.telemetry.meters import SILENT_PERIODS, SILENT_SECONDS
from ur_energy_model.typing import Array, Mask

_STREAM = 20261128
_LAST_MODES = (POWER_OFF, BACKDRIVE - 1)
"""Last robot modes of an arm that is off, and of an arm that is on with closed brakes."""
T = TypeVar("T", float, Array)
COUNTER_STEP = 3.6  # resolution of the meter's counter [J]: 1 mWh


@dataclass(frozen=True)
class SimulatedWall:
    """True power at the mains, and the meter that measures it.

    wall = box(mode) + proportional p + quadratic p^2, with p the power at the 48 V
    supply. The part of the supply's losses that does not depend on p belongs to the box.

    Attributes:
        box: arm off, on with brakes closed, brakes released [W].
        proportional: losses in proportion to p, included in p itself: above 1.
        quadratic: losses in proportion to p^2 [1/W].
        period: time between updates of the meter [s].
        averaging: time over which a reading is averaged [s].
        delay: delay from the end of the averaging time to the reading [s].
        resolution: smallest step between two readings [W].
        noise: one standard deviation of a reading [W].
        missed: share of the readings that never arrive.
        silences_per_hour: number of times without any reading in an hour.
        silence_seconds: shortest and longest silence [s].
        seed: seed of noise and dropouts.
    """

    box: tuple[float, float, float]
    proportional: float = 1.1
    quadratic: float = 1.5e-4
    period: float = 1.0
    averaging: float = 1.0
    delay: float = 1.0
    resolution: float = 1.0
    noise: float = 0.0
    missed: float = 0.0
    silences_per_hour: float = 0.0
    silence_seconds: tuple[float, float] = (20.0, 60.0)
    seed: int = 0

    def power(self, robot_mode: ArrayLike, bus_power: ArrayLike) -> Array:
        """Power at the mains [n], W.

        Args:
            robot_mode: robot modes as in RTDE [n].
            bus_power: power at the 48 V supply [n], W.
        """
        on = np.searchsorted(_LAST_MODES, robot_mode)
        bus = np.asarray(bus_power, dtype=float)
        box: Array = np.asarray(self.box)[on]
        return np.asarray(box + self._supplied(bus))

    def power_now(self, robot_mode: int, bus_power: float) -> float:
        """Power at the mains at one instant [W], the same as `power` for arrays.

        Args:
            robot_mode: robot mode as in RTDE.
            bus_power: power at the 48 V supply [W].
        """
        return self.box[bisect_left(_LAST_MODES, robot_mode)] + self._supplied(bus_power)

    def _supplied(self, bus: T) -> T:
        """What the 48 V supply takes from the mains for a power at its output [W]."""
        return (self.proportional + self.quadratic * bus) * bus

    def readings(self, time: Array, power: Array) -> dict[str, Array]:
        """The meter's columns beside samples of the true power.

        Args:
            time: ascending [n], s; before the first sample, the power is taken to be the
                first.
            power: power at the mains [n], W.

        Returns:
            wall_power, wall_energy and wall_reading [n], as `MeteredSource` adds them.
        """
        steps = 0.5 * np.diff(time) * (power[1:] + power[:-1])
        begin = time[0] - self.averaging - self.delay - self.period
        known = np.append(begin, time)
        energy = np.append((begin - time[0]) * power[0], np.append(0.0, np.cumsum(steps)))
        random = np.random.default_rng([self.seed, _STREAM])
        first = time[0] - self.delay - self.period * random.random()
        ends = np.arange(first, time[-1], self.period)
        ends = ends[self.arrivals(ends, random)[0]]
        watts, joules = self.measured(ends, known, energy, random)
        # Before the first reading the meter shows NaN, as if that had arrived long before.
        arrival = np.append(-np.inf, ends + self.delay)
        shown = np.array([np.append(np.nan, watts), np.append(np.nan, joules)])
        number = np.searchsorted(arrival, time, "right") - 1
        columns = shown[:, number]
        held = max(SILENT_PERIODS * self.period, SILENT_SECONDS)
        columns[:, time - arrival[number] > held] = np.nan
        return dict(zip(METER_FIELDS, (*columns, number.astype(float)), strict=True))

    def measured(
        self, ends: Array, time: Array, energy: Array, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """Readings of a meter without dropouts.

        Args:
            ends: ends of the averaging times [m], s.
            time: times of the energies [n], s.
            energy: energy at the mains since the start [n], J.
            random: random generator of the noise.

        Returns:
            Power [m], W, and counter [m], J.
        """
        joules = np.interp(ends, time, energy)
        before = np.interp(ends - self.averaging, time, energy)
        noise = self.noise * random.standard_normal(len(ends))
        watts = (joules - before) / self.averaging + noise
        if self.resolution:
            watts = self.resolution * np.round(watts / self.resolution)
        return watts, COUNTER_STEP * np.floor(joules / COUNTER_STEP)

    def arrivals(
        self, ends: Array, random: np.random.Generator, silent_until: float = -np.inf
    ) -> tuple[Mask, float]:
        """Draw which readings arrive.

        Args:
            ends: ends of the averaging times [m], s.
            random: random generator of dropouts and silences.
            silent_until: end of a silence that has begun [s].

        Returns:
            Mask of the readings that arrive [m], and end of the silence after them [s].
        """
        begun = random.random(len(ends)) < self.silences_per_hour * self.period / 3600.0
        lengths = random.uniform(*self.silence_seconds, len(ends))
        seconds = np.where(begun, lengths, -np.inf)
        until = np.maximum.accumulate(np.append(silent_until, ends + seconds))
        missed = random.random(len(ends)) < self.missed
        return ~missed & (ends > until[1:]), float(until[-1])


def draw_wall(seed: int) -> SimulatedWall:
    """The wall of an arm, with a meter of 1 W and 1 s that now and then drops out.

    Args:
        seed: number of the arm among the arms of its type.
    """
    table = constants()["wall"]
    random = np.random.default_rng([seed, _STREAM, 1])
    off, supply, safety, proportional, quadratic, delay = (
        float(random.uniform(*limits)) for limits in table["drawn"].values()
    )
    meter = table["meter"]
    shortest, longest = meter["silence_seconds"].tolist()
    return SimulatedWall(
        box=(off, off + supply, off + supply + safety),
        proportional=proportional,
        quadratic=quadratic,
        delay=delay,
        noise=meter["noise"],
        missed=meter["missed"],
        silences_per_hour=meter["silences_per_hour"],
        silence_seconds=(shortest, longest),
        seed=seed,
    )


# The meter, live, and its interfaces.

_KEPT = 0.02  # period in which the energy is kept for the means [s]


class SimulatedMeter:
    """Present reading of the meter of a wall.

    Args:
        wall: what it measures.

    Attributes:
        shown: power [W] and counter [J]; None before the first reading, and while it is
            silent.
        listeners: called with every new reading.
    """

    def __init__(self, wall: SimulatedWall) -> None:
        self.wall = wall
        self.listeners = list[Callable[[tuple[float, float]], object]]()
        self.shown: tuple[float, float] | None = None
        self._random = np.random.default_rng([wall.seed, _STREAM, 2])
        span = wall.averaging + wall.period
        self._known: deque[tuple[float, float]] = deque(maxlen=round(span / _KEPT) + 2)
        self._coming: deque[tuple[float, tuple[float, float]]] = deque()
        self._due = -np.inf  # time of the next reading [s]
        self._silent_until = -np.inf

    def update(self, time: float, energy: float) -> None:
        """Follow the true energy at the mains.

        Args:
            time: controller time [s].
            energy: energy at the mains since the start [J].
        """
        known = self._known
        wall = self.wall
        due = time >= self._due
        if due or time - known[-1][0] >= _KEPT:
            known.append((time, energy))
        if due:
            self._due = time + wall.period
            end = np.array([time])
            arrives, self._silent_until = wall.arrivals(
                end, self._random, self._silent_until
            )
            if arrives[0] and time - known[0][0] >= wall.averaging:
                times, energies = np.array(known).T
                watts, joules = wall.measured(end, times, energies, self._random)
                reading = (float(watts[0]), float(joules[0]))
                self._coming.append((time + wall.delay, reading))
        if time < self._silent_until:
            self.shown = None
        elif self._coming and self._coming[0][0] <= time:
            _, shown = self._coming.popleft()
            self.shown = shown
            for listener in self.listeners:
                listener(shown)


def listening_hosts(urls: Iterable[str]) -> list[str]:
    """Hosts on which the URLs of a meter listen.

    Args:
        urls: see `serve_meter`.

    Raises:
        InputError: a URL is of another kind.
    """
    form = "state http://A:P, modbus://A:P or mqtt://A:P/TOPIC"
    found = []
    for url in urls:
        parts = split_url("--wall", url, _INTERFACES, "a meter", form, form)
        if not parts.hostname or parts.port == 0:
            raise InputError("--wall", f"'{url}' lacks a host or a port", form)
        if parts.scheme != "mqtt":
            found.append(parts.hostname)
    return found


def serve_meter(
    meter: SimulatedMeter, urls: Iterable[str], stack: ExitStack
) -> list[str]:
    """Serve a meter at addresses, and publish it to brokers.

    Args:
        meter: meter that is served.
        urls: http://A:P, modbus://A:P or mqtt://A:P/TOPIC each.
        stack: exit stack whose end stops the servers.

    Returns:
        The URL of each for `ur_energy record --meter`.

    Raises:
        ControllerError: an address cannot be used.
    """
    found = []
    for url in urls:
        parts = urlsplit(url)
        kind, port = _INTERFACES[parts.scheme]
        topic = parts.path.strip("/") or "meter"
        served = kind(meter, str(parts.hostname), parts.port or port, topic)
        try:
            found.append(stack.enter_context(served))
        except (OSError, RuntimeError) as error:
            problem = f"the meter cannot be served ({problem_words(error)})"
            remedy = "choose another address or port"
            raise ControllerError(url, problem, remedy) from None
    return found


_POWERS = {
    "Switch": "apower",
    "PM1": "apower",
    "EM1": "act_power",
    "EM": "total_act_power",
}


def _status(shown: tuple[float, float], power: str = "apower") -> bytes:
    """Status of a component of a Shelly device (JSON), from power [W] and counter [J].

    `power` is the key of the power in this component.
    """
    watts, joules = shown
    content = {"id": 0, power: watts, "aenergy": {"total": joules / 3600.0}}
    return json.dumps(content).encode()


@contextmanager
def _shelly(meter: SimulatedMeter, host: str, port: int, _: str) -> Iterator[str]:
    """Serves the status of a Shelly device."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            shown = meter.shown
            power = _POWERS.get(path.removeprefix("/rpc/").removesuffix(".GetStatus"))
            if power is None:
                self.send_error(404)
            elif shown is not None:  # else no answer at all
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(_status(shown, power))

        def log_message(self, *_: object) -> None:
            """Requests are not logged."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client left."""

    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    yield f"http://{host}:{port}/rpc/Switch.GetStatus?id=0"
    server.shutdown()
    server.server_close()


@contextmanager
def _modbus(meter: SimulatedMeter, host: str, port: int, _: str) -> Iterator[str]:
    """Registers of both Eastron profiles, of every unit."""
    with optional_import():
        from pymodbus.client import ModbusTcpClient as Client
        from pymodbus.constants import ExcCodes
        from pymodbus.server import ModbusTcpServer
        from pymodbus.simulator import DataType, SimData, SimDevice

    profiles = [load_profile(name) for name in ("eastron_sdm", "eastron_sdm_single")]

    async def show(
        _f: int, begin: int, _a: int, _n: int, now: list[int], written: object
    ) -> ExcCodes | None:
        if written is not None:
            return ExcCodes.ILLEGAL_FUNCTION
        if meter.shown is None:
            return ExcCodes.DEVICE_FAILURE
        for profile in profiles:
            for register, value in zip(profile[2:], meter.shown, strict=True):
                assert register is not None
                kind = Client.DATATYPE[register.type.upper()]
                at = register.address - begin
                now[at : at + 2] = Client.convert_to_registers(
                    value / register.scale, kind
                )
        return None

    async def start() -> ModbusTcpServer:
        data = SimData(0, count=400, datatype=DataType.REGISTERS)
        server = ModbusTcpServer(SimDevice(0, [data], action=show), address=(host, port))
        await server.serve_forever(background=True)
        return server

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(start(), loop).result(10.0)
    yield f"modbus://{host}:{port}/1?profile=eastron_sdm"
    asyncio.run_coroutine_threadsafe(server.shutdown(), loop).result(10.0)
    loop.call_soon_threadsafe(loop.stop)


@contextmanager
def _mqtt(meter: SimulatedMeter, host: str, port: int, topic: str) -> Iterator[str]:
    """Publishes to a broker, as soon as it is there."""
    with optional_import():
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect_async(host, port)
    client.loop_start()
    meter.listeners.append(lambda shown: client.publish(topic, _status(shown)))
    yield f"mqtt://{host}:{port}/{topic}"
    client.disconnect()
    client.loop_stop()


_INTERFACES = {
    "http": (_shelly, 80),
    "modbus": (_modbus, MODBUS_PORT),
    "mqtt": (_mqtt, 1883),
}
