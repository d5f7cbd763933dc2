"""From the results of the stages to one model with its provenance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.identification.dynamics.inertia import InertiaEstimate
from ur_energy_model.identification.dynamics.setup_data import StatedSetup
from ur_energy_model.identification.dynamics.setup_estimation import SetupEstimate
from ur_energy_model.identification.friction.joint_fit import JointFit
from ur_energy_model.identification.friction.torque_constants import stated_deviation
from ur_energy_model.identification.power.power_fit import PowerFitResult
from ur_energy_model.identification.recording import Recording, digest
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionSpread, scaled_parameters

_SETUP_SOURCES = {"configured": "given"}


def assemble(
    robot: RobotDescription,
    estimate: SetupEstimate | None,
    joints: Sequence[JointFit],
    inertia: InertiaEstimate,
    power: PowerFitResult,
    recordings: Sequence[Recording],
    stated: StatedSetup,
    sessions: SessionSpread,
) -> EnergyModel:
    """The model, without metrics; the setup stated counts where none was estimated.

    Deviations of friction parameters are those of any session of the arm; current_covariance is
    that of the sessions fitted.
    """
    spread = sessions.friction_of(robot.dof)
    models = []
    for j, fit in enumerate(joints):
        power_source = power.source
        models.append(
            JointModel(
                name=robot.joint_names[j],
                gear_ratio=float(robot.gear_ratio[j]),
                reflected_inertia=float(inertia.value[j]),
                torque_constant=fit.torque_constant,
                winding_resistance=float(power.winding_resistance[j]),
                back_emf_constant=float(power.back_emf_constant[j]),
                friction=fit.friction,
                std={
                    "reflected_inertia": float(inertia.std[j]),
                    "torque_constant": stated_deviation(fit),
                    "winding_resistance": float(power.resistance_std[j]),
                    "back_emf_constant": float(power.back_emf_std[j]),
                    **_of_any_session(fit, float(spread[j])),
                },
                source={
                    "gear_ratio": "robot file",
                    "reflected_inertia": inertia.source[j],
                    "winding_resistance": power_source,
                    "back_emf_constant": power_source,
                    **fit.source,
                },
                current_covariance=fit.covariance,
                current_residual=float(np.nan_to_num(fit.residual)),
                friction_reason=fit.reason,
            )
        )
    if estimate is None:
        setup, source = stated.setup, stated.source
    else:
        setup, source = estimate.setup, estimate.setup_source
    return EnergyModel(
        robot=robot.source or robot.name,
        setup=setup,
        setup_source=_SETUP_SOURCES.get(source, source),
        joints=tuple(models),
        bus=power.bus,
        current_delay=power.current_delay,
        link_tensors=None if estimate is None else estimate.link_tensors,
        sessions=sessions,
        provenance=_provenance(recordings, power),
    )


def _of_any_session(fit: JointFit, spread: float) -> dict[str, float]:
    """Deviations of friction parameters where friction varies by so much between sessions."""
    names = fit.friction.law.parameters
    varying = np.where(scaled_parameters(names), spread * np.abs(fit.friction.values), 0.0)
    return {
        name: float(np.hypot(fit.friction_std[name], part))
        for name, part in zip(names, varying, strict=True)
    }


def _provenance(recordings: Sequence[Recording], power: PowerFitResult) -> dict[str, Any]:
    first = recordings[0].info
    return {
        "package_version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "serial": first.serial,
        "firmware": first.controller_version,
        "simulated": any(recording.info.simulated for recording in recordings),
        "bags": [
            {
                "path": str(recording.path),
                "sha256": digest(recording.path),
                "samples": recording.samples,
                "duration": recording.duration,
                "rate": recording.rate,
                "cutoff": recording.cutoff,
                "position_delay": recording.delay,
            }
            for recording in recordings
        ],
        "power_factors": {
            name: {"value": value, "std": std} for name, (value, std) in power.factors.items()
        },
    }
