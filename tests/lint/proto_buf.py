"""Runs `buf lint` with the rules of buf.yaml: proto_buf.py FOLDER. Installs buf from npm into FOLDER, once. Without
npm or its registry the test is skipped with a message."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "@bufbuild/buf@1.75.0"
INSTALL_SECONDS = 480


def skip(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(77)


def install(folder):
    program = os.path.join(folder, "node_modules", ".bin", "buf")
    if os.path.exists(program):
        return program
    if not shutil.which("npm"):
        skip("npm is not installed, so the protos are not linted by buf")
    os.makedirs(folder, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder, PACKAGE]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        skip(f"npm could not install {PACKAGE} within {INSTALL_SECONDS} s")
    if done.returncode or not os.path.exists(program):
        skip(f"npm could not install {PACKAGE}: {' '.join(done.stdout.split())[-200:]}")
    return program


done = subprocess.run([install(sys.argv[1]), "lint"], cwd=ROOT)
sys.exit(done.returncode)
