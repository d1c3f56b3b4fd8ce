"""A headless Chromium with a profile of its own, controlled by its DevTools protocol over two
pipes: opens pages, runs scripts in them, takes pictures. Standard library only."""
import base64
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading

from harness import SLOW


def find():
    """The path of the program, or None without Chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Page:
    def __init__(self, url):
        self.dir = tempfile.mkdtemp(prefix="mr-browser-")
        down, to = self.pipe()
        back, up = self.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        words = [find(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.dir}", "--no-first-run", "--disable-gpu",
                 "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--no-proxy-server"]
        if os.getuid() == 0:
            words.append("--no-sandbox")  # Chromium refuses to run as root with a sandbox
        argv = ["/bin/bash", "-c", f'exec "$@" 3<&{down} 4>&{up} {down}<&- {up}>&-', "chromium", *words, "about:blank"]
        with open(pathlib.Path(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(argv, pass_fds=(down, up), start_new_session=True, stdout=subprocess.DEVNULL, stderr=log)
        os.close(down)
        os.close(up)
        self.to, self.back, self.number, self.session = open(to, "wb", 0), open(back, "rb", 0), 0, None
        self.answers, self.news = {}, threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.call("Page.enable")
            self.call("Page.navigate", url=url)
            self.run("new Promise(r => document.readyState === 'complete' ? r(1) : addEventListener('load', () => r(1)))")
        except BaseException:
            self.close()
            raise

    @staticmethod
    def pipe():
        """(read end, write end), neither of them 3 or 4."""
        ends = os.pipe()
        high = tuple(fcntl.fcntl(e, fcntl.F_DUPFD_CLOEXEC, 10) for e in ends)
        for e in ends:
            os.close(e)
        return high

    def read(self):
        rest = b""
        while piece := self.back.read(1 << 16):
            *messages, rest = (rest + piece).split(b"\0")
            with self.news:
                for m in map(json.loads, messages):
                    if "id" in m:
                        self.answers[m["id"]] = m
                self.news.notify_all()
        with self.news:
            self.answers = None
            self.news.notify_all()

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        with self.news:
            if not self.news.wait_for(lambda: self.answers is None or self.number in self.answers, 60 * SLOW):
                raise AssertionError(f"the browser does not answer {method}")
            if self.answers is None:
                raise AssertionError("the browser ended: " + pathlib.Path(self.dir, "log").read_text()[-2000:])
            answer = self.answers.pop(self.number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def run(self, script):
        """The value of an expression in the page; of a promise, its result."""
        r = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError(f"in the page: {r['exceptionDetails']}")
        return r["result"].get("value")

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.to.close()
        self.back.close()
        shutil.rmtree(self.dir, ignore_errors=True)
