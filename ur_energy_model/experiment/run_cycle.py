# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""An optimised cycle on the arm, for `ur_energy optimize`: its programs, and the proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ur_energy_model.cli.output import note
from ur_energy_model.experiment.commands import (
    check_execution,
    run_recorded,
    shaped,
    tool_of,
    walls_of,
)
from ur_energy_model.experiment.cycle_exports import export_cycle
from ur_energy_model.experiment.cycle_proof import (
    Proof,
    measured_peak,
    measured_saving,
    require_predicted,
)
from ur_energy_model.experiment.execution import ExecutionPlan
from ur_energy_model.experiment.limits import SafetyLimits
from ur_energy_model.experiment.room import CycleExecutionOptions
from ur_energy_model.experiment.same_arm import arm_of_recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.geometry import ArmGeometry
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.optimization.optimized_cycle import OptimizedCycle
from ur_energy_model.optimization.room import OptimizeOptions
from ur_energy_model.rooms import Given

PROOF = "proof"
"""Recording of the run, in the folder of -o."""
TOOL_SPEED = 1.5
"""Speed limit of flange and elbow without --tool-speed [m/s]."""


class CycleRun:
    """The `optimization.commands.CycleExecution` of experiments; arguments are described there."""

    def check(self, given: Given, output: Path | None) -> None:
        """Refuse an incomplete --execute, and options of --execute without it."""
        options = given.of(CycleExecutionOptions)
        check_execution(
            given,
            options.execution,
            output,
            execute=options.execute,
            placeholder="FOLDER",
        )
        if options.front_point is not None:
            if not options.execute:
                given.refuse("--front-point is for --execute")
            if not given.of(OptimizeOptions).pareto:
                given.refuse("--front-point needs --pareto")

    def exported(self, optimized: OptimizedCycle, output: Path) -> dict[Path, str]:
        """Write the sheet, programs and set points."""
        robot = load_robot(optimized.cycle.robot)
        return export_cycle(optimized, robot, output)

    def proved(
        self,
        given: Given,
        optimized: OptimizedCycle,
        model: EnergyModel,
        bag: Path,
        output: Path | None,
    ) -> OptimizedCycle:
        """The cycle with its measured saving; without --execute, the cycle as it is.

        The arm runs the cycle as recorded, and in turns with it the cycle as typed, or the
        point of the front that --front-point names.

        Raises:
            InputError: the front has no such point.
            MotionRefusedError: the motion is not safe, not confirmed, or was stopped.
            UrEnergyError: the controller cannot be used, or another cycle was recorded.
        """
        options = given.of(CycleExecutionOptions)
        if not options.execute:
            return optimized
        assert output is not None, "see check"
        robot = model.description()
        how = options.execution
        point = None
        number = options.front_point
        front = optimized.power_front
        if number is not None and front is not None:
            point = front.point(number)
        proof = Proof.of(optimized, options.cycles, point)
        tool_speed = given.of(OptimizeOptions).tool_speed or TOOL_SPEED
        usual = _workplace_limits(model, optimized, options, tool_speed)
        plan = ExecutionPlan(
            proof.motion(),
            proof.limits(usual),
            warm_up=60.0 * how.warm_up,
            arm=arm_of_recording(bag, robot, proof.positions),
            another_arm=how.another_arm,
        )
        recording = _free_name(output)
        run_recorded(plan, str(how.host), recording, assume_yes=how.yes)
        note(f"recorded {recording}")
        if number is not None and front is not None and point is not None:
            peak = measured_peak(recording, proof)
            require_predicted(peak, optimized, recording, point)
            return replace(optimized, power_front=front.with_measured(number, peak))
        measured = measured_saving(recording, proof)
        require_predicted(measured, optimized, recording)
        return replace(optimized, measured=measured)


CYCLE_EXECUTION = CycleRun()


def _workplace_limits(
    model: EnergyModel,
    optimized: OptimizedCycle,
    options: CycleExecutionOptions,
    tool_speed: float,
) -> SafetyLimits:
    """Limits of the arm in its workplace, with the heaviest payload of the cycle.

    Args:
        model: model of the arm.
        optimized: the cycle.
        options: describe the workplace.
        tool_speed: largest speed of flange and elbow [m/s].
    """
    robot = shaped(model.description(), options.surroundings.geometry)
    carried = [move.payload or model.setup.payload for move in optimized.cycle.moves]
    heaviest = max(carried, key=lambda payload: payload.mass)
    walls = walls_of(options.surroundings)
    tool = tool_of(options.surroundings, robot)
    return SafetyLimits(
        ArmDynamics(robot, Setup(model.setup.gravity, heaviest)),
        ArmGeometry(robot, walls, tool),
        clearance=options.surroundings.clearance,
        tool_speed=tool_speed,
    )


def _free_name(folder: Path) -> Path:
    """A name for the recording that does not exist in a folder."""
    name = folder / PROOF
    number = 2
    while name.exists():
        name = folder / f"{PROOF}_{number}"
        number += 1
    return name
