"""A headless Chromium driven through a pipe: open a page, ask it, read what it complained about."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
# The browser reads commands from descriptor 3 and answers on 4; both are moved out of the way first.
_WIRE = (
    "import os, sys; ends = [os.dup(os.dup(int(word))) for word in sys.argv[1:3]];"
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One page; ``complaints`` holds errors, warnings and exceptions, ``requests`` all addresses."""

    def __init__(self, profile):
        inward, self._write = os.pipe()
        self._read, outward = os.pipe()
        wires = [str(inward), str(outward)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WIRE, *wires, CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(inward, outward),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(inward)
        os.close(outward)
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints, self.requests = [], []
        target = self._call("Target.createTarget", url="about:blank")
        answer = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._session = None
        with contextlib.suppress(EOFError, BrokenPipeError):
            self._call("Browser.close")
        self._process.wait(30)
        os.close(self._read)
        os.close(self._write)

    def size(self, width, height, phone=False):
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def open(self, address, ready="document.readyState === 'complete'"):
        self._call("Page.navigate", url=address)
        self.until(ready)

    def ask(self, expression):
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while not self.ask(expression):
            assert time.monotonic() < end, f"still not so: {expression}"
            time.sleep(0.1)

    def _call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer.get("method"), answer.get("params", {}))

    def _next(self):
        while b"\0" not in self._buffer:
            block = os.read(self._read, 1 << 20)
            if not block:
                raise EOFError("the browser has left")
            self._buffer += block
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def _note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description"))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(params["args"]))
