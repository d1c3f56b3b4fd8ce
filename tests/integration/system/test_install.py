#!/usr/bin/env python3
"""The files that `cmake --install` puts under a prefix work there. The scripts print their help
without doing anything."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import ROOT, Cluster  # noqa: E402

BUILD = pathlib.Path(os.environ["MILLRACE_BUILD"])
CLEAN = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "MILLRACE_BIN")}


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(tempfile.mkdtemp(prefix="mr-install-"))
        subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(cls.prefix)], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.prefix)

    def test_every_program_finds_its_libraries_under_the_prefix(self):
        for program in sorted((self.prefix / "bin").iterdir()):
            with self.subTest(program.name):
                said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, env=CLEAN, check=True).stdout
                self.assertNotIn("not found", said)
                self.assertNotIn(str(ROOT / ".deps"), said)

    def test_an_installed_cluster_runs_an_installed_example_and_a_plugin(self):
        share = self.prefix / "share" / "millrace"
        env = dict(CLEAN, PKG_CONFIG_PATH=str(self.prefix / "lib" / "pkgconfig"))
        flags = subprocess.run(["pkg-config", "--cflags", "millrace-plugin"], capture_output=True, text=True, env=env, check=True).stdout
        plugin = self.prefix / "example_ops.so"
        subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", str(plugin), *flags.split(),
                        str(share / "examples" / "plugin" / "example_ops.c")], check=True)
        os.environ["MILLRACE_BIN"] = str(self.prefix / "bin")
        try:
            with Cluster("--workers", "1", "--plugin", str(plugin), "--data-root", str(self.prefix)) as c:
                said = subprocess.run([str(self.prefix / "bin" / "millrace"), "run", str(share / "examples" / "hello.json")],
                                      capture_output=True, text=True, env=dict(CLEAN, MILLRACE_HOME=str(c.dir / "home")),
                                      timeout=60 * harness.SLOW)
                self.assertEqual(said.returncode, 0, said.stderr)
                ops = subprocess.run([str(self.prefix / "bin" / "millrace"), "ops"], capture_output=True, text=True,
                                     env=dict(CLEAN, MILLRACE_HOME=str(c.dir / "home")), check=True).stdout
                self.assertIn("example.", ops)
        finally:
            os.environ["MILLRACE_BIN"] = str(BUILD / "bin")

    def test_plugin_headers_declare_no_function_that_a_plugin_cannot_link(self):
        include = self.prefix / "include" / "millrace"
        for header in sorted(include.rglob("*.h")):
            with self.subTest(header.name), tempfile.TemporaryDirectory() as folder:
                told = pathlib.Path(folder) / "prototypes"
                subprocess.run(["cc", "-std=c17", "-x", "c", f"-I{include}", "-fsyntax-only", "-aux-info", str(told), "-"],
                               input=f'#include "{header}"\nint one_unit;\n', text=True, check=True)
                ours = [line for line in told.read_text().splitlines() if str(include) in line]
                self.assertEqual([line for line in ours if "*/ static " not in line], [])

    def test_contract_documents_and_licence_are_there(self):
        for name in ("share/millrace/openapi.json", "share/millrace/proto/millrace/v1/jobs.proto", "share/millrace/proto/google/api/annotations.proto",
                     "share/doc/millrace/LICENSE", "share/doc/millrace/README.md", "share/doc/millrace/operations.md", "include/millrace/ops/op.h",
                     "share/bash-completion/completions/millrace", "share/zsh/site-functions/_millrace",
                     "share/fish/vendor_completions.d/millrace.fish"):
            self.assertTrue((self.prefix / name).is_file(), name)


class Scripts(unittest.TestCase):
    def test_help_installs_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "called"
            for name in ("apt-get", "sudo", "dpkg-query", "cmake", "ctest", "curl"):
                fake = pathlib.Path(folder) / name
                fake.write_text(f"#!/bin/sh\necho {name} >>{log}\nexit 1\n")
                fake.chmod(0o755)
            env = dict(CLEAN, PATH=f"{folder}:{CLEAN['PATH']}")
            for script in sorted((ROOT / "scripts").glob("*.sh")):
                for word, code in (("--help", 0), ("--no-such-flag", 2)):
                    with self.subTest(f"{script.name} {word}"):
                        done = subprocess.run([str(script), word], capture_output=True, text=True, env=env, timeout=30 * harness.SLOW)
                        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                        self.assertIn(f"scripts/{script.name}", done.stdout + done.stderr)
                        self.assertFalse(log.exists(), log.exists() and log.read_text())

    def test_what_was_skipped_is_said_by_name_and_reason(self):
        """scripts/skipped.awk lists each skipped test with its reason."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "LastTest.log"
            log.write_text("3/9 Test: system_stubs\ntest_go (__main__.Stubs.test_go) ... skipped 'no Go'\nok\n"
                           "4/9 Test: integration_ops\nSKIPPED: the file a9a is not here\n5/9 Test: unit_host_os\nskipped\n")
            said = subprocess.run([str(ROOT / "scripts" / "skipped.awk"), "-v", "preset=dev", str(log)], capture_output=True, text=True, check=True)
            self.assertEqual(said.stdout, "  dev system_stubs: no Go\n  dev integration_ops: the file a9a is not here\n")

    def test_who_cannot_install_is_told_the_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = {"id": "echo 1000", "dpkg-query": "exit 1"}
            for name, does in tools.items():
                fake = pathlib.Path(folder) / name
                fake.write_text(f"#!/bin/sh\n{does}\n")
                fake.chmod(0o755)
            for name in ("bash", "dirname", "sed", "grep", "awk", "env", "cat"):
                os.symlink(shutil.which(name), pathlib.Path(folder) / name)
            done = subprocess.run([str(ROOT / "scripts" / "install-deps.sh"), "build"], capture_output=True, text=True,
                                  env={"PATH": folder}, timeout=30 * harness.SLOW)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("apt-get install build-essential", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
