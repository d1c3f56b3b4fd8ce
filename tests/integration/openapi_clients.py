"""Clients that openapi-typescript and openapi-python-client make of openapi.json compile
and work against a real cluster. openapi_clients.py OPENAPI WORK: programs are installed once, from PyPI
and npm, into WORK; clients are made anew each time. What cannot be installed is skipped, loudly (77)."""
import fcntl
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import Cluster  # noqa: E402

PYTHON = ["openapi-python-client==0.29.1", "openapi-spec-validator==0.9.0", "httpx==0.28.1", "attrs==26.1.0",
          "python-dateutil==2.9.0.post0", "mypy==1.19.0"]
NODE = {"openapi-typescript": "7.13.0", "openapi-fetch": "0.17.0", "typescript": "5.9.3", "@types/node": "22.10.2"}
missing = []


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    return done.returncode, done.stdout + done.stderr


def must(command, **more):
    code, said = run(command, **more)
    if code:
        sys.exit(f"{' '.join(str(c) for c in command)}: exit {code}\n{said[-8000:]}")
    return said


def install_python(folder):
    """The directory of its programs, or None if they cannot be installed."""
    mark = folder / "installed"
    if not mark.exists() or mark.read_text() != "\n".join(PYTHON):
        try:
            venv.create(folder, with_pip=True, clear=True)
        except Exception as e:  # python3-venv is missing
            missing.append(f"the Python client: no virtual environment: {e}")
            return None
        code, said = run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", *PYTHON])
        if code:
            missing.append(f"the Python client: pip cannot install {', '.join(PYTHON)}: {said[-500:]}")
            return None
        mark.write_text("\n".join(PYTHON))
    return folder / "bin"


def install_node(folder):
    """Can the npm packages be installed?"""
    if not shutil.which("npm"):
        missing.append("the TypeScript client: npm is not installed")
        return False
    folder.mkdir(parents=True, exist_ok=True)
    package = json.dumps({"private": True, "type": "module", "dependencies": NODE}, indent=1)
    mark = folder / "installed"
    if mark.exists() and mark.read_text() == package:
        return True
    (folder / "package.json").write_text(package)
    code, said = run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)
    if code:
        missing.append(f"the TypeScript client: npm cannot install {NODE}: {said[-500:]}")
        return False
    mark.write_text(package)
    return True


def python_client(document, work, programs):
    """Generates a client without a warning, checks that the document is valid and that the client
    has types. Returns the command that runs it."""
    must([programs / "openapi-spec-validator", document])
    out = work / "python-client"
    shutil.rmtree(out, ignore_errors=True)
    env = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
    said = must([programs / "openapi-python-client", "generate", "--path", document, "--output-path", out,
                 "--fail-on-warning"], env=env)
    if "warning" in said.lower():
        sys.exit(f"openapi-python-client: {said[-8000:]}")
    must([programs / "python", "-m", "compileall", "-q", out / "millrace_client"])
    must([programs / "mypy", "--cache-dir", work / "mypy", "-p", "millrace_client"], cwd=out)
    return [programs / "python", HERE / "openapi/client.py"], dict(env, PYTHONPATH=str(out), PYTHONDONTWRITEBYTECODE="1")


def node_client(document, folder):
    for name in ("api.d.ts", "client.ts", "client.js"):
        (folder / name).unlink(missing_ok=True)
    bin_dir = folder / "node_modules/.bin"
    must([bin_dir / "openapi-typescript", document, "-o", folder / "api.d.ts"], cwd=folder)
    shutil.copy(HERE / "openapi/client.ts", folder)
    options = ["--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
               "--moduleResolution", "nodenext", "--types", "node", "client.ts", "api.d.ts"]
    must([bin_dir / "tsc", "--noEmit", *options], cwd=folder)
    must([bin_dir / "tsc", *options], cwd=folder)
    return ["node", folder / "client.js"], dict(os.environ)


def array(path):
    """An npy file of [[0, 1, 2], [3, 4, 5]] in f64, as millrace writes it."""
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<6d", *range(6)))
    return path


def main():
    document, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    work.mkdir(parents=True, exist_ok=True)
    with open(work / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        clients = []
        programs = install_python(work / "python")
        if programs:
            clients.append(python_client(document, work, programs))
        if install_node(work / "node"):
            clients.append(node_client(document, work / "node"))
        if clients:
            with Cluster("--workers", "1", "--threads", "1") as c:
                for command, env in clients:
                    print(must([*command, c.url, array(work / "array.npy")], env=env).strip())
    if missing:
        print("SKIPPED: " + "; ".join(missing), file=sys.stderr)
        sys.exit(77)


main()
