#!/usr/bin/python3
"""The main example: the distributed mean and variance agree with NumPy, on MNIST if its files are
there, otherwise on generated digits. A second run finds its results by name."""
import gzip
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SKIP, Cluster, data_dir  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("SKIPPED: NumPy is not installed for", sys.executable)
    sys.exit(SKIP)


class Mnist(unittest.TestCase):
    def run_job(self, c, out, *flags):
        c.cli("run", "examples/mnist-stats.json", "--out", out, *flags, timeout=300)
        job = c.get("/v1/jobs")["jobs"][0]
        out = pathlib.Path(out)
        self.assertTrue((out / "mean.png").read_bytes().startswith(b"\x89PNG"))
        return job, json.loads((out / "source.json").read_text()), np.load(out / "mean.npy"), np.load(out / "var.npy")

    def check(self, pixels, mean, var):
        x = pixels.reshape(len(pixels), 784).astype(np.float64) / 255
        np.testing.assert_allclose(mean, x.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(var, x.var(axis=0), atol=1e-5)

    def test_mnist(self):
        data = data_dir()
        if not data or not (data / "mnist" / "train-images-idx3-ubyte.gz").exists():
            self.skipTest("SKIPPED: the MNIST files are not here")
        pixels = np.frombuffer(gzip.open(data / "mnist" / "train-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(60000, 784)
        with Cluster("--workers", "4", "--memory", "1536MiB", "--data-root", str(data)) as c, tempfile.TemporaryDirectory() as out:
            flags = ("--data", str(data / "mnist"), "--set", "copies=3")
            job, source, mean, var = self.run_job(c, out, *flags)
            self.assertIn("train-images", source)
            self.check(pixels, mean, var)
            names = {n["name"]: n for n in c.get("/v1/names")["names"]}
            self.assertEqual(sorted(names), ["mnist/images", "mnist/mean", "mnist/var"])
            self.assertIn("180000,784", names["mnist/images"]["summary"])
            self.assertTrue(all(n["durable"] for n in names.values()))
            again, _, mean2, _ = self.run_job(c, out, *flags)
            self.assertEqual(int(again["counts"]["joined"]), 3)
            self.assertTrue((mean == mean2).all())
            ran = {s["key"] for s in c.get(f"/v1/jobs/{again['id']}/timeline").get("spans", [])}
            self.assertFalse([k for k in ran if k.startswith(("part/", "moments"))], "it ran what it had")


class Drawn(Mnist):
    """Given data are read or refused; generated data are labelled as such."""
    test_mnist = None

    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "2", "--memory", "512MiB")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def test_without_data_a_job_draws_and_says_so(self):
        c = self.c
        with tempfile.TemporaryDirectory() as out:
            job, source, mean, _ = self.run_job(c, out, "--set", "copies=2", "--set", "count=3000")
        self.assertEqual(source, "drawn with seed 1: no data was given")
        self.assertEqual(mean.shape, (784,))
        self.assertGreater(mean.max(), 0.05)
        self.assertIn("data: drawn, as none was given", c.cli("run", "examples/mnist-stats.json", "--set", "copies=2", "--set", "count=3000")[1])
        for n in c.get("/v1/names")["names"]:
            if n["name"].startswith("mnist/"):
                self.assertIn("of drawn data", n["summary"], n)
                self.assertTrue(c.get(f"/v1/objects/{n['object']}/stat")["drawn"], n)
        self.assertIn("of drawn data", c.cli("ls")[1])
        put = c.call("POST", "/v1/objects?name=given", "[1, 2, 3]")
        self.assertFalse(c.get(f"/v1/objects/{put['id']}/stat").get("drawn"))

    def test_without_data_a_training_draws_and_says_so(self):
        few = [f"--set={s}" for s in ("count=640", "copies=1", "workers=1", "epochs=1", "every_s=0.2", "below=0")]
        said = self.c.cli("train", "examples/mnist.json", *few, timeout=240)[1]
        self.assertIn("  data        drawn, as none was given", said)
        t = self.c.get("/v1/trainings")["trainings"][0]
        self.assertEqual(json.loads(t["score_json"])["data"], "drawn")
        self.assertTrue(self.c.get(f"/v1/objects/{t['model_object']}/stat")["drawn"])

    def test_data_that_was_given_is_read_or_refused(self):
        with tempfile.TemporaryDirectory(dir=self.c.dir) as outside, tempfile.TemporaryDirectory(dir=ROOT / "build") as empty:
            for example in ("mnist-stats", "mnist", "mnist-cnn", "search"):
                for data in (outside, empty):
                    with self.subTest(example=example, data=data):
                        command = "train" if example in ("mnist", "mnist-cnn") else "run"
                        code, out, err = self.c.cli(command, f"examples/{example}.json", "--data", data, check=False)
                        self.assertEqual(code, 4, out + err)  # MR_EXIT_JOB
                        self.assertIn(str(pathlib.Path(data).resolve()) + "/t", out + err)
                        self.assertIn("--data-root", out + err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
