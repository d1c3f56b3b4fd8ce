"""A real cluster used through stubs that Python, Node and Go generate from proto/, and by grpcurl
through reflection. A language that is missing on this machine is skipped (exit 77)."""
import json
import os
import pathlib
import shutil
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "interop")]

import run as interop  # noqa: E402: fetches and builds what a language needs
from harness import ROOT, SKIP, Cluster  # noqa: E402

PROTO = ROOT / "proto"
WORK = pathlib.Path(os.environ.get("MILLRACE_BUILD", ROOT / "build")) / "tests/integration"
API = "google.golang.org/genproto/googleapis/api"


def protos():
    return sorted(str(p.relative_to(PROTO)) for p in (PROTO / "millrace/v1").glob("*.proto"))


def python_stubs(out=WORK / "stubs/python"):
    """The environment for a Python client, or None."""
    plugin = shutil.which("grpc_python_plugin")
    try:
        import grpc  # noqa: F401
    except ImportError:
        plugin = None
    if not plugin:
        interop.missing.append("grpcio and grpc_python_plugin (Debian: python3-grpcio, "
                               "protobuf-compiler-grpc): the Python client")
        return None
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    google = sorted(str(p.relative_to(PROTO)) for p in (PROTO / "google/api").glob("*.proto"))
    interop.must(["protoc", f"-I{PROTO}", f"--python_out={out}", f"--plugin=protoc-gen-grpc_python={plugin}",
                  f"--grpc_python_out={out}", *protos(), *google])
    # google.protobuf is in another directory with the same name
    (out / "google/__init__.py").write_text("__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n")
    return dict(os.environ, PYTHONPATH=str(out), PYTHONDONTWRITEBYTECODE="1")


def go_stubs(tools):
    """Builds the Go client with the versions that the interop client pins. The go_package of each
    proto file says where its code belongs, in a module named millrace."""
    out = WORK / "stubs/go"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for f in ("go.sum", "tools.go"):
        shutil.copy(HERE.parent / "interop/go" / f, out / f)
    mod = (HERE.parent / "interop/go/go.mod").read_text()
    (out / "go.mod").write_text(mod.replace("module interop\n", "module millrace\n", 1))
    shutil.copy(HERE / "stubs/go/main.go", out / "main.go")
    places = [f"Mgoogle/api/{p}.proto={API}/annotations" for p in ("annotations", "http")]
    places += [f"Mgoogle/api/httpbody.proto={API}/httpbody", "module=millrace"]
    options = [f"--{kind}_opt={p}" for kind in ("go", "go-grpc") for p in places]
    interop.must(["protoc", f"-I{PROTO}", f"--go_out={out}", f"--go-grpc_out={out}", *options, *protos()],
                 env=dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}"))
    interop.must(["go", "build", "-o", out / "client", "."], cwd=out)
    return out / "client"


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "2", "--threads", "1")
        cls.addClassCleanup(cls.cluster.close)  # also when the rest of this function fails
        cls.store = f"unix:{cls.cluster.dir}/c/run/store-0.sock"
        cls.go_tools = interop.prepare_go(WORK / "interop/work")

    def client(self, argv, **kw):
        done = interop.run(argv, **kw)
        print(done.stdout, end="", flush=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("ok "), 4, done.stdout)

    def test_python(self):
        env = python_stubs()
        if not env:
            self.skipTest("no Python stubs")
        self.client([sys.executable, HERE / "stubs/client.py", self.cluster.scheduler, self.store], env=env)

    def test_node(self):
        node = interop.prepare_node(WORK / "interop/work")
        if not node:
            self.skipTest("no Node")
        self.client(["node", HERE / "stubs/client.js", self.cluster.scheduler, self.store, PROTO],
                    env=dict(os.environ, NODE_PATH=str(node / "node_modules")))

    def test_go(self):
        if not self.go_tools:
            self.skipTest("no Go")
        self.client([go_stubs(self.go_tools), self.cluster.scheduler, self.store])

    def grpcurl(self, address, *words, data=None):
        flags = ["-d", data] if data else []
        return interop.must([self.go_tools / "grpcurl", "-plaintext", "-unix", *flags, address.removeprefix("unix:"), *words])

    def test_grpcurl_lists_describes_and_calls(self):
        if not self.go_tools:
            self.skipTest("no Go, so no grpcurl")
        common = {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                  "grpc.reflection.v1alpha.ServerReflection"}
        for address, own in ((self.cluster.scheduler, {"Jobs", "Cluster", "WorkerSession"}), (self.store, {"Objects"})):
            services = self.grpcurl(address, "list").split()
            self.assertLessEqual(common | {f"millrace.v1.{s}" for s in own}, set(services))
            for service in services:
                text = self.grpcurl(address, "describe", service)
                self.assertIn(f"{service} is a service", text)
        health = self.grpcurl(self.cluster.scheduler, "grpc.health.v1.Health/Check", data="{}")
        self.assertEqual(json.loads(health), {"status": "SERVING"})
        ops = self.grpcurl(self.cluster.scheduler, "millrace.v1.Cluster/Ops", data="{}")
        self.assertIn("array.mean", ops)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    for name in interop.missing:
        print(f"SKIPPED for want of {name}", file=sys.stderr)
    sys.exit(1 if not result.wasSuccessful() else SKIP if interop.missing else 0)
