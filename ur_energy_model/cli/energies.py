# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a model gives: `ur_energy estimate`, `evaluate`, `predict` and `report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ur_energy_model.cli.arguments import (
    ChosenModel,
    CommandBags,
    chosen_model,
    failed_json,
    failed_of,
    model_needed,
    report_failed,
    split_model,
    stated_payload,
    tariff_of,
    with_payload,
)
from ur_energy_model.cli.commands import (
    EstimateOptions,
    EvaluateOptions,
    PredictOptions,
    ReportOptions,
)
from ur_energy_model.cli.measures import print_measures
from ur_energy_model.cli.output import (
    note,
    picked,
    print_json,
    print_line,
    print_objects,
    print_table,
    progress,
    warn,
)
from ur_energy_model.consistency.contradiction import with_contradictions
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import TotalSource
from ur_energy_model.energy.prediction import predict_energy, too_weak
from ur_energy_model.energy.recording_energy import (
    EnergySummary,
    common_serials,
    totals_json,
)
from ur_energy_model.energy.tariff import Tariff
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output, check_output_folder, real_path, write_text
from ur_energy_model.many_bags import BagResult
from ur_energy_model.model.drives import JointModel
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.files import new_bag
from ur_energy_model.trajectory.plan import checked_plan, read_plan
from ur_energy_model.typing import Progress

if TYPE_CHECKING:
    from ur_energy_model.consistency.contradiction import Contradiction
    from ur_energy_model.identification.evaluation import Metrics
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.setup import Payload


def estimate(given: Given) -> None:
    """`ur_energy estimate`: the energy of recordings.

    Raises:
        UrEnergyError: a recording, the model or an option cannot be used, or bags failed;
            the others are printed before.
    """
    options = given.of(EstimateOptions)
    path, bags = split_model(options.model, options.bags)
    work_on = CommandBags(given, bags, options.workers)
    out = options.energy_bag
    for flag, wanted in (("--csv", options.csv), ("--bag", out)):
        if wanted is not None and work_on.is_distributed:
            problem = "is written from a single recording in this process"
            raise InputError(flag, problem, "give one BAG, and leave out --workers")
    if options.csv is not None:
        check_output(options.csv, overwrite=options.overwrite)
    tariff = tariff_of(options.tariff)
    payload = stated_payload(options.payload)
    chosen = chosen_model(path, options.robot, bags)
    model = with_payload(chosen.model, payload)
    work = partial(
        _estimated,
        model,
        model_path=chosen.path,
        payload=payload,
        same_arm=options.same_arm,
    )

    def here(bag: Path, report: Progress) -> Estimate:
        if out is None:
            return work(bag, series=options.csv, progress=report)
        if real_path(out) == real_path(bag):
            raise InputError(out, "is the recording itself", "name another bag OUT")
        with new_bag(out, overwrite=options.overwrite) as folder:
            found = work(bag, series=options.csv, progress=report)
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
            return found

    results = work_on.results("estimating", here, work)
    found = results[0].value
    if len(results) > 1 or found is None:
        _show_many(results, chosen, tariff, as_json=options.json)
        return
    if options.json:
        print_json({"model": chosen.entry, **found.as_json(tariff)})
    else:
        warn(found.summary.warnings)
        _print_energy(found.summary, chosen)
        print_measures(found.measures, tariff)
    for written, path in (("powers over time", options.csv), ("energy topics", out)):
        if path is not None:
            note(f"{written} written to {path}")


class Estimate(NamedTuple):
    """What `estimate` states about a recording."""

    summary: EnergySummary  # energies
    measures: Advice  # what can be done for less

    def as_json(self, tariff: Tariff) -> dict[str, Any]:
        """The content of `ur_energy estimate --json`."""
        return {**self.summary.as_json(), **self.measures.as_json(tariff)}


def _estimated(
    model: EnergyModel,
    bag: Path,
    *,
    model_path: Path | None,
    payload: Payload | None,
    same_arm: bool,
    **how: Any,
) -> Estimate:
    """Energies of a recording, what it shows of the payload, and what can be done for less.

    `payload`: the one that the user states; None for the one that was set. `how`: further
    arguments of `estimate_energy`.
    """
    from ur_energy_model.identification.energy_advice import energy_with_advice

    found = energy_with_advice(
        model,
        bag,
        model_path=model_path,
        payload=payload,
        same_arm=same_arm,
        **how,
    )
    return Estimate(found.summary, found.advice)


def _show_many(
    results: Sequence[BagResult[Estimate]],
    chosen: ChosenModel,
    tariff: Tariff,
    *,
    as_json: bool,
) -> None:
    """Print the energies of several recordings, a row for each, and their sums."""
    good = [(result.bag, result.value) for result in results if result.value is not None]
    failed = failed_of(results)
    warnings = [
        f"{bag}: {text}" for bag, found in good for text in found.summary.warnings
    ]
    total = totals_json([found.summary for _, found in good]) if good else {}
    entries = [{"bag": bag, **found.as_json(tariff)} for bag, found in good]
    measures = adviser().together([found.measures for _, found in good])
    if good:
        total |= measures.as_json(tariff)
    if as_json:
        content = {
            **total,
            "warnings": warnings,
            "results": entries,
            "failed": failed_json(failed),
        }
        print_json({"model": chosen.entry, **content})
    elif good:
        warn(warnings)
        print_objects(
            f"energy of {len(good)} recordings [J]",
            (*entries, {"bag": Path("all recordings"), **total}),
            {
                "bag": lambda entry: entry["bag"].name,
                "time [s]": "duration",
                "electrical": lambda entry: entry["total"]["electrical_energy"],
                "supply": lambda entry: entry["total"]["supply_energy"],
                "± 95 %": lambda entry: CONFIDENCE * entry["total"]["supply_energy_std"],
                "source": "total_source",
                "model": lambda entry: entry["total"]["model_energy"],
                "unexplained": lambda entry: entry["total"]["unexplained_energy"],
                "wall": "wall_energy",
            },
        )
        source = TotalSource(total["total_source"], total["total_measured_share"])
        print_line(f"total: {source.words(total['explained_share'])}")
        print_line(f"model: {chosen.words}")
        print_measures(measures, tariff, named=True)
    report_failed(failed, len(results))


def _print_energy(summary: EnergySummary, chosen: ChosenModel) -> None:
    """The energy of one recording: the whole arm first, then its joints."""
    content = summary.as_json()
    half_width = CONFIDENCE * summary.supply_std
    source = summary.total_source.words(summary.explained_share)
    parts = (
        f"motors {summary.electrical.sum():.1f} J, standby {summary.standby:.1f} J, "
        f"drivers {summary.driver:.1f} J, regeneration {summary.regeneration:.1f} J"
    )
    print_line(f"at the supply: {summary.supply:.1f} ± {half_width:.1f} J, {source}")
    if summary.total_source.name == "modelled":
        print_line(f"of these {parts}; bus power was not recorded")
    else:
        print_line(
            f"by the model: {summary.model:.1f} ± {CONFIDENCE * summary.model_std:.1f} J "
            f"({parts}); unexplained: {summary.unexplained:+.1f} J"
        )
    print_line(f"at the wall: {summary.wall.words()}")
    print_line(f"model: {chosen.words}")
    print_objects(
        f"energy over {summary.duration:.1f} s [J]",
        (*content["joints"], {"name": "all joints", **content["total"]}),
        {
            "joint": "name",
            "mechanical": "mechanical_energy",
            "electrical": "electrical_energy",
            "± 95 %": lambda row: CONFIDENCE * row["electrical_energy_std"],
            "efficiency": "efficiency",
            "regenerated": lambda row: row.get("regenerated_energy"),
        },
    )
    session = summary.session
    print_line(
        f"standby power of this session: {session.power_words()}, {session.words()}"
    )
    if summary.refused:
        print_line(
            f"{summary.refused} samples with values not finite or impossible are left out"
        )
    if summary.unaccounted:
        gaps = f"gaps of {summary.unaccounted:.2f} s in total"
        print_line(f"{gaps} are not included in these energies")


def evaluate(given: Given) -> None:
    """`ur_energy evaluate`: a model compared with recordings.

    Raises:
        UrEnergyError: the model or an option cannot be used, or bags failed; the others
            are printed before.
    """
    from ur_energy_model.identification import evaluation  # takes half a second
    from ur_energy_model.identification.quality import MOTION_WORDS

    options = given.of(EvaluateOptions)
    model = model_needed(given, options.model, options.bags[0])
    payload = stated_payload(options.payload)
    with_payload(model, payload)  # checks it
    work = partial(
        _evaluated,
        model,
        payload=payload,
        anchor=not options.no_anchor,
        same_arm=options.same_arm,
    )

    def here(bag: Path, report: Progress) -> Metrics:
        return work(bag, progress=report)

    work_on = CommandBags(given, options.bags, options.workers)
    results = work_on.results("evaluating", here, work)
    several = len(results) > 1
    failed = failed_of(results)
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

            def rmse(name: str) -> float | None:
                """Weighted by duration [W]."""
                known = [
                    e
                    for e in entries
                    if e[name] is not None and e[name]["rmse"] is not None
                ]
                weights = [e["duration"] for e in known]
                squares = [e[name]["rmse"] ** 2 for e in known]
                return (
                    float(np.average(squares, weights=weights) ** 0.5)
                    if sum(weights)
                    else None
                )

            sums = {
                key: sum(entry[key] for entry in entries)
                for key in ("samples", "duration")
            }
            errors = {f"{name}_rmse": rmse(name) for name in evaluation.POWERS}
            content["total"] = {"recordings": len(entries), **sums, **errors}
            content["failed"] = failed_json(failed)
        print_json(content)
    else:
        for entry, lines in zip(entries, warnings, strict=True):
            warn(lines)
            print_metrics(entry, model.joints)
            if entry["motion"] != "unknown":
                print_line(f"{entry['bag']}: {MOTION_WORDS[entry['motion']]}")
    report_failed(failed, len(results))


def _evaluated(
    model: EnergyModel, bag: Path, *, payload: Payload | None, **how: Any
) -> Metrics:
    """METRICS of a recording, and what it shows of the payload that was set or stated."""
    from ur_energy_model.identification.evaluation import evaluate
    from ur_energy_model.identification.payload_check import payload_contradictions

    metrics = evaluate(model, bag, payload=payload, **how)
    return with_contradictions(
        metrics, payload_contradictions(model, bag, stated=payload)
    )


def print_metrics(entry: Mapping[str, Any], joints: Sequence[JointModel]) -> None:
    """METRICS of a model with these joints: torque, current while moving and always, power."""
    from ur_energy_model.identification.evaluation import POWERS, r2_words

    bag = entry["bag"]
    for key, title in (
        ("torque", "torque error [N m]"),
        ("current", "current error while moving [A]"),
        ("current_all", "current error, standstill included [A]"),
    ):
        if entry[key] is not None:
            print_objects(
                f"{bag}: {title}",
                (
                    {"joint": joint.name, **row}
                    for joint, row in zip(joints, entry[key], strict=True)
                ),
                {name: name for name in ("joint", "mean", "max", "rms")}
                | {"R2": r2_words}
                | (
                    {"rms of null model": "null_rms"}
                    if "null_rms" in entry[key][0]
                    else {}
                ),
            )
    session = entry.get("session")
    if session is not None and session["anchored"]:
        scales = ", ".join(f"{scale:.2f}" for scale in session["friction_scale"])
        print_line(
            f"{bag}: adapted to {session['moving_seconds']:.1f} s of motion and "
            f"{session['still_seconds']:.1f} s of standstill: friction x {scales} (base to tool); "
            f"standby {session['standby']:.1f} W"
        )
    elif session is not None:
        print_line(f"{bag}: standby power and friction are the model's")
    powers = [
        {"how": how, _NULL_ENERGY: None, **entry[name]}
        for name, how in POWERS.items()
        if entry.get(name)
    ]
    if powers:
        print_objects(
            f"{bag}: power at the supply",
            powers,
            {
                "": "how",
                "RMSE [W]": "rmse",
                "from": "rmse_low",
                "to (95 %)": "rmse_high",
                "RMSE [%]": "rmse_percent",
                "R2": "r2",
                "energy error [%]": "energy_error_percent",
            }
            | (
                {"of three coefficients [%]": _NULL_ENERGY}
                if powers[0][_NULL_ENERGY]
                else {}
            ),
        )
    print_joint_power(bag, entry.get("joint_power") or ())


def print_joint_power(bag: str, joints: Sequence[Mapping[str, Any]]) -> None:
    """Modelled and measured energy of the joints; why there is no measured one."""
    if not joints:
        return
    if "reason" in joints[0]:
        print_line(f"{bag}: joint power not measured: {joints[0]['reason']}")
        return
    print_objects(
        f"{bag}: energy of the joints in motion, modelled and by joint voltages [J]",
        joints,
        {
            "joint": "joint",
            "modelled": "modelled_J",
            "± 95 % (modelled)": lambda row: CONFIDENCE * row["modelled_std_J"],
            "measured": "measured_J",
            "± 95 % (measured)": lambda row: CONFIDENCE * row["measured_std_J"],
            "measured / modelled": "ratio",
        },
    )
    if "note" in joints[0]:
        print_line(f"{bag}: {joints[0]['note']}")


_NULL_ENERGY = "null_energy_error_percent"


def predict(given: Given) -> None:
    """`ur_energy predict`: the energy of a planned trajectory.

    Raises:
        UrEnergyError: the model, the trajectory or the recording cannot be used.
    """
    from ur_energy_model.identification import evaluation
    from ur_energy_model.identification.payload_check import payload_contradictions

    options = given.of(PredictOptions)
    session = options.session
    payload = stated_payload(options.payload)
    chosen = chosen_model(
        options.model, options.robot, [] if session is None else [session]
    )
    model = chosen.model
    if chosen.path is None and session is not None:
        setup = evaluation.recorded_setup(model, session)
        model = replace(model, setup=setup, setup_source="recorded")
    model = with_payload(model, payload)
    contradictions: tuple[Contradiction, ...] = ()
    if session is not None:
        contradictions = payload_contradictions(model, session, stated=payload)
        model = model.in_session(evaluation.identify_session(model, session))
    plan = read_plan(options.trajectory, [joint.name for joint in model.joints])
    robot = model.description()
    plan, plan_warnings = checked_plan(plan, robot.max_acceleration)
    energy = predict_energy(model, plan)
    doubts = [each.words() for each in contradictions]
    warnings = [*doubts, *plan_warnings, *too_weak(energy, robot)]
    warn(warnings)
    if options.json:
        adapted = evaluation.session_json(model.session)
        content = {
            **energy.as_json(),
            "session": adapted,
            "warnings": warnings,
            "contradictions": [each.as_json() for each in contradictions],
        }
        print_json({"model": chosen.entry, **content})
        return
    print_line(
        f"at the supply: {energy.total:.1f} ± {CONFIDENCE * energy.total_std:.1f} J, "
        f"peak {energy.peak_power:.1f} W"
    )
    print_line(f"model: {chosen.words}")
    half_width = CONFIDENCE * energy.electrical_std
    columns = (
        energy.names,
        energy.mechanical,
        energy.electrical,
        half_width,
        energy.efficiency,
    )
    print_table(
        f"energy of {options.trajectory}, {energy.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency"],
        list(zip(*columns, strict=True)),
    )
    if session is None:
        note(
            "this holds for any session; --session BAG of the same day narrows the interval"
        )
        if chosen.path is None:
            load = "without payload" if payload is None else "with this payload"
            note(
                f"this holds for an arm mounted upright, {load}; --session BAG has its mounting"
            )


def report(given: Given) -> None:
    """`ur_energy report`: the HTML report, and its figures as files.

    Raises:
        UrEnergyError: the model, a recording or an option cannot be used.
    """
    from ur_energy_model.report.page import render
    from ur_energy_model.report.report import make_report, report_page

    options = given.of(ReportOptions)
    check_output(options.output, overwrite=options.overwrite)
    if options.figures is not None:
        check_output_folder(options.figures, overwrite=options.overwrite)
    tariff = tariff_of(options.tariff)
    payload = stated_payload(options.payload)
    path, bags = split_model(options.model, options.bags)
    chosen = chosen_model(path, options.robot, bags)
    with progress("report") as show:
        made = make_report(
            with_payload(chosen.model, payload),
            bags,
            model_path=chosen.path,
            payload=payload,
            tariff=tariff,
            trigger=options.cycle,
            output=options.cycle_output,
            same_arm=options.same_arm,
            progress=show,
        )
        show(0.95, "writing")
        page = render(report_page(made))
        figures: list[Path] = []
        if options.figures is not None:
            from ur_energy_model.report.figures import save_chart
            from ur_energy_model.report.recording_charts import recording_charts

            for bag in made.bags:
                several = len(made.bags) > 1  # a folder per recording
                folder = options.figures / bag.label if several else options.figures
                for chart in recording_charts(
                    bag.analysis, joint_power=bag.metrics["joint_power"]
                ):
                    figures += save_chart(
                        chart, folder, formats=options.format or ("png",)
                    )
        write_text(options.output, page)
    if options.json:
        shift = made.shift
        print_json(
            {
                "report": options.output,
                "model": chosen.entry,
                "bytes": len(page.encode()),
                "figures": figures,
                **picked(made, "verdict warnings serials"),
                "contradictions": [each.as_json() for each in made.contradictions],
                **picked(shift, "energy seconds idle_share explained_share"),
                "total_source": shift.total_source.name,
                "total_measured_share": shift.total_source.share,
                **made.wall.as_json(),
                "cost": tariff.cost(shift.energy, made.wall.energy),
                "co2": tariff.emission(shift.energy, made.wall.energy),
                "cycles": len(shift.cycles),
                **made.measures.as_json(tariff),
            }
        )
        return
    # verdict: others
    warn(dict.fromkeys(line for bag in made.bags for line in bag.repetition))
    source = made.shift.total_source.words(made.shift.explained_share)
    print_line(
        f"at the supply: {made.shift.energy:.1f} ± {made.shift.half_width:.1f} J, {source}"
    )
    print_line(f"model: {chosen.words}")
    print_line(made.verdict.headline)
    for item in made.verdict.statements:
        print_line(f"- {item.text}")
    print_measures(made.measures, tariff)
    note(f"report written to {options.output}; open it in a browser")
