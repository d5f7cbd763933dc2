# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A headless Chromium controlled over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
TIMEOUT = 60.0
PHONE = 400  # width of a phone [px]


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a new browser; its errors and warnings are collected in `complaints`."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="report-browser-")
        command = [program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=quiet, stderr=quiet, start_new_session=True
        )
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._session = dict[str, str]()
        try:
            port, path = self._address()
            self._socket = websocket.create_connection(
                f"ws://127.0.0.1:{port}{path}", timeout=TIMEOUT, suppress_origin=True
            )
            target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
            attached = self.call(
                "Target.attachToTarget", {"targetId": target, "flatten": True}
            )
            self._session = {"sessionId": attached["sessionId"]}
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def open(self, file: Path) -> None:
        """Load a file and wait until its script has finished."""
        self.call("Page.navigate", {"url": file.as_uri()})
        self.wait_for("document.documentElement?.dataset.ready === 'true'")

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        how = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", how)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {condition}; {self.complaints}")
            time.sleep(0.05)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Change the window size [CSS pixels], and let the page redraw."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", size)
        self.evaluate("new Promise(r => requestAnimationFrame(() => setTimeout(r, 150)))")

    def media(self, *, kind: str = "screen", scheme: str = "light") -> None:
        """Emulate screen or print, and the preferred colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", {"media": kind, "features": features})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press, move and release the mouse at positions in the window."""
        for kind, (x, y) in (("Pressed", start), ("Moved", end), ("Released", end)):
            event = {"type": f"mouse{kind}", "x": x, "y": y, "buttons": 1}
            pressed = {} if kind == "Moved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", {**event, **pressed})

    def print_pdf(self) -> bytes:
        return base64.b64decode(
            self.call("Page.printToPDF", {"printBackground": True})["data"]
        )

    def close(self) -> None:
        """End the browser and its child processes."""
        if hasattr(self, "_socket"):
            self._socket.close()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _address(self) -> tuple[str, str]:
        file = Path(self._profile, "DevToolsActivePort")
        end = time.monotonic() + TIMEOUT
        while True:
            if file.is_file() and file.read_text().count("\n") == 1:
                port, path = file.read_text().split("\n")
                return port, path
            if self._process.poll() is not None or time.monotonic() > end:
                raise AssertionError("the browser does not start")
            time.sleep(0.05)

    def call(
        self, method: str, parameters: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        self._socket.send(json.dumps(message | self._session))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        kind = event.get("method")
        what = event.get("params", {})
        if kind == "Runtime.exceptionThrown":
            self.complaints.append(str(what["exceptionDetails"]))
        elif kind == "Runtime.consoleAPICalled" and what["type"] in {
            "error",
            "warning",
            "assert",
        }:
            self.complaints.append(str(what["args"]))
        elif kind == "Log.entryAdded" and what["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(
                f"{what['entry']['text']} {what['entry'].get('url', '')}"
            )
        elif kind == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])


def energies_in_sight(browser: Browser, file: Path) -> None:
    """Assert that a page at the width of a phone has energies, and all of them in sight."""
    browser.resize(PHONE, 800, phone=True)
    browser.open(file)
    assert browser.evaluate("document.documentElement.scrollWidth") <= PHONE
    columns = browser.evaluate(
        "[...document.querySelectorAll('thead th')].filter(th => /energy/.test(th.textContent))"
        ".map(th => [th.textContent, th.getBoundingClientRect().right])"
    )
    assert columns, "every page has a table of energies"
    assert [name for name, right in columns if right > PHONE] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    browser = Browser(program)
    try:
        browser.resize(1280, 900)
        yield browser
    finally:
        browser.close()
