# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy simulate`: a simulated arm, for clients of RTDE."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ur_energy_model.cli.output import defined, note, warn
from ur_energy_model.interrupts import on_stop_signal
from ur_energy_model.rooms import Given
from ur_energy_model.simulation.room import SimulateOptions

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Setup
    from ur_energy_model.simulation.simulated_controller import SimulatedController

_NOTES = """The simulation is ready when it prints `ready ADDRESS:30004`; Ctrl-C ends it.
RTDE is on port 30004, the dashboard on 29999, scripts and state on 30001 to
30003. Port 29998 takes faults at run time, one per line, such as
`fault stalled_stream@0+2`.

Faults are written NAME[@T[+D]][:ARGUMENT], T seconds after the start for D
seconds."""


def simulate(given: Given) -> None:
    """Simulate until Ctrl-C, another signal or the end of the duration.

    Raises:
        UrEnergyError: an option cannot be used, or the address is in use.
    """
    options = given.of(SimulateOptions)
    server: SimulatedController | None = None

    def stop() -> None:
        if server is None:  # still being set up
            raise SystemExit(0)
        server.stop()

    with on_stop_signal(stop):  # the imports take seconds
        from ur_energy_model.cli.arguments import stated_payload
        from ur_energy_model.files import check_output
        from ur_energy_model.simulation.simulated_controller import Simulation
        from ur_energy_model.simulation.supply import truth_files
        from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT

        for truth in () if options.truth is None else truth_files(options.truth):
            check_output(truth, overwrite=options.overwrite)
        simulation = Simulation(
            robot=options.robot,
            host=options.host,
            motion=options.motion,
            version=options.controller_version,
            seed=options.seed,
            ambient=options.ambient,
            speed=options.speed,
            faults=options.fault,
            truth=options.truth,
            setup=_checked_setup(options),
            carried=stated_payload(options.carried),
            controller=options.controller,
            allow_network=options.allow_network,
            session=options.session,
            drive_set=options.drive_set,
            torque_field=options.torque_field,
            wall=options.wall,
        )
        arm, server = simulation.build(report=note)
        with contextlib.suppress(OSError):  # a higher priority, if permitted
            os.nice(-10)
        server.run(
            options.duration,
            lambda: print(f"ready {options.host}:{RTDE_PORT}", flush=True),
        )
        arm.close()
        note(f"simulated {options.robot}: {server.ticker}")


def _checked_setup(options: SimulateOptions) -> Setup:
    """Mounting and payload as configured; InputError for a payload beyond the arm's."""
    import numpy as np

    from ur_energy_model.cli.arguments import stated_payload
    from ur_energy_model.model.robots import check_payload, load_robot
    from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting

    stated = {"--payload": options.payload, "--carried": options.carried}
    for flag, numbers in stated.items():
        if numbers is not None:
            warn(check_payload(load_robot(options.robot), numbers[0], flag))
    payload = stated_payload(options.payload) or Payload()
    if options.mounting is None:
        return Setup(payload=payload)
    tilt, *rotation = np.radians(options.mounting)
    return Setup(gravity_of_mounting(tilt, *rotation), payload)


def notes() -> str:
    """What the help ends with: ports, and the faults that can be simulated."""
    from ur_energy_model.simulation.faults import FAULTS

    effects: dict[str, str] = {}
    for kind in FAULTS.values():
        effects[kind.name] = kind.effect
        if kind.argument:
            stated = f" (:{kind.argument}, {kind.default} by default)"
            effects[kind.name] += stated
    return f"{_NOTES}\n\n{defined('faults', effects)}"
