#!/usr/bin/env python3
"""The MNIST example ends by its threshold under each rule, and its model is saved. Without the
files of MNIST, digits are generated."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from clouds import clouds  # noqa: E402
from harness import ROOT, Cluster, data_dir  # noqa: E402
from training_cases import document, ended, start, upload  # noqa: E402


class Training(unittest.TestCase):
    def test_each_rule_reaches_the_threshold_and_keeps_its_model(self):
        data = data_dir()
        with Cluster("--workers", "4", "--threads", "1", "--memory", "1GiB", "--data-root", str(data or ROOT)) as c:
            for rule in ("async", "sync", "allreduce"):
                with self.subTest(rule):
                    d = json.loads((ROOT / "examples" / "mnist.json").read_text())
                    d["params"].update(data=str(data / "mnist") if data else None, copies=1, rule=rule, workers=2, ps=0 if rule == "allreduce" else 1,
                                       below=0.3, time_s=120, every_s=0.25)
                    t = c.call("POST", "/v1/trainings", d)
                    t = c.get(f"/v1/trainings/{t['id']}?wait_s=150", timeout=200)
                    self.assertEqual(t["state"], "TRAINING_DONE", t.get("reason"))
                    self.assertIn("below 0.3", t["reason"])
                    score = json.loads(t["score_json"])
                    # the saved model is the one that was scored, not one that came later
                    self.assertLess(score["validation"]["cross_entropy"], 0.3, score)
                    self.assertGreater(score["validation"]["accuracy"], 0.88, score)
                    self.assertGreater(score["test"]["accuracy"], 0.88, score)
                    self.assertEqual(c.get(f"/v1/names/{t['model_name']}")["object"], t["model_object"])
                    self.assertGreater(float(t["counters"]["compute_s"]), 0)
                    entries = c.get(f"/v1/channels/{t['channel']}/entries")["entries"]
                    versions = [int(json.loads(e["value_json"])["version"]) for e in entries]
                    self.assertEqual(versions, sorted(versions))
                    self.assertIn(int(score["version"]), versions)

    def test_roles_find_their_data_on_any_node(self):
        d = json.loads((ROOT / "examples" / "digits.json").read_text())
        d["params"].update(parts=4, each=500, ps=2, below=-1, epochs=5)
        with Cluster("--nodes", "2", "--workers", "2", "--threads", "1") as c:
            c.wait_for_workers(4)
            for _ in range(3):
                t = c.call("POST", "/v1/trainings", d)
                t = c.get(f"/v1/trainings/{t['id']}?wait_s=30", timeout=60)
                self.assertEqual((t["state"], t["reason"]), ("TRAINING_DONE", "5 epochs are over"))
                # The roles have the addresses of their data from the start, so no role needs a
                # second attempt.
                self.assertEqual({m["task"].rsplit("/", 1)[1] for m in t["members"]}, {"1"}, t["members"])

    def test_what_is_not_finite_fails_the_session_in_words(self):
        """With NaN in the data, or a rate at which the parameters diverge, a training does not end
        as done."""
        with Cluster("--workers", "2", "--threads", "1") as c:
            upload(c, train=2000, validation=500)
            x, _ = clouds(2000, 1)
            status, _, body = c.request("POST", "/v1/objects?name=clouds/spoilt/x&persist=true", x[:-4] + b"\0\0\xc0\x7f",
                                        {"Content-Type": "application/x-npy"})
            self.assertIn(status, (200, 201), body)
            for rule in ("async", "sync", "allreduce"):
                with self.subTest(rule):
                    spoilt = document(rule, data={"train": {"x": {"name": "clouds/spoilt/x"}, "y": {"name": "clouds/train/y"}}}, stop={"epochs": 400})
                    t = ended(c, start(c, spoilt))
                    self.assertEqual(t["state"], "TRAINING_FAILED", t)
                    self.assertRegex(t["reason"], "not finite")
                    wild = document(rule, optimizer={"type": "sgd", "learning_rate": 1e6}, stop={"epochs": 400})
                    t = ended(c, start(c, wild))
                    self.assertEqual(t["state"], "TRAINING_FAILED", t)
                    self.assertRegex(t["reason"], "not finite.*learning_rate")


if __name__ == "__main__":
    unittest.main(verbosity=2)
