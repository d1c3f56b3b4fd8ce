"""Schemathesis against /openapi.json: no 5xx, no answer outside the schema.

    schemathesis.py VENV            a cluster of its own (MILLRACE_BIN), or the one at MILLRACE_URL
    schemathesis.py VENV --fake     the gateway before a fake cluster (MR_BIN, MR_DESCRIPTORS)

EXAMPLES is how many requests an operation gets (25, for every day; scripts/soak.sh sends 1,000);
EXCLUDE is a regular expression of paths to leave out. The program is installed from PyPI once, into
the folder VENV."""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "gateway")]
PACKAGE = "schemathesis==4.32.5"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"

# Code that runs inside Schemathesis: bounds the waits of requests, and keeps workers from being
# drained.
HOOKS = '''
import schemathesis
from hypothesis.internal import lambda_sources

# Describing a lambda parses its source, which CPython 3.11 cannot do deep down the stack where the
# strategies for nested arguments are made (SystemError: AST constructor recursion depth mismatch).
lambda_sources.lambda_description = lambda f: "lambda: ..."

def shorten(fields):
    try:
        if 0.05 < float(fields["wait_s"]) <= 3600:
            fields["wait_s"] = 0.05
    except (KeyError, TypeError, ValueError):
        pass

@schemathesis.hook
def before_call(context, case, kwargs):
    for fields in (case.query, case.body):
        if isinstance(fields, dict):
            shorten(fields)
    # It finds the names of real workers, and would retire all of them.
    if isinstance(case.path_parameters, dict) and "worker" in case.path_parameters:
        case.path_parameters["worker"] = "not-" + str(case.path_parameters["worker"])
'''


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(77)


def install(folder):
    """Installs Schemathesis once for all tests: the first test takes a lock and installs it."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(folder) / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_alone(folder)


def install_alone(folder):
    program = pathlib.Path(folder) / "bin" / "schemathesis"
    if not program.exists():
        try:
            venv.create(folder, with_pip=True)
        except Exception as e:  # python3-venv is missing
            skip(f"no virtual environment: {e}")
        done = subprocess.run(
            [str(program.parent / "pip"), "install", "-q", "--disable-pip-version-check", PACKAGE],
            capture_output=True, text=True,
        )
        if done.returncode:
            skip(f"pip cannot install {PACKAGE}: {done.stderr[-500:]}")
    return str(program)


@contextlib.contextmanager
def fake_cluster():
    try:
        import fake
    except ImportError as missing:
        skip(str(missing))
    import test_gateway

    with tempfile.TemporaryDirectory() as directory:
        address = f"unix:{directory}/s.sock"
        services = fake.Fake(test_gateway.DESCRIPTORS, address)
        gateway = test_gateway.Gateway(directory, address, "--store", address, "--trainer", address)
        try:
            yield f"http://127.0.0.1:{gateway.port}"
        finally:
            code = gateway.stop()
            services.stop()
            if code:
                with open(f"{directory}/gateway.log") as f:
                    sys.exit(f"the gateway ended with {code}: {f.read()[-4000:]}")


@contextlib.contextmanager
def cluster():
    if "MILLRACE_URL" in os.environ:
        yield os.environ["MILLRACE_URL"]
        return
    import harness

    c = harness.Cluster("--workers", "2", "--threads", "1")
    try:
        yield c.url
    finally:
        if c.up.poll() is not None:
            print(c.output(), c.logs())
        c.stop()


def run(program, url, folder):
    hooks = pathlib.Path(folder) / "millrace_hooks.py"
    hooks.write_text(HOOKS)
    arguments = [
        program, "run", f"{url}/openapi.json", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing",
        "--max-examples", os.environ.get("EXAMPLES", "25"), "--request-timeout", "20",
        "--suppress-health-check", "all", "--continue-on-failure", "--workers", "2",
        "--seed", os.environ.get("SEED", "1"),
        # answers with a text, which the schema does not describe
        "--exclude-path", "/metrics",
    ]
    if "--fake" not in sys.argv:  # the event stream of an existing channel never ends
        arguments += ["--exclude-path", "/v1/channels/{channel}/events"]
    if os.environ.get("EXCLUDE"):
        arguments += ["--exclude-path-regex", os.environ["EXCLUDE"]]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "millrace_hooks", "PYTHONPATH": folder}
    return subprocess.run(arguments, env=environment, cwd=folder).returncode


def main():
    folder = os.path.abspath(sys.argv[1])
    program = install(folder)
    with fake_cluster() if "--fake" in sys.argv else cluster() as url:
        code = run(program, url, folder)
    sys.exit(code)


if __name__ == "__main__":
    main()
