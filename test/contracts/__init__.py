# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Contracts: what users rely on, seen from outside only, as golden files hold it.

Commands with their options, exit codes and JSON; values on fixed inputs; topics,
parameters and launch arguments; bags, models, states and stores of earlier versions;
names in the sinks. `fixtures/` has files that an earlier version wrote (made once, never
again); `golden/` has what was found with them. A difference is a change that users
notice: mend it, or, where it is intended, write the golden files anew, read their diff,
and add a line to CHANGELOG.rst:

    python -m test.contracts.make [-k NAME]
"""
