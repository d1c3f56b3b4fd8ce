"""Uses a cluster through the client that openapi-python-client has generated: client.py URL NPY.
The caller checks the types of this file against the generated code."""
import io
import json
import sys

from millrace_client import Client
from millrace_client.api.channels import channels_append, channels_list, channels_watch  # noqa: F401
from millrace_client.api.cluster import cluster_info, cluster_ops
from millrace_client.api.jobs import jobs_get, jobs_list, jobs_result, jobs_results, jobs_submit, jobs_submit_graph, jobs_watch
from millrace_client.api.objects import objects_get, objects_list, objects_put, objects_stat
from millrace_client.api.templates import templates_install, templates_instantiate
from millrace_client.models import (
    Argument, GraphDocument, GraphDocumentTasks, GraphEntry, Job, JobState, Status, SubmitGraphRequest, SubmitResponse, Task,
    TemplateParameters,
)
from millrace_client.types import File

url, npy = sys.argv[1], open(sys.argv[2], "rb").read()
client = Client(base_url=url, timeout=120)


def same(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def entry(op, *args, **more):
    return GraphEntry(op=op, args=list(args), **more)


# a job as JSON with typed tasks; waits for its end
tasks = GraphDocumentTasks()
tasks["x"] = GraphEntry(value=20)
tasks["y"] = entry("add", {"ref": "x"}, 1, retries=2, priority=-3)
tasks["z"] = entry("mul", {"ref": "y"}, 2)
document = GraphDocument(tasks=tasks, targets=["z", "y"], name="by python", priority=5)
made = jobs_submit.sync(client=client, body=document, wait_s=60.0, idempotency_key="python-1")
assert isinstance(made, SubmitResponse), made
same(made.existed, False)
job = jobs_get.sync(made.id, client=client, wait_s=60.0)
assert isinstance(job, Job), job
same((job.state, job.name, job.priority), (JobState.JOB_DONE, "by python", 5))
assert int(job.created_ns) > 0

# one of its values, and all of them
value = jobs_result.sync(job.id, "z", client=client)
assert isinstance(value, File), value
same(json.loads(value.payload.read()), 42)
same(jobs_results.sync(job.id, client=client).results["y"], 21)
same(jobs_submit.sync(client=client, body=document, idempotency_key="python-1").existed, True)

# its events until the end, as text
events = jobs_watch.sync(job.id, client=client)
assert isinstance(events, str) and '"JOB_DONE"' in events, events

# a typed graph, a loop in JSON, a template with parameters
graph = SubmitGraphRequest(tasks=[Task(key="a", op="add", args=[Argument(integer=1), Argument(integer="2")])], targets=["a"])
made = jobs_submit_graph.sync(client=client, body=SubmitGraphRequest.from_dict({**graph.to_dict(), "wait_s": 60}))
same(json.loads(jobs_result.sync(made.id, "a", client=client).payload.read()), 3)
loop = GraphDocument.from_dict({
    "repeat": {"count": {"max": 5, "carry": {"n": {"value": 0}}, "tasks": {"m": {"op": "inc", "args": [{"ref": "n"}]}},
                         "next": {"n": {"ref": "m"}}}},
    "targets": ["count.n"],
    "tasks": {"unused": {"value": 1}},
})
made = jobs_submit.sync(client=client, body=loop, wait_s=60.0)
same(json.loads(jobs_result.sync(made.id, "count.n", client=client).payload.read()), 5)
template = GraphDocument.from_dict({"params": {"n": 1}, "tasks": {"r": {"op": "inc", "args": ["${n}"]}}, "targets": ["r"]})
templates_install.sync(client=client, body=template, name="python")
made = templates_instantiate.sync("python", client=client, body=TemplateParameters.from_dict({"params": {"n": 9}}), wait_s=60.0)
same(json.loads(jobs_result.sync(made.id, "r", client=client).payload.read()), 10)

# lists, page by page
seen, token = [], ""
while True:
    page = jobs_list.sync(client=client, page_size=2, page_token=token)
    seen += [j.id for j in page.jobs]
    token = page.next_page_token
    if not token:
        break
assert job.id in seen and len(seen) == len(set(seen)) >= 4, seen
assert {"add", "inc"} <= {op.name for op in cluster_ops.sync(client=client).ops}
same(cluster_info.sync(client=client).ready, True)

# bytes and an array, uploaded and downloaded
data = bytes(range(256)) * 300
info = objects_put.sync(client=client, body=File(payload=io.BytesIO(data)), name="python/bytes")
same(objects_get.sync(info.id, client=client).payload.read(), data)
same(objects_stat.sync("name:python/bytes", client=client).id, info.id)
array = objects_put.sync(client=client, body=File(payload=io.BytesIO(npy)), format_="npy")
same((array.kind, array.dtype, array.shape), ("tensor", "f64", ["2", "3"]))
same(objects_get.sync(array.id, client=client, accept="application/x-npy").payload.read(), npy)
assert info.id in [o.id for o in objects_list.sync(client=client).objects]

# a channel
channels_append.sync("python", client=client, body=channels_append.AppendRequest(value_json=["1"]))
assert "python" in channels_list.sync(client=client).channels

# errors have a type, too
missing = jobs_get.sync_detailed("j1kq07ab-999", client=client)
assert missing.status_code == 404 and isinstance(missing.parsed, Status), missing
same(missing.parsed.code, 5)
bad = jobs_submit.sync_detailed(client=client, body=GraphDocument.from_dict({"dsk": {"x": ["no.such.op"]}, "priority": 101}))
assert bad.status_code == 400 and isinstance(bad.parsed, Status) and "priority" in bad.parsed.message, bad
print("python: ok")
