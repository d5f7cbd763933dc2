"""`ur_energy optimize`: the same work for less energy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.optimized_cycle import (
    add_outputs,
    check_outputs,
    compare_production,
    deliver,
    print_cycle,
)
from ur_energy_model.cli.output import print_json, progress

if TYPE_CHECKING:
    from ur_energy_model.optimization.options import OptimizationOptions

LONGEST_CYCLE = 3600.0
"""Longest cycle time that is accepted [s]."""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "optimize",
        run,
        summary="find the cheapest way to do a recorded cycle in the same time",
        description="Find the repeated cycle in a recording and the time law of every move that "
        "takes the least energy at the supply: same paths, same cycle time, same or shorter "
        "waits. Moves slow down where waiting is left over, and trade time with each other.",
        examples="ur_energy optimize model.yaml bags/cell\n"
        "ur_energy optimize model.yaml bags/cell --cycle-time 12 --pareto --json\n"
        "ur_energy optimize model.yaml bags/cell --keep 3,5 --max-speedup 1.5\n"
        "ur_energy optimize model.yaml bags/cell -o cheaper --report cheaper.html --tariff 0.28\n"
        "ur_energy optimize model.yaml bags/cell -o cheaper --execute --host 192.168.56.101\n"
        "ur_energy optimize --before bags/monday --after bags/tuesday bags/wednesday\n"
        "ur_energy optimize --history plant --changed 2026-05-12",
    )
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL.yaml", help="identified model"
    )
    parser.add_argument(
        "bag",
        type=Path,
        nargs="?",
        metavar="BAG",
        help="recording of the running program (a rosbag2 directory)",
    )
    add_options(parser)
    add_outputs(parser)
    add_comparison(parser.add_argument_group("saving of a changed program, without a model"))
    arguments.add_json(parser)
    parser.set_defaults(parser=parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the new cycle may be."""
    positive = arguments.number(float, 1e-3, LONGEST_CYCLE)
    parser.add_argument(
        "--cycle-time",
        type=positive,
        metavar="S",
        help="duration of the new cycle in seconds (default: that of the recorded one)",
    )
    arguments.add_number(
        parser,
        "--keep-dwell",
        0.5,
        "S",
        "waits up to this long must stay, in seconds (gripper, sensor); longer ones are slack",
        (0.0, LONGEST_CYCLE),
    )
    parser.add_argument(
        "--pareto",
        action="store_true",
        help="also compute the least energy over the cycle time, up to twice the recorded one",
    )
    parser.add_argument(
        "--jerk",
        type=arguments.number(float, 1.0, 1e6),
        metavar="RAD/S^3",
        help="largest jerk of the joints (default: no limit)",
    )
    parser.add_argument(
        "--tool-speed",
        type=arguments.number(float, 0.01, 20.0),
        metavar="M/S",
        help="largest speed of tool flange and elbow (default: 1.5; that of the "
        "recording where the cycle time needs it)",
    )
    parser.add_argument(
        "--keep",
        type=step_numbers,
        default=(),
        metavar="MOVE[,MOVE]",
        help="moves (or waits) that stay exactly as recorded: their step numbers in the sheet",
    )
    parser.add_argument(
        "--keep-slow",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep moves that are deliberately slow, as near a part (default: on)",
    )
    parser.add_argument(
        "--max-speedup",
        type=arguments.number(float, 1.0, 1000.0),
        metavar="FACTOR",
        help="largest factor on recorded speeds and accelerations, at least 1 (default: the limits "
        "of the robot; moves that become faster are listed)",
    )
    parser.add_argument(
        "--recorded-limits",
        action="store_true",
        help="stay within the speeds, accelerations and torques of the recording, instead of "
        "those of the robot",
    )
    parser.add_argument(
        "--power-off-after",
        type=positive,
        metavar="S",
        help="let the arm switch off in waits longer than this, in seconds",
    )


def add_comparison(parser: argparse._ActionsContainer) -> None:
    """Proof from ordinary production."""
    for name, when in (("--before", "before"), ("--after", "after")):
        parser.add_argument(
            name,
            nargs="+",
            type=Path,
            default=[],
            metavar="BAG",
            help=f"recordings of ordinary production {when} the program was changed",
        )
    parser.add_argument(
        "--history",
        metavar="STORE",
        help="take the cycles of a history store instead, before and after --changed",
    )
    parser.add_argument(
        "--changed", metavar="DATE", help="when the program was changed, YYYY-MM-DD[THH:MM] in UTC"
    )
    parser.add_argument("--arm", metavar="NAME", help="of which arm of the store")


def step_numbers(text: str) -> tuple[int, ...]:
    """Numbers of steps, such as 3,5."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of step numbers such as 3,5")
    return tuple(int(part) for part in parts)


def options_of(options: argparse.Namespace) -> OptimizationOptions:
    """The options of the optimization among the parsed arguments."""
    from ur_energy_model.optimization.options import OptimizationOptions

    return OptimizationOptions(
        cycle_time=options.cycle_time,
        keep_dwell=options.keep_dwell,
        jerk=options.jerk,
        tool_speed=options.tool_speed,
        recorded_limits=options.recorded_limits,
        pareto=options.pareto or options.report is not None,
        power_off_after=options.power_off_after,
        keep=options.keep,
        keep_slow=options.keep_slow,
        max_speedup=options.max_speedup,
    )


def run(options: argparse.Namespace) -> None:
    """Optimize and print."""
    from ur_energy_model.model.file.model_file import load_model
    from ur_energy_model.optimization.optimize import optimize_cycle

    if options.before or options.after or options.history or options.changed:
        compare_production(options)
        return
    if options.model is None or options.bag is None:
        options.parser.error("MODEL.yaml and BAG are needed, or --before BAG... --after BAG...")
    check_outputs(options)
    model = load_model(options.model)
    with progress("optimizing the cycle") as report:
        result = optimize_cycle(model, options.bag, options_of(options), progress=report)
    result = deliver(result, model, options)
    if options.json:
        print_json(result.as_json())
    else:
        print_cycle(result, pareto=options.pareto)
