#!/usr/bin/python3
"""The learning operators against scikit-learn, on equal data and seeds: folds and settings exactly, coefficients of
linear classifiers and metrics to 1e-12.

    ops_sklearn.py MR_OP_RUN"""
import io
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
SKIP = 77
try:
    import numpy as np
    import scipy.stats
    import sklearn
    from sklearn import datasets, metrics, model_selection, preprocessing
    from sklearn.linear_model import SGDClassifier
except ImportError as e:
    print(f"SKIPPED: {e}: scripts/install-deps.sh installs python3-sklearn for /usr/bin/python3")
    sys.exit(SKIP)
from harness import data_dir  # noqa: E402
from ops_numpy import Extent, Failed, Helper, extent, pack, unpack  # noqa: E402,F401

warnings.filterwarnings("ignore")
HELPER = None
BAD, CASES = [], 0
A9A = data_dir() and data_dir() / "libsvm" / "a9a"
LOSSES = {"hinge": "hinge", "log": "log_loss", "squared_hinge": "squared_hinge", "modified_huber": "modified_huber",
          "squared_error": "squared_error", "perceptron": "perceptron"}


def expect(what, good, detail=""):
    global CASES
    CASES += 1
    if not good:
        BAD.append(what)
        print("FAILED", what, detail)


def refused(op, args, words, **named):
    try:
        HELPER.call(op, *args, **named)
        expect(f"{op} {named}", False, f"wanted an error with {words!r}")
    except Failed as e:
        expect(f"{op} {named}", words in str(e), e)


def data(seed=3, rows=400, columns=11, classes=2, dtype="f8"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    w = rng.standard_normal((columns, classes))
    y = np.argmax(x @ w + rng.standard_normal((rows, classes)), axis=1)
    return x.astype(dtype), y


def test_folds_are_scikit_learns():
    _, y3 = data(classes=3, rows=331)
    words = np.array(["pear", "apple", "fig"])[y3]
    for k in (2, 3, 5, 10):
        for shuffle in (False, True):
            for seed in (0, 1, 7, 4294967295):
                state = seed if shuffle else None
                plain = list(model_selection.KFold(k, shuffle=shuffle, random_state=state).split(y3))
                mixed = list(model_selection.StratifiedKFold(k, shuffle=shuffle, random_state=state).split(y3, y3))
                for y, folds, stratified in ((331, plain, False), (y3, mixed, True), ([str(w) for w in words], mixed, True)):
                    of = HELPER.call("ml.kfold", y, k, shuffle=shuffle, seed=seed, stratified=stratified)
                    for i, (train, test) in enumerate(folds):
                        same = (np.array_equal(HELPER.call("ml.fold", of, i), test)
                                and np.array_equal(HELPER.call("ml.fold", of, i, "train"), train))
                        expect(f"kfold k={k} shuffle={shuffle} seed={seed} stratified={stratified} fold {i}", same)
    refused("ml.kfold", [3], "folds of 3 rows", folds=4)
    refused("ml.kfold", [np.arange(9)], "no class has more", folds=4, stratified=True)
    refused("ml.kfold", [9], "need the labels", stratified=True)
    refused("ml.fold", [np.zeros(4, dtype="i8"), 3], "no row is in fold 3")


def test_standardizing_is_standard_scalers():
    x, _ = data(columns=6)
    x = x * [1, 100, 1e-3, 1, 0, 0] + [0, 1e3, 5, -2, 7, 0]
    for dtype in ("f8", "f4"):
        moments = HELPER.call("array.moments", x[:300].astype(dtype), axis=0)
        got = HELPER.call("ml.standardize", x.astype(dtype), moments)
        want = preprocessing.StandardScaler().fit(x[:300].astype(dtype).astype("f8")).transform(x.astype(dtype).astype("f8"))
        expect(f"standardize {dtype}", np.allclose(got, want, rtol=1e-9, atol=1e-9), np.abs(got - want).max())
    expect("standardize f32", HELPER.call("ml.standardize", x, moments, "f32").dtype == "f4")
    refused("ml.standardize", [x, np.zeros((4, 2))], "expected array.moments")


def compare_sgd(name, x, y, ours, **theirs):
    model = SGDClassifier(**theirs).fit(x, y)
    got = HELPER.call("ml.sgd.fit", x, y, settings=ours)
    scale = np.abs(model.coef_).max() or 1
    off = max(np.abs(got["coef"] - model.coef_).max(), np.abs(got["intercept"] - model.intercept_).max()) / scale
    expect(f"sgd {name}: coef", off < 1e-12, off)
    expect(f"sgd {name}: classes", np.array_equal(got["classes"], model.classes_))
    expect(f"sgd {name}: epochs", max(got["epochs"]) == model.n_iter_, (got["epochs"], model.n_iter_))
    expect(f"sgd {name}: predict", np.array_equal(HELPER.call("ml.sgd.predict", got, x), model.predict(x)))
    expect(f"sgd {name}: decision", np.allclose(HELPER.call("ml.sgd.decision", got, x), model.decision_function(x), rtol=1e-7, atol=1e-7))
    if theirs.get("loss") in ("log_loss", "modified_huber"):
        expect(f"sgd {name}: proba", np.allclose(HELPER.call("ml.sgd.proba", got, x), model.predict_proba(x), rtol=1e-9, atol=1e-9))
    return off


def averaged(x, y, penalty, rate, alpha, epochs, l1_ratio=0.15):
    """Averaged stochastic gradient descent with hinge loss, written simply: the mean of the weights
    after each gradient. The L1 part is cumulative (Tsuruoka et al. 2009) and is applied after
    the mean."""
    l1 = {"l1": 1.0, "l2": 0.0, "elasticnet": l1_ratio}[penalty]
    w, b, mean, mean_b, steps, credit, due = np.zeros(x.shape[1]), 0.0, np.zeros(x.shape[1]), 0.0, 0, np.zeros(x.shape[1]), 0.0
    for _ in range(epochs):
        for row, sign in zip(x, np.where(y > 0, 1, -1)):
            by = rate * sign if sign * (row @ w + b) <= 1 else 0.0
            w = w * (1 - (1 - l1) * rate * alpha) + by * row
            b, steps = b + by, steps + 1
            mean, mean_b = mean + (w - mean) / steps, mean_b + (b - mean_b) / steps
            due += l1 * rate * alpha
            moved = np.where(w > 0, np.maximum(0, w - (due + credit)), np.minimum(0, w + (due - credit)))
            moved = np.where(w == 0, w, moved)
            credit, w = credit + (moved - w), moved
    return mean, mean_b


def test_averages_are_the_mean_of_the_weights():
    """With an L1 penalty, scikit-learn averages other weights, as docs/learning.md says."""
    x, y = data(rows=300, columns=5)
    for penalty in ("l1", "l2", "elasticnet"):
        got = HELPER.call("ml.sgd.fit", x, y, settings={"average": True, "penalty": penalty, "alpha": 1e-2, "learning_rate": "constant",
                                                        "eta0": 0.05, "shuffle": False, "tol": None, "epochs": 3})
        coef, intercept = averaged(x, y, penalty, 0.05, 1e-2, 3)
        expect(f"average {penalty}", np.allclose(got["coef"][0], coef, rtol=1e-9, atol=1e-12)
               and np.allclose(got["intercept"], intercept, rtol=1e-9), (got["coef"], coef))


def test_linear_classifiers_are_sgd_classifiers():
    worst = 0
    for classes in (2, 4):
        x, y = data(classes=classes)
        for loss, named in LOSSES.items():
            for penalty in ("l1", "l2", "elasticnet", None):
                for shuffle in (False, True):
                    both = {"penalty": penalty, "alpha": 1e-3, "shuffle": shuffle}
                    worst = max(worst, compare_sgd(f"{loss} {penalty} shuffle={shuffle} classes={classes}", x, y,
                                                   dict(both, loss=loss, epochs=40, seed=5),
                                                   **both, loss=named, max_iter=40, random_state=5))
        for rate in ("constant", "invscaling", "adaptive"):
            both = {"learning_rate": rate, "eta0": 0.02, "penalty": "elasticnet", "l1_ratio": 0.4, "alpha": 1e-4}
            worst = max(worst, compare_sgd(f"{rate} classes={classes}", x, y, dict(both, loss="log", epochs=300, seed=9),
                                           **both, loss="log_loss", max_iter=300, random_state=9))
        both = {"average": True, "fit_intercept": False, "tol": None, "penalty": "l2"}
        worst = max(worst, compare_sgd(f"average classes={classes}", x, y, dict(both, epochs=7, seed=2),
                                       **both, max_iter=7, random_state=2))
    x, y = data(rows=200, dtype="f4")
    worst = max(worst, compare_sgd("f32, labels -1 and 1", x.astype("f8"), 2 * y - 1, {"seed": 1}, random_state=1))
    print(f"coefficients differ by {worst:.1e} of the largest at most")
    words = [["no", "yes"][i] for i in y]
    model = HELPER.call("ml.sgd.fit", x, words)
    want = SGDClassifier(random_state=0).fit(x.astype("f8"), words)
    expect("text labels", HELPER.call("ml.sgd.predict", model, x) == want.predict(x.astype("f8")).tolist() and model["classes"] == ["no", "yes"])
    refused("ml.sgd.fit", [x, y[:-1]], '"x" has 200 rows, "y" 199 labels')
    refused("ml.sgd.fit", [x, y * 0], "1 class; two are needed")
    refused("ml.sgd.fit", [x, y], "expected one of hinge, log", loss="hing")
    refused("ml.sgd.fit", [x, y], 'no setting "alfa"', settings={"alfa": 1})
    refused("ml.sgd.fit", [x, y], '"eta0"', settings={"learning_rate": "constant"})
    refused("ml.sgd.fit", [x * 1e200, y], "grew beyond all bounds", settings={"loss": "squared_error"})
    refused("ml.sgd.predict", [model, x[:, :3]], "has 3 columns, the model 11")
    refused("ml.sgd.predict", [{"coef": x}, x], "expected what ml.sgd.fit gave")
    refused("ml.sgd.proba", [model, x], "gives no probabilities")


def close(a, b):
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a) == list(b) and all(close(a[k], b[k]) for k in b)
    return abs(a - b) <= 1e-12 * max(1, abs(b))


def test_metrics_are_scikit_learns():
    rng = np.random.default_rng(1)
    for classes in (2, 3, 7):
        truth, said = rng.integers(0, classes, 500), rng.integers(0, classes - (classes > 3), 500)
        said = np.where(rng.random(500) < 0.6, truth, said)
        for a, b in ((truth, said), (truth * 2.0 - 2, said * 2.0 - 2), ([f"c{i}" for i in truth], [f"c{i}" for i in said]),
                     (truth[:40] * 0, said[:40])):
            want = metrics.classification_report(a, b, output_dict=True)
            got = HELPER.call("ml.classification_report", a, b)
            expect(f"classification_report {classes}", close(got, want), {k: (got.get(k), want[k]) for k in want if not close(got.get(k), want[k])})
            expect("accuracy", close(HELPER.call("ml.accuracy", a, b), metrics.accuracy_score(a, b)))
            expect("confusion_matrix", np.array_equal(HELPER.call("ml.confusion_matrix", a, b), metrics.confusion_matrix(a, b)))
        p = rng.random((500, classes)) ** 8
        p /= p.sum(axis=1, keepdims=True)
        p[3] = np.eye(classes)[(truth[3] + 1) % classes]
        expect(f"log_loss {classes}", close(HELPER.call("ml.log_loss", truth, p), metrics.log_loss(truth, p)))
        few = truth[:200] % 2
        expect("log_loss, classes given", close(HELPER.call("ml.log_loss", few, p[:200], np.arange(classes)),
                                                metrics.log_loss(few, p[:200], labels=np.arange(classes))))
    expect("log_loss of a column", close(HELPER.call("ml.log_loss", few, p[:200, 0]), metrics.log_loss(few, p[:200, 0])))
    refused("ml.log_loss", [few, p[:200]], "give all of them")
    refused("ml.accuracy", [few, few[1:]], '"y_true" has 200 labels')
    refused("ml.accuracy", [few, ["a"] * 200], "not both texts")


def test_settings_are_parameter_grids_and_samplers():
    space = {"units": [16, 32, 64], "alpha": [1e-4, 1e-3], "kind": ["a", "b"]}
    expect("grid", HELPER.call("ml.search.grid", space) == list(model_selection.ParameterGrid(space)))
    for seed in (0, 3, 99):
        for n in (2, 5, 11):
            want = list(model_selection.ParameterSampler(space, n, random_state=seed))
            expect(f"random of lists, {n}, seed {seed}", HELPER.call("ml.search.random", space, n, seed) == want)
        ours = {"a": {"uniform": [-2, 3.5]}, "b": [1, 2, 3], "c": {"log_uniform": [1e-4, 1e-1]}, "d": {"int": [8, 129]}}
        theirs = {"a": scipy.stats.uniform(-2, 5.5), "b": [1, 2, 3], "c": scipy.stats.loguniform(1e-4, 1e-1),
                  "d": scipy.stats.randint(8, 129)}
        want = list(model_selection.ParameterSampler(theirs, 40, random_state=seed))
        got = HELPER.call("ml.search.random", ours, 40, seed)
        expect(f"random of distributions, seed {seed}", all(close(g, w) for g, w in zip(got, want)) and len(got) == 40, (got[:2], want[:2]))
    expect("rank", HELPER.call("ml.search.rank", [0.5, 0.9, 0.1, 0.9]).tolist() == [1, 3, 0, 2])
    expect("rank with NaN", HELPER.call("ml.search.rank", np.array([np.nan, 2, 1]), "min").tolist() == [2, 1, 0])
    expect("pick", HELPER.call("ml.search.pick", np.array([2, 0, 1]), 1, ["a", "b", "c"]) == "a")
    refused("ml.search.grid", [{"a": {"uniform": [0, 1]}}], "expected a list of values")
    refused("ml.search.random", [space, 13], "the lists have 12")
    refused("ml.search.random", [{"a": {"log_uniform": [0, 1]}}, 1], "both above 0")
    refused("ml.search.pick", [np.array([5]), 0, ["a"]], "number 5 of 1")


def test_libsvm_files_are_svmlights():
    text = b"# two classes\n-1 3:1 5:-2.5e-3\n+1 1:4  2:0 # note 7:1\r\n\n1.5 4:1e2\t6:.5\n-0"
    for features in (None, 9):
        for kind, dtype in (("f32", "f4"), ("f64", "f8")):
            x, y = datasets.load_svmlight_file(io.BytesIO(text), n_features=features, zero_based=False)
            got = HELPER.call("ml.libsvm", text, features, kind)
            expect(f"libsvm {features} {kind}", np.array_equal(got["x"], x.toarray().astype(dtype)) and got["x"].dtype == dtype
                   and np.array_equal(got["y"], y))
    for bad, words in ((b"1 0:1", "line 1: expected index:value"), (b"1 1:1\n1 2:1 2:1", "line 2: indices must ascend"), (b"", "no rows"),
                       (b"a 1:1", "line 1: expected a label"), (b"1 1:nan", "index:value"), (b"1 1", "index:value"),
                       (b"1 1:", "index:value"), (b"1 1:0x1", "index:value"), (b"1 99999999:1", "index:value")):
        refused("ml.libsvm", [bad], words)
    refused("ml.libsvm", [text, 3], "expected 6 to")


def test_the_census_is_learnt_alike():
    if not A9A or not A9A.exists():
        print("SKIPPED: the file libsvm/a9a is not here")
        return
    got = HELPER.call("ml.libsvm", A9A.read_bytes(), 123)
    x, y = datasets.load_svmlight_file(str(A9A), n_features=123)
    expect("a9a: x", np.array_equal(got["x"], x.toarray()))
    expect("a9a: y", np.array_equal(got["y"], y))
    for loss, penalty in (("log", "l1"), ("hinge", "l2")):
        compare_sgd(f"a9a {loss} {penalty}", x.toarray(), y, {"loss": loss, "penalty": penalty, "alpha": 1e-5, "epochs": 5},
                    loss=LOSSES[loss], penalty=penalty, alpha=1e-5, max_iter=5, random_state=0)


def main():
    global HELPER
    HELPER = Helper(sys.argv[1])
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    code = HELPER.close()
    print(f"{CASES} cases against scikit-learn {sklearn.__version__}, {len(BAD)} failed; helper ended with {code}")
    return 1 if BAD or code else 0


if __name__ == "__main__":
    sys.exit(main())
