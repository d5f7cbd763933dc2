# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The joint angles that an arm passed through, to recognise a motion that is repeated.

A model is fitted best to the motions of its own recordings, so that its errors in a
recording of the same motion show little of other motions. The provenance of a model has
the path of every fitted recording, and a recording is compared with these paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

Motion = Literal["fitted", "same motion again", "held out", "unknown"]
"""Relation of a recording's motion to those that a model was fitted to."""
MOTION_WORDS: dict[Motion, str] = {
    "fitted": "the model was fitted to this recording: its errors in other motions may be larger",
    "same motion again": "the same motion again that the model was fitted to: its errors in other "
    "motions may be larger",
    "held out": "another motion than the model was fitted to",
    "unknown": "the model does not name the motions it was fitted to",
}
_FINEST = 0.1  # angle between the poses of a path at first [rad]
_COARSEST = 0.2  # angle between the poses of a long path [rad]
_MOST_POSES = 200  # poses of a path
_PATH_PERIOD = 0.05  # time between the samples that a path is made from [s]
_TOLERANCE = 0.02  # distance of a repeated path to the fitted one [rad]
_REPEATED_SHARE = 0.9
"""Share of a recording's poses on a fitted path that makes it the same motion. Recordings
of a UR10e that repeat one another have 1.0, others 0.3 at most."""


@dataclass
class VisitedPath:
    """Joint angles that an arm with n joints passed through, in coarse steps.

    A path has at most 200 poses: a minute or so of ever new ones. What follows is left
    out: with coarser poses, other motions in the same space would pass for this one.

    Attributes:
        within: largest angle of any joint from a pose of the path to the nearest of
            `poses` [rad].
        poses: joint positions of the poses [poses, n], rad; at most 200.
    """

    within: float = _FINEST
    poses: Array = field(default_factory=lambda: np.zeros((0, 0)))
    _last: float = -1.0  # period of the last sample

    def observe(self, part: Telemetry) -> None:
        """Add consecutive samples; those without positions are left out."""
        q = part.columns.get("target_q", part.columns.get("actual_q"))
        if q is None:
            return
        period = np.floor(part.time / _PATH_PERIOD)
        used = np.diff(period, prepend=self._last) != 0
        self._last = float(period[-1])
        used &= np.isfinite(q).all(axis=1)
        if len(self.poses) < _MOST_POSES or self.within < _COARSEST:
            self._add(q[used])
        while len(self.poses) > _MOST_POSES and self.within < _COARSEST:
            finer = self.poses
            self.within = 2.0 * self.within
            self.poses = finer[:0]
            self._add(finer)
        self.poses = self.poses[:_MOST_POSES]

    def _add(self, q: Array) -> None:
        """Keep poses [samples, n], rad, that are farther than `within` from the kept ones."""
        poses = list(self.poses)
        away = self.distance(q)
        far = np.flatnonzero(away > self.within)
        while len(far):
            first = far[0]
            q = q[first:]
            away = away[first:]
            poses.append(q[0].round(2))
            away = np.minimum(away, np.abs(q - q[0]).max(axis=1))
            far = np.flatnonzero(away > self.within)
        self.poses = np.array(poses).reshape(-1, q.shape[1])

    def distance(self, q: Array) -> Array:
        """Largest angle of any joint to the nearest of `poses` [samples], rad.

        Args:
            q: joint angles [samples, n], rad.

        Returns:
            The angles; infinite without poses, and for an arm with other joints.
        """
        if not len(self.poses) or q.shape[1] != self.poses.shape[1]:
            return np.full(len(q), np.inf)
        to_each = np.abs(q[:, None] - self.poses).max(axis=2)
        return np.asarray(to_each.min(axis=1))

    def as_json(self) -> dict[str, Any]:
        """Content for the provenance of a model; `from_json` reads it."""
        return {"within": self.within, "joint_angles": self.poses.tolist()}

    @classmethod
    def from_json(cls, content: Any) -> VisitedPath | None:
        """The path of an entry in a model file; None where it has none."""
        try:
            poses = np.array(content["joint_angles"], dtype=np.float64)
            within = float(content["within"])
        except (KeyError, TypeError, ValueError):
            return None
        return cls(within, poses) if poses.ndim == 2 else None


def motion_of(
    path: VisitedPath, sha256: str, fitted: Iterable[Mapping[str, Any]]
) -> Motion:
    """Relation of a recording to those that a model was fitted to.

    Args:
        path: path that the recording visits.
        sha256: hash of the recording.
        fitted: entries "bags" of the model's provenance; entries of older models have no
            path, and only their hash counts.
    """
    entries = [entry for entry in fitted if isinstance(entry, Mapping)]
    if not entries:
        return "unknown"
    if sha256 in [entry.get("sha256") for entry in entries]:
        return "fitted"
    on_any = np.zeros(len(path.poses), dtype=bool)
    for entry in entries:
        other = VisitedPath.from_json(entry.get("visited"))
        if other is None:
            return "held out"
        on_any |= other.distance(path.poses) <= other.within + _TOLERANCE
    if len(on_any) and on_any.mean() >= _REPEATED_SHARE:
        return "same motion again"
    return "held out"
