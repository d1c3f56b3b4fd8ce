#!/usr/bin/env python3
"""nn.* compared with NumPy: the output of a network, its loss, and its .npz, which either side writes and the other
reads. ops_nn.py MR_OP_RUN"""
import io
import json
import sys

import numpy as np

import ops_numpy
from ops_numpy import Extent, Failed, Helper

MODEL = {"input": [6, 5, 2], "layers": [
    {"type": "Conv2D", "filters": 3, "kernel": 2, "activation": "relu", "name": "eye"},
    {"type": "BatchNorm"},
    {"type": "Flatten"},
    {"type": "Dense", "units": 7, "activation": "tanh"},
    {"type": "Dense", "units": 4, "activation": "softmax", "name": "out"}]}
RNG = np.random.default_rng(3)


def forward(p, x):
    """The same network in NumPy in double precision."""
    x = x.reshape(-1, 6, 5, 2).astype("f8")
    k = p["eye/kernel"].astype("f8")
    h = np.zeros((len(x), 5, 4, 3))
    for i in range(2):
        for j in range(2):
            h += x[:, i:i + 5, j:j + 4] @ k[i, j]
    h = np.maximum(h + p["eye/bias"], 0)
    h = (h - p["batchnorm_1/moving_mean"]) / np.sqrt(p["batchnorm_1/moving_variance"] + 1e-3) * p["batchnorm_1/gamma"] \
        + p["batchnorm_1/beta"]
    h = np.tanh(h.reshape(len(x), 60) @ p["dense_3/kernel"] + p["dense_3/bias"])
    z = h @ p["out/kernel"] + p["out/bias"]
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def keep(helper, name, value):
    helper.extents[name] = value[2]
    return Extent(name)


def refused(helper, words, op, *args, **named):
    try:
        helper.call(op, *args, **named)
    except Failed as e:
        assert words in str(e), (words, str(e))
        return
    raise AssertionError(f"{op} should say: {words}")


def archive_round_trip(helper):
    model = keep(helper, "model", helper.call("nn.model", MODEL, 5))
    again = keep(helper, "again", helper.call("nn.model", json.dumps(MODEL), 5))
    ours = np.load(io.BytesIO(helper.call("nn.npz", model)))
    assert json.loads(ours["model.json"].item()) == MODEL
    assert ours["model.version"] == 0
    same = np.load(io.BytesIO(helper.call("nn.npz", again)))
    arrays = {k: ours[k] for k in ours}
    assert all(np.array_equal(same[k], v) for k, v in arrays.items() if k != "model.json")
    assert arrays["eye/kernel"].shape == (2, 2, 2, 3) and arrays["dense_3/kernel"].shape == (60, 7)
    # millrace drew the kernels; the other parameters are changed as training would change them.
    for k in ("eye/bias", "batchnorm_1/gamma", "batchnorm_1/beta", "batchnorm_1/moving_mean", "dense_3/bias", "out/bias"):
        arrays[k] = RNG.standard_normal(arrays[k].shape).astype("f4")
    arrays["batchnorm_1/moving_variance"] = RNG.uniform(0.5, 2, 3).astype("f4")
    arrays["model.json"] = json.dumps(MODEL)
    arrays["model.version"] = np.array(1234)
    wide = dict(arrays, **{"dense_3/kernel": np.asfortranarray(arrays["dense_3/kernel"].astype(">f8"))})
    made = []
    for save, content in ((np.savez, arrays), (np.savez_compressed, wide)):
        f = io.BytesIO()
        save(f, **content)
        made.append(helper.call("nn.from_npz", f.getvalue()))
        last = f.getvalue()
    assert made[0] == made[1]
    assert np.load(io.BytesIO(helper.call("nn.npz", keep(helper, "trained", made[0]))))["model.version"] == 1234
    refused(helper, "not a zip archive", "nn.from_npz", last[:-40])
    del wide["out/bias"]
    f = io.BytesIO()
    np.savez(f, **wide)
    refused(helper, 'there is no "out/bias.npy"', "nn.from_npz", f.getvalue())
    return arrays


def predictions(helper, arrays):
    trained = Extent("trained")
    for n in (0, 1, 63, 64, 65, 2100):
        x = RNG.standard_normal((n, 6, 5, 2)).astype("f4")
        got = helper.call("nn.predict", trained, x)
        assert got.dtype == np.float32 and got.shape == (n, 4)
        np.testing.assert_allclose(got, forward(arrays, x), rtol=0, atol=2e-6)
        assert np.array_equal(helper.call("nn.predict", trained, x.reshape(n, 60)), got)
        assert np.array_equal(helper.call("nn.predict", {"model": trained, "epochs": 3}, x), got)
    u8 = RNG.integers(0, 255, (1500, 60)).astype("u1")
    np.testing.assert_allclose(helper.call("nn.predict", trained, u8), forward(arrays, u8), rtol=0, atol=2e-5)
    refused(helper, "expected examples of 60 numbers along axis 0, as the model's input, got f32[2,59]", "nn.predict", trained,
            np.zeros((2, 59), "f4"))
    refused(helper, 'expected a model, or a dict with one as "model", got dict', "nn.predict", {"a": 1}, u8)


def scores(helper, arrays):
    trained = Extent("trained")
    x = RNG.standard_normal((1100, 60)).astype("f4")
    y = RNG.integers(0, 4, 1100)
    p = forward(arrays, x)
    want = {"loss": -np.log(p[np.arange(1100), y]).mean(), "accuracy": (p.argmax(1) == y).mean(), "examples": 1100}
    want["cross_entropy"] = want["loss"]
    one_hot = np.eye(4, dtype="f4")[y]
    for labels in (y, y.astype("u1"), one_hot):
        got = helper.call("nn.evaluate", trained, x, labels)
        assert set(got) == set(want), got
        for k in want:
            assert abs(got[k] - want[k]) < 1e-5, (k, got[k], want[k])
    got = helper.call("nn.evaluate", trained, x, y, loss="mse")
    assert abs(got["mse"] - ((p - one_hot) ** 2).mean()) < 1e-6 and got["loss"] == got["mse"]
    assert helper.call("nn.evaluate", trained, x[:0], y[:0])["examples"] == 0
    refused(helper, "label of example 2 is 9, but the model tells classes 0 to 3 apart", "nn.evaluate", trained, x[:3],
            np.array([0, 1, 9]))
    refused(helper, "which is no class", "nn.evaluate", trained, x[:1], np.array([1 << 40]))
    refused(helper, "expected 3 class numbers or 3 rows of 4 floats, got i64[2]", "nn.evaluate", trained, x[:3], y[:2])
    refused(helper, 'loss "log" is unknown', "nn.evaluate", trained, x, y, loss="log")
    refused(helper, 'field "layers" must be', "nn.model", {"input": [3]})


def main():
    helper = Helper(sys.argv[1])
    arrays = archive_round_trip(helper)
    predictions(helper, arrays)
    scores(helper, arrays)
    code = helper.close()
    print(f"nn.* agree with NumPy; helper ended with {code}")
    return code


if __name__ == "__main__":
    assert ops_numpy
    sys.exit(main())
