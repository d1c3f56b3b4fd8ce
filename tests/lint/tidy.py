"""Runs clang-tidy on the sources that a build compiled. `tidy` takes seconds and leaves out the static analyzer;
`analyze` runs the analyzer only, for many minutes."""
import json
import os
import re
import shutil
import subprocess
import sys

from tools import side_by_side

PROGRAM = "clang-tidy-14"
SKIPPED = 77


def compiled(tree):
    """Our sources that are in the build's list of commands."""
    wanted = set(tree.sources())
    commands = json.loads((tree.build / "compile_commands.json").read_text())
    root = os.path.realpath(tree.root)
    names = {os.path.relpath(os.path.realpath(os.path.join(c["directory"], c["file"])), root) for c in commands}
    return sorted(names & wanted)


def findings(tree, checks):
    if not shutil.which(PROGRAM):
        print(f"SKIPPED: {PROGRAM} is not installed; scripts/install-deps.sh installs it")
        sys.exit(SKIPPED)

    def look(names):
        run = subprocess.run([PROGRAM, "-p", str(tree.build), "--quiet", *checks, *names], cwd=tree.root, capture_output=True, text=True)
        found = re.findall(r"^(\S+?:\d+):\d+: (?:error|warning): (.*)$", run.stdout, re.M)
        return found or ([(names[0], run.stderr.strip()[-200:])] if run.returncode else [])

    names = compiled(tree)
    root = os.path.realpath(tree.root) + "/"
    groups = [names[i:i + 8] for i in range(0, len(names), 8)]
    bad = {f"{at.replace(root, '')}: {what}" for found in side_by_side(look, groups) for at, what in found}
    return sorted(bad) or ([] if names else ["no source was compiled"])


def check_tidy(tree, shrink=False):
    return findings(tree, ["--checks=-clang-analyzer-*"])


def check_analyze(tree, shrink=False):
    return findings(tree, ["--checks=-*,clang-analyzer-core.*,clang-analyzer-deadcode.*,clang-analyzer-unix.*"])
