# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The difference of two mean energies, and its interval from the scatter of what was measured.

Welch, "The generalization of Student's problem when several different population
variances are involved", Biometrika 34 (1947): the two sides may scatter differently. The
number of degrees of freedom is Satterthwaite's approximation, Biometrics Bulletin 2 (1946).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.energy.powers import ArmState, Channels, TotalSource
from ur_energy_model.typing import Array

CONFIDENCE = 0.95  # probability that an interval contains the true difference


@dataclass(frozen=True)
class Difference:
    """A difference with the variance of its error.

    The variance is NaN where nothing shows it, as with one value on each side: the
    interval is then unknown, and nothing is proven.

    Attributes:
        value: the difference, in the unit of the compared quantity.
        variance: variance of the error of `value`, in its unit squared.
        freedom: degrees of freedom of the variance; infinite where it is known exactly.
    """

    value: float
    variance: float
    freedom: float

    @classmethod
    def of_mean(cls, values: Array) -> Difference:
        """The mean of independent values [k], at least one, less zero."""
        count = len(values)
        variance = float(values.var(ddof=1)) / count if count > 1 else np.nan
        return cls(float(values.mean()), variance, count - 1.0)

    @classmethod
    def of_means(cls, before: Array, after: Array) -> Difference:
        """The mean before less the mean after, from independent values [k] and [m], at least one.

        A side with a single value shows no scatter: it is taken to scatter as the other
        side does, since both are the work of one arm.
        """
        value = float(before.mean() - after.mean())
        single_before = len(before) == 1
        single_after = len(after) == 1
        if single_before and single_after:
            return cls(value, np.nan, 0.0)
        if single_before or single_after:
            several = after if single_before else before
            variance = float(several.var(ddof=1)) * (1.0 + 1.0 / len(several))
            return cls(value, variance, len(several) - 1.0)
        of_before = float(before.var(ddof=1)) / len(before)
        of_after = float(after.var(ddof=1)) / len(after)
        without_after = cls(value, of_before, len(before) - 1.0)
        return without_after.widened(of_after, len(after) - 1.0)

    @classmethod
    def of_pairs(cls, before: Array, after: Array) -> Difference:
        """The mean difference of pairs of values [k] that have drifts in common, at least one."""
        return cls.of_mean(before - after)

    @classmethod
    def of_groups(cls, before: Array, after: Array) -> Difference:
        """As `of_means`, of values that all scatter alike on both sides, more than two together."""
        value = float(before.mean() - after.mean())
        freedom = len(before) + len(after) - 2.0
        squares_before = float(np.square(before - before.mean()).sum())
        squares_after = float(np.square(after - after.mean()).sum())
        common = (squares_before + squares_after) / freedom
        shares = 1.0 / len(before) + 1.0 / len(after)
        return cls(value, common * shares, freedom)

    def __neg__(self) -> Difference:
        return Difference(-self.value, self.variance, self.freedom)

    def widened(self, variance: float, freedom: float = np.inf) -> Difference:
        """The difference with a further, independent error of this variance."""
        both = self.variance + variance
        if not both > 0.0:
            return Difference(self.value, both, min(self.freedom, freedom))
        # Satterthwaite: both^2 / freedom of both = the sum of variance^2 / freedom.
        own = self.variance**2 / self.freedom if self.freedom else 0.0
        total = own + variance**2 / freedom
        freedom_of_both = both**2 / total if total > 0.0 else np.inf
        return Difference(self.value, both, freedom_of_both)

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Half of the interval in which the true difference is with this confidence."""
        if not np.isfinite(self.variance):
            return np.nan
        from scipy.special import stdtrit  # slow to import

        quantile = float(stdtrit(self.freedom, 0.5 + confidence / 2.0))
        return quantile * float(np.sqrt(self.variance))

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the 95 % interval; NaN where nothing shows it."""
        half = self.half_width()
        return (self.value - half, self.value + half)


def model_variance(channels: Channels, before: Array, after: Array) -> float:
    """Variance of the model's error in the difference of two modelled energies [J^2].

    The parameters of the model, and their errors, are the same on both sides and cancel as
    far as the motion is the same; the standby power of two sessions and the errors of two
    motions do not.

    Args:
        channels: channels of the integrals.
        before: integrals of the channels on one side [channels], J.
        after: integrals of the channels on the other side [channels], J.
    """
    moving = channels.state_time + ArmState.MOVING
    standby = channels.model_errors.stop - 1
    change = after - before
    change[moving] = before[moving] + after[moving]
    of_standby = 0.0
    if channels.errors.whole_arm:
        change[standby] = 0.0
        of_standby = float(before[standby] ** 2 + after[standby] ** 2)
    return of_standby + float(channels.deviations_of_model(change)) ** 2


def both_measured(before: TotalSource, after: TotalSource) -> bool:
    """Whether measured totals are compared, and not modelled energies."""
    return before.name == after.name == "measured"


def sources_json(before: TotalSource, after: TotalSource) -> dict[str, Any]:
    """What a comparison compares, and where the totals of its sides come from, for JSON."""
    return {
        "compared": "measured" if both_measured(before, after) else "modelled",
        "total_source": {"before": before.name, "after": after.name},
        "total_measured_share": {"before": before.share, "after": after.share},
    }
