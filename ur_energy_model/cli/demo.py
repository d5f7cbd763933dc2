"""`ur_energy demo`: the whole way once, with the simulated controller and the ROS nodes."""

from __future__ import annotations

import argparse
from pathlib import Path


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="the whole way once, with a simulated arm",
        description="A simulated UR5e runs trajectory A while the logger records; identification\n"
        "fits; trajectory B runs while logger and estimator are on; then what the paper\n"
        "tabulates is printed beside the truth.",
        epilog="example: ur_energy demo -o demo_output",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("demo_output"), metavar="FOLDER")
    parser.add_argument("--robot", default="ur5e", help="robot description (default ur5e)")
    parser.add_argument("--host", default="127.0.0.2", help="loopback address of the simulated arm")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of each trajectory")
    parser.add_argument("--seed", type=int, default=None, help="which arm; another one every time")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demo."""
    from ur_energy_model.demo.run import DemoOptions, run_demo

    return run_demo(
        DemoOptions(options.output, options.robot, options.host, options.seconds, options.seed)
    )
