"""What tests of whole training sessions have in common: a session from its start to its end."""
import json

from clouds import CLASSES, FEATURES, clouds
from harness import wait_for

ENDED = ("TRAINING_DONE", "TRAINING_FAILED")


def upload(cluster, **sets):
    """Stored and named clouds/<set>/x and /y."""
    for seed, (name, n) in enumerate(sets.items(), 1):
        for part, data in zip("xy", clouds(n, seed)):
            status, _, body = cluster.request("POST", f"/v1/objects?name=clouds/{name}/{part}&persist=true", data,
                                              {"Content-Type": "application/x-npy"})
            assert status in (200, 201), body


def named(name):
    return {part: {"name": f"clouds/{name}/{part}"} for part in "xy"}


def document(rule, workers=2, ps=1, scorer=1, **more):
    """Of a small net on the clouds; `more` replaces members, one level deep."""
    d = {"name": "clouds", "model": {"input": [FEATURES], "layers": [{"type": "Dense", "units": 32, "activation": "relu"},
                                                                     {"type": "Dense", "units": CLASSES, "activation": "softmax"}]},
         "init": {"seed": 1}, "data": {"train": named("train"), "validation": named("validation"), "batch": 32, "seed": 3},
         "roles": {"ps": 0 if rule == "allreduce" else ps, "worker": workers, "scorer": scorer}, "update": {"rule": rule},
         "optimizer": {"type": "adam", "learning_rate": 0.002}, "loss": "cross_entropy", "score": {"every_s": 0.25},
         "limits": {"forming_s": 30, "recovering_s": 30, "stopping_s": 30, "lease_s": 2}}
    for key, value in more.items():
        d[key] = {**d.get(key, {}), **value} if isinstance(value, dict) and key != "init" else value
    return d


def start(cluster, doc):
    return cluster.call("POST", "/v1/trainings", doc)["id"]


def ended(cluster, session, timeout=60):
    def over():
        t = cluster.get(f"/v1/trainings/{session}?wait_s=2")
        return t["state"] in ENDED and t
    return wait_for(f"session {session} to end", over, timeout)


def at_version(cluster, session, version, timeout=30):
    def there():
        t = cluster.get(f"/v1/trainings/{session}")
        assert t["state"] not in ENDED, t
        return t["state"] == "TRAINING_RUNNING" and int(t.get("version", 0)) >= version and t
    return wait_for(f"version {version}", there, timeout)


def member(training, role, index=0):
    return next(m for m in training["members"] if m["role"] == role and int(m.get("index", 0)) == index)


def pid_of(cluster, m):
    """Of the mr-worker that runs a member's role: the one that listens at its address."""
    path = m["address"].removeprefix("unix:")
    pid = cluster.pid_of(path)
    assert pid, f"nobody listens at {path}"
    return pid


def validation(training):
    score = json.loads(training["score_json"])
    return score.get("validation", score)
