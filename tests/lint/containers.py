"""Checks docker-compose.yml and the scripts of the image, as far as this is possible without Docker: every container
is confined; no service mounts another's volume; dead workers leave no sockets; users need not edit a file, and
documents need no build."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    print("skipped: the Python module yaml is missing (python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTAINER = ROOT / "deploy" / "container"
ONCE = {"secret"}  # services that run before the others and end

# Where each program's table of options is, and the rows that the tables share.
OPTIONS = {
    "mr-scheduler": "services/scheduler/shell/main.c", "mr-objectstore": "services/objectstore/main.c", "mr-worker": "services/worker/shell/main.c",
    "mr-trainer": "services/trainer/main.c", "mr-gateway": "gateway/server/main.c",
}
SHARED_OPTIONS = "lib/host/config/common_options.h"
# Scripts of the image that start a program with the flags that they get.
STARTS = {"gateway": "mr-gateway", "worker": "mr-worker"}

# The services that mount each volume. Services cannot read each other's files only because of this.
MOUNTS = {
    "run": {"scheduler", "objectstore", "worker", "worker-exec", "trainer", "gateway"},
    "redis-run": {"redis", "scheduler", "objectstore", "trainer"},
    "secret-scheduler": {"secret", "scheduler"},
    "secret-objectstore": {"secret", "objectstore"},
    "secret-worker": {"secret", "worker", "worker-exec"},
    "secret-trainer": {"secret", "trainer"},
    "secret-gateway": {"secret", "gateway"},
    "gateway": {"secret", "gateway"},
    "redis": {"redis"},
    "traces": {"scheduler"},
    "objects": {"objectstore"},
    "workers": {"worker"},
}


def options_of(program):
    """Returns the names of the flags of a program, read from its table of options."""
    row = re.compile(r'\{\.name = "([a-z-]+)"')
    shared = re.split(r"^#define ", (ROOT / SHARED_OPTIONS).read_text(), flags=re.M)
    names = {re.match(r"\w+", part).group(): row.findall(part) for part in shared[1:] if row.search(part)}
    names["MR_OPTION_REDIS"] = names["MR_OPTION_REDIS_IF_ANY"]
    table = re.search(r"^static const struct mr_option options\[\] = \{$(.*?)^\};$", (ROOT / OPTIONS[program]).read_text(), re.M | re.S).group(1)
    return set(row.findall(table)).union(*(names.get(word, []) for word in re.findall(r"\bMR_OPTION_\w+", table)))


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
        cls.services = cls.document["services"]

    def test_every_container_is_confined(self):
        for name, s in self.services.items():
            with self.subTest(service=name):
                self.assertIs(s["read_only"], True)
                self.assertEqual(s["cap_drop"], ["ALL"])
                self.assertEqual(s["security_opt"], ["no-new-privileges:true"])
                self.assertTrue(s["pids_limit"] and s["mem_limit"])
                self.assertIn("max-size", s["logging"]["options"])
                self.assertIn("max-file", s["logging"]["options"])
                self.assertNotIn("privileged", s)
                self.assertEqual(s["network_mode"], "bridge" if name == "gateway" else "none")
                if name not in ONCE:
                    self.assertTrue(s["healthcheck"]["test"])
                    self.assertTrue(s["tmpfs"])
                if name != "worker-exec":
                    self.assertFalse({"cap_add", "user"} & set(s))

    def test_only_the_gateway_has_a_port_on_loopback(self):
        ports = {name: s["ports"] for name, s in self.services.items() if "ports" in s}
        self.assertEqual(list(ports), ["gateway"])
        self.assertTrue(all(p.startswith("127.0.0.1:") for p in ports["gateway"]))

    def test_who_mounts_what(self):
        mounts = {volume: set() for volume in self.document["volumes"]}
        for name, s in self.services.items():
            for v in s["volumes"]:
                source, target, *mode = v.rsplit(":/", 1)
                self.assertNotIn("docker.sock", source)
                if source in mounts:
                    mounts[source].add(name)
                else:  # a directory of the host
                    self.assertEqual((name, target), ("worker", "data:ro"))
                if source.startswith("secret-") and name not in ONCE:
                    self.assertTrue(target.endswith(":ro"), name)
        self.assertEqual(mounts, MOUNTS)

    def test_the_commands_name_only_what_is_mounted(self):
        for name, s in self.services.items():
            targets = ["/" + v.rsplit(":/", 1)[1].split(":")[0] for v in s["volumes"]] + ["/tmp", "/opt/millrace"]
            for word in s["command"].replace("unix:", "").split():
                if word.startswith("/") and word != "/run":
                    held = any(word == t or word.startswith(t + "/") for t in targets)
                    self.assertTrue(held, f"{name}: {word}")

    def test_each_program_knows_its_flags(self):
        for name, s in self.services.items():
            first = s["command"].split()[0]
            program = STARTS.get(first, first)
            if program in OPTIONS:
                flags = set(re.findall(r"(?<!\S)--([a-z-]+)", s["command"]))
                self.assertTrue(flags, name)
                self.assertEqual(flags - options_of(program), set(), f"{name}: flags that {program} does not know")

    def test_grpc_ports_add_a_listener_with_tokens_and_no_more(self):
        """deploy/compose.grpc.yml repeats each command of docker-compose.yml, so the two must stay equal but for the
        added flags."""
        more = yaml.safe_load((ROOT / "deploy" / "compose.grpc.yml").read_text())["services"]
        self.assertEqual(list(more), ["scheduler", "objectstore", "trainer"])
        for number, (name, s) in enumerate(more.items()):
            self.assertEqual(set(s), {"network_mode", "ports", "volumes", "command"})
            port = 8480 + number
            words = " ".join(s["command"].split())
            for added in (f"--listen 0.0.0.0:{port} ", " --token-file /var/lib/millrace-users/tokens"):
                self.assertIn(added, words)
                words = words.replace(added, "", 1)
            self.assertEqual(words, " ".join(self.services[name]["command"].split()))
            self.assertEqual(s["volumes"], ["gateway:/var/lib/millrace-users:ro"])
            self.assertRegex(s["ports"][0], rf"^127\.0\.0\.1:\$\{{MILLRACE_GRPC_(STORE_|TRAINER_)?PORT:-{port}\}}:{port}$")


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_dir = pathlib.Path(folder.name)
        programs = self.run_dir / "bin"
        programs.mkdir()
        fake = programs / "mr-worker"  # stands for mr-worker: makes a plain file in place of its socket
        fake.write_text('#!/bin/sh\n[ "$1 $3" = "--name --listen" ] || exit 2\n'
                        'touch "${4#unix:}"\necho "$2"\nexec sleep 600\n')
        fake.chmod(0o755)
        self.env = {**os.environ, "MILLRACE_RUN": str(self.run_dir), "MILLRACE_NUMBER": str(self.run_dir / "number"),
                    "HOME": str(self.run_dir), "PATH": f"{programs}:{os.environ['PATH']}"}

    def worker(self, kind="worker"):
        p = subprocess.Popen([CONTAINER / "worker", kind], env=self.env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p, p.stdout.readline().strip()

    def sockets(self):
        return sorted(p.name for p in self.run_dir.glob("*.sock"))

    def test_dead_workers_leave_no_socket(self):
        first, name = self.worker()
        self.assertEqual(name, "worker-1")
        second, name = self.worker()
        self.assertEqual(name, "worker-2")
        self.assertEqual(self.worker()[1], "worker-3")
        self.assertEqual(self.worker("other")[1], "other-1")
        for p in (first, second):
            p.kill()
            p.wait()
        self.assertEqual(self.sockets(), ["other-1.sock", "worker-1.sock", "worker-2.sock", "worker-3.sock"])
        self.assertEqual(self.worker()[1], "worker-1")
        self.assertEqual(self.sockets(), ["other-1.sock", "worker-1.sock", "worker-3.sock"])

    def test_a_user_is_added_without_an_edit(self):
        tokens = self.run_dir / "tokens"
        tokens.write_text("a-token-of-the-first admin compose\n")
        add = lambda *a: subprocess.run([CONTAINER / "add-user", *a], env=self.env, capture_output=True, text=True)
        token = add("ana", "reader").stdout.strip()
        self.assertGreaterEqual(len(token), 16)
        self.assertEqual(tokens.read_text(), f"a-token-of-the-first admin compose\n{token} reader ana\n")
        self.assertEqual(tokens.stat().st_mode & 0o777, 0o600)
        for wrong in (("ana",), ("compose",), ("b b",), ("",), ("b", "service"), ("b\nc",), ()):
            self.assertNotEqual(add(*wrong).returncode, 0, wrong)
        self.assertEqual(tokens.read_text().count("\n"), 2)


@functools.lru_cache
def tracked():
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return frozenset(filter(None, out.split("\0")))


def copied_before_build():
    """Returns the tracked files that the Dockerfile copies before it builds, as far as .dockerignore lets them through."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().split("\n") if line and line[0] != "#"]
    allowed = [r[1:] for r in rules if r[0] == "!"]
    assert not any("*" in a for a in allowed), allowed  # the rules below know no patterns
    seen = {p for p in tracked() for a in allowed if p == a or p.startswith(a + "/")}
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    out = set()
    for line in lines[:next(i for i, line in enumerate(lines) if "cmake --build" in line)]:
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            for source in sources:  # each source keeps its place in the tree
                assert target.rstrip("/") in (source, os.path.dirname(source) or "."), line
                out |= {p for p in seen if p == source or p.startswith(source + "/")}
    return out


class Image(unittest.TestCase):
    def test_documents_are_copied_after_the_build(self):
        lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
        build = next(i for i, line in enumerate(lines) if "cmake --build" in line)
        copied = {word for line in lines[:build] if line.startswith("COPY") for word in line.split()[1:-1]}
        self.assertFalse(copied & {".", "docs", "README.md", "examples", "tests", "docker-compose.yml"})
        ignored = (ROOT / ".dockerignore").read_text().split("\n")
        self.assertIn("*", ignored)
        self.assertFalse({"!tests", "!.git", "!docker-compose.yml"} & set(ignored))

    def test_what_is_copied_builds(self):
        """CMake accepts the files that the image is built from, and each file that they include is among them."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            copied = copied_before_build()
            self.assertIn("services/worker/shell/main.c", copied)
            for path in copied:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, root / path)
            if (ROOT / ".deps").exists():
                (root / ".deps").symlink_to(ROOT / ".deps")
            run = subprocess.run(["cmake", "--preset", "release", "-DMR_TESTS=OFF"], cwd=root, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout[-500:] + run.stderr[-2000:])
            build = root / "build" / "release"
            installed = {p for script in build.rglob("cmake_install.cmake")
                         for p in re.findall(rf'"{build}/([\w./-]+)"', script.read_text())}
            made = sorted(p for p in installed if not (build / p).exists())
            self.assertIn("bin/mr-gateway", made)

            def ninja(*words):
                run = subprocess.run(["ninja", "-C", build, "-t", *words], capture_output=True, text=True)
                self.assertEqual(run.returncode, 0, run.stderr)
                return run.stdout

            commands = ninja("commands", "programs")
            for path in (p for p in made if not p.startswith("proto/")):  # the programs themselves need those
                named = re.search(rf"[ /]{re.escape(path)}([ /]|$)", commands, re.M)
                self.assertTrue(named, f"{path} is installed and not built")
            # the pages of the dashboard are installed as a folder, which a target of its name makes
            targets = ["dashboard" if p == "share/millrace/dashboard" else p for p in made]
            for path in ninja("inputs", *targets).splitlines()[1:]:
                name = os.path.relpath(build / path.strip(), root)
                if not name.startswith(("build/", "../")):
                    self.assertTrue((root / name).exists(), f"{name} is not in the image")
        for path in copied:
            if not path.endswith((".c", ".h")):
                continue
            for name in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text(), re.M):
                for found in {name, f"lib/{name}", str(pathlib.PurePath(path).parent / name)} & tracked():
                    self.assertTrue(found in copied, f"{path} includes {found}, which the image does not have")

    def test_the_image_has_every_script(self):
        for path in CONTAINER.iterdir():
            self.assertTrue(os.access(path, os.X_OK), path.name)
            subprocess.run(["sh", "-n", path], check=True)


if __name__ == "__main__":
    unittest.main()
