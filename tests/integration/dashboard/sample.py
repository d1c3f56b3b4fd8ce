"""Work for a cluster that the dashboard's tests look at: jobs in every state, a training, a queue, a
channel, a template and named objects. sample.py URL [TOKEN] fills a cluster for pictures (shots.mjs)
and prints the ids: its arrays are larger, and it has two trainings that learn for a while."""
import http.client
import json
import pathlib
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Api:
    def __init__(self, url, token=None):
        self.at = urllib.parse.urlsplit(url)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def call(self, method, path, body=None):
        c = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=120)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None, self.headers)
            r = c.getresponse()
            data = r.read()
            if r.status != 200:
                raise SystemExit(f"{method} {path}: {r.status} {data.decode()}")
            return json.loads(data)
        finally:
            c.close()

    def submit(self, graph):
        return self.call("POST", "/v1/jobs", graph)["id"]

    def wait(self, job):
        return self.call("GET", f"/v1/jobs/{job}?wait_s=60")


def reconstruction(parts=8, side=192):
    """Blocks of a matrix are made, multiplied and reduced; some tasks only sleep, for unequal times."""
    tasks = {}
    for i in range(parts):
        tasks[f"block/{i}"] = {"op": "array.random", "args": [[side, side], i]}
        tasks[f"scan/{i}"] = {"op": "sleep", "args": [0.01 + 0.02 * (i % 4)]}
        tasks[f"product/{i}"] = {"op": "array.matmul", "args": [{"ref": f"block/{i}"}, {"ref": f"block/{(i + 1) % parts}"}]}
        tasks[f"mean/{i}"] = {"op": "array.mean", "args": [{"ref": f"product/{i}"}]}
    tasks["image"] = {"op": "array.add", "args": [{"ref": "product/0"}, {"ref": "product/1"}]}
    tasks["profile"] = {"op": "array.mean", "args": [{"ref": "image"}], "kwargs": {"axis": 0}}
    tasks["means"] = {"op": "list", "args": [{"ref": f"mean/{i}"} for i in range(parts)]}
    tasks["total"] = {"op": "sum", "args": [{"ref": "means"}]}
    tasks["waited"] = {"op": "list", "args": [{"ref": f"scan/{i}"} for i in range(parts)]}
    return {"name": "reconstruction", "labels": {"team": "imaging", "run": "7"}, "tasks": tasks,
            "targets": ["image", "profile", "means", "total", "waited"]}


FAILING = {"name": "broken shapes", "labels": {"team": "imaging"}, "on_error": "continue", "tasks": {
    "good": {"op": "inc", "args": [1]},
    "bad": {"op": "array.reshape", "args": [{"op": "array.random", "args": [[4, 4], 1]}, [3, 5]]},
    "user": {"op": "array.mean", "args": [{"ref": "bad"}]}}, "targets": ["good", "user"]}


def slow(seconds, tasks=2):
    return {"name": "slow scan", "labels": {"team": "operations"},
            "tasks": {f"wait/{i}": {"op": "sleep", "args": [seconds], "kwargs": {}} for i in range(tasks)}}


def fill(api, running_s=600, side=192):
    """Returns the ids by what they are."""
    ids = {"done": api.submit(reconstruction(side=side)), "failed": api.submit(FAILING)}
    api.wait(ids["done"])
    api.wait(ids["failed"])
    ids["second"] = api.submit(reconstruction(parts=10, side=256))
    api.wait(ids["second"])
    api.call("POST", "/v1/templates?name=sum-of-two", {"params": {"a": 1, "b": 2}, "tasks": {"sum": {"op": "add", "args": ["${a}", "${b}"]}}})
    ids["small"] = api.submit({"name": "wide numbers", "tasks": {"wide": {"op": "identity", "args": [2**63 - 1]}, "words": {"op": "identity", "args": ["a text"]}}})
    api.call("PUT", "/v1/queues/batches", {"items_max": 100})
    for i in range(3):
        api.call("POST", "/v1/queues/batches:put", {"value_json": json.dumps({"batch": i})})
    api.call("POST", "/v1/channels/beamline:append", {"value_json": [json.dumps({"step": i, "counts": i * i}) for i in range(5)]})
    api.submit({"name": "stored", "tasks": {"mask": {"op": "array.random", "args": [[64, 64], 9], "persist": "beamline/mask"}}})
    ids["training"] = start_training(api, 3)
    ids["running"] = api.submit(slow(running_s))
    return ids


def start_training(api, time_s):
    """A small training, which uses a whole processor while it runs."""
    with open(ROOT / "examples/digits.json") as f:
        document = json.load(f)
    document["name"] = "digits"
    document["params"].update(each=400, parts=2, workers=1, below=0.0001, epochs=100000)
    document["graph"]["tasks"] = json.loads(json.dumps(document["graph"]["tasks"]).replace("10000, 1000", "400, 1000"))
    document["stop"] = {"time_s": time_s}
    return api.call("POST", "/v1/trainings", document)["id"]


def learn(api, name, **params):
    """The training of examples/digits.json, made slower. It stops by itself. Returns its id after its end."""
    with open(ROOT / "examples/digits.json") as f:
        document = json.load(f)
    document["name"] = name
    document["params"].update(workers=1, **params)
    document["optimizer"]["learning_rate"] = 0.0001
    document["score"]["every_s"] = 0.1
    training = api.call("POST", "/v1/trainings", document)["id"]
    while "ended_ns" not in (t := api.call("GET", f"/v1/trainings/{training}")) or t["ended_ns"] == "0":
        time.sleep(0.5)
    return training


if __name__ == "__main__":
    api = Api(*sys.argv[1:3])
    ids = fill(api, side=768)
    learn(api, "digits, 32 units", units=32)
    print(json.dumps({**ids, "training": learn(api, "digits, 64 units", units=64)}))
