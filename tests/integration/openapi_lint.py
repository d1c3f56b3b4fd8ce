"""Checks openapi.json with Redocly's linter from npm, installed once into the build directory."""

import json
import os
import shutil
import subprocess
import sys

PACKAGE = "@redocly/cli@1.34.5"
# The rules that are switched off, with reasons.
RULES = {
    "no-server-example.com": "off",  # the document is served by the server that it describes
    "operation-4xx-response": "error",
    # /v1/jobs/{id}:cancel beside /v1/jobs/{id} is gRPC's convention for verbs
    "no-ambiguous-paths": "off",
    "no-unused-components": "off",  # messages of event streams are only described in texts
}


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(77)


def install(folder):
    program = os.path.join(folder, "node_modules", ".bin", "redocly")
    if os.path.exists(program):
        return program
    if not shutil.which("npm"):
        skip("npm is not installed, so openapi.json is not linted")
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run(
        ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", PACKAGE],
        capture_output=True,
        text=True,
    )
    if done.returncode or not os.path.exists(program):
        skip(f"npm cannot install {PACKAGE}: {done.stderr[-500:]}")
    return program


def main():
    document, folder = sys.argv[1:3]
    program = install(folder)
    config = os.path.join(folder, "redocly.yaml")
    with open(config, "w") as f:
        json.dump({"extends": ["recommended-strict"], "rules": RULES}, f)  # JSON is also YAML
    done = subprocess.run(
        [program, "lint", document, "--config", config, "--format", "stylish"],
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "CI": "1"},
    )
    sys.exit(1 if done.returncode else 0)


main()
