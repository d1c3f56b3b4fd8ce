"""`millrace train` against a gateway that the test plays, so that a session can take every course:
streams break and are resumed, answers are 503, Ctrl-C is pressed once and twice, a session
fails."""
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SLOW, bin_dir, wait_for  # noqa: E402

DOCUMENT = {"name": "fake", "params": {"below": 0.12, "data": "."},
            "stop": {"threshold": {"field": "cross_entropy", "below": "${below}"}}}


class Play:
    """A simulated session: one score a tick, until the threshold or a request to stop."""

    def __init__(self, ticks=12, end="TRAINING_DONE", every=0.1, breaks=()):
        self.ticks, self.end, self.every, self.breaks = ticks, end, every, set(breaks)
        self.posts, self.stops, self.resumes, self.started = [], [], [], time.time()
        self.lock, self.broken = threading.Lock(), set()

    def tick(self):
        n = int((time.time() - self.started) / self.every)
        return min(n, self.ticks)

    def over(self):
        return self.tick() >= self.ticks or bool(self.stops)

    def scores(self):
        return [{"step": i * 100, "version": i * 100, "cross_entropy": round(2.3 * 0.75 ** i, 5), "accuracy": min(0.1 + i * 0.08, 0.97),
                 "seconds": i * 0.1} for i in range(1, self.tick() + 1)]

    def training(self):
        over = self.over()
        now = int(time.time() * 1e9)
        t = {"id": "t1-1", "name": "fake", "state": self.end if over else "TRAINING_RUNNING", "channel": "t1-1.scores",
             "created_ns": str(int(self.started * 1e9)), "started_ns": str(int(self.started * 1e9)),
             "version": str(self.tick() * 100), "examples_per_s": 12345.6,
             "counters": {"steps": str(self.tick() * 100), "examples": str(self.tick() * 6400), "compute_s": 8.0, "feed_s": 0.5,
                          "pull_s": 0.5, "push_s": 0.5, "wait_s": 0.5, "gradients_lost": "3", "steps_lost": "40",
                          "moved_parts": "11", "moved_bytes": str(3 << 30)},
             "restores": 1, "document_json": json.dumps(DOCUMENT)}
        if over:
            t["ended_ns"] = str(now)
            if self.stops:
                t["reason"] = self.stops[0]["reason"]
            else:
                t["reason"] = "cross_entropy 0.0973 is below 0.12" if self.end == "TRAINING_DONE" else "ps/0 did not come"
        if over and self.end == "TRAINING_DONE":
            t.update(model_name="fake/model", model_object="0" * 32, score_json=json.dumps(
                {"cross_entropy": 0.0973, "validation": {"cross_entropy": 0.0973, "accuracy": 0.9688},
                 "test": {"cross_entropy": 0.1, "accuracy": 0.9712}}))
        return t


def handler(play):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def answer(self, value, status=200):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def breaks(self, name):
            """Should the stream break now?"""
            with play.lock:
                if name not in play.breaks or name in play.broken or play.tick() < play.ticks // 2:
                    return False
                play.broken.add(name)
                return True

        def event(self, data, event_id=None):
            text = (f"id: {event_id}\n" if event_id else "") + f"data: {json.dumps(data)}\n\n"
            chunk = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

        def stream(self, name, events):
            play.resumes.append((name, self.headers.get("Last-Event-ID")))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for data, event_id in events:
                    if self.breaks(name):
                        self.close_connection = True
                        return
                    if data is not None:
                        self.event(data, event_id)
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True

        def states(self):
            while True:
                over = play.over()
                yield {"event_id": "", "training": play.training()}, "9-0" if over else None
                if over:
                    return
                time.sleep(0.05)

        def entries(self):
            sent = int((self.headers.get("Last-Event-ID") or "0-0").split("-")[0])
            while True:
                for i, score in enumerate(play.scores()):
                    if i + 1 > sent:
                        sent = i + 1
                        yield {"id": f"{sent}-0", "value_json": json.dumps(score)}, f"{sent}-0"
                yield None, None
                time.sleep(0.05)

        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path == "/v1/trainings/t1-1":
                if "get" in play.breaks and "get" not in play.broken:
                    play.broken.add("get")
                    self.close_connection = True
                    return None
                return self.answer(play.training())
            if path == "/v1/trainings":
                older = dict(play.training(), id="t0-9", name="older", state="TRAINING_DONE")
                if query:
                    return self.answer({"trainings": [older] if query == "page_token=t0-9" else [], "next_page_token": ""})
                return self.answer({"trainings": [play.training()], "next_page_token": "t0-9"})
            if path == "/v1/trainings/t1-1/events":
                if "503" in play.breaks and len(play.broken) == 1 and "503" not in play.broken:
                    play.broken.add("503")
                    return self.answer({"code": 14, "message": "the trainer is away"}, 503)
                return self.stream("session", self.states())
            if path == "/v1/channels/t1-1.scores/events":
                return self.stream("scores", self.entries())
            if path == "/v1/channels/t1-1.scores/entries":
                after = int((query.split("after_id=")[1].split("&")[0] or "0").split("-")[0])
                return self.answer({"entries": [{"id": f"{i + 1}-0", "value_json": json.dumps(s)}
                                                for i, s in enumerate(play.scores()) if i + 1 > after]})
            return self.answer({"code": 5, "message": f'there is no training "{path.rsplit("/")[-1]}"'}, 404)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/v1/trainings":
                play.posts.append((self.headers["Idempotency-Key"], body))
                if "post" in play.breaks and len(play.posts) == 1:
                    self.close_connection = True
                    return None
                return self.answer(play.training())
            play.stops.append(body)
            return self.answer(play.training())
    return Handler


class TrainCli(unittest.TestCase):
    def play(self, *args, interrupts=0, **kw):
        play = Play(**kw)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(play))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.dir = tempfile.mkdtemp(prefix="mr-")
        path = pathlib.Path(self.dir, "fake.json")
        path.write_text(json.dumps(DOCUMENT))
        args = [str(path) if a == "FILE" else a for a in args]
        p = subprocess.Popen([str(bin_dir() / "millrace"), *args, "--url", f"http://127.0.0.1:{server.server_port}"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.dir)
        for n in range(interrupts):
            wait_for("it to hear", lambda n=n: len(play.stops) >= n if n else play.resumes, 30)
            p.send_signal(signal.SIGINT)
        try:
            out, err = p.communicate(timeout=60 * SLOW)
        finally:
            p.kill()
            server.shutdown()
            server.server_close()
        return play, p.returncode, out, err

    def test_the_end_is_a_table_and_a_curve(self):
        play, code, out, err = self.play("train", "FILE", "--set", "below=0.1", "--plot", "p.png", "--ascii", every=0.1 + 0.2 * SLOW)
        self.assertEqual(code, 0, err)
        self.assertEqual(play.posts[0][1]["params"]["below"], 0.1)
        for part in ("training t1-1 fake: done", "0.0973 is below 0.12", "validation  cross_entropy 0.0973, accuracy 96.88 %",
                     "test        cross_entropy 0.1000, accuracy 97.12 %", "compute 80.0 %", "40 steps, 3 gradients",
                     "model fake/model", "12 of them", "*"):
            self.assertIn(part, out)
        self.assertRegex(err, r"running +\d+\.\d s  step \d+  cross_entropy \d\.\d{4}  accuracy \d+\.\d\d %  12346 examples/s")
        self.assertEqual(pathlib.Path(self.dir, "p.png").read_bytes()[:4], b"\x89PNG")

    def test_streams_that_break_are_resumed_and_no_score_is_counted_twice(self):
        play, code, out, err = self.play("train", "FILE", "--json", ticks=20, breaks=("session", "scores", "503"))
        self.assertEqual(code, 0, err)
        answer = json.loads(out)
        self.assertEqual([s["step"] for s in answer["scores"]], [i * 100 for i in range(1, 21)])
        self.assertEqual(answer["training"]["state"], "TRAINING_DONE")
        resumed = [event_id for name, event_id in play.resumes if name == "scores"]
        self.assertEqual(len(resumed), 2)
        self.assertGreater(int(resumed[1].split("-")[0]), 5)

    def test_a_start_that_broke_off_is_repeated_under_the_same_key(self):
        play, code, _, err = self.play("train", "FILE", "--json", ticks=2, breaks=("post",))
        self.assertEqual(code, 0, err)
        self.assertEqual(len(play.posts), 2)
        self.assertEqual(play.posts[0], play.posts[1])

    def test_a_gateway_that_is_away_for_the_first_look_is_asked_again(self):
        play, code, _, err = self.play("train", "FILE", "--json", ticks=2, breaks=("get",))
        self.assertEqual((code, play.broken), (0, {"get"}), err)
        self.assertEqual(len(play.posts), 1)

    def test_ctrl_c_asks_it_to_stop_and_waits_for_the_model(self):
        play, code, out, err = self.play("train", "FILE", ticks=1000, interrupts=1)
        self.assertEqual(code, 0, err)
        self.assertEqual(play.stops, [{"reason": "stopped by Ctrl-C", "abandon": False}])
        self.assertIn("asked it to stop", err)
        self.assertIn("stopped by Ctrl-C", out)

    def test_a_second_ctrl_c_leaves_it(self):
        old, Play.over = Play.over, lambda self: False
        try:
            play, code, out, err = self.play("train", "FILE", ticks=1000, interrupts=2)
        finally:
            Play.over = old
        self.assertEqual(code, 4, err)
        self.assertEqual(len(play.stops), 1)
        self.assertIn("t1-1 goes on: `millrace train --follow t1-1` shows it", err)
        self.assertEqual(out, "")

    def test_a_failed_one_is_exit_code_4_with_the_reason(self):
        _, code, out, err = self.play("train", "--follow", "t1-1", ticks=3, end="TRAINING_FAILED")
        self.assertEqual(code, 4, err)
        self.assertIn("failed      ps/0 did not come", out)

    def test_following_what_is_not_there_is_exit_code_5(self):
        _, code, _, err = self.play("train", "--follow", "t9-9")
        self.assertEqual(code, 5)
        self.assertIn('there is no training "t9-9"', err)

    def test_stop_detach_and_the_list(self):
        play, code, out, err = self.play("train", "--stop", "t1-1", "--abandon", ticks=1000)
        self.assertEqual(code, 0, err)
        self.assertTrue(play.stops[0]["abandon"])
        _, code, out, err = self.play("train", "FILE", "--detach", ticks=1000)
        self.assertEqual((code, out), (0, "t1-1\n"), err)
        _, code, out, err = self.play("trainings", ticks=1000)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"t1-1 +running")
        _, code, out, err = self.play("trainings", "t1-1", ticks=1000)
        self.assertIn("training t1-1 fake: running", out)

    def test_the_list_has_the_rows_of_all_pages(self):
        _, code, out, err = self.play("trainings", ticks=1000)
        self.assertEqual(code, 0, err)
        self.assertEqual([line.split()[0] for line in out.splitlines()], ["ID", "t1-1", "t0-9"])
        _, code, out, err = self.play("trainings", "--json", ticks=1000)
        answer = json.loads(out)
        self.assertEqual([t["id"] for t in answer["trainings"]], ["t1-1", "t0-9"], err)
        self.assertEqual(answer["next_page_token"], "")

    def test_one_of_file_follow_and_stop_is_wanted(self):
        self.assertEqual(self.play("train")[1], 2)
        self.assertEqual(self.play("train", "FILE", "--stop", "t1-1")[1], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
