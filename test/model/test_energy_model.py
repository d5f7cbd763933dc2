"""Powers of a model, their uncertainty, and the model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.errors import ModelFileError
from ur_energy_model.model.bus_model import BusModel
from ur_energy_model.model.current_errors import PREDICTION_ERROR
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.model_file import load_model, save_model
from ur_energy_model.model.friction.law import LAWS, Friction
from ur_energy_model.model.joint_model import JointModel
from ur_energy_model.model.link_tensors import LinkTensors
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import Session, SessionSpread, scaled_parameters
from ur_energy_model.model.setup import Payload, Setup

ROBOT = load_robot("ur5e")
N = 6


def made_up_model() -> EnergyModel:
    random = np.random.default_rng(0)
    laws = ["power_flow", "stribeck", "power_load", "coulomb_viscous", "sign", "temperature_linear"]
    joints = []
    for j, name in enumerate(laws):
        law = LAWS[name]
        root = random.normal(0, 1e-3, (1 + len(law.parameters),) * 2)
        parameters = {p: float(random.uniform(1e-4, 1e-2)) for p in law.parameters}
        joints.append(
            JointModel(
                ROBOT.joint_names[j],
                101.0,
                1.9,
                0.1,
                0.3,
                0.098,
                Friction(law, parameters, law.default_shape, None, (20.0, 40.0), 1e-3),
                std={"torque_constant": 1e-3, **dict.fromkeys(parameters, 1e-4)},
                source={"torque_constant": "current", **dict.fromkeys(parameters, "current")},
                current_covariance=root @ root.T,
                current_residual=0.02,
                friction_reason="made up: for a test",
            )
        )
    bus = BusModel(
        "physical",
        25.0,
        np.full(N, 0.2),
        np.zeros(N),
        std={"standby": 0.5, "driver": 0.01},
        errors=random.normal(0, 1e-3, (3, 1 + 3 * N)),
        mode_power={"idle": 12.5},
        residual=1.5,
        source="bus_power",
        reason="made up",
    )
    setup = Setup(np.array([0.0, 6.94, -6.94]), Payload(1.2, np.array([0.0, 0.01, 0.1])))
    return EnergyModel(
        "ur5e",
        setup,
        "estimated",
        tuple(joints),
        bus,
        fit=({"bag": "a", "torque": None},),
        provenance={"date": "today", "serial": None},
        current_delay=1.2e-3,
    )


def motion(samples: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return tuple(random.uniform(-1, 1, (samples, N)) for _ in range(3))  # type: ignore[return-value]


def test_powers_add_up() -> None:
    model = made_up_model()
    out = model.predict(*motion())
    speed = 101.0 * motion()[1]
    np.testing.assert_allclose(out.copper_loss, 0.3 * out.current**2)
    np.testing.assert_allclose(out.mechanical_power, speed * 0.1 * out.current)
    np.testing.assert_allclose(
        out.electrical_power, out.copper_loss + 0.98 * out.mechanical_power, atol=1e-9
    )
    total = 25.0 + out.electrical_power.sum(axis=1) + 0.2 * np.abs(out.current).sum(axis=1)
    np.testing.assert_allclose(out.total_power, np.maximum(total, 0.0))


def test_the_supply_takes_no_power_back() -> None:
    braking = made_up_model().joint_power(np.ones((1, N)), np.full((1, N), -5.0))
    assert braking.electrical_power.sum() < -100.0
    assert braking.total_power[0] == 0.0


def test_measured_current_gives_the_split_of_the_predicted_one() -> None:
    model = made_up_model()
    predicted = model.predict(*motion())
    measured = model.joint_power(motion()[1], predicted.current, standby=30.0, std=False)
    np.testing.assert_allclose(measured.electrical_power, predicted.electrical_power)
    assert measured.standby_power[0] == 30.0
    assert measured.sensitivity.shape == (50, N, 0)
    single = model.joint_power(motion()[1][:1], predicted.current[:1], std=False)
    np.testing.assert_allclose(single.mechanical_power, predicted.mechanical_power[:1])


def test_deviations_follow_the_parameters() -> None:
    """Powers of models drawn from the covariance scatter as the model says."""
    model = made_up_model()
    q, qd, qdd = motion(5)
    link = model.dynamics().inverse_dynamics(q, qd, qdd)
    claimed = model.from_link_torque(link, qd, qdd)
    spread = model.sessions.friction_of(N)
    random = np.random.default_rng(2)
    drawn = []
    for _ in range(600):
        errors = random.standard_normal(3) @ model.bus.errors
        errors[0] += random.normal(0.0, model.sessions.standby)
        joints = []
        for j, joint in enumerate(model.joints):
            mean = np.append(1.0, joint.friction.values) / joint.torque_constant
            value = random.multivariate_normal(mean, joint.current_covariance)
            value *= random.normal(1.0, PREDICTION_ERROR)
            names = joint.friction.law.parameters
            value[1:] *= np.where(scaled_parameters(names), random.normal(1.0, spread[j]), 1.0)
            parameters = dict(zip(names, value[1:] / value[0], strict=True))
            joints.append(
                replace(
                    joint,
                    torque_constant=1 / value[0],
                    winding_resistance=joint.winding_resistance + errors[1 + j],
                    back_emf_constant=joint.back_emf_constant + errors[1 + N + j],
                    friction=replace(joint.friction, parameters=parameters),
                )
            )
        other = replace(
            model,
            joints=tuple(joints),
            bus=replace(
                model.bus,
                floor=-1e9,
                standby=model.bus.standby + errors[0],
                driver=model.bus.driver + errors[1 + 2 * N :],
            ),
        )
        out = other.from_link_torque(link, qd, qdd, std=False)
        # the sensitivities leave the driver's share of current errors out: it is far smaller
        drawn.append(np.column_stack([out.electrical_power, out.total_power]))
    scatter = np.std(drawn, axis=0)
    np.testing.assert_allclose(
        scatter[:, :N], np.linalg.norm(claimed.sensitivity, axis=-1), rtol=0.12
    )
    np.testing.assert_allclose(scatter[:, N], claimed.total_power_std, rtol=0.15)


SESSION = Session(27.0, 0.2, np.linspace(0.9, 1.1, N), np.full(N, 0.01), 5.0, 3.0)


def test_a_session_scales_friction_and_replaces_standby() -> None:
    model = made_up_model()
    here = model.in_session(SESSION)
    assert here.bus.standby == 27.0
    for scale, before, after in zip(SESSION.friction_scale, model.joints, here.joints, strict=True):
        values = before.friction.values
        factor = np.where(scaled_parameters(before.friction.law.parameters), scale, 1.0)
        np.testing.assert_allclose(after.friction.values, factor * values)
    qd = np.full((1, N), 0.5)
    still = np.zeros((1, N))
    friction = [m.predict(still, qd, still, std=False).friction_loss for m in (model, here)]
    whole = [0, 1, 3, 4, 5]  # joint 2 has load friction, which stays
    expected = SESSION.friction_scale * friction[0][0]
    np.testing.assert_allclose(friction[1][0, whole], expected[whole])


def test_sessions_are_of_the_identified_model() -> None:
    """A model in one session may be put into another, and back."""
    model = made_up_model()
    spread = Session.unanchored(model.bus.standby, model.sessions, N)
    there_and_back = model.in_session(SESSION).in_session(spread)
    for before, after in zip(model.joints, there_and_back.joints, strict=True):
        np.testing.assert_allclose(after.friction.values, before.friction.values)
        np.testing.assert_allclose(after.current_covariance, before.current_covariance)


def test_anchoring_narrows_intervals_and_keeps_their_channels() -> None:
    model = made_up_model()
    model = replace(model, bus=replace(model.bus, errors=np.zeros((1, 1 + 3 * N))))
    anywhere, here = model.predict(*motion()), model.in_session(SESSION).predict(*motion())
    assert here.sensitivity.shape == anywhere.sensitivity.shape
    assert here.total_sensitivity.shape == anywhere.total_sensitivity.shape
    assert (here.total_power_std < anywhere.total_power_std).mean() > 0.9
    assert (here.current_std <= 1.2 * anywhere.current_std).all()
    measured = [
        m.joint_power(motion()[1], anywhere.current).total_power_std
        for m in (model, model.in_session(SESSION))
    ]
    np.testing.assert_allclose(measured[0], model.sessions.standby)  # friction is in the current
    np.testing.assert_allclose(measured[1], 0.2)


def test_predicted_currents_hold_the_session_and_standstill() -> None:
    model = made_up_model()
    joints = tuple(replace(j, current_covariance=np.zeros((0, 0))) for j in model.joints)
    model = replace(model, joints=joints)
    still = np.zeros((1, N))
    fast = model.predict(still, np.full((1, N), 2.0), still)
    joint = model.joints[3]
    friction = fast.friction_loss[0, 3] / (101.0 * 2.0) / joint.torque_constant
    expected = np.sqrt(
        0.02**2 + (PREDICTION_ERROR * fast.current[0, 3]) ** 2 + (0.08 * friction) ** 2
    )
    assert fast.current_std[0, 3] == pytest.approx(expected, rel=1e-3)
    rest = model.predict(still, still, still)
    assert rest.current_std[0, 3] > 0.4 * joint.friction.parameters["coulomb"] / 0.1


def test_the_file_gives_back_the_model(tmp_path: Path) -> None:
    spread = SessionSpread(1.2, np.linspace(0.02, 0.07, N), 3)
    model = replace(made_up_model(), sessions=spread)
    save_model(model, tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml")
    assert (loaded.sessions.standby, loaded.sessions.count) == (1.2, 3)
    np.testing.assert_allclose(loaded.sessions.friction, spread.friction)
    before, after = model.predict(*motion()), loaded.predict(*motion())
    np.testing.assert_allclose(after.total_power, before.total_power, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(after.total_power_std, before.total_power_std, rtol=1e-5)
    assert loaded.current_delay == 1.2e-3
    assert loaded.bus.mode_power == {"idle": 12.5}
    assert loaded.joints[0].friction.presliding == 1e-3
    assert loaded.joints[5].friction.temperature_range == (20.0, 40.0)
    assert loaded.fit == model.fit
    assert loaded.provenance == model.provenance


def test_files_without_sessions_take_the_priors(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    save_model(made_up_model(), path)
    text = path.read_text()
    start, end = text.index("sessions:"), text.index("fit:\n")
    path.write_text(text[:start] + text[end:])
    sessions = load_model(path).sessions
    assert (sessions.standby, sessions.count) == (SessionSpread().standby, 0)
    assert sessions.friction_of(N)[0] == SessionSpread().friction_of(N)[0]


def test_saving_fails_without_touching_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ModelFileError, match="choose another place"):
        save_model(made_up_model(), tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


Change = Callable[[str], str]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda t: t.replace("kind: ur_energy_model", "kind: other"), "model file"),
        (lambda t: t.replace("schema: 1", "schema: 7"), "schema"),
        (lambda t: t.replace("robot: ur5e", "robot: ur5e\nspare: 1"), "spare"),
        (lambda t: t.replace("robot: ur5e", "robot: ur5e\nrobot: ur3"), "twice"),
        (
            lambda t: t.replace("standby_std: {value: 2.5", "standby_std: {value: -1"),
            "sessions.standby_std",
        ),
        (lambda t: t.replace("count: 0", "count: -1"), "sessions.count"),
        (lambda t: t.replace("value: 0.1,", "value: .nan,"), "torque_constant"),
        (lambda t: t.replace("value: 0.1,", "value: -0.1,"), "positive"),
        (lambda t: t.replace("unit: N m/A", "unit: mN m/A"), "N m/A"),
        (lambda t: t.replace("law: stribeck", "law: none"), "friction.law: 'none' must be one of"),
        (lambda t: t.replace("wrist_3_joint:", "wrist_4_joint:", 1), "wrist_"),
        (lambda t: t.replace("robot: ur5e", "robot: &a ur5e\nspare: *a"), "aliases"),
        (lambda t: t.replace("robot: ur5e", "robot: !!python/name:os.system x"), "tags"),
        (lambda t: t.replace("robot: ur5e", "robot: [" * 400 + "]" * 400), "nested"),
        (lambda t: t.replace("robot: ur5e", "robot: [ur5e"), "YAML"),
        (lambda t: t.replace("standby: {value: 25.0", "standby: {value: many"), "standby"),
        (lambda t: "", "empty"),
        (lambda t: "- 1\n", "mapping"),
    ],
)
def test_refuses_what_is_wrong_and_says_where(tmp_path: Path, change: Change, names: str) -> None:
    path = tmp_path / "m.yaml"
    save_model(made_up_model(), path)
    text = path.read_text(encoding="utf-8")
    changed = change(text)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    message = str(error.value)
    assert names in message
    assert "\n" not in message
    assert str(path) in message


def with_tensors() -> EnergyModel:
    values = np.array([np.diag([0.01, 0.02, 0.02 + 1e-3 * j]) for j in range(N)])
    return replace(made_up_model(), link_tensors=LinkTensors(values, np.full((N, 3, 3), 1e-3)))


def test_identified_link_tensors_are_kept_and_used(tmp_path: Path) -> None:
    model = with_tensors()
    save_model(model, tmp_path / "m.yaml")
    loaded = load_model(tmp_path / "m.yaml")
    assert loaded.link_tensors is not None
    assert model.link_tensors is not None
    np.testing.assert_allclose(loaded.link_tensors.values, model.link_tensors.values)
    np.testing.assert_allclose(loaded.link_tensors.std, model.link_tensors.std)
    np.testing.assert_allclose(loaded.description(ROBOT).inertia, model.link_tensors.values)
    torque = ArmDynamics(loaded.description(), loaded.setup).inverse_dynamics(*motion())
    np.testing.assert_allclose(loaded.dynamics(robot=ROBOT).inverse_dynamics(*motion()), torque)
    bare = made_up_model().predict(*motion()).current
    assert np.abs(loaded.predict(*motion()).current - bare).max() > 0.01


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda t: t.replace("[0.01, 0.0, 0.0]", "[0.5, 0.0, 0.0]", 1), "tensor of a body"),
        (lambda t: t.replace("[0.01, 0.0, 0.0]", "[0.01, 0.1, 0.0]", 1), "tensor of a body"),
        (lambda t: t.replace("[0.01, 0.0, 0.0]", "[0.01, 0.0]", 1), "3 are needed"),
        (lambda t: t.replace("[0.001, 0.001, 0.001]", "[-1.0, 0.001, 0.001]", 1), "negative"),
        (lambda t: t.replace("unit: kg m^2\n  source", "unit: g m^2\n  source"), "kg m^2"),
    ],
)
def test_refuses_link_tensors_that_cannot_be(tmp_path: Path, change: Change, names: str) -> None:
    path = tmp_path / "m.yaml"
    save_model(with_tensors(), path)
    text = path.read_text(encoding="utf-8")
    path.write_text(change(text), encoding="utf-8")
    assert change(text) != text
    with pytest.raises(ModelFileError, match="link_tensors") as error:
        load_model(path)
    assert names in str(error.value)


def test_a_refusal_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    save_model(made_up_model(), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if "torque_constant" in line)
    lines[at] = lines[at].replace("N m/A", "Nm")
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ModelFileError, match=f"line {at + 1}"):
        load_model(path)
    with pytest.raises(ModelFileError, match="check the path"):
        load_model(tmp_path / "missing.yaml")


def test_a_motor_inertia_that_is_only_believed_widens_predicted_powers() -> None:
    model = made_up_model().in_session(SESSION)
    vague = replace(
        model,
        joints=tuple(
            replace(joint, std={**joint.std, "reflected_inertia": 0.5}) for joint in model.joints
        ),
    )
    speed, q = np.full((2, N), 1.0), np.zeros((2, N))
    cruising, starting = np.zeros((2, N)), np.full((2, N), 5.0)
    for made, wider in ((cruising, False), (starting, True)):
        sure = np.linalg.norm(model.predict(q, speed, made).sensitivity, axis=-1)
        unsure = np.linalg.norm(vague.predict(q, speed, made).sensitivity, axis=-1)
        assert bool((unsure > 1.001 * sure).all()) is wider
