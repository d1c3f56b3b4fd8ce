#!/usr/bin/python3
"""Networks as values of a cluster: a prediction over an array in parts becomes a graph, and a saved
model goes to NumPy and back."""
import io
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SKIP, Cluster, main  # noqa: E402

try:
    import numpy as np
except ImportError as e:
    print(f"SKIPPED: {e}")
    sys.exit(SKIP)

PARTS, ROWS = 6, 500
MODEL = {"input": [64], "layers": [{"type": "Dense", "units": 20, "activation": "relu", "name": "hidden"},
                                   {"type": "Dense", "units": 10, "activation": "softmax", "name": "out"}]}
PARTITIONED = {
    "model": {"op": "nn.model", "args": [{"value": MODEL}, 5], "persist": "test/model"},
    "x/${i}": {"op": "array.random", "args": [[ROWS, 64], 1, "normal"], "kwargs": {"dtype": "f32", "stream": "${i}"}, "for": {"i": PARTS}},
    "x": {"op": "array.collection", "args": [{"each": {"ref": "x/${i}"}, "for": {"i": PARTS}}]},
    "p/${i}": {"op": "nn.predict", "args": [{"ref": "model"}, {"op": "array.partition", "args": [{"ref": "x"}, "${i}"]}], "for": {"i": PARTS}},
    "p": {"op": "array.concat", "args": [{"each": {"ref": "p/${i}"}, "for": {"i": PARTS}}]},
    "all": {"op": "array.concat", "args": [{"each": {"ref": "x/${i}"}, "for": {"i": PARTS}}]},
    "at_once": {"op": "nn.predict", "args": [{"ref": "model"}, {"ref": "all"}]},
    "labels": {"op": "array.argmax", "args": [{"ref": "p"}, 1]},
    "score": {"op": "nn.evaluate", "args": [{"ref": "model"}, {"ref": "all"}, {"ref": "labels"}]},
    "npz": {"op": "nn.npz", "args": [{"ref": "model"}]},
}


def npy(b):
    return np.load(io.BytesIO(b))


class Networks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "3", "--memory", "512MiB")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def run_job(self, tasks, *targets):
        job = self.c.run({"tasks": tasks, "targets": list(targets)})
        self.assertEqual(job["state"], "JOB_DONE", job)
        return job["id"]

    def test_prediction_over_parts_is_a_graph_and_the_model_goes_to_numpy_and_back(self):
        job = self.run_job(PARTITIONED, "p", "all", "at_once", "score", "npz", "labels")
        x, p = npy(self.c.value(job, "all")), npy(self.c.value(job, "p"))
        self.assertEqual(p.shape, (PARTS * ROWS, 10))
        np.testing.assert_allclose(p, npy(self.c.value(job, "at_once")), rtol=0, atol=1e-6)
        f = np.load(io.BytesIO(self.c.value(job, "npz")))
        self.assertEqual(json.loads(f["model.json"].item()), MODEL)
        z = np.maximum(x @ f["hidden/kernel"] + f["hidden/bias"], 0) @ f["out/kernel"] + f["out/bias"]
        want = np.exp(z - z.max(1, keepdims=True))
        want /= want.sum(1, keepdims=True)
        np.testing.assert_allclose(p, want, rtol=0, atol=1e-5)
        score = self.c.value(job, "score")
        self.assertEqual((score["accuracy"], score["examples"]), (1, PARTS * ROWS))
        self.assertAlmostEqual(score["cross_entropy"], -np.log(want.max(1)).mean(), 4)

        # The saved model by its name in another job; and a model that NumPy has changed, as an
        # uploaded object.
        job = self.run_job({"y": {"op": "nn.predict", "args": [{"name": "test/model"}, {"value": x[:2].tolist()}]}}, "y")
        np.testing.assert_allclose(npy(self.c.value(job, "y")), p[:2], rtol=0, atol=1e-6)
        changed = {k: f[k] for k in f}
        changed["out/bias"] = np.arange(10) * 100.0
        b = io.BytesIO()
        np.savez_compressed(b, **changed)
        status, _, body = self.c.request("POST", "/v1/objects?name=test/npz", b.getvalue(), {"Content-Type": "application/octet-stream"})
        self.assertIn(status, (200, 201), body)
        job = self.run_job({"m": {"op": "nn.from_npz", "args": [{"name": "test/npz"}]},
                            "y": {"op": "nn.predict", "args": [{"ref": "m"}, {"value": x[:2].tolist()}]}}, "y")
        np.testing.assert_allclose(npy(self.c.value(job, "y")), np.eye(10)[[9, 9]], rtol=0, atol=1e-6)


if __name__ == "__main__":
    main()
