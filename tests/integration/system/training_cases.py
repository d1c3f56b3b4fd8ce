"""Common parts of tests of whole training sessions: start, wait, end."""
import json

from clouds import CLASSES, FEATURES, clouds
from harness import wait_for

ENDED = ("TRAINING_DONE", "TRAINING_FAILED")


def upload(cluster, **sets):
    """Uploads data sets and names them clouds/<set>/x and /y."""
    for seed, (name, n) in enumerate(sets.items(), 1):
        for part, data in zip("xy", clouds(n, seed)):
            status, _, body = cluster.request("POST", f"/v1/objects?name=clouds/{name}/{part}&persist=true", data,
                                              {"Content-Type": "application/x-npy"})
            assert status in (200, 201), body


def named(name):
    return {part: {"name": f"clouds/{name}/{part}"} for part in "xy"}


def document(rule, workers=2, ps=1, scorer=1, **more):
    """The document of a session with a small network on the clouds; `more` replaces members, one
    level deep."""
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
    """The pid of the mr-worker that runs a member's role: the worker that listens at the role's
    address."""
    path = m["address"].removeprefix("unix:")
    pid = cluster.pid_of(path)
    assert pid, f"nobody listens at {path}"
    return pid


def validation(training):
    score = json.loads(training["score_json"])
    return score.get("validation", score)
