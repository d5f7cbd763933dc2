# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fixtures shared by the tests of several packages."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from test import missing_packages, running
from test.absent_rooms import needs_room

# as the command line does, before numpy
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Programs under test inherit what is ignored: SIGINT in a shell's background jobs, SIGHUP
# by nohup.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

with suppress(ModuleNotFoundError):  # its tests are skipped
    import hypothesis

    hypothesis.settings.register_profile("untimed", deadline=None)
    hypothesis.settings.load_profile("untimed")

# until all tests are imported: a quarter of that time went into looking at modules
gc.disable()


def pytest_collection_finish() -> None:
    """What was imported stays: it is not looked at again."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    missing_packages.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    all_packages = config.getoption("--all-packages")
    config.pluginmanager.register(missing_packages.SkipWithoutNeeds(all_packages))


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the package keeps data of the user: not in the home folder."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def made_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], object]], Path]:
    """Folders that the first of the parallel workers fills for all of them.

    `made_once(name, make)` returns a folder that `make(folder)` has filled; nobody may
    change it.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder = root / f"shared_{name}"
        done = root / f"shared_{name}.done"
        with (root / f"shared_{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                # of a worker that failed half-way
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


@pytest.fixture
def recordings(request: pytest.FixtureRequest) -> Path:
    """Folder with recordings of real arms, beside the checkout."""
    return _beside(request, "data", "recordings of real arms")


@pytest.fixture
def facts(request: pytest.FixtureRequest) -> Path:
    """Folder with published constants, beside the checkout."""
    return _beside(request, "facts", "published constants")


def _beside(request: pytest.FixtureRequest, name: str, content: str) -> Path:
    """A folder beside the checkout; without it the test is skipped with the reason."""
    folder = SHARED / name
    if not folder.is_dir():
        purpose = request.function.__doc__ or request.function.__name__.removeprefix(
            "test_"
        )
        untested = purpose.splitlines()[0].rstrip(".").replace("_", " ")
        pytest.skip(f"{content} are not at {folder}; not tested: {untested}")
    return folder


@pytest.fixture(scope="session")
def fresh_host() -> Callable[[], str]:
    """Loopback addresses that are unique among tests and concurrent test runs."""
    return running.fresh_host


@pytest.fixture
def fresh_domain() -> Iterator[Callable[[], int]]:
    """ROS domains that are unique among tests and concurrent test runs, for one test."""
    with _fresh_domains() as claim:
        yield claim


@pytest.fixture(scope="module")
def fresh_domain_of_module() -> Iterator[Callable[[], int]]:
    """The same for all tests of a module."""
    with _fresh_domains() as claim:
        yield claim


@contextmanager
def _fresh_domains() -> Iterator[Callable[[], int]]:
    """Claims domains, which are free again after the block."""
    with ExitStack() as held:

        def claim() -> int:
            domain = running.claim_domain(held)
            if domain is None:
                pytest.fail("all ROS domains are taken")
            return domain

        yield claim


Simulate = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def simulate() -> Iterator[Simulate]:
    """Start simulated controllers in separate processes, which end after the test.

    `simulate(host, *options)` returns the process once it is ready. Without the room that
    simulates, the test is skipped.
    """
    with _simulators() as start:
        yield start


@pytest.fixture(scope="module")
def simulate_of_module() -> Iterator[Simulate]:
    """The same for all tests of a module."""
    with _simulators() as start:
        yield start


@contextmanager
def _simulators() -> Iterator[Simulate]:
    needs_room("simulation")
    with running.Simulators() as simulators:
        yield simulators.start


@pytest.fixture
def package_laws() -> Iterator[None]:
    """The friction laws that a test adds are gone after it."""
    from ur_energy_model.model.friction import LAWS  # most tests do without it

    before = dict(LAWS)
    yield
    LAWS.clear()
    LAWS.update(before)
