#!/usr/bin/env python3
"""lib/rpc against gRPC implementations that no one here wrote.

Our server is called by Python's grpcio, Node's grpc-js, Go's grpc-go, grpcurl (through reflection)
and our own client; our client also calls Python's server. Every client runs the cases of its file
and prints one line for each. What a client needs is fetched and built once, under --work.

Exit code: 0 all ran and passed, 1 something failed, 77 all that ran passed, but something is
missing on this machine (named on stderr)."""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FETCH_SECONDS = 1800  # with cold caches, on a machine that other work keeps busy
RUN_SECONDS = 60

failed = []
missing = []


def say(*words):
    print(*words, flush=True)


def run(argv, seconds=RUN_SECONDS, **kw):
    return subprocess.run([str(a) for a in argv], timeout=seconds, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)


def must(argv, seconds=FETCH_SECONDS, **kw):
    done = run(argv, seconds, **kw)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}:\n{done.stdout}")
    return done.stdout


def fetched(what, argv, **kw):
    """Runs a package manager. Without network the client counts as missing, not as failed."""
    try:
        must(argv, **kw)
        return True
    except (RuntimeError, subprocess.TimeoutExpired) as e:
        say(e)
        missing.append(f"{what} (its packages could not be fetched, see above)")
        return False


def clients(name, argv, **kw):
    """Runs one client; it prints a line for each case."""
    say(f"-- {name}")
    try:
        done = run(argv, **kw)
        say(done.stdout.rstrip())
        if done.returncode:
            failed.append(name)
    except subprocess.TimeoutExpired:
        failed.append(f"{name} (took more than {RUN_SECONDS} s)")


class Server:
    """Starts a process that prints `listening PORT`."""

    def __init__(self, argv, **kw):
        self.process = subprocess.Popen([str(a) for a in argv], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kw)
        self.port = int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
            failed.append(f"{self.process.args[0]} did not end on SIGTERM")
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        if code not in (0, -signal.SIGTERM):
            failed.append(f"{self.process.args[0]} ended with {code}")


def prepare_python(work):
    out = work / "python"
    out.mkdir(parents=True, exist_ok=True)
    must(["protoc", f"-I{HERE}", f"--python_out={out}", HERE / "interop.proto"])
    return dict(os.environ, PYTHONPATH=f"{out}:{HERE}", PYTHONDONTWRITEBYTECODE="1")


def prepare_node(work):
    """The directory that has node_modules, or None."""
    if not shutil.which("node") or not shutil.which("npm"):
        missing.append("node and npm: the grpc-js client")
        return None
    out = work / "node"
    out.mkdir(parents=True, exist_ok=True)
    wanted = (HERE / "package.json").read_text()
    stamp = out / "installed.json"
    if not stamp.exists() or stamp.read_text() != wanted:
        (out / "package.json").write_text(wanted)
        if not fetched("the grpc-js client",
                       ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=out):
            return None
        stamp.write_text(wanted)
    shutil.copy(HERE / "client.js", out / "client.js")
    return out


def go_is_new_enough():
    wanted = re.search(r"^go (\d+)\.(\d+)", (HERE / "go/go.mod").read_text(), re.M)
    have = re.search(r"go(\d+)\.(\d+)", run(["go", "version"]).stdout)
    return have and tuple(map(int, have.groups())) >= tuple(map(int, wanted.groups()))


def prepare_go(work):
    """The directory with the programs `client` and `grpcurl`, or None."""
    if not shutil.which("go") or not go_is_new_enough():
        missing.append("go, as new as go/go.mod wants: the grpc-go client and grpcurl")
        return None
    out = work / "go"
    out.mkdir(parents=True, exist_ok=True)
    for f in (HERE / "go").iterdir():
        shutil.copy(f, out / f.name)
    bin_dir = out / "bin"
    if not fetched("the grpc-go client and grpcurl", ["go", "mod", "download"], cwd=out):
        return None
    must(["go", "build", "-o", f"{bin_dir}/", "google.golang.org/protobuf/cmd/protoc-gen-go",
          "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
          "github.com/fullstorydev/grpcurl/cmd/grpcurl"], cwd=out)
    must(["protoc", f"-I{HERE}", f"--go_out={out}", f"--go-grpc_out={out}",
          "--go_opt=module=interop", "--go-grpc_opt=module=interop", HERE / "interop.proto"],
         env=dict(os.environ, PATH=f"{bin_dir}:{os.environ['PATH']}"))
    must(["go", "build", "-o", f"{bin_dir}/client", "."], cwd=out)
    return bin_dir


def curl_services(curl, address):
    """All services are listed and described."""
    services = must([curl, "-plaintext", address, "list"]).split()
    assert services == ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                        "grpc.reflection.v1alpha.ServerReflection",
                        "millrace.interop.TestService"], services
    for service in services:
        text = must([curl, "-plaintext", address, "describe", service])
        assert f"{service} is a service" in text, text
    text = must([curl, "-plaintext", address, "describe", "millrace.interop.WantedStatus.code"])
    assert "field" in text, text
    done = run([curl, "-plaintext", address, "describe", "millrace.interop.Nothing"])
    assert done.returncode and "not found" in done.stdout.lower(), done.stdout


def curl_calls(curl, address):
    """A unary call, a stream and an error, all through reflection."""
    def call(method, data):
        return must([curl, "-plaintext", "-d", data, address, method])

    test = "millrace.interop.TestService/"
    assert json.loads(call(test + "UnaryCall", '{"response_bytes": 3}')) == {"payload": "AAAA"}
    assert call(test + "StreamingOutputCall",
                '{"responses": [{"bytes": 1}, {"bytes": 2}]}').count("payload") == 2
    reply = json.loads(call(test + "StreamingInputCall", '{"payload": "AAAA"} {"payload": "AA=="}'))
    assert reply == {"payloadBytes": "4", "messages": "2"}, reply
    assert json.loads(call("grpc.health.v1.Health/Check", "{}")) == {"status": "SERVING"}
    done = run([curl, "-plaintext", "-d", '{"status": {"code": 3, "message": "bad", "details": true}}',
                address, test + "UnaryCall"])
    assert "InvalidArgument" in done.stdout, done.stdout
    assert base64.b64encode(b"\x0a\x07INTEROP\x12\x08millrace").decode() in done.stdout, done.stdout


def grpcurl_cases(curl, address):
    say("-- grpcurl")
    for case in (curl_services, curl_calls):
        try:
            case(curl, address)
            say("ok", case.__name__)
        except (AssertionError, RuntimeError) as e:
            say("FAIL", case.__name__, e)
            failed.append(f"grpcurl {case.__name__}")


def all_clients(where, target, ours, env, node, go):
    clients(f"our client, {where}", [ours, target])
    clients(f"Python grpcio, {where}", [sys.executable, HERE / "client.py", target], env=env)
    if node:
        clients(f"Node grpc-js, {where}",
                ["node", node / "client.js", target, HERE / "interop.proto"], cwd=node)
    if go:
        clients(f"Go grpc-go, {where}", [go / "client", target])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    args = parser.parse_args()
    args.bin, args.work = args.bin.resolve(), args.work.resolve()
    try:
        import grpc  # noqa: F401
        import google.protobuf  # noqa: F401
    except ImportError as e:
        print(f"SKIPPED: {e} (Debian: python3-grpcio, python3-protobuf)", file=sys.stderr)
        return 77
    env = prepare_python(args.work)
    node = prepare_node(args.work)
    go = prepare_go(args.work)
    ours = args.bin / "mr-interop-client"
    server = args.bin / "mr-interop-server"
    with tempfile.TemporaryDirectory(prefix="mr-interop-") as directory:
        unix = f"unix:{directory}/s"
        with Server([server, "--listen", unix]):
            all_clients("UNIX", unix, ours, env, node, go)
        with Server([server, "--listen", "127.0.0.1:0"]) as s:
            all_clients("TCP", f"127.0.0.1:{s.port}", ours, env, node, go)
            if go:
                grpcurl_cases(go / "grpcurl", f"127.0.0.1:{s.port}")
        with Server([sys.executable, HERE / "server.py"], env=env) as s:
            clients("our client, Python's server", [ours, f"127.0.0.1:{s.port}"])
    for name in failed:
        print(f"FAILED: {name}", file=sys.stderr)
    for name in missing:
        print(f"SKIPPED for want of {name}", file=sys.stderr)
    return 1 if failed else 77 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
