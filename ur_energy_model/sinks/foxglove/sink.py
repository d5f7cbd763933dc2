# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove: readings as messages of a WebSocket server, or in MCAP files."""

from __future__ import annotations

import logging
import resource
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as Xml

import foxglove
import numpy as np
from foxglove import messages as fox
from foxglove.websocket import ChannelView, Client, ServerListener, WebSocketServer
from scipy.spatial.transform import Rotation

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.energy_bag import (
    CYCLE,
    SUMMARY_RATE,
    EnergyMessages,
    bag_topic,
)
from ur_energy_model.energy.topics import color, diameter, joint_interfaces, level_of
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.urdf_export import link_names, urdf
from ur_energy_model.rooms import Given
from ur_energy_model.sinks.foxglove.room import FOXGLOVE
from ur_energy_model.sinks.options import Address, common_options, server_address
from ur_energy_model.sinks.sink import ArmActions, ArmReading, QueuedSink
from ur_energy_model.telemetry.bag.mcap_writer import McapWriter
from ur_energy_model.telemetry.bag.message_bag import ExtraMessages
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    DYNAMIC_JOINT_STATE,
    ERROR,
    OK,
    STRING,
    WARN,
    BagTopic,
    Messages,
    MessageType,
    Status,
    dynamic_joint_state_template,
    encode_diagnostics,
    encode_text,
)
from ur_energy_model.telemetry.source import Decimator, LinkStatus
from ur_energy_model.typing import Array

BASE_IN_ROOT = np.diag([-1.0, -1.0, 1.0, 1.0])
"""Pose of `base` in `base_link`, as the URDF has it [4, 4]."""
SHOWN = fox.Duration(2)
"""The arm vanishes this long after the last reading, as the markers of rviz do."""
SHELL = 1.1
"""Radius of the coloured links relative to the links of the URDF, which they cover."""
TEXT_HEIGHT = 0.12
"""Size of the text with the total power [m]."""
TEXT_ABOVE = 0.25
"""Height of that text above the highest joint [m]."""
GREY = fox.Color(r=0.5, g=0.5, b=0.5, a=0.9)
WHITE = fox.Color(r=1.0, g=1.0, b=1.0, a=1.0)


def foxglove_type(
    message: type[fox.SceneUpdate] | type[fox.FrameTransforms],
) -> MessageType:
    """Type of the messages of a class of Foxglove's SDK, with its protobuf schema.

    Args:
        message: the class.
    """
    schema = message.get_schema()
    return MessageType(schema.name, schema.data, "", schema.encoding, "protobuf")


class ArmScene:
    """The moving arm for 3D panels: links coloured by power, and their frames.

    Attributes:
        urdf: description of the arm (URDF), whose joints and links have the prefix.
    """

    def __init__(self, robot: RobotDescription, joints: tuple[str, ...]) -> None:
        """The scene of an arm.

        Args:
            robot: geometry of the arm.
            joints: names of the joints, prefix included, n.
        """
        self._joints = joints
        self._dynamics = ArmDynamics(robot)
        prefix = joints[0].removesuffix(robot.joint_names[0])
        self.urdf = urdf(robot, prefix=prefix)
        names = ("base_link", "base", *link_names(robot), "tool0")
        self._frames = tuple(prefix + name for name in names)
        _, _, content = self.urdf.partition("\n")  # without the declaration of XML
        self._shells: dict[str, list[_Shell]] = {}
        for link in Xml.fromstring(content).iter("link"):
            shells = [_shell(visual) for visual in link.iter("visual")]
            self._shells[link.attrib["name"]] = shells

    def messages(
        self, stamp: int, q: Array, power: Array, total: float
    ) -> tuple[bytes, bytes]:
        """The messages of one moment, encoded.

        Args:
            stamp: the moment [ns since 1970, UTC].
            q: joint angles [n], rad.
            power: electrical power of each joint [n], W.
            total: power of the whole arm [W].

        Returns:
            The FrameTransforms of all links, and the SceneUpdate.
        """
        seconds, nanoseconds = divmod(stamp, 1_000_000_000)
        time = fox.Timestamp(seconds, nanoseconds)
        links, joints = self._dynamics.frames(q[None])
        base = links[0, :1]
        tool = links[0, -1:]
        poses = np.concatenate([base, joints[0], tool])
        transforms = fox.FrameTransforms(transforms=self._transforms(time, poses))
        heights = joints[0, :, 2, 3]
        text = fox.TextPrimitive(
            pose=fox.Pose(position=fox.Vector3(z=float(heights.max()) + TEXT_ABOVE)),
            billboard=True,
            font_size=TEXT_HEIGHT,
            color=WHITE,
            text=f"{total:.0f} W",
        )
        _, base_frame, *moving, _ = self._frames
        entities = [self._entity(time, base_frame, base_frame, GREY, texts=[text])]
        for joint, link, watts in zip(self._joints, moving, power.tolist(), strict=True):
            level = level_of(watts)
            red, green, blue, alpha = color(level)
            paint = fox.Color(r=red, g=green, b=blue, a=alpha)
            size = diameter(level)
            extent = fox.Vector3(x=size, y=size, z=size)
            sphere = fox.SpherePrimitive(pose=fox.Pose(), size=extent, color=paint)
            entities.append(self._entity(time, joint, link, paint, spheres=[sphere]))
        scene = fox.SceneUpdate(entities=entities)
        return transforms.encode(), scene.encode()

    def _transforms(self, time: fox.Timestamp, poses: Array) -> list[fox.FrameTransform]:
        """The pose of each frame in the frame before it.

        Args:
            time: of the poses.
            poses: of all frames but the first, in `base` [n + 2, 4, 4].
        """
        steps = np.concatenate(
            [BASE_IN_ROOT[None], np.linalg.solve(poses[:-1], poses[1:])]
        )
        transforms: list[fox.FrameTransform] = []
        for (parent, child), step in zip(pairwise(self._frames), steps, strict=True):
            place, turn = _placed(step[:3, 3], Rotation.from_matrix(step[:3, :3]))
            transform = fox.FrameTransform(
                timestamp=time,
                parent_frame_id=parent,
                child_frame_id=child,
                translation=place,
                rotation=turn,
            )
            transforms.append(transform)
        return transforms

    def _entity(
        self,
        time: fox.Timestamp,
        name: str,
        link: str,
        paint: fox.Color,
        **primitives: Any,
    ) -> fox.SceneEntity:
        """A link in a colour, which moves with its frame.

        Args:
            time: of the reading.
            name: identifies the entity over readings.
            link: name of the link, which is also its frame.
            paint: colour of its shells.
            primitives: texts or spheres in the same frame.
        """
        cylinders: list[fox.CylinderPrimitive] = []
        for shell in self._shells[link]:
            cylinder = fox.CylinderPrimitive(
                pose=shell.pose,
                size=shell.size,
                bottom_scale=1.0,
                top_scale=1.0,
                color=paint,
            )
            cylinders.append(cylinder)
        return fox.SceneEntity(
            timestamp=time,
            frame_id=link,
            id=name,
            lifetime=SHOWN,
            frame_locked=True,
            cylinders=cylinders,
            **primitives,
        )


class _Shell(NamedTuple):
    """A cylinder around a cylinder of the URDF, along its z axis.

    Attributes:
        pose: in the frame of the link.
        size: diameters and length [m].
    """

    pose: fox.Pose
    size: fox.Vector3


def _shell(visual: Xml.Element) -> _Shell:
    """The shell of an element `visual` of our own URDF, which has cylinders only."""
    origin = visual.find("origin")
    shape = visual.find("geometry/cylinder")
    assert origin is not None
    assert shape is not None
    place = np.array(origin.attrib["xyz"].split(), float)
    turn = np.array(origin.attrib["rpy"].split(), float)
    width = 2.0 * SHELL * float(shape.attrib["radius"])
    size = fox.Vector3(x=width, y=width, z=float(shape.attrib["length"]))
    position, orientation = _placed(place, Rotation.from_euler("xyz", turn))
    return _Shell(fox.Pose(position=position, orientation=orientation), size)


def _placed(place: Array, turn: Rotation) -> tuple[fox.Vector3, fox.Quaternion]:
    """A position [3], m, and a rotation as messages."""
    position = fox.Vector3(**dict(zip("xyz", place.tolist(), strict=True)))
    quaternion = dict(zip("xyzw", turn.as_quat().tolist(), strict=True))
    return position, fox.Quaternion(**quaternion)


JOINTS = bag_topic(topics.ENERGY_JOINTS, DYNAMIC_JOINT_STATE)
DIAGNOSTICS = bag_topic(topics.DIAGNOSTICS, DIAGNOSTIC_ARRAY)
ROBOT_DESCRIPTION = bag_topic(topics.ROBOT_DESCRIPTION, STRING)
SCENE = bag_topic(topics.ENERGY_MARKERS, foxglove_type(fox.SceneUpdate))
FRAMES = BagTopic("/tf", foxglove_type(fox.FrameTransforms))


class ReadingMessages:
    """Encodes the readings of one estimator, whose arm and model may change."""

    def __init__(self) -> None:
        self._robot: RobotDescription | None = None
        self._labels: tuple[tuple[str, ...], str] | None = None
        self._scene: ArmScene | None = None
        self._summarising = Decimator(SUMMARY_RATE)

    def of_reading(self, reading: ArmReading) -> list[Messages]:
        """All messages of a reading.

        The URDF of the arm is among them only where the arm is new; summary and
        diagnostics are among them once a second.

        Args:
            reading: of the arm.
        """
        stamp = reading.stamp
        snapshot = reading.snapshot
        interfaces = joint_interfaces(snapshot, reading.joints)
        messages = self._description_of(reading, interfaces)
        self._energy.keep(snapshot, stamp)
        summary = self._summarising.due(stamp * 1e-9)
        if summary:
            self._energy.keep_summary(snapshot, stamp)
        for cycle in reading.cycles:
            self._energy.keep_cycle(cycle, snapshot, stamp)
        messages += self._energy.take()
        values: list[float] = []
        for of_joint in interfaces.values():
            values += of_joint.values()
        stamps = np.array([stamp])
        encoded_joints = self._template.encode(stamps, np.array([values]))
        messages.append(Messages(JOINTS, stamps, encoded_joints))
        if summary:
            health = encode_diagnostics(stamp, [source_status(reading.arm, reading.link)])
            messages.append(Messages.single(DIAGNOSTICS, stamp, health))
        if self._scene is not None and snapshot.q is not None:
            columns = snapshot.channels
            power = snapshot.power
            joints = power[columns.per_joint["electrical_power"]]
            total = float(power[columns.arm["total"]])
            frames, scene = self._scene.messages(stamp, snapshot.q, joints, total)
            messages.append(Messages.single(FRAMES, stamp, frames))
            messages.append(Messages.single(SCENE, stamp, scene))
        return messages

    def _description_of(
        self, reading: ArmReading, interfaces: Mapping[str, Mapping[str, float]]
    ) -> list[Messages]:
        """Prepare for an arm or a model that is new.

        Args:
            reading: of the arm.
            interfaces: values of the joints, whose names are in the messages.

        Returns:
            The URDF of a new arm; nothing for a known one.
        """
        robot = reading.robot
        labels = (reading.joints, reading.model)
        if self._labels == labels and self._robot is robot:
            return []
        self._labels = labels
        self._energy = EnergyMessages(*labels)
        groups = {joint: tuple(values) for joint, values in interfaces.items()}
        self._template = dynamic_joint_state_template(groups)
        self._scene = None if robot is None else ArmScene(robot, reading.joints)
        is_new = self._robot is not robot
        self._robot = robot
        if self._scene is None or not is_new:
            return []
        text = encode_text(self._scene.urdf)
        return [Messages.single(ROBOT_DESCRIPTION, reading.stamp, text)]


def source_status(arm: str, link: LinkStatus) -> Status:
    """State of the connection to an arm, for diagnostics."""
    values = {
        "reconnects": link.reconnects,
        "samples_lost": link.losses.samples,
        "lost_s": link.losses.seconds,
        "duplicates": link.duplicates,
        "skipped": link.skipped,
        "last_error": link.last_error or "none",
    }
    level = OK
    text = "samples arrive"
    if link.problem is not None:
        level = ERROR
        text = link.problem
    elif link.losses.samples:
        level = WARN
        text = "samples were lost"
    return Status(f"{arm}: source", level, text, values)


# The server, and the programs and pages that connect to it.

# The SDK logs clients that break off; without a handler these lines would be on the
# terminal. A program may add its own handler.
logging.getLogger("foxglove").addHandler(logging.NullHandler())

SERVER_NAME = "ur_energy_model"
BACKLOG = 512
"""Messages that wait for a slow client; the oldest is dropped for a new one."""


def foxglove_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> QueuedSink:
    """A Foxglove server as a sink, see `SinkFactory`.

    Args:
        place: ADDRESS:PORT.
        given: holds the common options, which permit other addresses than loopback.
        actions: not used: clients can read only.
        state_file: not used.

    Raises:
        InputError: no such address, or one that other machines reach without permission.
    """
    address = server_address(FOXGLOVE, place, common_options(given))
    return QueuedSink(FoxgloveDelivery(address))


def allow_many_connections() -> None:
    """Raise this process's limit of open files to the largest that the system permits.

    Each connection of a client takes one. The SDK accepts any number of connections, and
    stops to listen when no file can be opened.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class FoxgloveDelivery(ServerListener):
    """Serves readings to any number of clients; see `Delivery`.

    Every client that reaches the address may read, also a page of any site in a browser
    of this machine: the SDK does not check the header Origin. Clients can read only.

    Attributes:
        address: where it listens.
        subscriptions: number of subscriptions of each client, by its number.
    """

    def __init__(self, address: Address) -> None:
        """A server that does not listen yet; port 0 takes a free one."""
        self.address = address
        self._messages = ReadingMessages()
        # Channels belong to the context and outlive a server that had to be opened again.
        self._context = foxglove.Context()
        self._channels: dict[BagTopic, foxglove.Channel] = {}
        self._kept: dict[str, Messages] = {}
        self._server: WebSocketServer | None = None
        self._lock = threading.Lock()
        self.subscriptions: Counter[int] = Counter()
        self._new_topics: set[str] = set()

    @property
    def name(self) -> str:
        """Kind and address."""
        return f"foxglove {self.address}"

    @property
    def clients(self) -> int:
        """Number of clients with a subscription."""
        return len(self.subscriptions)

    def open(self) -> None:
        """Begin to listen; before the first reading, only check that this is possible."""
        if self._channels:
            self._listen()
        else:
            self.address.listener().close()

    def deliver(self, reading: ArmReading) -> None:
        """Send one reading to every client; clients never make this wait.

        The server listens from the first reading on, which makes the channels: the SDK
        refuses subscriptions that come at once after the advertisement of a channel to a
        client that is connected.
        """
        encoded = self._messages.of_reading(reading)
        for topic in [CYCLE, *[messages.topic for messages in encoded]]:
            if topic not in self._channels:
                self._channels[topic] = self._channel(topic)
        if self._server is None:
            self._listen()
        with self._lock:
            late = self._new_topics & self._kept.keys()
            self._new_topics = set()
        again = [self._kept[topic] for topic in late]
        for messages in [*again, *encoded]:
            if messages.topic.latched:
                self._kept[messages.topic.name] = messages
            channel = self._channels[messages.topic]
            rows = zip(messages.stamp.tolist(), messages.payload, strict=True)
            for stamp, payload in rows:
                channel.log(payload.tobytes(), log_time=stamp)

    def _channel(self, topic: BagTopic) -> foxglove.Channel:
        """A channel of the SDK for the messages of a topic."""
        kind = topic.kind
        schema = foxglove.Schema(
            name=kind.name,
            encoding=kind.schema_encoding,
            data=kind.definition_bytes,
        )
        return foxglove.Channel(
            topic.name,
            schema=schema,
            message_encoding=kind.message_encoding,
            context=self._context,
        )

    def close(self) -> None:
        """Disconnect all clients and free the port."""
        server = self._server
        self._server = None
        if server is not None:
            server.stop()

    def _listen(self) -> None:
        """Start the server.

        Raises:
            OSError: it cannot listen.
        """
        with self._lock:
            self.subscriptions.clear()
        allow_many_connections()
        try:
            self._server = foxglove.start_server(
                name=SERVER_NAME,
                host=self.address.host,
                port=self.address.port,
                context=self._context,
                server_listener=self,
                message_backlog_size=BACKLOG,
            )
        except RuntimeError as error:  # the SDK's own, such as "Failed to bind port"
            raise OSError(str(error)) from None
        self.address = Address(self.address.host, self._server.port)

    def on_subscribe(self, client: Client, channel: ChannelView) -> None:
        """A client subscribes to a topic; called from the server's threads."""
        with self._lock:
            self.subscriptions[client.id] += 1
            self._new_topics.add(channel.topic)

    def on_unsubscribe(self, client: Client, channel: ChannelView) -> None:
        """A client unsubscribes or disconnects; called from the server's threads."""
        with self._lock:
            self.subscriptions[client.id] -= 1
            if self.subscriptions[client.id] <= 0:
                del self.subscriptions[client.id]


# An MCAP file with the messages that the Foxglove server sends.

CHUNK_SECONDS = 1.0
"""Time between two writes, and so the most that a killed process loses [s]."""
MOST_CHUNKS = 3600
"""Chunks of a file, an hour; the index is in memory until the file is complete."""


def mcap_sink(
    place: str,
    given: Given,
    actions: ArmActions | None = None,
    state_file: Path | None = None,
) -> QueuedSink:
    """An MCAP file as a sink, see `SinkFactory`.

    Args:
        place: path of the file.
        given: not used.
        actions: not used.
        state_file: not used: a file is never continued after a restart.

    Raises:
        InputError: the file exists already, or its folder does not.
    """
    path = Path(place)
    if path.exists():
        raise InputError(path, "exists already", "name another file")
    if not path.parent.is_dir():
        raise InputError(path.parent, "is not a folder", "make it, or name another one")
    return QueuedSink(McapDelivery(path))


class McapDelivery:
    """Writes readings into files; see `Delivery`.

    A file is complete after every chunk: every reader opens it while it grows, and after
    a crash. Each hour, and after a failure, another one follows: its name has the next
    free number, such as live_1.mcap after live.mcap. All methods raise OSError where the
    disk fails.

    Attributes:
        path: of the first file.
    """

    clients = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: McapWriter | None = None
        self._written = 0

    @property
    def name(self) -> str:
        """Kind and file."""
        return f"mcap {self.path if self._file is None else self._file.path}"

    def open(self) -> None:
        """Create the next file."""
        # Every file begins with the URDF and defines its channels.
        self._messages = ReadingMessages()
        self._waiting = ExtraMessages()
        for number in count():
            name = self.path.name
            if number:
                name = f"{self.path.stem}_{number}{self.path.suffix}"
            with suppress(FileExistsError):
                self._file = McapWriter(self.path.with_name(name), profile="")
                return

    def deliver(self, reading: ArmReading) -> None:
        """Keep one reading, and write what waits once a second."""
        for messages in self._messages.of_reading(reading):
            self._waiting.append(messages)
        if not 0 <= reading.stamp - self._written < CHUNK_SECONDS * 1e9:
            self._write()
            self._written = reading.stamp
        if self._file is not None and len(self._file.summary.chunks) >= MOST_CHUNKS:
            self.close()
            self.open()

    def close(self) -> None:
        """Write what waits, and complete the file."""
        file = self._file
        if file is None:
            return
        try:
            self._write()
            file.close()
        finally:
            file.abandon()
            self._file = None

    def _write(self) -> None:
        """Write what waits as one chunk."""
        if self._file is not None and self._waiting:
            blocks = self._waiting.blocks(self._file, self._file.summary.end_time)
            self._file.write_chunk(blocks)
            self._waiting.confirm()
