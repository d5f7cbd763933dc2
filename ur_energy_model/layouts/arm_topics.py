"""ArmTopics: topics, frames and plots of one arm in a cell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy_topics.arm_energies import PARTS, energy_names
from ur_energy_model.errors import InputError

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#7f7f7f", "#000000")
WINDOW = 60.0
"""Time span of the plots [s]."""
JOINT_PLOTS = ("Joints [W]", "Joint energy since reset [J]")
"""Titles of the plots with a curve per joint."""
ENERGY, POWER = "position", "velocity"
"""Fields of the topic energy."""
_NAMESPACE = re.compile(r"(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?", re.ASCII)


@dataclass(frozen=True)
class Curve:
    """A curve of the topic energy.

    Attributes:
        name: in the message.
        field: of the message, ENERGY or POWER.
        legend: for the user.
    """

    name: str
    field: str
    legend: str


@dataclass(frozen=True)
class ArmTopics:
    """Topics, frames and plots of one arm.

    Attributes:
        joint_names: of the robot, without prefix.
        namespace: of the nodes; empty for none.
        tf_prefix: of joints and frames, as the parameter of the nodes, with any characters: the
            topic energy and the frames keep them.

    Raises:
        InputError: ROS does not allow such a namespace.
    """

    joint_names: tuple[str, ...]
    namespace: str = ""
    tf_prefix: str = ""

    def __post_init__(self) -> None:
        if not _NAMESPACE.fullmatch(self.namespace):
            raise InputError(
                "--namespace",
                f"'{self.namespace}' is not a ROS name",
                "use letters, digits and _, and begin with no digit",
            )

    def name_of(self, topic: topics.Topic) -> str:
        """Full name of a topic."""
        if topic.name.startswith("/"):
            return topic.name
        return "/".join(("", *filter(None, self.namespace.split("/")), topic.name))

    @property
    def base_frame(self) -> str:
        """Frame of the arm's base."""
        return f"{self.tf_prefix}base"

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, prefix included."""
        return tuple(self.tf_prefix + joint for joint in self.joint_names)

    @property
    def energies(self) -> str:
        """Full name of the topic energy, which holds every curve."""
        return self.name_of(topics.ENERGY)

    def index_of(self, curve: Curve) -> int:
        """Position of a curve in the arrays of the topic energy."""
        return energy_names(self.joints).index(curve.name)

    def plots(self) -> dict[str, tuple[Curve, ...]]:
        """Curves of each plot, by its title."""
        return {
            "Whole arm [W]": (
                Curve("total", POWER, "model"),
                Curve("bus", POWER, "measured"),
                *(Curve(part, POWER, part) for part in PARTS),
            ),
            JOINT_PLOTS[0]: tuple(Curve(joint, POWER, joint) for joint in self.joints),
            "Energy since reset [J]": (
                Curve("total", ENERGY, "model"),
                Curve("bus", ENERGY, "measured"),
            ),
            JOINT_PLOTS[1]: tuple(Curve(joint, ENERGY, joint) for joint in self.joints),
            "Model minus measured [W]": (Curve("residual", POWER, "residual"),),
        }
