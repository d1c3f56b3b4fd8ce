#!/usr/bin/env python3
"""Completion for bash, zsh and fish: what the shells offer for commands, flags, files and job ids."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SLOW, Cluster, bin_dir  # noqa: E402

PROGRAM = str(bin_dir() / "millrace")
SCRIPTS = pathlib.Path(os.environ["MILLRACE_BUILD"]) / "completion"
# What bash does at the Tab key: sets the words so far, calls the function, and prints its answers.
DRIVE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_millrace "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "1", "--threads", "1")
        cls.job = cls.c.submit({"name": "one", "tasks": {"a": {"op": "inc", "args": [1]}}, "targets": ["a"]})

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def env(self, url=None):
        return dict(self.c.env, MILLRACE_URL=url or self.c.url)

    def bash(self, *words, url=None, cwd=None):
        done = subprocess.run(["bash", "--norc", "-c", DRIVE, "bash", str(SCRIPTS / "bash" / "millrace"), PROGRAM, *words],
                              capture_output=True, text=True, env=self.env(url), cwd=cwd, timeout=60 * SLOW, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_the_installed_scripts_are_what_the_program_prints(self):
        for shell, name in (("bash", "millrace"), ("zsh", "_millrace"), ("fish", "millrace.fish")):
            printed = subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True, check=True).stdout
            self.assertEqual((SCRIPTS / shell / name).read_text(), printed)
        self.assertEqual(subprocess.run([PROGRAM, "completion", "tcsh"], capture_output=True).returncode, 2)
        done = subprocess.run(["bash", "-c", 'source <("$0" completion bash); complete -p millrace', PROGRAM], capture_output=True, text=True)
        self.assertIn("-F _millrace", done.stdout, done.stderr)

    def test_bash_knows_every_command_and_every_flag(self):
        said = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
        for line in said.split("Commands:\n")[1].split("\n\n")[0].splitlines():
            name = line.split()[0]
            self.assertIn(name, self.bash(""))
            flags = self.bash(name, "--")
            help_text = subprocess.run([PROGRAM, name, "--help"], capture_output=True, text=True, check=True).stdout
            for flag in flags:
                self.assertIn(flag, help_text)
            self.assertIn("--help", flags)
        self.assertEqual(self.bash("sta"), ["status"])
        self.assertEqual(self.bash("help", "work"), ["workers"])
        self.assertEqual(self.bash("status", "--st"), ["--state"])
        self.assertEqual(self.bash("status", "--state", "can"), ["cancelled"])
        self.assertEqual(self.bash("status", "--state", "=", "can"), ["cancelled"])
        self.assertEqual(self.bash("queue", "cr"), ["create"])
        self.assertEqual(self.bash("frobnicate", ""), [])

    def test_bash_offers_files_where_a_file_is_wanted(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "job.json").touch()
            (pathlib.Path(folder) / "jobs").mkdir()
            self.assertEqual(sorted(self.bash("run", "jo", cwd=folder)), ["job.json", "jobs"])
            self.assertEqual(self.bash("run", "--out", "jo", cwd=folder), ["jobs"])
            self.assertEqual(sorted(self.bash("template", "install", "jo", cwd=folder)), ["job.json", "jobs"])
            self.assertEqual(self.bash("template", "show", "jo", cwd=folder), [])
            self.assertEqual(self.bash("workers", "jo", cwd=folder), [])

    def test_bash_offers_job_ids_where_a_cluster_answers(self):
        for words in (["watch"], ["status"], ["explain"], ["forget", "j1-1"], ["logs", "--follow"], ["get"], ["cancel", "--reason", "x"]):
            self.assertIn(self.job, self.bash(*words, ""), words)
        self.assertEqual(self.bash("watch", self.job[:-1]), [self.job])
        self.assertEqual(self.bash("explain", self.job, ""), [])
        self.assertEqual(self.bash("retire", "wor"), ["worker-0-0"])
        self.assertEqual(self.bash("watch", "", url="http://127.0.0.1:1"), [])
        self.assertIn(self.job, self.bash("watch", "--url", self.c.url, "", url="http://127.0.0.1:1"))
        nobody = subprocess.run([PROGRAM, "completion", "words", "--", "watch", ""], env={"MILLRACE_HOME": "/no/such/home"}, capture_output=True)
        self.assertEqual((nobody.returncode, nobody.stdout, nobody.stderr), (0, b"", b""))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
    def test_zsh_takes_its_script(self):
        subprocess.run(["zsh", "-n", str(SCRIPTS / "zsh" / "_millrace")], check=True)
        done = subprocess.run(["zsh", "-f", "-c", 'autoload -Uz compinit && compinit -D && source "$1" && echo ${_comps[millrace]}', "zsh",
                               str(SCRIPTS / "zsh" / "_millrace")], capture_output=True, text=True, env=self.env())
        self.assertEqual(done.stdout.strip(), "_millrace", done.stderr)

    @unittest.skipUnless(shutil.which("fish"), "fish is not here")
    def test_fish_offers_what_bash_offers(self):
        script = str(SCRIPTS / "fish" / "millrace.fish")
        subprocess.run(["fish", "-n", script], check=True)
        for typed, wanted in (("sta", "status"), ("status --st", "--state"), ("watch ", self.job)):
            home = tempfile.mkdtemp(dir=self.c.dir)
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C {json.dumps('millrace ' + typed)}"],
                                  capture_output=True, text=True,
                                  env=dict(self.env(), HOME=home, PATH=f"{bin_dir()}:{os.environ['PATH']}"), timeout=60 * SLOW)
            self.assertIn(wanted, [line.split("\t")[0] for line in done.stdout.splitlines()], done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
