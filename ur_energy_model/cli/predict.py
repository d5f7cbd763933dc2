"""`ur_energy predict`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import output
from ur_energy_model.cli.payload_option import add_payload_option, payload_given

if TYPE_CHECKING:
    from ur_energy_model.energy.prediction import PlanEnergy


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    predict = subparsers.add_parser(
        "predict",
        help="energy of a trajectory before the robot moves",
        description="Energy that a planned trajectory will take, per joint and in all. The CSV has "
        "a header line: time [s], q_0 ... [rad] and, where known, qd_0 ... and qdd_0 ... "
        "Measured positions (actual_q_0 ...) are smoothed first, and a warning says so.",
        epilog="example: ur_energy predict model.yaml trajectory.csv",
    )
    predict.add_argument("model", metavar="MODEL.yaml")
    predict.add_argument("trajectory", metavar="TRAJECTORY.csv")
    add_payload_option(predict, purpose="by default the model's")
    predict.add_argument(
        "--session",
        metavar="BAG",
        help="recording of the same day: its standstill shows the standby power, its first seconds "
        "of motion the friction; without, the interval carries their spread between sessions",
    )
    output.add_json_option(predict)
    predict.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace) -> int:
    """Predict and print."""
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.energy.prediction import predict_energy
    from ur_energy_model.identification.evaluation.session_anchor import session_json
    from ur_energy_model.model.file.model_file import load_model
    from ur_energy_model.trajectory.plan_csv import read_plan
    from ur_energy_model.trajectory.smoothing import smooth_plan

    model, payload = load_model(options.model), payload_given(options.payload)
    if payload is not None:
        model = model.with_payload(payload)
    if options.session is not None:
        from ur_energy_model.identification.evaluation.evaluation import identify_session

        model = model.in_session(identify_session(model, options.session))
    plan = read_plan(options.trajectory, [joint.name for joint in model.joints])
    plan, warning = smooth_plan(plan, model.description().max_acceleration)
    if warning is not None:
        output.note(f"warning: {plan.source}: {warning}")
    energy = predict_energy(model, plan)
    if options.json:
        output.print_json(
            {
                **as_json(energy),
                "session": session_json(model.session),
                "warnings": [] if warning is None else [warning],
            }
        )
    else:
        output.print_table(
            f"energy of {options.trajectory}, {energy.duration:.1f} s [J]",
            ["joint", "mechanical", "electrical", "± 95 %", "efficiency"],
            [
                list(row)
                for row in zip(
                    energy.names,
                    energy.mechanical,
                    energy.electrical,
                    CONFIDENCE * energy.electrical_std,
                    energy.efficiency,
                    strict=True,
                )
            ],
        )
        output.note(
            f"at the supply: {energy.total:.1f} ± {CONFIDENCE * energy.total_std:.1f} J, "
            f"peak {energy.peak_power:.1f} W"
        )
        if options.session is None:
            output.note("for any session; --session BAG of the same day narrows the interval")
    return 0


def as_json(energy: PlanEnergy) -> dict[str, Any]:
    """The same keys as `ur_energy estimate --json`, without what only a recording has."""
    mechanical, electrical = float(energy.mechanical.sum()), float(energy.electrical.sum())
    return {
        "duration": energy.duration,
        "joints": [
            {
                "name": name,
                "mechanical_energy": energy.mechanical[j],
                "electrical_energy": energy.electrical[j],
                "electrical_energy_std": energy.electrical_std[j],
                "efficiency": energy.efficiency[j],
            }
            for j, name in enumerate(energy.names)
        ],
        "total": {
            "mechanical_energy": mechanical,
            "electrical_energy": electrical,
            "efficiency": mechanical / electrical if electrical > 0 else None,
            "supply_energy": energy.total,
            "supply_energy_std": energy.total_std,
        },
        "peak_power": energy.peak_power,
    }
