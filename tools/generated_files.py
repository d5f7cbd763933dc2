"""Generates config/<node>.yaml, the dashboard layouts and docs/nodes.md.

    python -m tools.generated_files

A test checks that the files in the checkout are up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.launch_files import LAUNCH_FILES, declared_arguments
from tools.parameter_files import markdown_table, parameter_file
from ur_energy_model.files import share_directory
from ur_energy_model.layouts.files import ArmTopics, layout_files
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes.launch_arguments import EXECUTABLES
from ur_energy_model.nodes.parameters import NODES
from ur_energy_model.topics_and_services import PLANNED_TRAJECTORY, SERVICES, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PURPOSE: dict[str, str] = {
    "logger": "Records RTDE into bags without loss and publishes joint_states.",
    "identification": "Identifies a model of an arm from bags.",
    "estimator": "Publishes live power and energy, and improves its model while the arm works.",
    "simulated_robot": "Simulates an arm and the network servers of its UR controller.",
}

INTRODUCTION = """# Nodes, topics, parameters and launch files

Topic names are relative, so that each robot can have a namespace. Live topics are reliable with a
depth of 10; latched topics are transient local with a depth of 1. Of samples that come
late the estimator publishes a message for each period of `publish_rate`; `published_Hz` and
`publications_missed` on its `/diagnostics` count what is published and, while the processor is
busy, left out. More than 2 % left out is a warning. The joint_states of a driver are
subscribed to as best effort, which matches publishers of either reliability. Parameters
`qos_overrides.<topic>...` change history, depth and reliability of each topic.

[Beside ur_robot_driver](cell.md#beside-ur-robot-driver) describes a cell with a driver.

All nodes are lifecycle nodes. They configure and activate themselves unless `autostart` is false.
On SIGINT and SIGTERM they end with exit code 0; if they cannot use their input, they end with exit
code 1 and one line that gives the reason. A parameter that takes effect at configuration can only
be changed while the node is unconfigured. A parameter that has a value but no effect, such as `bag`
with `source:=rtde`, is named in a warning.

## Lines on the terminal

The nodes log what an operator needs to know, on the terminal, in the log file and on `/rosout`; no
kind of line comes more often than once in 10 s, and what falls between two lines is added up in
the next one. A state that lasts is repeated once a minute.

- Connection: `connecting to`, `connected to` (robot, serial number, software, rate). Warnings:
  `waiting for` and `no samples from` with the reason; `come again` with the number of lost samples,
  their time and the number of interruptions; samples lost while connected.
- Bags: at the start `recording to` with the folder and its budget, or `not recording`; then
  `recording` with each bag, and `finished` with samples, lost samples, time and size. A warning if
  samples are lost, an error with the reason if the bag ended by itself. While a recording is
  wanted, the logger tries every 5 s to begin one; `not recording:` gives the reason.
- Disks: an error when the bag, the energy counters or the cycle log cannot be written, and a line
  when they can be written again.
- Model: robot, serial number, age, number of recordings, errors on held-out recordings; a warning
  if it is older than a year, or if a changed file cannot be used. `generic ur5e, not identified`
  where no file is given. An error if the samples are of another robot.
- Learning: each learned model that is used, with its version and the reason; each change of the
  arm once, as a warning; a warning if the process that learns had to be started again, or if a
  model or the state of learning cannot be written.
- A bag that is played: its end, and each new beginning. A step of the system's clock.
- At the end: energy since reset, and the file that it is saved in.

Lines written after Ctrl-C have `.end` behind the name of the node, since ROS is shut down by then.

An exception that nothing expects, in any thread or callback, ends the process with exit code 1 and
one line `unexpected error in`; the line names a file in the log folder of ROS with the traceback.

## Two RTDE clients

Logger and estimator read with a client of this package, and ur_rtde moves the arm where a command
was asked to. ur_rtde keeps the newest packet only, without a queue, so that whoever polls it misses
samples and gets others twice, and after a lost connection it returns the last values without an
error. The counters of energy need every sample. At 500 Hz on two cores, with a simulated
controller:

| reader | samples missed | of one core |
|---|---|---|
| ur_rtde 1.6.5, polled every 2 ms from Python | 0.6 to 1.0 % | 17 to 19 % |
| the same, both cores busy with other work | 28.9 % | |
| ur_rtde 1.6.5, its own recorder of CSV files | 2.2 to 3.8 % | 30 to 36 % |
| a socket that is read packet by packet | 0, cores busy or not | 7 to 8 % |
| the same in batches of 25 packets, as this client reads | 0, cores busy or not | 0.9 % |

`python -m test.benchmarks logger` measures ours and ur_rtde's on your machine. ur_rtde is a good
client for commands: `excite --execute`, `optimize --execute` and `protocol --host` move the arm
through it, and the tests connect it to the simulated controller as the client to satisfy.

## One process for logger and estimator

rclpy has no counterpart of the C++ component container: a Python node cannot be loaded into
`component_container`, and nothing is registered for `ros2 component`. What composition is for, one
process and one connection, `cell_node` does (`composed:=true` of `energy.launch.py`): it runs the
nodes `logger` and `estimator`, with their names, parameters and lifecycles, on one RTDE connection.
Both are configured before one is activated. Address and fields of the connection are the
logger's; the robot is the logger's `robot_model`, or that of the model file, or the one that the
controller names.

## The model, and learning

Without `model_file`, the estimator uses the generic model of the arm. The arm is taken from
`robot_model`, else from the controller's dashboard server, else from the bag. Until the controller
answers, the estimator waits and reports why, as it does with a model file, and nothing is counted.
If the controller answers without a name of the arm, the estimator tries again and asks for
`robot_model`;
`source:=joint_states` names no arm and needs `robot_model` or `model_file`.

`learn` is `on` by default, with and without a model file: a learned model is used only if it
predicts later minutes better than the present one. `learn:=off` computes with the first model
only. `learn:=keep` also writes each learned model to `model_file`, whole or not at all; of
`model.yaml`, `model.original.yaml` keeps the one that was not learned, and `model.1.yaml` to
`model.5.yaml` the learned ones before. It needs `model_file`, which need not exist yet. A
`model_file` with the serial number of another arm is not replaced. If somebody else changes
`model_file`, it is loaded, and learning begins anew with it. `learn` may be given without quotes,
although YAML reads on and off as true and false.

Learning runs in a process of its own at low priority, which uses at most 5 % of a core on average
and ends with the estimator. Samples never wait for it: those for which it has no time are left out
and counted. If it ends by itself, it is started again from its last state. Energies never step
back when a learned model is taken over; it counts from then on.

With `state_file`, the state of learning is kept beside it in `<state_file>.learning-<serial>` (or
`.learning` if the serial number is unknown), one file for each arm. It is written every 30 s and at
the end, so a kill loses at most 30 s of learning, and no energy. It continues only with the model
that it began with, or with the learned model that was written in its place. A bag is learned from
once, also with `loop`, and its state is not kept.

Status `model` on `/diagnostics`:

| Key | Value |
|---|---|
| `model` | the model in use, in words: a path or `generic ur5e, not identified`; what was learned |
| `learned_minutes` | minutes of work that were learned from |
| `next_needed` | what would improve the model most, in words |
| `model_version` | number of learned models so far; 0 is the first model |
| `learned_because` | why the last learned model is used |
| `friction_now` | friction of each joint now in percent of the model's, with 95 % intervals |
| `last_change` | the last change of the arm, in words; the status is a warning for a minute |
| `learning_cpu_percent` | mean share of a core used by learning |
| `learning_left_out` | samples that learning had no time for |
| `learning_restarts`, `learning_problem` | how often the process was started again, and why |

The last seven are absent with `learn:=off`."""

PLANS = """
## Plans

Every message on `energy/planned_trajectory` is answered on `energy/prediction`. Status
`prediction: total` has:

| Key | Value |
|---|---|
| `plan_stamp` | stamp of the plan's header, as `seconds.nanoseconds`: the plan that it is about |
| `refused` | why the plan cannot be used; level ERROR, and no other keys |
| `energy_J`, `energy_std_J`, `duration_s`, `peak_power_W` | of the plan, at the speed of now |
| `optimized_energy_J`, `optimized_energy_std_J` | of the optimized trajectory, later |
| `optimized_peak_power_W`, `optimized_saving_percent` | the same |
| `not_optimized` | why there is none, such as no timing with less energy, or a newer plan |
| `measured_energy_J`, `measured_bus_energy_J`, `measured_duration_s` | of the motion, after it |
| `not_measured` | why there is no measurement |

Refused are plans with other or repeated joint names, values that are not finite, fewer than two
points, times that do not increase, over an hour, beyond the arm's limits, and those that come
before the arm is known.

When a plan comes, an optimized trajectory of an older one is replaced by an empty one with the new
plan's header. A plan may be answered again after a newer one, with what was measured; the newest
plan's answer is then repeated, so that the latched message is always the newest plan's. Up to ten
plans may wait; further ones are refused.

A motion is measured only if it was that of the plan: it starts from rest, at the latest 60 s after
the plan, and every joint is at the planned position at the planned time within 5 % of its way (at
least 0.01 rad, at most 0.05 rad), where one shift of at most 0.1 s applies to the whole motion.
Times are those of the prediction, speed scaling included: a motion at 50 % of the predicted speed,
or with a pause, is reported in `not_measured` with its duration. Several plans may be expected at
once. It takes measured positions and a `publish_rate` above 10 Hz; a busy machine may leave out up
to 0.5 s within a motion."""

LAUNCH_INTRODUCTION = """
## Launch files

Later sources of parameters win: `config/<node>.yaml`, then `params_file`, then launch arguments
that differ from their default. Whole numbers are taken where numbers are meant. Lists are typed
with commas (`a,b`) or as YAML (`"['a', 'b']"`). Before anything starts, one line refuses unknown
arguments, values that are not allowed (in `params_file` too) and missing packages; the exit code
is 1 then.
Launch returns 1 at its end, too, if a node has failed (the identification, say) and is not started
again by `respawn`; until then the other nodes go on.

Characters of `tf_prefix` that names of topics must not have are replaced by `_` in names of topics
only; joints and frames keep them."""


def files() -> dict[str, str]:
    """Text of every generated file, by path in the checkout."""
    joints = load_robot("ur5e").joint_names  # every UR arm has the same names
    layouts = layout_files(ArmTopics(tuple(joints)))
    return {
        **{f"config/{node}.yaml": parameter_file(node) for node in NODES},
        **{f"config/{name}": text for name, text in layouts.items()},
        "docs/nodes.md": "\n".join(_document()) + "\n",
    }


def _document() -> Iterator[str]:
    yield INTRODUCTION
    for node, executable in EXECUTABLES.items():
        yield ""
        yield f"## {executable}"
        yield ""
        yield f"{PURPOSE[node]} The node name is `{node}`; `config/{node}.yaml` holds the defaults."
        yield ""
        yield "| topic | type | rate | content |"
        yield "|---|---|---|---|"
        for topic in TOPICS[node]:
            rate = "subscribed" if topic.subscribed else topic.rate
            latched = " (latched)" if topic.latched else ""
            yield f"| `{topic.name}` | {topic.type} | {rate}{latched} | {topic.description} |"
        if SERVICES[node]:
            yield ""
            yield "| service (std_srvs/Trigger) | effect |"
            yield "|---|---|"
            for service in SERVICES[node]:
                yield f"| `{service.name}` | {service.description} |"
        yield ""
        yield from markdown_table(node)
        if PLANNED_TRAJECTORY in TOPICS[node]:
            yield PLANS
    yield LAUNCH_INTRODUCTION
    for name in LAUNCH_FILES:
        yield ""
        yield f"`ros2 launch ur_energy_model {name}.launch.py [argument:=value ...]`"
        yield ""
        yield "| argument | default | description |"
        yield "|---|---|---|"
        for argument in declared_arguments(name):
            default = "required"
            if argument.default_value is not None:
                default = f"`{argument.default_value}`" if argument.default_value else "empty"
            choices = f" ({', '.join(argument.choices)})" if argument.choices else ""
            yield f"| `{argument.name}` | {default} | {argument.description}{choices} |"


def main() -> None:
    """Write the files into the checkout."""
    root: Path = share_directory()
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
