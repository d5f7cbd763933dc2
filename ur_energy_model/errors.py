# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The errors of this package: each contains its data and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Text for people; names from files and command lines must not control their terminal.

_LONGEST = 1000
"""Most characters of a line; of a longer one, its middle is left out."""
_SIGNED_ZERO = re.compile(r"(?<![\w.,/\\-])[-−+](?=0(?:\.0+)?(?!\.?\d|[\w-]))")


def unsigned_zeros(text: str) -> str:
    """Text in which numbers that are rounded to zero have no sign: "0.0 W" for "-0.0 W"."""
    return _SIGNED_ZERO.sub("", text)


def printable(text: str) -> str:
    """Text with escape sequences for what terminals should not print.

    These are control characters other than line breaks and tabs, characters that change
    the direction of text, and lone surrogates.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    for each in text:
        is_shown = each.isprintable() or each in "\n\t"
        shown.append(each if is_shown else each.encode("unicode_escape").decode())
    return "".join(shown)


def one_line(text: str) -> str:
    """Printable text of bounded length, line breaks and tabs escaped, zeros without sign."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return printable(unsigned_zeros(text)).replace("\n", r"\n").replace("\t", r"\t")


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that a misspelt one most likely means; upper and lower case are alike.

    Args:
        word: word as the user types it, or as it stands in a file.
        known: words that would be right.
        cutoff: least similarity, 0 to 1 (as `difflib.SequenceMatcher` defines it); nearer
            to 1 where a wrong guess would be misleading.

    Returns:
        The most similar known word, None if none is similar enough.
    """
    from difflib import get_close_matches  # only needed for mistakes

    spellings = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), spellings, 1, cutoff)
    return spellings[near[0]] if near else None


def counted(number: int, thing: str) -> str:
    """A number with a noun, such as "1 sample" or "2,000 samples"."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}s"


def span(seconds: float) -> str:
    """A time [s] as text, in the unit that suits it: "90.0 s", "5.0 min", "3.0 h"."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


class UrEnergyError(Exception):
    """Base class of the package's errors.

    The command line prints `str(error)` as one line and exits with `exit_code`; names of
    files and what files contain cannot control a terminal.

    Attributes:
        options: options of the command line that the text names, such as
            "--allow-network".
    """

    exit_code = 1
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return one_line(super().__str__())

    def with_names(self, names: Mapping[str, str]) -> str:
        """The text for readers who do not type the options of the command line.

        Args:
            names: what these readers call an option, such as the parameter of a ROS node;
                an option that is missing here keeps its name.
        """
        text = str(self)
        for option in sorted(self.options, key=len, reverse=True):
            text = text.replace(option, names.get(option, option))
        return text


class InputError(UrEnergyError):
    """Invalid input.

    Attributes:
        source: file, bag or address.
        field: invalid field, column or key; None if the whole source is invalid.
        problem: what is wrong.
        remedy: what the user can do.
        options: options of the command line that problem and remedy name; an option with
            which the source begins is among them without being stated.
    """

    def __init__(
        self,
        source: str | Path,
        problem: str,
        remedy: str,
        *,
        field: str | None = None,
        options: tuple[str, ...] = (),
    ) -> None:
        self.source = str(source)
        self.options = options
        if self.source.startswith("--"):
            self.options = (self.source.split()[0], *options)
        self.field = field
        self.problem = problem
        self.remedy = remedy
        place = self.source if field is None else f"{self.source}: {field}"
        super().__init__(" ".join(f"{place}: {problem}; {remedy}".split()))


class RobotFileError(InputError):
    """A robot file that is missing, malformed or physically impossible."""


class RecordingError(InputError):
    """A bag or CSV recording that cannot be read or used."""


class IncompleteRecordingError(RecordingError):
    """A bag that holds less than was asked for; what it holds is readable."""

    exit_code = 3


class MissingFieldError(RecordingError):
    """A recording without a telemetry field that the requested step needs."""


class WrongRobotError(InputError):
    """A recording, model or controller of another robot than the requested one."""


class ModelFileError(InputError):
    """A model file that cannot be used."""


class TrajectoryFileError(InputError):
    """A trajectory file that cannot be used."""


class IdentificationError(UrEnergyError):
    """Data from which the requested parameters cannot be identified."""


class ControllerError(UrEnergyError):
    """A controller that cannot be reached, refuses a request or stops answering.

    Attributes:
        host: address of the controller.
    """

    def __init__(self, host: str, problem: str, remedy: str) -> None:
        self.host = host
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{host}: {problem}; {remedy}")


class ProtocolError(ControllerError):
    """Bytes from a controller that are not valid RTDE."""


class MotionRefusedError(UrEnergyError):
    """A motion that was not started, or was stopped, for safety."""


def problem_words(error: Exception) -> str:
    """Why something failed, for users: in the system's words, or as in the message of a library."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    if isinstance(error, UrEnergyError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else repr(error)


# Python packages that are not installed: which one, and the command that installs it.

NAMES_ON_PYPI = {
    "foxglove": "foxglove-sdk",
    "paho": "paho-mqtt",
    "pinocchio": "pin",
    "google": "protobuf",
    "prometheus_client": "prometheus-client",
    "rtde_control": "ur-rtde",
    "rtde_receive": "ur-rtde",
    "yaml": "PyYAML",
}
"""Names of packages on PyPI, where Python imports them by another name."""
IN_UBUNTU = {
    "lz4", "matplotlib", "numba", "numpy", "rich", "scipy", "shtab", "typing_extensions", "yaml",
    "zstandard",
}  # fmt: skip
"""Packages that apt has as `python3-<name>` (Ubuntu 22.04 and 24.04)."""
_REQUIRED = re.compile(
    r"(?P<name>[\w.-]+)[^;]*;.*\bextra\s*==\s*[\"'](?P<extra>[\w-]+)[\"']"
)
"""A line of the requirements of an installed package, with the extra that has it."""
_OF_ROS = ("rclpy", "rcl_", "_msgs", "_srvs", "_interfaces", "launch")


class MissingPackageError(UrEnergyError):
    """A Python package that this step needs is not installed.

    Attributes:
        package: name with which Python imports it.
        remedy: how to install it.
    """

    def __init__(self, package: str) -> None:
        self.package = package.partition(".")[0]
        self.remedy = _installation(self.package)
        super().__init__(
            f"the Python package {self.package!r} is not installed: {self.remedy}"
        )


@contextmanager
def optional_import() -> Iterator[None]:
    """For what imports packages that only some commands or options need.

    Raises:
        MissingPackageError: an import in the block finds no package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # a fault of our own
        if error.name is None or error.name.startswith("ur_energy_model"):
            raise
        raise MissingPackageError(error.name) from None


def _installation(package: str) -> str:
    """Command to install a package, given the name with which Python imports it."""
    if package.startswith(_OF_ROS) or package.endswith(_OF_ROS):
        return (
            "source ROS 2's setup file, or in a virtual environment, pip install '.[ros]'"
        )
    distribution = NAMES_ON_PYPI.get(package, package)
    by_pip = f"in a virtual environment, pip install {distribution}"
    extra = _extra_with(distribution)
    if extra is not None:
        by_pip = (
            f"it belongs to the extra '{extra}': in the folder of ur_energy_model, "
            f"pip install '.[{extra}]'"
        )
    if package in IN_UBUNTU:
        return f"sudo apt install python3-{package.replace('_', '-')}; or {by_pip}"
    return by_pip


def _extra_with(distribution: str) -> str | None:
    """The first extra of this package, as it is installed, that has a distribution."""
    from importlib.metadata import PackageNotFoundError, requires  # takes 10 ms

    try:
        required = requires("ur_energy_model") or []
    except PackageNotFoundError:
        return None
    for requirement in required:
        found = _REQUIRED.match(requirement)
        if found is not None and _same_name(found["name"], distribution):
            return found["extra"]
    return None


def _same_name(one: str, other: str) -> bool:
    """Whether names of distributions are the same to pip."""
    return re.sub("[-_.]+", "-", one).lower() == re.sub("[-_.]+", "-", other).lower()
