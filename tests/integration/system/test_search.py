#!/usr/bin/python3
"""Cross-validation and search, as the examples run them, against scikit-learn on the same data, folds and seeds.

Tolerances. Folds, settings and row shuffles are scikit-learn's own, so that accuracies of linear classifiers may differ
by one row of a fold at most (sums of standardisation are made in another order). Networks start from other random
weights and see rows in another order, so three of scikit-learn's seeds give a range: accuracies are within 3 points of it
where it is above 80 %, within 12 below, and settings whose ranges are 5 points apart stand in the same order."""
import gzip
import json
import os
import pathlib
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SKIP, Cluster, data_dir  # noqa: E402

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[threads] = "1"  # for scikit-learn's networks: more threads would only spin
try:
    import numpy as np
    import scipy.stats
    from sklearn import metrics, model_selection
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
except ImportError as e:
    print(f"SKIPPED: {e}: scripts/install-deps.sh installs python3-sklearn for {sys.executable}")
    sys.exit(SKIP)

warnings.filterwarnings("ignore")
DATA = data_dir()


def run(c, example, *flags):
    """(the job, its results of JSON by name)"""
    with tempfile.TemporaryDirectory() as out:
        c.cli("run", f"examples/{example}.json", "--out", out, *flags, timeout=300)
        results = {p.stem: json.loads(p.read_text()) for p in pathlib.Path(out).glob("*.json")}
    return c.get("/v1/jobs")["jobs"][0], results


def ran(c, job):
    """The keys of the tasks that ran, once for each run."""
    return [s["key"] for s in c.get(f"/v1/jobs/{job['id']}/timeline")["spans"] if s.get("state", "run") != "waiting"]


def count(keys, start):
    return len([k for k in keys if (k == start or k.startswith(start + "/")) and "#" not in k])


def params(example, **changed):
    return dict(json.loads((ROOT / "examples" / f"{example}.json").read_text())["params"], **changed)


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "4", "--memory", "1GiB", "--data-root", str(DATA or "."))

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    @unittest.skipUnless(DATA and (DATA / "tabular/higgs_7k.train.tsv").exists(), "SKIPPED: the HIGGS file is not here")
    def test_cross_validation_scores_are_scikit_learns(self):
        job, got = run(self.c, "cv", "--data", str(DATA / "tabular"))
        p = params("cv")
        rows = np.loadtxt(DATA / "tabular/higgs_7k.train.tsv")
        x, y = rows[:, 1:], rows[:, 0].astype("i8")
        folds = model_selection.StratifiedKFold(p["folds"], shuffle=True, random_state=p["seed"])
        smallest, worst, best = len(y) // p["folds"] - 1, 0, None
        for setting in got["settings"]:
            model = make_pipeline(StandardScaler(), SGDClassifier(
                loss={"log": "log_loss"}.get(setting["loss"], setting["loss"]), penalty=setting["penalty"], alpha=p["alpha"],
                max_iter=p["epochs"], random_state=p["seed"]))
            want = model_selection.cross_val_score(model, x, y, cv=folds)
            worst = max(worst, np.abs(want - setting["scores"]).max())
            self.assertLessEqual(worst, 1.5 / smallest, (setting, want))
            self.assertAlmostEqual(setting["mean"], np.mean(setting["scores"]), 12)
            self.assertAlmostEqual(setting["std"], np.std(setting["scores"]), 12)
            if setting["mean"] == max(s["mean"] for s in got["settings"]):
                best = best or (setting, model)
        self.assertEqual([(s["loss"], s["penalty"]) for s in got["settings"]],
                         [(a, b) for a in p["losses"] for b in p["penalties"]])
        self.assertEqual(got["best"], best[0])
        said = model_selection.cross_val_predict(best[1], x, y, cv=folds)
        report = metrics.classification_report(y, said, output_dict=True)
        for name, row in got["report"].items():
            for measure, value in row.items() if isinstance(row, dict) else [("accuracy", row)]:
                want = report[name][measure] if isinstance(row, dict) else report[name]
                self.assertLess(abs(value - want), 3 / smallest if measure != "support" else 1e-9, (name, measure))
        print(f"\ncross-validation: accuracies differ by {worst:.1e} at most; best {got['best']}")
        keys = ran(self.c, job)
        for once in ("table", "rows", "x", "folds", "ranking"):
            self.assertEqual(keys.count(once), 1, once)
        for prefix, times in (("train/x", p["folds"]), ("test/x", p["folds"]), ("moments", p["folds"]), ("fit", 4 * p["folds"])):
            self.assertEqual(count(keys, prefix), times, prefix)

    def digits(self, p):
        read = lambda name, at: np.frombuffer(gzip.open(DATA / "mnist" / name).read(), np.uint8, offset=at)  # noqa: E731
        x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:p["rows_end"]] / np.float32(255)
        return x, read("train-labels-idx1-ubyte.gz", 8)[:p["rows_end"]]

    @unittest.skipUnless(DATA and (DATA / "mnist/train-images-idx3-ubyte.gz").exists(), "SKIPPED: the MNIST files are not here")
    def test_a_search_finds_what_scikit_learn_finds(self):
        p = params("search", rows=5000, rows_end=7000, first_epochs=3)
        changed = [f"--set={k}={p[k]}" for k in ("rows", "rows_end", "first_epochs")]
        job, got = run(self.c, "search", "--data", str(DATA / "mnist"), *changed)
        space = {"learning_rate": scipy.stats.loguniform(1e-4, 1e-1), "units": scipy.stats.randint(8, 129)}
        want = list(model_selection.ParameterGrid({"learning_rate": p["learning_rates"], "units": p["units"]}))
        want += list(model_selection.ParameterSampler(space, p["drawn"], random_state=p["seed"]))
        self.assertEqual(len(want), p["first"])
        for ours, theirs in zip(got["settings"], want):
            self.assertEqual(ours["units"], theirs["units"])
            self.assertAlmostEqual(ours["learning_rate"], theirs["learning_rate"], 12)
        self.check_rungs(got, p)
        self.check_against_networks(got, p)
        self.check_kept(got, p)
        keys = ran(self.c, job)
        for once in ("images", "labels", "x", "train/x", "validation/x", "grid", "drawn", "1/ranking"):
            self.assertEqual(keys.count(once), 1, once)
        self.assertEqual([count(keys, f"{r}/fit") for r in "123"], [p["first"], p["second"], p["third"]])

    def check_rungs(self, got, p):
        """Each rung continues with the best settings of the rung before; no other settings are
        trained."""
        before = got["rungs"]["1"]
        self.assertEqual([e["number"] for e in before], list(range(p["first"])))
        for rung, size in (("2", p["second"]), ("3", p["third"])):
            order = sorted(before, key=lambda e: e["loss"])[:size]
            self.assertEqual([e["number"] for e in got["rungs"][rung]], [e["number"] for e in order], rung)
            before = got["rungs"][rung]
        best = min(before, key=lambda e: e["loss"])
        result = got["result"]
        self.assertEqual((result["number"], result["loss"], result["accuracy"]), (best["number"], best["loss"], best["accuracy"]))
        self.assertEqual(result["setting"], got["settings"][best["number"]])
        self.assertEqual(result["epochs"], p["first_epochs"] + p["second_epochs"] + p["third_epochs"])
        self.assertGreater(result["accuracy"], 0.92)
        self.assertGreater(result["test"]["accuracy"], 0.9)

    def check_against_networks(self, got, p):
        x, y = self.digits(p)
        n, ours, theirs = p["rows"], [e["accuracy"] for e in got["rungs"]["1"]], []
        for setting in got["settings"]:
            nets = [MLPClassifier((setting["units"],), learning_rate_init=setting["learning_rate"], solver="adam", alpha=0,
                                  batch_size=p["batch"], max_iter=p["first_epochs"], random_state=seed) for seed in range(3)]
            theirs.append([net.fit(x[:n], y[:n]).score(x[n:], y[n:]) for net in nets])
        print("\nsearch: accuracy here, and of scikit-learn's MLPClassifier with three seeds, by setting:")
        for a, b, s in zip(ours, theirs, got["settings"]):
            print(f"  {a:.3f}  {min(b):.3f} to {max(b):.3f}  {s}")
        for i, (a, b) in enumerate(zip(ours, theirs)):
            slack = 0.03 if min(b) >= 0.8 else 0.12
            self.assertTrue(min(b) - slack < a < max(b) + slack, (got["settings"][i], a, b))
            for c, d in zip(ours, theirs):
                if min(b) - max(d) > 0.05:
                    self.assertGreater(a, c, "two settings stand the other way round")

    def check_kept(self, got, p):
        """The saved model has the score that the search has reported."""
        tensor = lambda op, *a: {"op": op, "args": list(a)}  # noqa: E731
        images = tensor("digits.load", str(DATA / "mnist/train-images-idx3-ubyte.gz"))
        x = tensor("array.scale", tensor("array.reshape", tensor("array.slice", images, p["rows"], p["rows_end"]), [-1, 784]), 0, 255)
        labels = dict(tensor("digits.load", str(DATA / "mnist/train-labels-idx1-ubyte.gz")), kwargs={"what": "labels"})
        job = self.c.submit({"tasks": {
            "x": x, "y": tensor("array.slice", labels, p["rows"], p["rows_end"]),
            "again": tensor("nn.evaluate", {"name": "search/model"}, {"ref": "x"}, {"ref": "y"}),
            "accuracy": tensor("get_item", {"ref": "again"}, "accuracy")}, "targets": ["accuracy"]})
        self.assertEqual(self.c.wait(job)["state"], "JOB_DONE")
        self.assertEqual(self.c.get(f"/v1/jobs/{job}/results/accuracy"), got["result"]["accuracy"])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
