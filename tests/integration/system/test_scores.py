"""The scores of a real session, followed by curl, a Python stub and a browser's EventSource, live
and after the run from the beginning. Meanwhile the trainer and the gateway are killed. Each
follower must get each entry once and in order. A follower that is missing on this machine is
skipped (exit 77)."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "interop")]

import chromium  # noqa: E402
from harness import ROOT, SKIP, SLOW, Cluster, wait_for  # noqa: E402
from test_stubs import WORK, interop, python_stubs  # noqa: E402

ENDED = ("TRAINING_DONE", "TRAINING_FAILED")
missing = []


class Process:
    """A process that prints events; `entries` are those so far. `again` makes the command that
    continues after an id."""

    def __init__(self, again, last=""):
        self.again, self.last, self.entries, self.resumed, self.closed = again, last, [], 0, False
        self.process, self.lock = None, threading.Lock()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while True:
            with self.lock:
                if self.closed:
                    return
                argv, env = self.again(self.last)
                self.process = subprocess.Popen([str(a) for a in argv], env=env, stdout=subprocess.PIPE, text=True)
            with self.process.stdout as lines:
                for line in lines:
                    self.line(line.rstrip("\r\n"))
            self.process.wait()
            self.resumed += 1

    def entry(self, entry):
        self.last = entry["id"]
        self.entries.append(entry["id"])

    def line(self, line):
        self.entry(json.loads(line))

    def ids(self):
        return list(self.entries)

    def close(self):
        with self.lock:
            self.closed = True
            if self.process:
                self.process.kill()
        self.thread.join(10 * SLOW)


class Curl(Process):
    """curl -N, started again with the header Last-Event-ID whenever the stream has ended."""

    def __init__(self, url):
        self.event = {}
        super().__init__(lambda last: (["curl", "-sN", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", url, "-H",
                                        "Accept: text/event-stream", *(["-H", f"Last-Event-ID: {last}"] if last else [])], None))

    def line(self, line):
        name, _, value = line.partition(": ")
        if line:
            self.event[name] = value
            return
        event, self.event = self.event, {}
        if "id" in event and event.get("event") != "error":
            self.got(event["id"], json.loads(event["data"]))

    def got(self, event_id, data):
        assert event_id == data["id"], (event_id, data)
        self.entry(data)


class States(Curl):
    """Events of a session: those with an id are changes of its state, and the stream ends after the
    last one."""

    def got(self, event_id, data):
        self.entry({"id": event_id})
        self.state = data["training"]["state"]
        self.closed |= self.state in ENDED


class Tab:
    """An EventSource in a page, without any code for reconnecting: the browser does it."""

    def __init__(self, page, name, path):
        self.page, self.name = page, name
        page.run(f"""void (() => {{
            const t = {{ids: [], wrong: [], opened: 0, source: new EventSource({json.dumps(path)})}};
            window[{json.dumps(name)}] = t;
            t.source.onopen = () => {{ t.opened += 1; }};
            t.source.onmessage = (e) => {{
                const data = JSON.parse(e.data);
                if (e.lastEventId !== data.id) t.wrong.push([e.lastEventId, data]);
                t.ids.push(data.id);
                const line = document.createElement('li');
                line.textContent = data.id + ' ' + data.value_json;
                document.body.append(line);
            }};
            t.source.addEventListener('error', (e) => {{ if (e.data) t.wrong.push(e.data); }});
        }})()""")

    def look(self):
        return self.page.run(f"(({{ids, wrong, opened, source}}) => ({{ids, wrong, opened, state: source.readyState}}))(window.{self.name})")

    def ids(self):
        t = self.look()
        assert not t["wrong"], t["wrong"]
        assert t["state"] != 2, "the browser has given the stream up"
        return t["ids"]

    def close(self):
        self.page.run(f"window.{self.name}.source.close()")


class Scores(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster("--workers", "2", "--threads", "1")
        self.addCleanup(self.cluster.close)
        self.stubs = python_stubs(WORK / "stubs/scores")
        self.page = None
        if chromium.find():
            self.page = chromium.Page(self.cluster.url)
            self.addCleanup(self.page.close)
        else:
            missing.append("Chromium (Debian: chromium): the browser's EventSource")

    def followers(self, name, channel):
        """Starts all followers at the beginning of the channel."""
        path = f"/v1/channels/{channel}/events"
        those = {"curl": Curl(self.cluster.url + path)}
        self.addCleanup(those["curl"].close)
        if self.stubs:
            trainer = f"unix:{self.cluster.dir}/c/run/trainer.sock"
            those["stub"] = Process(lambda last: ([sys.executable, HERE / "stubs/scores.py", trainer, channel, last], self.stubs))
            self.addCleanup(those["stub"].close)
        if self.page:
            those["browser"] = Tab(self.page, name, path)
        return those

    def each_has(self, those, count):
        for name, follower in those.items():
            wait_for(f"{name} to have {count} entries", lambda f=follower: len(f.ids()) >= count, 60, every=0.1)

    def kill(self, program):
        old = self.cluster.pids(program)[0]
        os.kill(old, signal.SIGKILL)
        wait_for(f"another {program}", lambda: [p for p in self.cluster.pids(program) if p != old])

    def entries(self, channel):
        return [e["id"] for e in self.cluster.get(f"/v1/channels/{channel}/entries")["entries"]]

    def test_each_follows_live_and_from_the_beginning_though_services_are_killed(self):
        document = json.loads((ROOT / "examples/digits.json").read_text())
        document["params"].update(parts=2, each=500)
        document["stop"] = {"time_s": 600}
        training = self.cluster.call("POST", "/v1/trainings", document)
        session, channel = training["id"], training["channel"]
        states = States(f"{self.cluster.url}/v1/trainings/{session}/events")
        self.addCleanup(states.close)
        live = self.followers("live", channel)
        self.each_has(live, 5)
        self.kill("mr-trainer")
        count = len(self.entries_when_served(channel))
        self.each_has(live, count + 5)
        self.kill("mr-gateway")
        count = len(self.entries_when_served(channel))
        self.each_has(live, count + 5)

        self.cluster.call("POST", f"/v1/trainings/{session}:stop", {"reason": "seen enough"})
        end = self.cluster.get(f"/v1/trainings/{session}?wait_s=60")
        self.assertEqual(end["state"], "TRAINING_DONE", end)
        told = self.entries(channel)
        self.assertEqual(told, sorted(set(told), key=lambda i: tuple(map(int, i.split("-")))))
        # the channel is stored in Redis and does not depend on this process
        self.kill("mr-trainer")
        self.entries_when_served(channel)
        anew = self.followers("anew", channel)
        for name, follower in [*live.items(), *anew.items()]:
            wait_for(f"{name} to have all", lambda f=follower: len(f.ids()) >= len(told), every=0.1)
            self.assertEqual(follower.ids(), told, name)
        self.assertGreaterEqual(live["curl"].resumed, 1)
        if self.page:
            self.assertGreaterEqual(live["browser"].look()["opened"], 2)
            if os.environ.get("MILLRACE_TEST_PICTURE"):
                self.page.picture(os.environ["MILLRACE_TEST_PICTURE"])
        states.thread.join(30 * SLOW)
        self.assertEqual((states.state, states.closed), ("TRAINING_DONE", True))
        self.assertEqual(states.ids(), sorted(set(states.ids()), key=lambda i: [int(n) for n in i.split("-")]))

    def entries_when_served(self, channel):
        def there():
            status, _, body = self.cluster.request("GET", f"/v1/channels/{channel}/entries")
            return status == 200 and [e["id"] for e in json.loads(body)["entries"]]

        def patient():
            try:
                return there()
            except OSError:
                return None
        return wait_for("the channel to be served", patient)


if __name__ == "__main__":
    if not shutil.which("curl"):
        missing.append("curl")
    result = unittest.main(verbosity=2, exit=False).result
    for name in sorted({*missing, *interop.missing}):
        print(f"SKIPPED for want of {name}", file=sys.stderr)
    sys.exit(1 if not result.wasSuccessful() else SKIP if missing or interop.missing else 0)
