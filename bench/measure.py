"""Common measuring for every system of the table: rounds, one line of JSON a row, memory of a process, and the
copying speed of the machine. Runs in any Python 3.9 or newer with NumPy. Knows nothing of the systems."""
import json
import os
import pathlib
import statistics
import sys
import threading
import time

import numpy


def memory(pid, field="VmRSS"):
    """Bytes of a process: VmRSS is its present size, VmHWM its largest size so far."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def cell(runs, n, note="", every=statistics.median):
    """The result of one system in one row."""
    return {"median": every(runs), "min": min(runs), "max": max(runs), "runs": len(runs), "n": n, "note": note, "load": os.getloadavg()[0]}


def emit(row, system, value):
    """Prints one line for the process that started this one."""
    print(json.dumps({"row": row, "system": system, **value}), flush=True)


class Rows:
    """Measures rows of one system. A row that fails is reported as a row with an error, and row() returns False."""

    def __init__(self, system, out=emit):
        self.system, self.out = system, out

    def row(self, name, measure):
        begun = time.monotonic()
        try:
            value = measure()
        except Exception as e:  # a peer may fail in any way it likes
            value = {"error": f"{type(e).__name__}: {e}"[:300]}
        print(f"  {self.system}: {name}: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
        self.out(name, self.system, value)
        return "error" not in value


def timed(call):
    begun = time.perf_counter()
    value = call()
    return time.perf_counter() - begun, value


def copy_bandwidth(threads=4, megabytes=256, rounds=5):
    """Bytes read plus bytes written a second by `threads` threads that copy warm memory: the best of the rounds."""
    source = numpy.ones(threads * megabytes << 17)
    there = numpy.zeros_like(source)
    each = len(source) // threads
    parts = [(there[i * each:(i + 1) * each], source[i * each:(i + 1) * each]) for i in range(threads)]
    best = 0.0
    for _ in range(rounds):
        workers = [threading.Thread(target=numpy.copyto, args=part) for part in parts]
        begun = time.perf_counter()
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        best = max(best, 2 * source.nbytes / (time.perf_counter() - begun))
    return best
