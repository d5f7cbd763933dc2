"""Dynamics against closed formulas, energy conservation and an independent formulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ur_energy_model.model.dynamics import ArmDynamics, parameter_transform
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup, entries_of, tensor_of

ARMS = ["ur5e", "ur10e", "gen3", "fr3"]


@pytest.fixture(params=ARMS)
def robot(request: pytest.FixtureRequest) -> RobotDescription:
    """Arms of both DH conventions, with a static link, all with tensors."""
    arm = load_robot(request.param)
    random = np.random.default_rng(5)
    roots = random.normal(0, 0.1, (len(arm.d), 3, 3))
    spread = np.einsum("kij,klj->kil", roots, roots)
    tensors = np.trace(spread, axis1=1, axis2=2)[:, None, None] * np.eye(3) - spread
    return replace(arm, inertia=tensors)


@pytest.fixture
def state(robot: RobotDescription) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    shape = (8, robot.dof)
    return random.uniform(-3, 3, shape), random.normal(0, 1, shape), random.normal(0, 3, shape)


SETUP = Setup(
    np.array([1.0, -4.0, -8.5]), Payload(2.0, np.array([0.03, 0.01, 0.1]), 0.01 * np.eye(3))
)


class Lagrangian:
    """Textbook Lagrange formulation with DH matrices, independent of pinocchio.

    Mass matrix from link Jacobians, Coriolis terms from its numerical derivatives.
    """

    def __init__(self, robot: RobotDescription, setup: Setup) -> None:
        self.robot, self.setup = robot, setup

    def frames(self, q: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Link frames, and the frame whose z axis is the axis of the link's joint."""
        robot, pose, moving = self.robot, np.eye(4), 0
        links, axes = [], []
        for i in range(len(robot.d)):
            angle = robot.theta[i]
            if not robot.fixed[i]:
                angle += q[moving]
                moving += 1
            turn, slide = _rot_z(angle), _move(0, 0, robot.d[i])
            bend = _move(robot.a[i], 0, 0) @ _rot_x(robot.alpha[i])
            if robot.convention == "standard":
                axes.append(pose)
                pose = pose @ turn @ slide @ bend
            else:
                axes.append(pose @ bend)
                pose = pose @ bend @ turn @ slide
            links.append(pose)
        return links, axes

    def bodies(self, q: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
        """Mass, centre, linear Jacobian, and angular Jacobian with the tensor, per body."""
        links, axes = self.frames(q)
        moving = np.flatnonzero(~self.robot.fixed)
        payload = self.setup.payload
        each = [
            (self.robot.mass[i], self.robot.center_of_mass[i], self.robot.inertia[i], i)
            for i in range(len(links))
        ]
        each.append((payload.mass, payload.center_of_mass, payload.inertia, len(links) - 1))
        out = []
        for mass, center, tensor, i in each:
            rotation = links[i][:3, :3]
            point = rotation @ center + links[i][:3, 3]
            linear, angular = np.zeros((3, len(moving))), np.zeros((3, len(moving)))
            for k, link in enumerate(moving):
                if link <= i:
                    axis = axes[link][:3, 2]
                    linear[:, k] = np.cross(axis, point - axes[link][:3, 3])
                    angular[:, k] = axis
            out.append((mass, linear, angular, rotation @ tensor @ rotation.T))
        return out

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        return sum(
            mass * linear.T @ linear + angular.T @ tensor @ angular
            for mass, linear, angular, tensor in self.bodies(q)
        )

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        step = 1e-6
        slopes = np.array(
            [
                (self.mass_matrix(q + step * unit) - self.mass_matrix(q - step * unit)) / (2 * step)
                for unit in np.eye(len(q))
            ]
        )
        change = np.einsum("kij,k->ij", slopes, qd) @ qd
        energy = 0.5 * np.einsum("kij,i,j->k", slopes, qd, qd)
        weight = sum(-mass * linear.T @ self.setup.gravity for mass, linear, *_ in self.bodies(q))
        return self.mass_matrix(q) @ qdd + change - energy + weight


def _rot_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], float)


def _rot_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]], float)


def _move(x: float, y: float, z: float) -> np.ndarray:
    out = np.eye(4)
    out[:3, 3] = x, y, z
    return out


def test_agrees_with_the_lagrange_formulation(robot, state) -> None:
    mine = ArmDynamics(robot, SETUP).inverse_dynamics(*state)
    other = Lagrangian(robot, SETUP)
    expected = np.array([other.torque(*row) for row in zip(*state, strict=True)])
    assert np.allclose(mine, expected, rtol=1e-6, atol=1e-6)


def test_flange_pose_agrees_with_dh_matrices(robot, state) -> None:
    poses = ArmDynamics(robot).flange_pose(state[0])
    expected = [Lagrangian(robot, SETUP).frames(q)[0][-1] for q in state[0]]
    assert np.allclose(poses, expected, atol=1e-12)


def test_flange_speed_is_the_derivative_of_its_position(robot, state) -> None:
    q, qd, _ = state
    arm, step = ArmDynamics(robot), 1e-6
    ahead, behind = (arm.flange_pose(q + sign * step * qd)[:, :3, 3] for sign in (1, -1))
    assert np.allclose(arm.flange_speed(q, qd), (ahead - behind) / (2 * step), atol=1e-6)


def test_frames_end_at_the_flange(robot, state) -> None:
    arm = ArmDynamics(robot)
    links, joints = arm.frames(state[0])
    assert np.allclose(links[:, -1], arm.flange_pose(state[0]))
    assert joints.shape == (8, robot.dof, 4, 4)


def test_regressor_times_parameters_is_the_torque(robot, state) -> None:
    arm = ArmDynamics(robot, SETUP)
    assert np.allclose(arm.regressor(*state) @ arm.parameters(), arm.inverse_dynamics(*state))


def test_payload_regressor_explains_the_payload(robot, state) -> None:
    loaded = ArmDynamics(robot, SETUP)
    bare = ArmDynamics(robot, Setup(SETUP.gravity))
    payload = SETUP.payload
    c = payload.center_of_mass
    about_origin = payload.inertia + payload.mass * ((c @ c) * np.eye(3) - np.outer(c, c))
    parameters = np.concatenate([[payload.mass], payload.mass * c, entries_of(about_origin)])
    extra = loaded.inverse_dynamics(*state) - bare.inverse_dynamics(*state)
    assert np.allclose(bare.payload_regressor(*state) @ parameters, extra)


def test_gravity_regressor_is_linear_in_gravity(robot, state) -> None:
    arm = ArmDynamics(robot, SETUP)
    assert np.allclose(
        arm.gravity_regressor(state[0]) @ SETUP.gravity, arm.gravity_torque(state[0])
    )


def test_weight_on_the_flange_is_linear_in_gravity(robot, state) -> None:
    arm = ArmDynamics(robot, SETUP)
    zero = np.zeros_like(state[0])
    weight = arm.payload_regressor(state[0], zero, zero)[:, :, :4]
    in_unit_gravity = arm.flange_weight_regressor(state[0])
    assert np.allclose(np.einsum("snak,a->snk", in_unit_gravity, SETUP.gravity), weight)


def test_work_of_the_torques_is_the_change_of_energy() -> None:
    """Kinetic and potential energy of the links, computed separately, along a closed motion."""
    robot = load_robot("ur10e")
    setup = Setup(np.array([3.0, 2.0, -9.0]))
    other = Lagrangian(robot, setup)
    time = np.linspace(0, 2, 2001)
    size = np.array([0.5, 0.4, 0.6, 0.7, 0.3, 0.8])
    angle = np.outer(time, [1.0, 1.7, 2.3, 1.1, 2.9, 0.7])
    rates = angle[1] / time[1]
    q, qd, qdd = (
        size * np.sin(angle),
        size * rates * np.cos(angle),
        -size * rates**2 * np.sin(angle),
    )
    power = (ArmDynamics(robot, setup).inverse_dynamics(q, qd, qdd) * qd).sum(axis=1)
    work = np.trapezoid(power, time)

    def energy(i: int) -> float:
        links, _ = other.frames(q[i])
        centers = [
            link[:3, :3] @ c + link[:3, 3]
            for link, c in zip(links, robot.center_of_mass, strict=True)
        ]
        potential = -sum(m * setup.gravity @ c for m, c in zip(robot.mass, centers, strict=True))
        return float(0.5 * qd[i] @ other.mass_matrix(q[i]) @ qd[i] + potential)

    assert work == pytest.approx(energy(-1) - energy(0), rel=1e-5)


def planar(convention: str, first: float, second: float) -> RobotDescription:
    """Two links of these lengths with parallel axes and point masses at their ends."""
    arm = load_robot("ur5e")
    standard = convention == "standard"
    two = np.zeros(2)
    ends = np.zeros((2, 3)) if standard else np.array([[first, 0, 0], [second, 0, 0]])
    return replace(
        arm,
        name="planar",
        joint_names=("one", "two"),
        convention=convention,
        d=two,
        theta=two,
        alpha=two,
        a=np.array([first, second] if standard else [0.0, first]),
        fixed=np.zeros(2, bool),
        mass=np.array([3.0, 1.5]),
        center_of_mass=ends,
        inertia=np.zeros((2, 3, 3)),
    )


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_double_pendulum(convention: str) -> None:
    """The closed formula of textbooks, gravity along -y."""
    l1, l2, m1, m2, g = 0.7, 0.4, 3.0, 1.5, 9.81
    arm = ArmDynamics(planar(convention, l1, l2), Setup(np.array([0.0, -g, 0.0])))
    random = np.random.default_rng(2)
    q, qd, qdd = random.uniform(-3, 3, (3, 20, 2))
    (q1, q2), (v1, v2), (a1, a2) = q.T, qd.T, qdd.T
    c2, s2 = np.cos(q2), np.sin(q2)
    inertia = m2 * l2**2
    both = m2 * l1 * l2
    two = inertia * (a1 + a2) + both * c2 * a1 + both * s2 * v1**2 + m2 * g * l2 * np.cos(q1 + q2)
    one = (
        inertia * (a1 + a2)
        + both * c2 * (2 * a1 + a2)
        + (m1 + m2) * l1**2 * a1
        - both * s2 * (v2**2 + 2 * v1 * v2)
        + m2 * g * l2 * np.cos(q1 + q2)
        + (m1 + m2) * g * l1 * np.cos(q1)
    )
    assert np.allclose(arm.inverse_dynamics(q, qd, qdd), np.stack([one, two], axis=1))


def test_parameter_transform_moves_a_body_to_another_frame() -> None:
    arm = ArmDynamics(load_robot("ur5e"))
    frame = arm.model.jointPlacements[2]
    payload = Payload(1.3, np.array([0.1, 0.2, 0.3]), np.diag([0.02, 0.03, 0.04]))

    def parameters(mass, center, tensor):
        shift = mass * ((center @ center) * np.eye(3) - np.outer(center, center))
        return np.concatenate([[mass], mass * center, entries_of(tensor + shift)])

    moved = parameters(
        payload.mass,
        frame.rotation @ payload.center_of_mass + frame.translation,
        frame.rotation @ payload.inertia @ frame.rotation.T,
    )
    own = parameters(payload.mass, payload.center_of_mass, payload.inertia)
    assert np.allclose(parameter_transform(frame) @ own, moved)


def test_tensor_entries_round_trip() -> None:
    entries = np.arange(6.0)
    assert np.array_equal(entries_of(tensor_of(entries)), entries)
