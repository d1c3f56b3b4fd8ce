#!/usr/bin/python3
"""Generalized linear models fitted on the cluster, as the examples write them down: the loop runs on the scheduler
(`repeat`), its chunks lie in shared memory. Every solver with every family is compared with scikit-learn or with the
published fit; tests/integration/ops_glm.py says how closely the operators agree.

Tolerances, of the largest coefficient: newton 1e-8, the others 1e-5 (they stop at a gradient of 1e-8)."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SKIP, SLOW, Cluster, HttpError, data_dir  # noqa: E402

try:
    import numpy as np
    from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, PoissonRegressor
except ImportError as e:
    print(f"SKIPPED: {e}: scripts/install-deps.sh installs python3-sklearn for {sys.executable}")
    sys.exit(SKIP)
import glm_models  # noqa: E402

warnings.filterwarnings("ignore")
DATA = data_dir() and data_dir() / "glm"
SOLVERS = ("newton", "lbfgs", "gd", "proximal", "admm")
SMALL = {"rows": 400, "columns": 5, "chunks": 4, "true": [0.5, -0.25, 0, 1, -0.75], "true_intercept": 0.25, "max": 400}


def document(name, **params):
    d = json.loads((ROOT / "examples" / f"{name}.json").read_text())
    d["params"].update(params)
    return d


def wanted(family, penalty, x, y, alpha, ratio):
    """The coefficients of scikit-learn with the intercept last; None if it has no such model."""
    if family == "normal":
        m = LinearRegression() if penalty == "none" else ElasticNet(alpha, l1_ratio={"l1": 1, "l2": 0}.get(penalty, ratio), tol=1e-12, max_iter=100000)
    elif family == "poisson":
        if penalty not in ("none", "l2"):
            return None
        m = PoissonRegressor(alpha=0 if penalty == "none" else alpha, tol=1e-12, max_iter=10000)
    elif penalty in ("none", "l2"):
        m = LogisticRegression(penalty=None if penalty == "none" else "l2", C=1 / (alpha * len(y)), solver="newton-cg", tol=1e-12, max_iter=1000)
    else:
        m = LogisticRegression(penalty=penalty, l1_ratio=ratio, C=1 / (alpha * len(y)), solver="saga", tol=1e-12, max_iter=100000, random_state=0)
    m.fit(x, y)
    return np.append(np.ravel(m.coef_), m.intercept_)


class Glm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "4", "--memory", "1GiB", "--data-root", str(DATA or "."))

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def done(self, graph):
        job = self.c.run(graph)
        self.assertEqual(job["state"], "JOB_DONE", job)
        return job["id"]

    def refused(self, graph, *words):
        job = self.c.run(graph)
        self.assertEqual(job["state"], "JOB_FAILED", job)
        for word in words:
            self.assertIn(word, json.dumps(job))

    def data(self, family):
        """The rows of the small example, as the cluster generates them."""
        d = document("glm", family=family, **SMALL)
        d["targets"] = [f"{k}/{i}" for i in range(SMALL["chunks"]) for k in "xy"]
        del d["repeat"]
        d["tasks"] = {k: v for k, v in d["tasks"].items() if k[0] in "xy"}
        job = self.done(d)
        part = lambda k: np.concatenate([np.array(self.c.value(job, f"{k}/{i}", "application/json")) for i in range(SMALL["chunks"])])  # noqa: E731
        return part("x"), part("y")

    def test_solvers_and_families_agree_with_scikit_learn(self):
        alpha, ratio, table = 0.02, 0.4, []
        for family in ("logistic", "normal", "poisson"):
            x, y = self.data(family)
            mean, deviation = x.mean(axis=0), x.std(axis=0)
            for penalty in ("none", "l2", "l1", "elasticnet"):
                want, row = wanted(family, penalty, (x - mean) / deviation, y, alpha, ratio), []
                for solver in SOLVERS:
                    if penalty in ("l1", "elasticnet") and solver not in ("proximal", "admm"):
                        row.append("-")
                        continue
                    job = self.done(document("glm", family=family, solver=solver, penalty=penalty, alpha=alpha, l1_ratio=ratio, **SMALL))
                    s = self.c.value(job, "summary")
                    what = (family, penalty, solver, s)
                    self.assertTrue(s["converged"], what)
                    self.assertEqual(s["evaluations"], self.c.value(job, "fit.count"), what)
                    got = np.append(s["coef"], s["intercept"])
                    raw = got[:-1] * deviation
                    got = np.append(raw, got[-1] + (raw / deviation) @ mean)
                    if want is None:
                        want = got  # the result of the first solver
                    off = np.abs(got - want).max() / np.abs(want).max()
                    row.append(f"{off:.1e}")
                    self.assertLess(off, 1e-8 if solver == "newton" and family != "poisson" else 1e-5, what)
                    means = self.c.value(job, "means")
                    # the gradient for the intercept is 0, so the mean of the predictions is the
                    # mean of y
                    if penalty == "none":
                        self.assertAlmostEqual(np.mean(means), y.mean(), 6)
                table.append((family, penalty, row))
        print("\n" + f"{'':9s} {'':10s} " + " ".join(f"{s:>8s}" for s in SOLVERS))
        for family, penalty, row in table:
            print(f"{family:9s} {penalty:10s} " + " ".join(f"{v:>8s}" for v in row))

    @unittest.skipUnless(DATA and (DATA / "reference.json").exists(), "SKIPPED: the reference fits are not here")
    def test_schools_have_the_published_coefficients(self):
        m = glm_models.load(DATA, "star98")
        with tempfile.TemporaryDirectory() as out:
            self.c.cli("run", "examples/glm-schools.json", "--data", str(DATA), "--out", out)
            s = json.loads((pathlib.Path(out) / "summary.json").read_text())
        got = np.append(s["coef"], s["intercept"])
        np.testing.assert_allclose(got, m.computed, rtol=1e-9)
        np.testing.assert_allclose(got, m.published, rtol=1e-6)
        np.testing.assert_allclose(s["std_err"], m.std_err, rtol=1e-6)
        self.assertAlmostEqual(s["deviance"], m.deviance, 6)
        for solver in SOLVERS[1:]:  # preconditioned by the first Hessian, as in the example
            s = self.c.value(self.done(document("glm-schools", data=str(DATA), solver=solver)), "summary")
            self.assertTrue(s["converged"], s)
            np.testing.assert_allclose(np.append(s["coef"], s["intercept"]), m.computed, rtol=1e-4)
            self.assertAlmostEqual(s["deviance"], m.deviance, 5)

    def test_a_fit_stops_as_soon_as_it_has_converged(self):
        """Workers may run rounds ahead while the scheduler gets no processor. So the best of some fits counts."""
        def surplus():
            job = self.done(document("glm", **dict(SMALL, max=60)))
            count = self.c.value(job, "fit.count")
            self.assertLess(count, 40)
            spans = [s for s in self.c.get(f"/v1/jobs/{job}/timeline")["spans"] if s.get("key", "").startswith("fit[")]
            return len({s["key"].split("]")[0] for s in spans if "/" in s["key"]}) - count
        self.assertTrue(any(surplus() <= 1 for _ in range(10)))

    def test_the_short_loop_gives_the_same(self):
        plain, d, n = document("glm", **SMALL), document("glm", **SMALL), SMALL["chunks"]
        loop, answers = d["repeat"]["fit"], {"each": {"ref": "p${k}"}, "for": {"k": n}}
        loop["carry"].update({f"p{i}": {"value": None} for i in range(n)})
        loop["next"].update({f"p{i}": {"ref": f"part/{i}"} for i in range(n)})
        loop["tasks"]["part/${i}"]["kwargs"] = {"parts": answers}
        loop["tasks"]["next"]["kwargs"] = {"parts": answers}
        for solver, metric in (("lbfgs", False), ("newton", False), ("admm", False), ("gd", True), ("proximal", True), ("admm", True)):
            for params in (plain["params"], d["params"]):
                params.update(solver=solver, precondition=metric)
            jobs = self.done(plain), self.done(d)
            one, other = (self.c.value(job, "summary") for job in jobs)
            self.assertEqual(one, other)
            rounds, more = (self.c.value(job, "fit.count") for job in jobs)
            self.assertEqual(more, rounds + 1)

    def test_coefficients_stay_under_their_name(self):
        job = self.done(document("glm", solver="newton", seed=12, **SMALL))
        coef = self.c.value(job, "coef", "application/json")
        again = self.done({"tasks": {"c": {"name": "glm/coef"}, "n": {"op": "array.sum", "args": [{"ref": "c"}]}}, "targets": ["n"]})
        self.assertAlmostEqual(self.c.value(again, "n"), sum(coef), 12)

    def test_a_template_is_every_fit(self):
        """Runs examples/glm-template.sh unchanged, and compares its results with fits by newton and
        with each other."""
        done = subprocess.run([ROOT / "examples" / "glm-template.sh", self.c.url, "300"], capture_output=True, text=True, timeout=240 * SLOW)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        self.assertEqual(len(rows), 3 * (5 + 5 + 2 + 2 + 1), done.stdout)
        first = {}
        for family, solver, penalty, chunks, looks, converged, coef in rows:
            self.assertEqual(converged, "true", done.stdout)
            self.assertLess(int(looks), 150, done.stdout)
            want = first.setdefault((family, penalty, chunks), float(coef))
            self.assertAlmostEqual(float(coef), want, 5, (family, solver, penalty))
        self.assertEqual([t["name"] for t in self.c.get("/v1/templates")["templates"]], ["glm"])

    def test_instances_of_a_template_agree_with_scikit_learn(self):
        self.c.call("POST", "/v1/templates?name=small", document("glm", **SMALL))
        for family in ("logistic", "normal", "poisson"):
            x, y = self.data(family)
            mean, deviation = x.mean(axis=0), x.std(axis=0)
            for solver, penalty, chunks in (("newton", "none", 4), ("gd", "l2", 4), ("lbfgs", "l2", 4), ("proximal", "elasticnet", 4), ("admm", "l1", 4)):
                want = wanted(family, penalty, (x - mean) / deviation, y, 0.02, 0.4)
                params = {"family": family, "solver": solver, "penalty": penalty, "alpha": 0.02, "l1_ratio": 0.4, "chunks": chunks, "precondition": True}
                job = self.c.call("POST", "/v1/templates/small:instantiate?wait_s=60", {"params": params})["job"]
                self.assertEqual(job["state"], "JOB_DONE", job)
                s = self.c.value(job["id"], "summary")
                self.assertTrue(s["converged"], s)
                if want is not None:
                    got = np.array(s["coef"]) * deviation
                    self.assertLess(np.abs(got - want[:-1]).max(), 1e-5 * np.abs(want).max(), (params, s))
        for params, words in (({"chunks": "many"}, "chunks"), ({"familie": "normal"}, 'did you mean')):
            with self.assertRaises(HttpError) as e:
                self.c.call("POST", "/v1/templates/small:instantiate", {"params": params})
            self.assertIn(words, str(e.exception))

    def test_what_no_model_fits_ends_in_words(self):
        apart = document("glm", **dict(SMALL, true_intercept=0.0))
        apart["tasks"]["y/${i}"] = {"op": "array.full", "args": [["${rows}"], 1], "kwargs": {"dtype": "f64"}, "for": {"i": "${chunks}"}}
        s = self.c.value(self.done(apart), "summary")
        self.assertFalse(s["converged"])
        self.assertIn("the classes are separated", s["status"])
        empty = document("glm", **dict(SMALL, rows=0))
        self.refused(empty, "of no row")

    def test_a_wrong_chunk_is_named(self):
        bad = document("glm", **SMALL)
        bad["tasks"]["y/${i}"] = {"op": "array.full", "args": [["${rows}"], "${i}"], "kwargs": {"dtype": "f64"}, "for": {"i": "${chunks}"}}
        self.refused(bad, "glm.part", 'argument \\"y\\", chunk', "is neither 0 nor 1")
        bad = document("glm", **SMALL)
        bad["tasks"]["y/${i}"]["args"][0] = {"op": "array.random", "args": [[401, 5], 1]}
        self.refused(bad, "glm.part", "it has 401 rows of 1", "400 rows")
        self.refused(document("glm", solver="newton", penalty="l1", **SMALL), "glm.start", "proximal and admm take l1")
        self.refused(document("glm", family="gamma", **SMALL), "expected logistic, normal or poisson")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
