"""Processes of one run of the benchmarks. A mark in their environment identifies them, so that no process outlives
the run however it ends, and no other process is killed. `processes.py MARK` ends the processes of a run that was
killed."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

VARIABLE = "MILLRACE_BENCH_RUN"


def marked(mark):
    """Pids of the processes of this run, without the calling process and its parents."""
    wanted, spared, found = f"{VARIABLE}={mark}".encode(), set(), []
    pid = os.getpid()
    while pid > 1:
        spared.add(pid)
        try:
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) not in spared and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_all(mark, timeout=5.0):
    """Ends the processes of a run, by pid: SIGTERM, then SIGKILL. Returns the pids that are left."""
    end = time.monotonic() + timeout
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for pid in marked(mark):
            with contextlib.suppress(OSError):
                os.kill(pid, sign)
        while marked(mark) and time.monotonic() < end:
            time.sleep(0.1)
        end = time.monotonic() + timeout
    return marked(mark)


def die_with_parent():
    """For a child before exec: Linux kills the child when its parent dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def stream_lines(args, env, seconds, on_line):
    """Runs a peer and gives each line of its stdout to `on_line`. Returns None, or why the peer ended early.
    Afterwards its process group is gone."""
    peer = subprocess.Popen(args, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=die_with_parent)
    overdue = threading.Timer(seconds, peer.kill)
    overdue.start()
    try:
        begun = time.monotonic()
        for line in peer.stdout:
            on_line(line)
        code = peer.wait()
        if not code:
            return None
        return f"not done in {seconds} s" if time.monotonic() - begun >= seconds else f"ended with code {code}"
    finally:
        overdue.cancel()
        with contextlib.suppress(OSError):
            os.killpg(peer.pid, signal.SIGKILL)
        peer.wait()


if __name__ == "__main__":
    left = end_all(sys.argv[1])
    if left:
        sys.exit(f"still there: {left}")
