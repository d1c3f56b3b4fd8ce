"""The README's job through Python stubs (protoc, grpc_python_plugin): client.py SCHEDULER STORE.
Prints one line a case; exits with 1 after a failure."""
import sys

import grpc

from google.api import httpbody_pb2
from millrace.v1 import jobs_pb2, jobs_pb2_grpc, objects_pb2, objects_pb2_grpc

GRAPH = b'{"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]}'
PATIENCE = 60


def code_of(act):
    try:
        act()
    except grpc.RpcError as e:
        return e.code(), e.details()
    raise AssertionError("it did not fail")


def pieces(*bodies):
    for data in bodies:
        body = httpbody_pb2.HttpBody(content_type="application/json", data=data)
        yield jobs_pb2.SubmitRequest(body=body)


def submit_follow_read(jobs, store):
    job = jobs.Submit(pieces(GRAPH[:20], GRAPH[20:]), timeout=PATIENCE).id
    events = list(jobs.Watch(jobs_pb2.WatchJobRequest(id=job), timeout=PATIENCE))
    assert events[-1].job.state == jobs_pb2.JOB_DONE, events[-1]
    assert events[-1].event_id, "the end of a job has an id"
    items = list(jobs.Results(jobs_pb2.ResultsRequest(id=job, key=["z"], json=True), timeout=PATIENCE))
    values = {k: (i.json[n], i.packs) for i in items for n, k in enumerate(i.keys)}
    assert values == {"z": ("3", b"\x03")}, values
    body = list(jobs.Result(jobs_pb2.ResultRequest(id=job, key="z"), timeout=PATIENCE))
    assert b"".join(p.data for p in body).strip() == b"3", body
    assert body[0].content_type == "application/json", body


def typed_graph(jobs, store):
    def ref(key):
        return jobs_pb2.Argument(ref=key)

    request = jobs_pb2.SubmitGraphRequest(
        wait_s=30, want_values=True, options=jobs_pb2.JobOptions(name="typed", labels={"lang": "python"}),
        tasks=[jobs_pb2.Task(key="x", value=jobs_pb2.Argument(integer=1)),
               jobs_pb2.Task(key="y", op="inc", args=[ref("x")]),
               jobs_pb2.Task(key="z", op="add", args=[ref("x"), ref("y")])],
        targets=["z"])
    answer = jobs.SubmitGraph(request, timeout=PATIENCE)
    assert answer.job.state == jobs_pb2.JOB_DONE, answer
    assert [(v.key, v.pack) for v in answer.values] == [("z", b"\x03")], answer
    job = jobs.Get(jobs_pb2.GetJobRequest(id=answer.id), timeout=PATIENCE)
    assert (job.name, dict(job.labels)) == ("typed", {"lang": "python"}), job


def errors_have_words(jobs, store):
    bad = b'{"dsk": {"x": ["incc", 1]}, "targets": ["x"]}'
    code, words = code_of(lambda: jobs.Submit(pieces(bad), timeout=PATIENCE))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and "incc" in words, (code, words)
    code, words = code_of(lambda: jobs.Get(jobs_pb2.GetJobRequest(id="j9-99"), timeout=PATIENCE))
    assert code == grpc.StatusCode.NOT_FOUND and "j9-99" in words, (code, words)


def an_object_goes_up_and_down(jobs, store):
    body = httpbody_pb2.HttpBody(content_type="application/json", data=b'{"three": [3]}')
    put = store.Put(iter([objects_pb2.PutRequest(body=body)]), timeout=PATIENCE)
    back = store.Get(objects_pb2.GetObjectRequest(id=put.id), timeout=PATIENCE)
    assert b"".join(p.data for p in back).replace(b" ", b"").strip() == b'{"three":[3]}'


def main():
    jobs = jobs_pb2_grpc.JobsStub(grpc.insecure_channel(sys.argv[1]))
    store = objects_pb2_grpc.ObjectsStub(grpc.insecure_channel(sys.argv[2]))
    failed = 0
    for case in (submit_follow_read, typed_graph, errors_have_words, an_object_goes_up_and_down):
        try:
            case(jobs, store)
            print("ok", case.__name__)
        except (AssertionError, grpc.RpcError) as e:
            failed += 1
            print("FAIL", case.__name__, repr(e))
    sys.exit(1 if failed else 0)


main()
