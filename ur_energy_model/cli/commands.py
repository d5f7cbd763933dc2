# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The subcommands of `ur_energy`: what each is for, and its options as the help describes them.

What a command does is in the other modules of this folder, which are imported when it
runs.
"""

from __future__ import annotations

GROUPS: dict[str, tuple[str, ...]] = {
    "everyday": (
        "demo", "record", "live", "inspect", "identify", "learn", "evaluate", "estimate", "predict",
        "optimize", "profile", "payload", "report", "import", "recover", "completion",
    ),
    "plant, many arms over months": ("history", "layouts"),
    "research": ("base-parameters", "excite", "protocol", "simulate"),
}  # fmt: skip
"""Subcommands, as the help lists them."""

# A section of the text begins with `== name (module.function): summary`. Then come a paragraph of
# description, command lines with `$` in front, options, and below `notes:` what the help ends with.
# An option is `words  help`, with two blanks between them; further lines are indented:
#
#     --csv FILE             file to write (FILE, BAG, MODEL.yaml and others are paths)
#     --rate HZ =50.0 1:500  a number with its default and its range; N is a whole number
#     --by arm|day           one of these words, the first by default
#     bags BAG...            positional, one or more, which `bags` holds; [BAG] may be left out
#     --from first DATE      an option that `first` holds
#     --arm NAME*            may be repeated
#     -o --output FILE!      required
#
# Options below a line that ends with a colon are a group of the help, those between `@one of` or
# `@exactly one of` and `@end` exclude each other. `@name words` stands for the options in the
# section `== @name`, with the words in place of `...`; `parser` makes those of @payload and @sinks.

TEXT = r"""
== @json
--json  print one JSON object on stdout and nothing else

== @overwrite
--overwrite  replace what exists already: files of the same names, nothing else

== @model
model [MODEL.yaml]  identified model of the arm

== @model-or-robot
model [MODEL.yaml]  identified model (default: the generic one of --robot)
--robot NAME  name of the robot, such as ur5e (default: the one of the model, or of the bag)

== @robot
--robot NAME  name of the robot, such as ur5e, or its YAML file (default: ...)

== @bag
bag BAG  recording (a rosbag2 directory)

== @bags
bags BAG...  ... (rosbag2 directories)

== @same-arm
--same-arm  the model is of this very arm, whatever the serial numbers are, as after an exchange of
    its control box

== @validate
--validate BAG*  held-out recording: predicted, not fitted (may be repeated)

== @host
--host ADDRESS  address of the robot controller

== @consent
--yes  move the robot without asking
--another-arm  run although serial number, mounting, payload, tool or pose are not those that the
    motion was recorded with or planned for (never on another model)

== @execution
@host
@consent
--warm-up MIN =0.0 0:1440  warm-up motion before recording [min]

== @surroundings
--clearance M =0.03 0:5  minimum distance to obstacles [m]
--table M =0.0 -5:5  height of the table above the base [m]
--wall NX NY NZ OFFSET* -100:100  half-space to stay out of (may be repeated)
--tool LENGTH RADIUS 0:5  size of the tool on the flange [m] (default: no tool)

== @tariff
--tariff PRICE -1e6:1e6  price per kWh (default: no cost)
--currency NAME =EUR  of the price
--co2 KG 0:5  kg of CO2 per kWh (default: no emission)
--supply-efficiency SHARE 0.01:1  share of the wall power that reaches the robot bus (default: cost
    and CO2 of the energy at the wall, control box included)

== @year
--hours-per-year H =8760.0 1:8784  hours of such work in a year, for what is saved in a year

== @cluster
--scheduler URL  work on the bags on a running Dask cluster, such as tcp://10.0.0.5:8786
    (default: on the cores of this machine)
--workers N 1:1024  number of processes of this machine (default: as many as save time)

== @store
store STORE  folder of the history store, or s3://BUCKET/PREFIX

== @period
--from first DATE  first day, YYYY-MM-DD, or time, YYYY-MM-DDTHH:MM (default: where the store
    begins)
--to last DATE  last day, included, or time at which it ends (default: where the store ends)
--time-zone NAME =UTC  in which days, hours and shifts begin, such as Europe/Berlin
--arm NAME*  only this arm (may be repeated; default: all)

== @history
--model MODEL.yaml  identified model of the arm (default: the generic one of its type)
--robot NAME  type of the arm, such as ur5e (default: the one of the model, or of each bag)
--arm NAME  name of the arm in the store (default: serial number in the bag, or else the type)
@same-arm
--cycle-trigger auto|none|program|digital_output|int_register  what starts a cycle; auto: program
    start, digital output or repeated motion, whichever shows cycles
--cycle-output N =0 0:63  digital output of --cycle-trigger digital_output
--script PROGRAM.script*  names the nodes of a program, which else are lines (may be repeated)

== record (recordings.record): record a robot's telemetry into a bag
Record the telemetry of a robot (RTDE, port 30004) into a rosbag2 directory without losing a sample.
Connection losses are bridged and recorded as gaps.
$ ur_energy record --host 192.168.0.10 --duration 60 -o monday
$ ur_energy record --host 192.168.0.10 -o monday \
    --meter "http://192.168.0.20/rpc/Switch.GetStatus?id=0"
--host ADDRESS!  address of the robot controller
@robot the one that the controller names
-o --output BAG!  directory to create
--fields NAME,...  RTDE fields to record (default: all that energy models need)
--duration S 0.001:1e9  stop after S seconds (default: on Ctrl-C)
--rate HZ 0.001:1e9  samples per second (default: every cycle of the controller)
--split-minutes MIN 0.001:1e9  start a new file every M minutes
--split-mb MB 0.001:1e9  start a new file every M megabytes
--wait S =0.0 0.001:1e9  retry the connection for up to S seconds (default: try once)
--meter URL  also record the readings of a power meter at the mains: http://HOST/rpc/METHOD?id=N
    (Shelly), mqtt://HOST/TOPIC#path.in.json or modbus://HOST/UNIT?profile=NAME
@json
notes:
Ctrl-C finishes the bag. The robot is only read, never commanded. Exit code 3:
less is in the bag than was asked for, because the robot was away at the end,
the disk was full, or files of the bag were deleted or changed; what is missing
is counted as lost.

== import (recordings.import_csv): turn CSV recordings into a bag
Turn CSV recordings of RTDE data into a bag. Values are separated by commas, semicolons, tabs or
blanks; files may be gzipped. Columns have RTDE field names (actual_q_0 ...), as written by
ur_rtde's recorder and Universal Robots' Python client; a unit in brackets may follow. Files without
a header line need --columns or --layout. Rows that cannot be samples of this arm are reported and
left out; a file with more than 1 % of them is refused. See docs/recording.md.
$ ur_energy import pick_place.csv.gz --robot ur5e -o pick_place
$ ur_energy import log.txt --robot ur5e -o log \
    --columns timestamp,actual_q,actual_qd,-
csv CSV...  recordings, in order of time
@robot none: CSV files do not name the arm
-o --output BAG!  directory to create
--columns NAMES  column names, separated by commas, for files without a header line: actual_q or
    actual_q[6] names six columns, '-' skips one and '-[3]' three
--layout LAYOUT  column order of a known kind of file (listed below)
--rate HZ 0.001:2000  samples per second, for files without a time column or with equal times
--time-unit auto|s|ms|us|ns|min|h|d  unit of the time column; auto: as its name states, else by the
    size of its numbers, their steps, and the motion of the arm
@overwrite
@json

== recover (recordings.recover): repair an interrupted or damaged bag
Rebuild the index and metadata.yaml of a bag that is damaged or whose recording was killed.
Everything intact is kept; what is lost is reported.
$ ur_energy recover night_shift
bag BAG  recording to repair in place (a rosbag2 directory)
@json

== inspect (recordings.inspect): assess the quality of a recording
Assess a recording: rate, gaps, excitation, speed and torque of each joint, condition number, frozen
or clipped channels, freedrive, temperatures, simulated data. The exit code is 0 even if the verdict
is bad; identify refuses such a bag.
$ ur_energy inspect night_shift
@bag
@robot the one named in the bag; needed for the condition number
@json

== estimate (energies.estimate): compute the energy of recordings, per joint and in total
Compute the mechanical and electrical energy and the efficiency of recordings, per joint and in
total, with the model of the arm or, without MODEL.yaml, with the generic model of its type, whose
intervals are wider; and what can be done for less energy, ranked.
$ ur_energy estimate task --robot ur5e
$ ur_energy estimate model.yaml task --csv power.csv
$ ur_energy estimate model.yaml task --bag task_energy
$ ur_energy estimate model.yaml monday/* --json
$ ur_energy estimate task --tariff 0.28 --hours-per-year 4000
@model-or-robot
@bags recordings
--csv FILE  also write the powers over time to this file (of a single recording)
--bag energy_bag OUT  also write the topics that the estimator node would publish to this bag, for
    the layouts of PlotJuggler and Foxglove (of a single recording)
--rate HZ =50.0 1:500  messages per second of --bag, 1 to 500
@overwrite
@payload the model's
@same-arm
@cluster
what can be done, in a year:
@tariff
@year
@end
@json

== profile (profile.run): attribute the energy to the lines and nodes of the robot program
Attribute the energy of a recording to the lines of the robot program, as script_control_line shows
them, and with --script to its nodes (the `$ n "label"` comments of PolyScope). All parts sum to the
energy of `estimate`.
$ ur_energy profile bags/cell --script palletising.script
$ ur_energy profile bags/cell --model model.yaml --script palletising.script -o profile
$ ur_energy profile before --script old.script --compare after --compare-script new.script
bag BAG  recording of the running program (a rosbag2 directory)
--model MODEL.yaml  identified model of the arm (default: the generic one of its type)
--robot NAME  name of the robot, such as ur5e (default: the one of the model, or of the bag)
--script PROGRAM.script  what PolyScope saves beside the .urp file
-o --output FOLDER  write profile.json, profile.html and profile.folded (stacks for flame graph
    viewers) to this folder
--html FILE  write the page, which opens offline, to this file
@overwrite
--compare BAG  recording of another version of the program
--compare-script PROGRAM.script  its script (default: that of --script)
--shifts TIMES  when the shifts of a day begin, such as 06:00,14:00,22:00
--time-zone ZONE =UTC  of the shifts, such as Europe/Berlin
@same-arm
@json

== evaluate (energies.evaluate): compare a model with recordings
Compare the torque, current and power of a model with recordings.
$ ur_energy evaluate model.yaml task --json
@model
@bags recordings to compare with
--no-anchor  use the model's standby power and friction, without adapting them to the recording's
    standstill and first seconds of motion
@payload the controller's setting, from target_moment
@same-arm
@cluster
@json

== predict (energies.predict): predict the energy of a trajectory before the robot moves
Predict the energy of a planned trajectory, per joint and in total. The CSV file has a header line
with the columns time [s], q_0 ... [rad] and, where known, qd_0 ... and qdd_0 ... Measured positions
(actual_q_0 ...) are smoothed and jittered times spaced evenly first, with a warning.
$ ur_energy predict model.yaml trajectory.csv
$ ur_energy predict trajectory.csv --robot ur5e
@model-or-robot
trajectory TRAJECTORY.csv  planned motion of the joints
@payload the model's
--session BAG  recording of the same day, to take standby power (from standstill) and friction (from
    the first seconds of motion) from; without it the interval is wider, to cover their spread
    between sessions
@json

== report (energies.report): write an HTML report of a model and recordings
Write one HTML file that opens offline in any browser: a verdict in plain words, measured and
modelled torque, current, power and energy, the identified parameters with their intervals, and the
energy of a shift with its cost, and what can be done for less.
$ ur_energy report model.yaml my_bag another_bag -o report.html
$ ur_energy report my_bag --robot ur5e -o report.html
$ ur_energy report model.yaml monday_shift -o shift.html \
    --tariff 0.28 --co2 0.38
@model-or-robot
@bags recordings of the arm
-o --output --html REPORT.html!  page to write
--figures FOLDER  also write the figures to this folder
--format png|svg*  file format of --figures (default: png; may be repeated)
@overwrite
@payload the model's
@same-arm
energy of a shift:
@tariff
@year
--cycle auto|none|program|digital_output|int_register  what starts a cycle: program start, edge of a
    digital output, or change of output_int_register_0; auto: program start, digital output or
    repeated motion, whichever shows cycles
--cycle-output N =0  number of the digital output for --cycle digital_output
@end
@json

== live (live.run): show live power and energy of an arm; feed Foxglove, Prometheus, MQTT, OPC UA
Show power and energy of an arm while it works: each joint, the whole arm beside the measured bus,
standby, cycles and losses of the connection. In a terminal it fills the screen; elsewhere it prints
one line a second, and one a minute while no samples come. Without --model it uses the generic model
of the arm's type, whose intervals are wider. It ends with what can be done for less energy, ranked.
ROS is not needed.
$ ur_energy live --host 192.168.0.10 --model model.yaml
$ ur_energy live --host 192.168.0.10 --prometheus 127.0.0.1:9464 --foxglove \
    --state-file energy.db
$ ur_energy live --bag monday --json
@exactly one of
@host
--bag BAG  play a recording at the speed it was made
@end
--model MODEL.yaml  identified model (default: generic)
--robot NAME  name of the robot, such as ur5e (default: from controller, model or bag)
@same-arm
--state-file FILE  file that keeps the counters over restarts (default: they begin at zero)
--script PROGRAM.script  script of the running program, whose nodes are named
--duration S 0.1:1e9  stop after S seconds (default: when the user quits)
--json  print one JSON object a second, each on a line
what can be done, in a year:
@tariff
@year
where else the energies go (each may be repeated):
@sinks
notes:
q or Ctrl-C quits. The robot is only read, never commanded. Servers listen on this
machine only unless --allow-network is given.

== optimize (optimize.run): find the cheapest way to do a recorded cycle in the same time
Find the repeated cycle in a recording and the time law of every move that takes the least energy at
the supply: same paths, same cycle time, same or shorter waits. Moves slow down where waiting is
left over, and trade time with each other.
$ ur_energy optimize model.yaml bags/cell
$ ur_energy optimize model.yaml bags/cell --cycle-time 12 --pareto --json
$ ur_energy optimize model.yaml bags/cell --keep 3,5 --max-speedup 1.5
$ ur_energy optimize model.yaml bags/cell -o cheaper --tariff 0.28
$ ur_energy optimize model.yaml bags/cell -o proven --execute --host 192.168.56.101
$ ur_energy optimize --before bags/monday --after bags/tuesday bags/wednesday
$ ur_energy optimize --history plant --changed 2026-05-12
model [MODEL.yaml]  identified model
bag [BAG]  recording of the running program (a rosbag2 directory)
@same-arm
--cycle-time S 0.001:3600  duration of the new cycle in seconds (default: that of the recorded one)
--power-off-after S 0.001:3600  let the arm switch off in waits longer than this, in seconds
--jerk RAD/S^3 1:1e6  largest jerk of the joints (default: no limit)
--tool-speed M/S 0.01:20  largest speed of tool flange and elbow (default: 1.5; that of the
    recording where the cycle time needs it)
--max-speedup FACTOR 1:1000  largest factor on recorded speeds and accelerations, at least 1
    (default: the limits of the robot; moves that become faster are listed)
--keep-dwell S =0.5 0:3600  waits up to this long must stay, in seconds (gripper, sensor); longer
    ones are slack
--pareto  also compute the least energy over the cycle time, up to twice the recorded one
--keep MOVE[,MOVE] =()  moves (or waits) that stay exactly as recorded: their step numbers in the
    sheet
--[no-]keep-slow  keep moves that are deliberately slow, as near a part (default: on)
--recorded-limits  stay within the speeds, accelerations and torques of the recording, instead of
    those of the robot
-o --output FOLDER  write the sheet (pendant.csv), a URScript program, servoJ set points, a ROS
    trajectory, a CSV for `predict`, the figures and the page (optimize.html) to this folder
--html --report report FILE.html  write the page, which opens offline, to this file
@overwrite
cost, for the page:
@tariff
@year
proof on the arm:
--execute  run the cycle as recorded and as typed from the sheet in turns, and measure the saving at
    the bus; the recording goes to the folder of -o
@execution
--cycles N =6 1:1000  cycles of each kind; even numbers cancel drift
surroundings, for --execute:
@surroundings
saving of a changed program, without a model:
--before BAG...  recordings of ordinary production before the program was changed
--after BAG...  recordings of ordinary production after the program was changed
--history STORE  take the cycles of a history store instead, before and after --changed
--changed DATE  when the program was changed, YYYY-MM-DD[THH:MM] in UTC
--arm NAME  of which arm of the store
@end
@json

== identify (identify.run): identify an arm's model from bags
Identify the inertia, torque constants, friction and power of an arm from bags, and write them to a
model file.
$ ur_energy identify excitation --validate task -o model.yaml
$ ur_energy identify --per-arm monday/* -o arms
$ ur_energy identify short --fleet arms -o new_arm.yaml
@bags recordings to fit, all together
@robot the one that the bags name
@validate
--same-arm  the recordings are of one arm, whatever the serial numbers are, as after an exchange of
    its control box
-o --output MODEL.yaml!  model file to write; with --per-arm, folder of the models
@overwrite
--per-arm  one model per arm (serial number) into the folder OUTPUT; arms of one joint size share
    what the data show that they have in common
--fleet FOLDER  models of other arms to start from (default with --per-arm: those already in the
    folder OUTPUT)
--friction LAW =auto  friction law (listed below), or auto to select one per joint by
    cross-validation
--power-model physical|ecbot|catalogue  physical structure with priors, the 4n+1 free coefficients
    of EcBot, or the catalogue motors that Clochiatti et al. assume for a UR5e
--link-tensors file|identify  inertia tensors of the links: from the robot file, or identified from
    target_moment where the file has none or wrong ones
--gravity X Y Z -100:100  gravity in the base frame [m/s^2], if the mounting is known (default:
    estimated)
@payload-or-identify the controller's setting, from target_moment
@cluster
@json

== learn (parameters.learn): learn an arm's model from recordings of its ordinary work
Go through recordings as the estimator would live: fit the model again as data accumulate, and take
it over only where it predicts the following minutes better. Writes the last model, and prints the
history of attempts and the changes of the arm.
$ ur_energy learn monday tuesday --robot ur5e -o model.yaml
$ ur_energy learn wednesday --model model.yaml -o model.yaml --overwrite --json
@bags recordings in order of time
@robot the one that the model or the bags name
--model MODEL.yaml  model to start from (default: the generic model of the arm)
-o --output MODEL.yaml!  model file to write
--figure FILE  picture of errors, intervals and versions over time, PNG or SVG (default: beside the
    output)
--overwrite  replace what exists already; the earlier model is kept beside the new one
@json

== payload (parameters.payload): identify the payload from motor currents
Identify the mass and the centre of mass (flange frame, m) of the payload in a bag from the motor
currents, independent of the controller's payload setting. With a known payload, calibrate the
drives instead, preferably together with a recording of the empty arm; the calibrated model then
identifies other payloads more accurately.
$ ur_energy payload model.yaml loaded_motion
$ ur_energy payload model.yaml loaded_motion --empty empty_motion
$ ur_energy payload model.yaml loaded_motion --known-payload 2.805 \
    --empty empty_motion -o calibrated.yaml
@model
bag BAG  recording with the payload (a rosbag2 directory)
--known-payload KG -1000:1000  actual mass, to calibrate with
--empty BAG  recording of the same arm with an empty flange; the payload is the difference
-o --output MODEL.yaml  calibrated model to write (needs --known-payload)
@overwrite
@robot the one named in the model
@json

== base-parameters (parameters.base_parameters): identify an arm's base parameters
Identify the base parameters of an arm: rank, regrouping, weighted least squares with standard
deviations, and the nearest physically consistent parameters. Torque is measured current times
torque constant and gear ratio; --from target_moment uses the controller's torque instead (without
friction), --from measured_torque the joint torque that an arm measures itself
(actual_current_as_torque), for arms without known torque constants. Units: kg, m, N m; friction on
the joint side.
$ ur_energy base-parameters excitation --robot ur5e --validate other_motion
@bags recordings to fit, all together
@robot the one that the bags name
@validate
--from torque current|target_moment|measured_torque  source of the torque
--model MODEL.yaml  use the torque constants of this model (default: those of the robot file)
@json

== excite (excite.run): design and run a trajectory that excites all parameters
Design a Fourier trajectory that makes the parameters of an arm identifiable, check it, export it,
or run and record it. Only --execute moves a robot.
$ ur_energy excite --robot ur5e -o trajectory.yaml
$ ur_energy excite --for-gap model.yaml -o gap.yaml
$ ur_energy excite --check trajectory.yaml
$ ur_energy excite --execute trajectory.yaml --host 192.168.56.101 -o cell_3
$ ur_energy excite --export trajectory.yaml -o trajectory.script
@one of
--robot NAME  design a trajectory for this robot (default: that of --for-gap)
--execute TRAJECTORY  run a trajectory (a file, or the included one of a robot) and record it
--check TRAJECTORY  check a trajectory without moving a robot
--export TRAJECTORY  write a trajectory as URScript (.script) or as a table (.csv)
@end
-o --output PATH  trajectory, bag or export to write
--overwrite  replace an existing trajectory or export, never a bag
design:
--objective condition|logdet|energy  condition number of the base regressor, its log-determinant, or
    the accuracy of the energy model's own parameters
--for-gap MODEL.yaml  design for what this learned model lacks only: the joints and speeds that
    ordinary work has not shown (replaces --objective)
--optimizer gradient|genetic  search method; genetic is that of Raviola et al. 2021, for comparison
--harmonics N =5 2:50  harmonics of the Fourier series, 2 to 50
--period S =10.0 0.1:1000  period of the trajectory [s], 0.1 to 1000
--repetitions N =3 1:100000  periods per run
--seed N =0 0:4294967295  seed of the random starts
--time-limit S =55.0 0.1:1e5  maximum time for the search [s]
--population N =300 2:100000  individuals of the genetic search
--generations N =5 1:100000  generations of the genetic search
@payload none
surroundings:
@surroundings
--tool-speed M/S =1.5 0.001:20  speed limit of flange and elbow [m/s]
execution:
@execution
--speed-fraction F =1.0 0.001:1  share of the designed speed
@end
@json
notes:
The package includes checked trajectories: --execute ur5e runs the UR5e's.
Walls are given in the base frame: --wall NX NY NZ OFFSET keeps the arm where
NX x + NY y + NZ z > OFFSET, so --wall -1 0 0 -0.6 is a wall at x = 0.6 m.

== protocol (protocol.run): repeat the experiment of a paper and compare the results
Design, run, record, identify and evaluate as in a paper, and compare the results with the published
ones. This moves the robot.
$ ur_energy protocol s1 --host 192.168.56.101 -o cell_3_s1
$ ur_energy protocol s1 --simulated --campaign -o try_s1  (a simulated arm, without a controller)
$ ur_energy protocol all --simulated -o papers             (all of them, and one page)
protocol s0|s1|s2|s3|s4|all  experiment (listed below)
@host
--simulated  simulate the arm here, faster than real time, instead of moving one at --host
-o --output DIR!  new folder for all results; 'all' continues in its own
@robot the one that the controller reports, or the paper's
@consent
--campaign  s1: cold run, half an hour of warm-up, warm run, and friction in both states
--paper-settings  s1, s4: limits and genetic algorithm of the paper for the exciting trajectory
--quick  shorter motions and searches, for a first look
--seed N =0 0:4294967295  seed of the random choices
--design-time S =25.0 0:1e5  time to design each trajectory [s]
@json
notes:
experiments:
  s0   test motions A and B through random points: torque, current, energy
       (Robotica 2024)
  s1   exciting trajectory, base parameters, validation (RAAD 2021)
  s2   sinusoids, power model with all terms free (EcBot)
  s3   pick and place of the UR5 of the slides, drive model, PD control
       (Battistini et al.)
  s4   self and general verification, known payload (Machines 2024)
  all  every protocol on simulated arms, and a page of published beside obtained

== demo (desk.demo): run the complete workflow with a simulated arm
Record a simulated arm on trajectory A, identify its model, run trajectory B with logger and live
estimator, and print the tables of the paper beside the simulated truth.
$ ur_energy demo -o demo_output
-o --output FOLDER =demo_output  folder for all results
--robot NAME =ur5e  robot to simulate
--host ADDRESS =127.0.0.2  loopback address of the simulated arm
--seconds S =40.0  length of each trajectory
--seed N 0:4294967295  number of the simulated arm (default: another one each time)

== simulate (desk.simulate): run a simulated arm for RTDE clients
Run a simulated UR controller with a moving arm in real time.
$ ur_energy simulate --robot ur5e --host 127.0.0.2 --truth truth.json
$ ur_energy simulate --robot ur10 --host 127.0.0.3 --motion hold \
    --fault voltage_dip@10:30
--robot NAME!  name of the robot, such as ur5e, or its YAML file
--host ADDRESS =127.0.0.1  loopback address to listen on
--allow-network  allow a --host that other machines can reach
--motion NAME|FILE =trajectory_a  trajectory_a, trajectory_b, hold, sinusoids, pick_and_place,
    warm_up or a trajectory file
--duration S 0:1e9  end after S seconds (default: on Ctrl-C)
--seed N =0 0:4294967295  number of the arm of its type, and seed of its noise
--session N =0 -1000000:1000000  number of the arm's session: standby power, friction and
    temperatures differ between sessions; 0 is the arm without these differences
--ambient C =25.0 -40:80  ambient temperature [degC]
--speed X =1.0 0:1e3  speed relative to real time
--controller-version X.Y.Z  software version to report, which also determines the RTDE fields
    (default: a recent one of the robot's generation)
--payload KG[,X,Y,Z]  payload set in the controller, with its centre of mass [m] (default: none)
--carried KG[,X,Y,Z]  payload that the arm actually carries (default: as set in the controller)
--mounting TILT[,ROTATION]  orientation of the base in degrees; 90 is a wall (default: upright)
--controller feedforward|pd  type of the joint controller
--drive-set typical|s3  gears: typical of the arm's type, or those of the UR5 model of Battistini et
    al.
--fault SPEC*  fault to simulate (listed below; may be repeated)
--wall URL*  serve a power meter at the mains: http://A:P (a Shelly device) or modbus://A:P; or
    publish it to a broker: mqtt://A:P/TOPIC (may be repeated)
--truth FILE  write the ground truth (JSON, and power over time as .npz) here at the end
@overwrite
notes:
The simulation is ready when it prints `ready ADDRESS:30004`; Ctrl-C ends it.
RTDE is on port 30004, the dashboard on 29999, scripts and state on 30001 to
30003. Port 29998 takes faults at run time, one per line, such as
`fault stalled_stream@0+2`.

Faults are written NAME[@T[+D]][:ARGUMENT], T seconds after the start for D
seconds.

== layouts (desk.layouts): write layouts of PlotJuggler, Foxglove, rviz and Grafana for an arm
Write layouts of PlotJuggler (live topics and bags), Foxglove and rviz for the energy topics of an
arm, with the namespace and the tf_prefix of its nodes, and a dashboard of Grafana with a
configuration of Prometheus. Those without namespace and prefix are in the package's config folder.
$ ur_energy layouts --namespace cell1 --tf-prefix left_ -o layouts
--namespace NAME =  namespace of the nodes (default: none)
--tf-prefix PREFIX =  parameter tf_prefix of the nodes (default: none)
@robot ur5e
-o --output DIR!  folder for the files
@overwrite
@json

== completion (desk.completion): print a completion script for bash, zsh or fish
Print a script that completes subcommands, options, their values and file names in a shell. Needs
the Python package shtab.
$ ur_energy completion bash > ~/.local/share/bash-completion/completions/ur_energy
$ ur_energy completion zsh > ~/.zfunc/_ur_energy       # a folder of your $fpath
$ ur_energy completion fish > ~/.config/fish/completions/ur_energy.fish
shell bash|zsh|fish  shell to complete in

== history: store and query the energy of many arms over months
Store the energy of many arms per second and per cycle in a folder of Parquet files, and query it.
$ ur_energy history add plant monday tuesday --model arm.yaml
$ ur_energy history watch plant recordings --model arm.yaml
$ ur_energy history summary plant --by day --tariff 0.25
$ ur_energy history report plant -o plant.html

== history add (history.add): add the energy of recordings to a history store
Compute the energy of recordings per second and per cycle, and add it to a history store. A bag that
the store has already is skipped; time of an arm that the store has from another recording is left
out. Interrupted, it can be repeated.
$ ur_energy history add plant task_1 task_2 --model arm.yaml
$ ur_energy history add s3://energy/plant bags/* --model arm.yaml
@store
@bags recordings
@history
@cluster
@json

== history watch (history.watch): add recordings to a history store as they appear in a folder
Look for bags in a folder again and again, and add those that are complete to a history store; of a
bag that is being recorded, the files that are complete. Ends with Ctrl-C.
$ ur_energy history watch plant recordings --model arm.yaml
$ ur_energy history watch s3://energy/plant recordings --model arm.yaml --interval 60
@store
folder FOLDER  folder of bags, or one bag
@history
--interval S =10.0 0.01:1e5  time between two readings of the folder [s]
--once  add what is complete now, and end (for cron)
--json  print one JSON object per line when bags were added

== history summary (history.summary): sum up the energy by arm, calendar, program or joint
Sum up the energy in a history store by arm, hour, shift, day, week, month, program, node of the
program or joint, with the shares of standby, idle and motion, and its cost and CO2.
$ ur_energy history summary plant
$ ur_energy history summary plant --by month --tariff 0.25 --co2 0.38
$ ur_energy history summary plant --by shift --shifts 06:00,14:00,22:00 \
    --time-zone Europe/Berlin
$ ur_energy history summary plant --by arm --by joint --from 2026-05-01 --to 2026-05-31
@store
--by arm|hour|shift|day|week|month|program|node|joint*  what the rows are (default: arm; may be
    repeated)
@period
--shifts TIMES  when the shifts of a day begin, such as 06:00,14:00,22:00
cost:
@tariff
@end
@json
notes:
what the figures are:
  kWh          at the supply of the arm: measured where the controller states bus voltage and
               current, else by the model; --json has J, and which (total_source)
  standby      the part of the energy that the arm takes at all times, also in motion
  idle         the energy while no joint moves, standby included
  motion       the energy while a joint moves, standby included; idle and motion are all of it
  outside      what no complete cycle contains
  hours, W     time that the store accounts for, of all arms; mean power

== history report (history.report): write one HTML page about all arms
Write one HTML page that needs no network: energy of the fleet by day, hour of the week and arm,
cycles over time, days on which an arm was unlike itself, and cost and CO2.
$ ur_energy history report plant -o plant.html --tariff 0.25 --co2 0.38
$ ur_energy history report plant -o may.html --from 2026-05-01 --to 2026-05-31 \
    --time-zone Europe/Berlin
@store
-o --output --html FILE.html!  page to write
@overwrite
@period
cost:
@tariff
@end
@json

== history health (history.health): friction, torque constants and standby power over days
Follow the friction and the torque constant of each joint and the standby power of each arm over
days, at equal temperature. Changes that are larger than their uncertainty are given in words.
$ ur_energy history health plant
$ ur_energy history health s3://plant/history --json
@store
@json

== history export (history.export): write seconds or cycles to a CSV file
Write the rows of a table to a CSV file, in order of arm and time, with one column per joint. Other
programs can also read the Parquet files of the store directly.
$ ur_energy history export plant -o may.csv --from 2026-05-01 --to 2026-05-31
$ ur_energy history export plant -o cycles.csv --table cycles --arm 20225500123
@store
-o --output FILE.csv!  file to write
@overwrite
--table seconds|cycles  what to write
@period
@json

== history sql (history.sql): query with SQL
Run one SELECT statement of DuckDB's SQL on a history store and print its result.
$ ur_energy history sql plant "SELECT arm, max(peak_power) FROM seconds GROUP BY arm"
$ ur_energy history sql plant "SELECT day, sum(energy) FROM joint_seconds \
    WHERE joint = 'elbow_joint' GROUP BY day ORDER BY day" --json
@store
sql SQL  SELECT statement
@period
--limit N =100 1:1000000  rows to print; --json prints all
--timeout S =60 0.1:1e9  end the query after S seconds of computation
@json
notes:
tables:
  seconds        one row per arm and second; columns: docs/plant/history.md, or ask
                 DESCRIBE seconds
  cycles         one row per program cycle
  health         one row per minute of work: friction, torque constants, standby
  program_nodes  one row per minute and node of the program: count, seconds, joules
  joint_seconds  the energies of seconds, one row per joint
  models         one row per model: hash, serial number, date, path
Energies are in J, times in s, powers in W. The store is only read; a query
has no access to files and networks, at most 2 GB of memory, and a minute of
computation (--timeout).

== history compact (history.compact): write one file per arm and day in place of many
Write one file per arm and day in place of those of many recordings, and remove files that were
replaced more than a day ago. No row changes. history add does it by itself where a day has many
files.
$ ur_energy history compact plant
@store
@json
"""
