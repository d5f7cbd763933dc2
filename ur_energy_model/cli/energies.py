"""What a model gives: `ur_energy estimate`, `evaluate`, `predict` and `report`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.arguments import (
    chosen_model,
    command,
    failed_json,
    failed_of,
    option,
    payload_given,
    report_failed,
    results_of_bags,
    split_model,
    with_given_payload,
)
from ur_energy_model.cli.output import note, print_json, print_line, print_table, progress, warn
from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ur_energy_model.cli.arguments import ChosenModel
    from ur_energy_model.energy.recording_energy import EnergySummary
    from ur_energy_model.identification.evaluation import Metrics
    from ur_energy_model.many_bags import BagResult
    from ur_energy_model.model.drives import JointModel
    from ur_energy_model.report.report import Report
    from ur_energy_model.typing import Progress

# `ur_energy estimate`: energy of recordings.

LOWEST_RATE, HIGHEST_RATE = 1.0, 500.0
"""Of the messages in a bag [Hz], as of the node's publish_rate."""


@command(
    "estimate",
    "compute the energy of recordings, per joint and in total",
    "Compute the mechanical and electrical energy and the efficiency of recordings, per joint and "
    "in total, with the model of the arm or, without MODEL.yaml, with the generic model of its "
    "type, whose intervals are wider.",
    "ur_energy estimate task --robot ur5e\n"
    "ur_energy estimate model.yaml task --csv power.csv\n"
    "ur_energy estimate model.yaml task --bag task_energy\n"
    "ur_energy estimate model.yaml monday/* --json",
    arguments.add_optional_model,
    (arguments.add_bags, "recordings"),
    (
        arguments.add_path,
        "--csv",
        "FILE",
        "also write the powers over time to this file (of a single recording)",
    ),
    option(
        "--bag",
        dest="energy_bag",
        type=Path,
        metavar="OUT",
        help="also write the topics that the estimator node would publish to this bag, for the "
        "layouts of PlotJuggler and Foxglove (of a single recording)",
    ),
    (arguments.add_number, "--rate", 50.0, "HZ", "messages per second of --bag, 1 to 500"),
    (arguments.add_flag, "--overwrite", "replace an existing bag OUT"),
    (arguments.add_payload_option, "the model's"),
    arguments.add_same_arm,
    arguments.add_cluster,
    arguments.add_json,
)
def estimate(options: argparse.Namespace) -> None:
    """Integrate and print."""
    from ur_energy_model.energy.energy_bag import write_energy_bag
    from ur_energy_model.energy.recording_energy import estimate_energy
    from ur_energy_model.files import real_path
    from ur_energy_model.telemetry.bag.files import new_bag

    if not LOWEST_RATE <= options.rate <= HIGHEST_RATE:
        remedy = f"choose {LOWEST_RATE:g} to {HIGHEST_RATE:g} messages per second"
        raise InputError("--rate", f"is {options.rate:g}", remedy)
    path, options.bags = split_model(options.model, options.bags)
    out: Path | None = options.energy_bag
    for flag, wanted in (("--csv", options.csv), ("--bag", out)):
        if wanted is not None and arguments.is_distributed(options):
            raise InputError(
                flag,
                "is written from a single recording in this process",
                "give one BAG, without --scheduler and --workers",
            )
    chosen = chosen_model(path, options.robot, options.bags)
    model = with_given_payload(chosen.model, options.payload)
    work = partial(estimate_energy, model, same_arm=options.same_arm)

    def here(bag: Path, report: Progress) -> EnergySummary:
        if out is not None and real_path(out) == real_path(bag):
            raise InputError(out, "is the recording itself", "name another bag OUT")
        if out is None:
            return work(bag, series=options.csv, progress=report)
        with new_bag(out, overwrite=options.overwrite) as folder:
            summary = work(bag, series=options.csv, progress=report)
            write_energy_bag(
                model,
                bag,
                folder,
                name=real_path(out).name,
                model_path=chosen.words,
                rate=options.rate,
                same_arm=options.same_arm,
                progress=report,
            )
            return summary

    results = results_of_bags(options, "estimating", here, work)
    summary = results[0].value
    if len(results) > 1 or summary is None:
        _show_many(results, chosen, options)
        return
    if options.json:
        print_json({"model": chosen.entry, **summary.as_json()})
    else:
        warn(summary.warnings)
        _print_energy(summary, chosen)
    if options.csv:
        note(f"powers over time written to {options.csv}")
    if out is not None:
        note(f"energy topics written to {out}")


def _show_many(
    results: Sequence[BagResult[EnergySummary]], chosen: ChosenModel, options: argparse.Namespace
) -> None:
    """Print the energies of several recordings, a row for each, and their sums."""
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.energy.recording_energy import totals_json

    good = [(result.bag, result.value) for result in results if result.value is not None]
    failed = failed_of(results)
    warnings = [f"{bag}: {text}" for bag, summary in good for text in summary.warnings]
    total = totals_json([summary for _, summary in good]) if good else {}
    entries = [{"bag": bag, **summary.as_json()} for bag, summary in good]
    if options.json:
        content = {**total, "warnings": warnings, "results": entries, "failed": failed_json(failed)}
        print_json({"model": chosen.entry, **content})
    elif good:
        warn(warnings)
        print_table(
            f"energy of {len(good)} recordings [J]",
            ["bag", "time [s]", "electrical", "supply", "± 95 %", "measured"],
            [
                [
                    entry["bag"].name,
                    entry["duration"],
                    entry["total"]["electrical_energy"],
                    entry["total"]["supply_energy"],
                    CONFIDENCE * entry["total"]["supply_energy_std"],
                    entry["bus_energy"],
                ]
                for entry in (*entries, {"bag": Path("all recordings"), **total})
            ],
        )
        note(f"model: {chosen.words}")
    report_failed(failed, len(results))


def _print_energy(summary: EnergySummary, chosen: ChosenModel) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    content = summary.as_json()
    print_table(
        f"energy over {summary.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency", "regenerated"],
        [
            [
                row["name"],
                row["mechanical_energy"],
                row["electrical_energy"],
                CONFIDENCE * row["electrical_energy_std"],
                row["efficiency"],
                row.get("regenerated_energy"),
            ]
            for row in (*content["joints"], {"name": "all joints", **content["total"]})
        ],
    )
    note(f"model: {chosen.words}")
    measured = "not recorded" if summary.bus is None else f"{summary.bus:.1f} J"
    note(
        f"at the supply: {summary.supply:.1f} ± {CONFIDENCE * summary.supply_std:.1f} J modelled "
        f"(standby {summary.standby:.1f} J, drivers {summary.driver:.1f} J, "
        f"regeneration {summary.regeneration:.1f} J), measured: {measured}"
    )
    session = summary.session
    power = f"{session.power:.1f} ± {CONFIDENCE * session.std:.1f} W"
    note(
        f"standby power of this session: {power}, measured over {session.still_seconds:.1f} s of "
        "standstill"
        if session.anchored
        else f"standby power is the model's, {power}: this recording has no standstill with "
        "measured bus power (one second is enough)"
    )
    if summary.refused:
        note(f"{summary.refused} samples with values not finite or impossible are left out")
    if summary.unaccounted:
        note(f"gaps of {summary.unaccounted:.2f} s in total are not included in these energies")


# `ur_energy evaluate`: a model compared with recordings.

_POWER_KEYS = ("rmse", "rmse_low", "rmse_high", "rmse_percent", "r2", "energy_error_percent")


@command(
    "evaluate",
    "compare a model with recordings",
    "Compare the torque, current and power of a model with recordings.",
    "ur_energy evaluate model.yaml task --json",
    arguments.add_model,
    (arguments.add_bags, "recordings to compare with"),
    (
        arguments.add_flag,
        "--no-anchor",
        "use the model's standby power and friction, without adapting them to the recording's "
        "standstill and first seconds of motion",
    ),
    (arguments.add_payload_option, "the controller's setting, from target_moment"),
    arguments.add_same_arm,
    arguments.add_cluster,
    arguments.add_json,
)
def evaluate(options: argparse.Namespace) -> None:
    """Compare and print."""
    from ur_energy_model.energy.recording_energy import common_serials
    from ur_energy_model.identification import evaluation
    from ur_energy_model.identification.quality import MOTION_WORDS
    from ur_energy_model.model.model_file import load_model

    model = load_model(options.model)
    work = partial(
        evaluation.evaluate,
        model,
        payload=payload_given(options.payload),
        anchor=not options.no_anchor,
        same_arm=options.same_arm,
    )

    def here(bag: Path, report: Progress) -> Metrics:
        return work(bag, progress=report)

    results = results_of_bags(options, "evaluating", here, work)
    several, failed = len(results) > 1, failed_of(results)
    entries = [
        replace(result.value, bag=str(result.bag)).as_json()
        for result in results
        if result.value is not None
    ]
    warnings = [
        [f"{entry['bag']}: {line}" if several else line for line in entry["warnings"]]
        for entry in entries
    ]
    if options.json:
        content: dict[str, Any] = {
            "model": options.model,
            "robot": model.robot,
            "warnings": list(chain(*warnings)),
            "serials": common_serials([entry["serials"] for entry in entries]),
            "results": entries,
        }
        if several:
            content |= {"total": totals(entries), "failed": failed_json(failed)}
        print_json(content)
    else:
        for entry, lines in zip(entries, warnings, strict=True):
            warn(lines)
            print_metrics(entry, model.joints)
            if entry["motion"] != "unknown":
                note(f"{entry['bag']}: {MOTION_WORDS[entry['motion']]}")
    report_failed(failed, len(results))


def totals(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """METRICS of several recordings together: sums, and RMSE of power weighted by duration [W]."""
    from ur_energy_model.identification.evaluation import POWERS

    def rmse(name: str) -> float | None:
        parts = [
            (entry["duration"], entry[name]["rmse"])
            for entry in entries
            if entry[name] is not None and entry[name]["rmse"] is not None
        ]
        seconds = sum(duration for duration, _ in parts)
        if not seconds:
            return None
        return float((sum(duration * error**2 for duration, error in parts) / seconds) ** 0.5)

    return {
        "recordings": len(entries),
        "samples": sum(entry["samples"] for entry in entries),
        "duration": sum(entry["duration"] for entry in entries),
        **{f"{name}_rmse": rmse(name) for name in POWERS},
    }


def print_metrics(entry: Mapping[str, Any], joints: Sequence[JointModel]) -> None:
    """METRICS of a model with these joints: torque, current while moving and always, power."""
    from ur_energy_model.identification.evaluation import POWERS

    bag = entry["bag"]
    for key, title in (
        ("torque", "torque error [N m]"),
        ("current", "current error while moving [A]"),
        ("current_all", "current error, standstill included [A]"),
    ):
        if entry[key] is not None:
            print_table(
                f"{bag}: {title}",
                ["joint", "mean", "max", "rms", "R2"],
                [
                    [joint.name, row["mean"], row["max"], row["rms"], row["r2"]]
                    for joint, row in zip(joints, entry[key], strict=True)
                ],
            )
    session = entry.get("session")
    if session is not None and session["anchored"]:
        scales = ", ".join(f"{scale:.2f}" for scale in session["friction_scale"])
        note(
            f"{bag}: adapted to {session['moving_seconds']:.1f} s of motion and "
            f"{session['still_seconds']:.1f} s of standstill: friction x {scales} (base to tool); "
            f"standby {session['standby']:.1f} W"
        )
    elif session is not None:
        note(f"{bag}: standby power and friction are the model's")
    rows = [
        [how, *(power[key] for key in _POWER_KEYS)]
        for name, how in POWERS.items()
        if (power := entry.get(name)) is not None
    ]
    if rows:
        columns = ["", "RMSE [W]", "from", "to (95 %)", "RMSE [%]", "R2", "energy error [%]"]
        print_table(f"{bag}: power at the supply", columns, rows)


# `ur_energy predict`: energy of a planned trajectory.


@command(
    "predict",
    "predict the energy of a trajectory before the robot moves",
    "Predict the energy of a planned trajectory, per joint and in total. The CSV file has a header "
    "line with the columns time [s], q_0 ... [rad] and, where known, qd_0 ... and qdd_0 ... "
    "Measured positions (actual_q_0 ...) are smoothed first, with a warning.",
    "ur_energy predict model.yaml trajectory.csv\nur_energy predict trajectory.csv --robot ur5e",
    arguments.add_optional_model,
    option("trajectory", type=Path, metavar="TRAJECTORY.csv", help="planned motion of the joints"),
    (arguments.add_payload_option, "the model's"),
    (
        arguments.add_path,
        "--session",
        "BAG",
        "recording of the same day, to take standby power (from standstill) and friction (from the "
        "first seconds of motion) from; without it the interval is wider, to cover their spread "
        "between sessions",
    ),
    arguments.add_json,
)
def predict(options: argparse.Namespace) -> None:
    """Predict and print."""
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.energy.prediction import predict_energy
    from ur_energy_model.identification import evaluation
    from ur_energy_model.trajectory.plan import read_plan, smooth_plan

    session: Path | None = options.session
    chosen = chosen_model(options.model, options.robot, [] if session is None else [session])
    model = chosen.model
    if chosen.path is None and session is not None:
        setup = evaluation.recorded_setup(model, session)
        model = replace(model, setup=setup, setup_source="recorded")
    model = with_given_payload(model, options.payload)
    if session is not None:
        model = model.in_session(evaluation.identify_session(model, session))
    plan = read_plan(options.trajectory, [joint.name for joint in model.joints])
    plan, warning = smooth_plan(plan, model.description().max_acceleration)
    warnings = [] if warning is None else [warning]
    warn(f"{plan.source}: {text}" for text in warnings)
    energy = predict_energy(model, plan)
    if options.json:
        adapted = evaluation.session_json(model.session)
        content = {**energy.as_json(), "session": adapted, "warnings": warnings}
        print_json({"model": chosen.entry, **content})
        return
    half_width = CONFIDENCE * energy.electrical_std
    columns = (energy.names, energy.mechanical, energy.electrical, half_width, energy.efficiency)
    print_table(
        f"energy of {options.trajectory}, {energy.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency"],
        list(zip(*columns, strict=True)),
    )
    note(f"model: {chosen.words}")
    note(
        f"at the supply: {energy.total:.1f} ± {CONFIDENCE * energy.total_std:.1f} J, "
        f"peak {energy.peak_power:.1f} W"
    )
    if session is None:
        note("this holds for any session; --session BAG of the same day narrows the interval")
        if chosen.path is None:
            load = "without payload" if options.payload is None else "with this payload"
            note(f"this holds for an arm mounted upright, {load}; --session BAG has its mounting")


# `ur_energy report`: the HTML report, and its figures as files.


@command(
    "report",
    "write an HTML report of a model and recordings",
    "Write one HTML file that opens offline in any browser: a verdict in plain words, measured and "
    "modelled torque, current, power and energy, the identified parameters with their intervals, "
    "and the energy of a shift with its cost.",
    "ur_energy report model.yaml my_bag another_bag -o report.html\n"
    "ur_energy report my_bag --robot ur5e -o report.html\n"
    "ur_energy report model.yaml monday_shift -o shift.html \\\n"
    "    --tariff 0.28 --co2 0.38",
    arguments.add_optional_model,
    (arguments.add_bags, "recordings of the arm"),
    (arguments.add_output, "REPORT.html", "report to write"),
    (arguments.add_path, "--figures", "FOLDER", "also write the figures to this folder"),
    option(
        "--format",
        action="append",
        choices=("png", "svg"),
        help="file format of --figures (default: png; may be repeated)",
    ),
    (arguments.add_payload_option, "the model's"),
    arguments.add_same_arm,
    (
        arguments.add_group,
        "energy of a shift",
        arguments.add_tariff_options,
        (
            arguments.add_choice,
            "--cycle",
            ("auto", "none", "program", "digital_output", "int_register"),
            "what starts a cycle: program start, edge of a digital output, or change of "
            "output_int_register_0; auto: program start, digital output or repeated motion, "
            "whichever shows cycles",
        ),
        (
            arguments.add_number,
            "--cycle-output",
            0,
            "N",
            "number of the digital output for --cycle digital_output",
        ),
    ),
    arguments.add_json,
)
def report(options: argparse.Namespace) -> None:
    """Write the report."""
    from ur_energy_model.files import check_target, write_text
    from ur_energy_model.report.layout import report_page
    from ur_energy_model.report.page import render
    from ur_energy_model.report.report import make_report

    check_target(options.output)
    tariff = arguments.tariff_given(options)
    path, bags = split_model(options.model, options.bags)
    chosen = chosen_model(path, options.robot, bags)
    with progress("report") as show:
        made = make_report(
            with_given_payload(chosen.model, options.payload),
            bags,
            payload=payload_given(options.payload),
            tariff=tariff,
            trigger=options.cycle,
            output=options.cycle_output,
            same_arm=options.same_arm,
            progress=show,
        )
        show(0.95, "writing")
        page = render(report_page(made))
        figures = [] if options.figures is None else _figures(made, options)
        write_text(options.output, page)
    if options.json:
        print_json(
            {
                "report": options.output,
                "model": chosen.entry,
                "bytes": len(page.encode()),
                "figures": figures,
                "verdict": made.verdict,
                "energy": made.shift.energy,
                "seconds": made.shift.seconds,
                "idle_share": made.shift.idle_share,
                "cost": tariff.cost(made.shift.energy),
                "co2": tariff.emission(made.shift.energy),
                "cycles": len(made.shift.cycles),
                "warnings": made.warnings,
                "serials": made.serials,
            }
        )
        return
    warn(dict.fromkeys(line for bag in made.bags for line in bag.repetition))  # verdict: others
    note(f"model: {chosen.words}")
    print_line(made.verdict.headline)
    for item in made.verdict.statements:
        print_line(f"- {item.text}")
    note(f"report written to {options.output}; open it in a browser")


def _figures(made: Report, options: argparse.Namespace) -> list[Path]:
    """Write the figures, a folder per recording if there are several, and return their paths."""
    from ur_energy_model.report.figures import save_chart
    from ur_energy_model.report.recording_charts import recording_charts

    several = len(made.bags) > 1
    return [
        path
        for bag in made.bags
        for chart in recording_charts(bag.analysis)
        for path in save_chart(
            chart,
            options.figures / bag.label if several else options.figures,
            formats=options.format or ("png",),
        )
    ]
