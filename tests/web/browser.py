"""A browser without a window, driven through WebDriver (W3C) by chromedriver; what it asked for on the network and what it
complained about are on record."""

import base64
import json
import os
import re
import shutil
import subprocess
import time

import requests

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
WAIT_S = 60
OPTIONS = [
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    # Chromium's own business: it must not look like the page's.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Space": " ", "PageUp": "\ue00e", "PageDown": "\ue00f",
    "End": "\ue010", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
    "Shift": "\ue008", "Control": "\ue009", "Backspace": "\ue003",
}  # fmt: skip


def missing():
    """What is not installed, or None."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            return f"{program} (Debian: {package})"
    return None


class ScriptFailed(Exception):
    pass


def start_driver(environment):
    """The process and its port. It ends if the port that it chose was taken meanwhile, and then chooses another."""
    said = ["port not available"]
    while any("port not available" in line for line in said):
        process = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        said = []
        for line in process.stdout:
            said.append(line)
            if started := re.search(r"started successfully on port (\d+)", line):
                return process, started.group(1)
    raise AssertionError(f"chromedriver did not start: {said}")


class Browser:
    """`log` and `network` return what happened since they were last called."""

    def __init__(self, folder):
        self.downloads = folder
        self.driver, port = start_driver({**os.environ, "HOME": str(folder)})
        self.http = requests.Session()
        self.base = f"http://127.0.0.1:{port}"
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        chrome = {
            "binary": shutil.which("chromium"),
            "args": [*OPTIONS, *as_root],
            "perfLoggingPrefs": {"enableNetwork": True, "enablePage": False},
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": chrome}
        wanted["goog:loggingPrefs"] = {"browser": "ALL", "performance": "ALL"}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"
        # The record of requests would hold the bodies of uploads too, many times as long as they are.
        self.cdp("Network.disable")
        self.cdp("Network.enable", maxPostDataSize=1)
        self.script_timeout(60)
        self.resize(1280, 900)

    def close(self):
        self._send("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()

    def _send(self, method, path, body=None):
        answer = self.http.request(method, self.base + path, json=body if method == "POST" else None, timeout=120)
        value = answer.json()["value"]
        if answer.status_code >= 400:
            raise ScriptFailed(f"{value['error']}: {value['message']}")
        return value

    def post(self, path, **body):
        return self._send("POST", self.session + path, body)

    def script_timeout(self, seconds):
        self.post("/timeouts", script=int(seconds * 1000))

    def cdp(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    # --- pages ---

    def open(self, url, ready="main:not([aria-busy]) h1"):
        """Loads a page, and waits until its heading is there and nothing is busy."""
        self.post("/url", url=url)
        if ready:
            self.wait(f"document.querySelector({json.dumps(ready)}) !== null")
            self.settle()

    def settle(self):
        self.wait("document.querySelector('[aria-busy=true]') === null")

    def resize(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """light or dark: what the system is set to. Nothing moves, so that colours are there at once."""
        settings = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": name, "value": settings[name]} for name in settings])

    def screenshot(self):
        return base64.b64decode(self._send("GET", self.session + "/screenshot"))

    # --- scripts ---

    def run(self, body, *arguments):
        """Runs the body of a function in the page."""
        return self.post("/execute/sync", script=body, args=list(arguments))

    def run_async(self, body, *arguments):
        """The same for a body that awaits."""
        done = "const done = arguments[arguments.length - 1];"
        wrapped = f"{done} (async () => {{ {body} }})().then(done, (problem) => done(String(problem)));"
        return self.post("/execute/async", script=wrapped, args=list(arguments))

    def get(self, expression, *arguments):
        return self.run(f"return {expression};", *arguments)

    def wait(self, expression, *arguments, seconds=WAIT_S):
        """Until the expression is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            # While a page changes, what an expression names may not be there.
            value = self.run(f"try {{ return {expression}; }} catch (problem) {{ return null; }}", *arguments)
            if value:
                return value
            assert time.monotonic() < end, f"never became true: {expression}\n{self.log()}\n{self.text('main')[:2000]}"
            time.sleep(0.02)

    def text(self, selector):
        return self.get("document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector):
        return self.get("[...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    # --- what a person does ---

    def find(self, selector):
        return self.post("/element", using="css selector", value=selector)[ELEMENT]

    def click(self, selector):
        self.post(f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self.post(f"/element/{self.find(selector)}/value", text=text)

    def fill(self, selector, text):
        """In place of what is there."""
        self.wait("document.querySelector(arguments[0])", selector)
        self.run("document.querySelector(arguments[0]).select();", selector)
        self.type(selector, text)

    def choose(self, selector, value):
        self.run(
            "const list = document.querySelector(arguments[0]); list.value = arguments[1];"
            "list.dispatchEvent(new Event('change', {bubbles: true}));",
            selector,
            value,
        )

    def press(self, *keys):
        """Keys one after another, wherever the focus is; "Shift+Tab" holds the first."""
        actions = []
        for key in keys:
            parts = key.split("+") if len(key) > 1 else [key]
            values = [KEYS.get(part, part) for part in parts]
            actions += [{"type": "keyDown", "value": value} for value in values]
            actions += [{"type": "keyUp", "value": value} for value in reversed(values)]
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def point(self, selector, x, y, click=False):
        """Moves the mouse to x, y (0 to 1) within an element."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'});", selector)
        box = self.get("document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", selector)
        at = {"x": round(box["left"] + x * box["width"]), "y": round(box["top"] + y * box["height"])}
        actions = [{"type": "pointerMove", "duration": 0, "origin": "viewport", **at}]
        if click:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": actions}])

    # --- records ---

    def _log(self, kind):
        return self.post("/se/log", type=kind)

    def log(self):
        """The console's lines: errors, and violations of the content security policy."""
        return [f"{entry['level']} {entry['message']}" for entry in self._log("browser")]

    def network(self):
        """The addresses that were asked for."""
        addresses = []
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                addresses.append(message["params"]["request"]["url"])
        return addresses
