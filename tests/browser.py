"""A headless Chromium, driven through its DevTools protocol on loopback."""

import base64
import itertools
import json
import subprocess
import time
import urllib.request

from websockets.sync.client import connect

_PATIENCE_S = 60.0


class Browser:
    """The process; use it in a `with`, so that it always ends."""

    def __init__(self, program, folder):
        self._folder = folder
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            # Asked in its own way it tidies up its files; whatever goes wrong, it ends.
            port, path = self._listening()
            with connect(f"ws://127.0.0.1:{port}{path}") as socket:
                socket.send(json.dumps({"id": 1, "method": "Browser.close"}))
                self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait(10)

    def open(self, path, width, height, **media):
        """A new tab with the page loaded; `media` are features such as prefers_color_scheme."""
        port, _ = self._listening()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new", method="PUT")
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        return Tab(address, path, width, height, media)

    def _listening(self):
        """The port and the browser's own path, which it writes to a file once it listens."""
        file, end = self._folder / "DevToolsActivePort", time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            if file.is_file() and len(lines := file.read_text().split()) == 2:
                return lines
            assert self._process.poll() is None, "Chromium ended before it could be used."
            time.sleep(0.05)
        raise TimeoutError("Chromium did not start.")


class Tab:
    """One page; use it in a `with`, so that it closes.

    `problems` are the messages of the console that are errors or warnings, and the exceptions;
    `requests` the addresses that were asked for, without those inside the page itself.
    """

    def __init__(self, address, path, width, height, media):
        self._connection = connect(address, max_size=None, open_timeout=_PATIENCE_S)
        self._path, self._size, self._media = path, (width, height), media
        self._numbers = itertools.count(1)
        self.problems, self.requests = [], []

    def __enter__(self):
        self._socket = self._connection.__enter__()
        for room in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{room}.enable")
        width, height = self._size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in self._media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=self._path.as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")
        return self

    def __exit__(self, *_):
        self.call("Page.close")
        self._connection.__exit__(None, None, None)

    def call(self, method, **parameters):
        """Ask for something and wait for the answer, noting the events before it."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE_S))
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def ask(self, expression):
        """The value of a JavaScript expression."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, expression):
        """Until a JavaScript expression holds."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            if self.ask(expression):
                return
            time.sleep(0.05)
        raise TimeoutError(f"This never came true: {expression}")

    def show(self, selector):
        """Scroll an element to the middle of the screen."""
        place = "{block: 'center', behavior: 'instant'}"
        self.ask(f"document.querySelector({json.dumps(selector)}).scrollIntoView({place})")

    def picture(self):
        """What is on the screen, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(parameters["exceptionDetails"])
        elif message.get("method") == "Runtime.consoleAPICalled":
            if parameters["type"] in ("error", "warning", "assert"):
                self.problems.append(parameters["args"])
        elif message.get("method") == "Log.entryAdded":
            if parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"])
        elif message.get("method") == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if not address.startswith(("data:", "blob:")):
                self.requests.append(address)
