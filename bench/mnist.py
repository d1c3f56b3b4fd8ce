"""The array job on MNIST's training images. It keeps 20 copies as f32 in 0 … 1 in the cluster's memory, computes mean
and variance over axis 0, and rechunks from (60000, 784) to (10000, 784), also in memory. The three stages are timed
one by one and together. Nothing is written to disk. The results are compared with NumPy's for one copy, outside the
measured time. Only Python programs of the peer import `measure_dask`."""
import gzip
import pathlib
import time

import numpy

import measure

ROWS, PIXELS, CHUNK = 60_000, 784, 10_000
COPIES = {"full": 20, "quick": 4}
STAGES = ("mnist", "mnist-persist", "mnist-stats", "mnist-rechunk")


def load(data):
    with gzip.open(pathlib.Path(data) / "train-images-idx3-ubyte.gz") as f:
        return numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(ROWS, PIXELS)


def scale(images, copy):
    """Makes a new array, the same for every `copy`."""
    return images.astype(numpy.float32) / numpy.float32(255)


def expected(data):
    """Mean, variance and the sum of each chunk of one copy, computed in f64 from the bytes."""
    images = load(data)
    mean = images.mean(axis=0, dtype=numpy.float64) / 255
    squares = numpy.zeros(PIXELS)
    sums = []
    for i in range(0, ROWS, CHUNK):
        piece = images[i:i + CHUNK] / 255.0
        squares += ((piece - mean) ** 2).sum(axis=0)
        sums.append(piece.sum())
    return {"mean": mean, "var": squares / ROWS, "sums": sums}


def check(right, mean, var, sums):
    if not (numpy.allclose(mean, right["mean"], rtol=1e-3, atol=1e-5) and numpy.allclose(var, right["var"], rtol=1e-3, atol=1e-5)):
        raise AssertionError("a wrong mean or variance")
    if len(sums) % len(right["sums"]) or not numpy.allclose(sums, right["sums"] * (len(sums) // len(right["sums"])), rtol=1e-3):
        raise AssertionError("a wrong chunk")


def bytes_moved(copies):
    """Bytes that each stage has to read and write once: u8 in, f32 out; f32 in; f32 in and out."""
    f32 = copies * ROWS * PIXELS * 4
    stages = (f32 // 4 + f32, f32, 2 * f32)
    return dict(zip(STAGES, (sum(stages), *stages)))


def emit_stages(rows, stages, copies, note):
    """Emits a row for the job and one for each stage, from a list of rounds of three times in seconds."""
    runs = [[sum(r) for r in stages], *zip(*stages)]
    for name, seconds in zip(STAGES, runs):
        rows.row(name, lambda: {**measure.cell(list(seconds), copies, note), "unit": "s"})


def dask_round(client, data, copies, right):
    import dask
    import dask.array as da
    from distributed import wait
    times, begun = [], time.perf_counter()

    def lap():
        nonlocal begun
        now = time.perf_counter()
        times.append(now - begun)
        begun = now
    images = dask.delayed(load, pure=False)(str(data))
    parts = [da.from_delayed(dask.delayed(scale, pure=False)(images, i), (ROWS, PIXELS), numpy.float32) for i in range(copies)]
    x = da.concatenate(parts).persist()
    wait(x)
    lap()
    mean, var = dask.compute(x.mean(axis=0), x.var(axis=0))
    lap()
    y = x.rechunk((CHUNK, PIXELS)).persist()
    wait(y)
    lap()
    if right:
        sums = dask.compute(*[b.sum(dtype=numpy.float64) for b in y.blocks.ravel()])
        check(right, mean, var, [float(s) for s in sums])
    return times


def measure_dask(system, data, mode, cluster, forms):
    rows, copies = measure.Rows(system), COPIES[mode]
    try:
        right, tried = expected(data), {}
        for form in forms:
            with cluster(*form) as c:
                dask_round(c.client, data, 1, None)
                tried[form] = sum(dask_round(c.client, data, 2, None))
        best = min(tried, key=tried.get)
        with cluster(*best) as c:
            dask_round(c.client, data, 1, right)
            stages = [dask_round(c.client, data, copies, right) for _ in range(3)]
            emit_stages(rows, stages, copies, c.form)
    except Exception as e:
        for name in STAGES:
            measure.emit(name, system, {"error": f"{type(e).__name__}: {e}"[:300]})


def our_round(cluster, data, copies, tag, right):
    """Runs the same three stages, a job each, on a cluster of tests/integration/harness.py."""
    jobs, times, space = [], [], f"mnist-{tag}"

    def job(tasks, targets):
        begun = time.perf_counter()
        answer = cluster.call("POST", "/v1/jobs?wait_s=600", {"namespace": space, "tasks": tasks, "targets": targets}, timeout=700)
        times.append(time.perf_counter() - begun)
        jobs.append(answer["id"])
        if answer["job"]["state"] != "JOB_DONE":
            raise AssertionError(str(answer["job"].get("error")))
    copy = {"i": copies}
    job({"images": {"op": "digits.load", "args": [f"{data}/train-images-idx3-ubyte.gz"], "kwargs": {"rows": True}, "pure": False},
         "part/${i}": {"op": "array.scale", "args": [{"ref": "images"}, 0, 255], "for": copy}},
        [f"part/{i}" for i in range(copies)])
    job({"moments/${i}": {"op": "array.moments", "args": [{"ref": "part/${i}"}], "kwargs": {"axis": 0}, "for": copy},
         "moments": {"op": "array.moments_merge", "args": {"each": {"ref": "moments/${i}"}, "for": copy}},
         "mean": {"op": "array.moments_mean", "args": [{"ref": "moments"}]},
         "var": {"op": "array.moments_var", "args": [{"ref": "moments"}]}}, ["mean", "var"])
    chunks = [f"chunk/{i}/{k}" for i in range(copies) for k in range(ROWS // CHUNK)]
    job({f"chunk/{i}/{k}": {"op": "array.slice", "args": [{"ref": f"part/{i}"}, [k * CHUNK], [(k + 1) * CHUNK]]}
         for i in range(copies) for k in range(ROWS // CHUNK)}, chunks)
    stages = times[:3]
    job({f"sum/{c}": {"op": "array.sum", "args": [{"ref": c}]} for c in chunks}, [f"sum/{c}" for c in chunks])
    sums = cluster.results(jobs[-1])["results"]
    mean, var = (numpy.array(cluster.value(jobs[1], key, "application/json"), dtype=object) for key in ("mean", "var"))
    check(right, mean.astype(float), var.astype(float), [sums[f"sum/{c}"] for c in chunks])
    for j in reversed(jobs):
        cluster.request("DELETE", f"/v1/jobs/{j}")
    return stages


def measure_ours(rows, cluster, data, mode):
    right, copies = expected(data), COPIES[mode]
    try:
        our_round(cluster, data, 1, "warm", right)
        emit_stages(rows, [our_round(cluster, data, copies, i, right) for i in range(3)], copies, "4 x 1")
    except Exception as e:
        for name in STAGES:
            rows.out(name, rows.system, {"error": f"{type(e).__name__}: {e}"[:300]})
