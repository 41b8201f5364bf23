"""A headless Chromium, driven through its own protocol over two pipes: no package needed.

python3 browser.py PAGE.html PICTURE.png WIDTH HEIGHT takes a picture of a page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any


def find() -> str | None:
    """The browser's path; None when there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page. messages: what its console has said, and requests that left the file."""

    def __init__(self, patience: float = 60) -> None:
        self.patience = patience  # seconds for an answer
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._held = b""
        self._profile = tempfile.mkdtemp()
        read_end, self._to = os.pipe()
        self._from, write_end = os.pipe()

        def hand_over() -> None:  # Chromium reads from 3 and writes to 4
            low, high = os.dup(read_end), os.dup(write_end)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self._process = subprocess.Popen(
            [
                find() or "chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile}",
            ],
            preexec_fn=hand_over,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._to)
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser says nothing")
            part = os.read(self._from, 1 << 20)
            if not part:
                raise ConnectionError("the browser has ended")
            self._held += part
        line, _, self._held = self._held.partition(b"\0")
        return json.loads(line)

    def _note(self, message: dict[str, Any]) -> None:
        self.events.append(message)
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(values["exceptionDetails"])[:300])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.messages.append(json.dumps(values["args"])[:300])
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.messages.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """A command of the protocol; its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.patience
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def wait(self, method: str) -> None:
        """Until that event has come, since the last open()."""
        end = time.monotonic() + self.patience
        while not any(event.get("method") == method for event in self.events):
            self._note(self._receive(end))

    def size(self, width: int, height: int, phone: bool = False) -> None:
        """Of the window, in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, name: str, media: str = "") -> None:
        """light or dark; media "print" shows the page as it prints."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, path: str) -> None:
        """Opens a file and waits until it is there."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def until(self, script: str, wanted: Any = True) -> None:
        """Waits until the expression has that value. AssertionError when it never has."""
        end = time.monotonic() + self.patience
        while (found := self.run(script)) != wanted:
            assert time.monotonic() < end, f"{script} is {found}, not {wanted}"
            time.sleep(0.02)

    def key(self, name: str, code: int, text: str = "") -> None:
        """Presses a key, as a person does."""
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path: str, whole: bool = False) -> None:
        """A screenshot (PNG) of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


if __name__ == "__main__":
    with Browser() as one:
        one.size(int(sys.argv[3]), int(sys.argv[4]))
        one.scheme("light")
        one.open(sys.argv[1])
        one.picture(sys.argv[2])
