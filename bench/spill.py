#!/usr/bin/env python3
"""Graphs whose live data are several times the object store's memory, compared with the speed of the disk to which
they spill.

    spill.py [--memory 512MiB] [--times 2] [--parts 64] [--rounds 3] [--json FILE] [--dir DIR] [--keep-log]
    spill.py --random [--memory 256MiB] [--workers 4] [--rounds 6]

The shape is all to all: `parts` arrays, together `times` x memory, are cut into parts x parts pieces, and each result
is made of one piece of every array. Arrays, pieces and results are each larger than the memory in all.

The speed of the disk is measured in the same run and directory, with as many bytes as the store wrote and read in the
round before. One thread writes them to a file in order, a second time, without fsync, and reads them back. There are
two ceilings. The first is the page cache, which takes bytes at the speed of memory while it has room; the store uses
the page cache, too. The second is the device: the same bytes with O_DIRECT. Pages written earlier are dropped in
between (fdatasync, then POSIX_FADV_DONTNEED). Prints one line of JSON, and a summary.

--random: graphs of 400 arrays of a 32nd of the memory. Each array is, with equal odds, a root or the sum of two of
the eight arrays before it. There is one seed a round. Prints how many arrays leave memory; in the best order, that of
one worker, few have to."""
import argparse
import contextlib
import json
import mmap
import os
import pathlib
import random
import shutil
import statistics
import struct
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin"))
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness import Cluster  # noqa: E402

MIB = 1 << 20
CHUNK = 4 * MIB


def all_to_all(parts, part_bytes):
    """The graph and the expected value of its target."""
    floats = part_bytes // 8 // parts * parts
    piece, tasks = floats // parts, {}
    for i in range(parts):
        tasks[f"x/{i}"] = {"op": "array.full", "args": [[floats], float(i % 7)]}
        for k in range(parts):
            tasks[f"c/{i}/{k}"] = {"op": "array.slice", "args": [{"ref": f"x/{i}"}, k * piece, (k + 1) * piece]}
    for k in range(parts):
        tasks[f"y/{k}"] = {"op": "array.concat", "args": [[{"ref": f"c/{i}/{k}"} for i in range(parts)]]}
        tasks[f"p/{k}"] = {"op": "array.reduce_partial", "args": [{"ref": f"y/{k}"}, "sum"]}
    tasks["sum"] = {"op": "array.reduce_merge", "args": ["sum", [{"ref": f"p/{k}"} for k in range(parts)]]}
    return {"tasks": tasks, "targets": ["sum"]}, float(sum(i % 7 for i in range(parts)) * piece * parts)


def random_graph(parts, part_bytes, seed):
    """The graph and the expected value of its target."""
    rng, floats = random.Random(seed), part_bytes // 8
    tasks, used, values = {}, set(), []
    for i in range(parts):
        if i < 2 or rng.random() < 0.5:
            tasks[f"x/{i}"] = {"op": "array.full", "args": [[floats], 1.0]}
            values.append(1.0)
        else:
            a, b = rng.sample(range(max(0, i - 8), i), 2)
            tasks[f"x/{i}"] = {"op": "array.add", "args": [{"ref": f"x/{a}"}, {"ref": f"x/{b}"}]}
            used |= {a, b}
            values.append(values[a] + values[b])
    tops = [i for i in range(parts) if i not in used]
    for i in tops:
        tasks[f"p/{i}"] = {"op": "array.reduce_partial", "args": [{"ref": f"x/{i}"}, "sum"]}
    tasks["sum"] = {"op": "array.reduce_merge", "args": ["sum", [{"ref": f"p/{i}"} for i in tops]]}
    return {"tasks": tasks, "targets": ["sum"]}, sum(values[i] for i in tops) * floats


def transfer(fd, buffer, count, write):
    done = 0
    while done < count:
        piece = memoryview(buffer)[:min(len(buffer), count - done)]
        n = os.write(fd, piece) if write else os.readv(fd, [piece])
        if n <= 0:
            break
        done += n
    return done


def disk_speed(directory, total, direct):
    """(bytes/s written, bytes/s read) for `total` bytes in one file whose blocks and pages exist already."""
    flags = os.O_DIRECT if direct else 0
    total, probe = max(CHUNK, total // CHUNK * CHUNK), directory / "probe"
    # Aligned, as O_DIRECT needs. A larger buffer makes the page cache look for huge pages, which can be slow.
    buffer = mmap.mmap(-1, CHUNK if direct else MIB)
    buffer.write(os.urandom(len(buffer)))
    try:
        for _ in range(2):
            begun = time.perf_counter()
            fd = os.open(probe, os.O_WRONLY | os.O_CREAT | flags, 0o600)
            transfer(fd, buffer, total, True)
            os.close(fd)
        wrote = total / (time.perf_counter() - begun)
        begun = time.perf_counter()
        fd = os.open(probe, os.O_RDONLY | flags)
        transfer(fd, buffer, total, False)
        os.close(fd)
        return wrote, total / (time.perf_counter() - begun)
    finally:
        with contextlib.suppress(OSError):
            fd = os.open(probe, os.O_RDONLY)
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
            probe.unlink()


COUNTERS = ("spills", "restores", "written_bytes", "read_bytes")


def stats(c):
    s = c.get("/v1/store/stats")
    return {k: int(s.get(k, 0)) for k in COUNTERS}


def one_round(c, graph, expected, timeout=600):
    before, begun = stats(c), time.monotonic()
    job = c.wait(c.submit(graph), timeout)
    wall = time.monotonic() - begun
    if job["state"] != "JOB_DONE":
        raise RuntimeError(str(job.get("error")))
    value = c.value(job["id"], graph["targets"][0])
    if isinstance(value, bytes):  # an npy file of an array without axes
        value = struct.unpack("<d", value[-8:])[0]
    if value != expected:
        raise RuntimeError(f"{value}, not {expected}")
    after = stats(c)
    return {"wall_s": wall, **{k: after[k] - before[k] for k in COUNTERS}, "recomputed": int(job["counts"].get("recomputed", 0))}


def parse_bytes(text):
    for unit, n in (("GiB", 1 << 30), ("MiB", MIB)):
        if text.endswith(unit):
            return int(text[:-len(unit)]) * n
    raise SystemExit(f"--memory {text}: a number and MiB or GiB")


def measure(directory, memory, times, parts, rounds, keep_log=None):
    """Times of a cluster of this memory, of a cluster whose memory holds all data, and of the disk for the bytes
    moved."""
    part = memory * times // parts
    graph, expected = all_to_all(parts, part)
    found, flags = {}, ("--workers", "4", "--threads", "1")
    for name, room in (("in_memory", memory * times * 4), ("spilled", memory)):
        where = directory / name
        where.mkdir()
        with Cluster(*flags, "--memory", f"{room // MIB}MiB", directory=where) as c:
            found[name] = [one_round(c, graph, expected) for _ in range(rounds if name == "spilled" else 1)]
            if keep_log and name == "spilled":
                shutil.copytree(where / "c" / "log", keep_log, dirs_exist_ok=True)
        shutil.rmtree(where, ignore_errors=True)
    r = dict(sorted(found["spilled"], key=lambda x: x["wall_s"])[len(found["spilled"]) // 2])
    r["walls_s"] = [x["wall_s"] for x in found["spilled"]]
    r["in_memory_s"] = found["in_memory"][0]["wall_s"]
    total = max(r["written_bytes"], r["read_bytes"])
    for name, direct in (("cached", False), ("device", True)):
        write, read = disk_speed(directory, min(total, 1 << 30), direct)
        takes = r["written_bytes"] / write + r["read_bytes"] / read
        r[name] = {"write_bytes_per_s": write, "read_bytes_per_s": read, "takes_s": takes, "share": takes / r["wall_s"]}
    return {"memory": memory, "times": times, "parts": parts, **r}


def measure_random(directory, memory, workers, rounds):
    found = []
    with Cluster("--workers", str(workers), "--threads", "1", "--memory", f"{memory // MIB}MiB", directory=directory) as c:
        for seed in range(1, rounds + 1):
            graph, expected = random_graph(400, memory // 32, seed)
            found.append({"seed": seed, **one_round(c, graph, expected)})
    return {"memory": memory, "workers": workers, "rounds": found}


def random_text(r):
    return (f"random graphs of 400 arrays of {r['memory'] // 32 // MIB} MiB in {r['memory'] // MIB} MiB, {r['workers']} workers: "
            f"{', '.join(str(x['spills']) for x in r['rounds'])} left memory; {', '.join(format(x['wall_s'], '.2f') for x in r['rounds'])} s")


def text(r):
    moved = r["written_bytes"] + r["read_bytes"]
    out = [f"all to all of {r['times']} times {r['memory'] // MIB} MiB, {r['parts']} x {r['parts']}: {r['wall_s']:.2f} s "
           f"({', '.join(f'{w:.2f}' for w in r['walls_s'])}); {r['in_memory_s']:.2f} s where nothing spills",
           f"  written {r['written_bytes'] / MIB:.0f} MiB in {r['spills']} objects that left, read {r['read_bytes'] / MIB:.0f} MiB in {r['restores']}: "
           f"{moved / r['wall_s'] / 1e6:.0f} MB/s; {r['recomputed']} tasks ran again"]
    for name, words in (("cached", "through the page cache, no fsync"), ("device", "O_DIRECT")):
        d = r[name]
        out.append(f"  the disk, {words}: {d['write_bytes_per_s'] / 1e6:.0f} MB/s written, {d['read_bytes_per_s'] / 1e6:.0f} MB/s read; "
                   f"the same bytes take it {d['takes_s']:.2f} s, {d['share']:.0%} of the wall")
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--memory", default="512MiB")
    p.add_argument("--times", type=int, default=2)
    p.add_argument("--parts", type=int, default=64)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--random", action="store_true")
    p.add_argument("--workers", type=int, default=4, help="of --random")
    p.add_argument("--json")
    p.add_argument("--dir", help="the disk to spill to: a directory is made in it")
    p.add_argument("--keep-log", help="copies the logs of the cluster that spills there")
    a = p.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="mr-spill-", dir=a.dir))
    try:
        if a.random:
            r = measure_random(directory, parse_bytes(a.memory), a.workers, a.rounds)
        else:
            r = measure(directory, parse_bytes(a.memory), a.times, a.parts, a.rounds, a.keep_log)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(random_text(r) if a.random else text(r), file=sys.stderr)
    out = json.dumps(r)
    if a.json:
        pathlib.Path(a.json).write_text(out)
    print(out)


if __name__ == "__main__":
    main()
