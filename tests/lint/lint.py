#!/usr/bin/env python3
"""What docs and STYLE promise about the sources, checked: `lint.py layers|sizes|banned|headers|format|purity|words`.

Each check prints what it looked at, names every offence with file and line, and fails if it found
any, or if there was nothing to look at."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A layer may include itself and what stands before it. Folders side by side share a rank.
LAYERS = [
    ("lib/base", 0), ("lib/host", 1), ("proto", 1), ("lib/rpc", 2), ("store/object", 2),
    ("store/arena", 2), ("store/meta", 2), ("lib/graph", 3), ("lib/nn", 3), ("ops", 4),
    ("train", 5), ("services", 5), ("gateway", 5), ("cli", 5), ("bench", 6), ("tests", 6), ("examples", 6),
]
ONLY = {  # header pattern: the folder that may include it
    r"grpc/|grpc\.h": "lib/rpc",
    r"hiredis": "store/meta",
    r"microhttpd": "gateway",
    r"openssl/|gnutls/": "lib/host",
    r"oneapi/|dnnl": "lib/nn",
}
BANNED = (r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|rand|srand|time|localtime|gmtime|gets|setjmp|longjmp|signal|system|alloca|malloc|calloc|realloc|"
          r"redis\w*Command\w*)\s*\(")  # hiredis writes without MSG_NOSIGNAL: a Redis that has gone would end the process
MAY_BANNED = {  # file: words it may use, and why
    "lib/base/alloc.c": {"calloc", "realloc"},  # the one door to the heap
}
PURE = ["mr_scheduler_core", "mr_worker_core", "mr_objectstore_core", "mr_trainer_core", "mr_graph"]
IMPURE = re.compile(
    r"^(open|openat|read|write|pread|pwrite|socket|connect|accept|bind|listen|send|recv|sendmsg|recvmsg|poll|epoll_\w+|select|"
    r"clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|pthread_\w+|getenv|secure_getenv|random|rand|getrandom|fopen|fread|fwrite|"
    r"printf|puts|fork|execve|kill|syscall|grpc_\w+|redis\w+|MHD_\w+|mr_clock_\w+|mr_log\w*|mr_rpc_\w+|mr_inbox_\w+|mr_thread_\w+)$")


def files(*suffixes):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / f for f in sorted(out.stdout.split("\n")) if f.endswith(suffixes) and (ROOT / f).exists()]


def rel(path):
    return str(path.relative_to(ROOT))


def layer_of(name):
    best = None
    for folder, rank in LAYERS:
        if name.startswith(folder + "/") and (best is None or len(folder) > len(best[0])):
            best = (folder, rank)
    return best


def included_name(text):
    """Path from the root of a project include, or None."""
    for base in ("", "lib/"):
        if (ROOT / (base + text)).exists():
            return base + text
    return "proto/" + text if text.startswith("millrace/") else None


def check_layers():
    bad = []
    for path in files(".c", ".h"):
        name = rel(path)
        own = layer_of(name)
        if own is None:
            bad.append(f"{name}: stands in no known layer")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not m:
                continue
            for pattern, folder in ONLY.items():
                if re.match(pattern, m[1]) and own[0] != folder and own[0] not in ("bench", "tests"):
                    bad.append(f"{name}:{number}: only {folder}/ includes <{m[1]}>")
            target = included_name(m[1])
            other = layer_of(target) if target else None
            if other and other[1] > own[1]:
                bad.append(f"{name}:{number}: {own[0]} may not include {target} (a layer to its right)")
            if own[0] == "services" and target and target.startswith("services/"):
                mine, theirs = name.split("/")[1], target.split("/")[1]
                if mine != theirs and theirs not in SHARED_SERVICES:
                    bad.append(f"{name}:{number}: service {mine} includes {target} of service {theirs}")
    return bad


SHARED_SERVICES = {"session"}  # what two services speak with each other


def functions(lines):
    """(first line, length) of every function, by the layout clang-format gives: `{` and `}` in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            if line == "}":
                yield start, number - start - 1
            start = None


def check_sizes():
    bad = []
    for path in files(".c", ".h"):
        name, lines = rel(path), path.read_text().splitlines()
        private = re.search(r"for (its|the) (core's )?own files only|of each other|private to|Only core\*\.c include", " ".join(lines[:6]), re.I)
        limit = 800 if not name.endswith(".h") or name.startswith("tests/") else 250 if private else 150
        if len(lines) > limit:
            bad.append(f"{name}: {len(lines)} lines, at most {limit}")
        if name.startswith(("tests/", "bench/")):
            continue
        for start, length in functions(lines):
            if length > 70:
                bad.append(f"{name}:{start}: a function of {length} lines, at most 70")
    return bad


def strip(text):
    """Without comments and literals, lines kept."""
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_banned():
    bad = []
    for path in files(".c", ".h"):
        name = rel(path)
        text = strip(path.read_text())
        for number, line in enumerate(text.splitlines(), 1):
            for m in re.finditer(BANNED, line):
                if m[1] not in MAY_BANNED.get(name, ()):
                    bad.append(f"{name}:{number}: {m[1]}() is banned")
            if re.search(r"\bgoto\b", line):
                bad.append(f"{name}:{number}: goto")
            if name.endswith(".h") and number == len(text.splitlines()) and "#pragma once" not in text:
                bad.append(f"{name}: no #pragma once")
    return bad


def check_headers(build):
    """Every header compiles when included alone."""
    bad = []
    commands = (ROOT / build / "compile_commands.json").read_text()
    flags = sorted(set(re.findall(r"-(?:I|isystem )\S+", commands)))
    for path in files(".h"):
        if rel(path).startswith(("bench/", "tests/")):
            continue
        run = subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-x", "c", "-", *" ".join(flags).split()],
                             input=f'#include "{path}"\n', capture_output=True, text=True, cwd=ROOT)
        if run.returncode:
            bad.append(f"{rel(path)}: does not compile alone: {run.stderr.splitlines()[0] if run.stderr else ''}")
    return bad


def check_format():
    names = [rel(p) for p in files(".c", ".h")]
    run = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *names], cwd=ROOT, capture_output=True, text=True)
    return sorted(set(re.findall(r"^(\S+?:\d+):\d+: error: code should be clang-formatted", run.stderr, re.M)))


def check_purity(build):
    """No core archive refers to a symbol of the outside world."""
    bad, seen = [], 0
    for core in PURE:
        for archive in (ROOT / build).rglob(f"lib{core}.a"):
            seen += 1
            out = subprocess.run(["nm", "-u", "--format=posix", str(archive)], capture_output=True, text=True, check=True).stdout
            for line in out.splitlines():
                symbol = line.split()[0] if line and not line.endswith(":") else ""
                if IMPURE.match(symbol):
                    bad.append(f"{core}: refers to {symbol}")
    if not seen:
        bad.append("no core archive was built")
    return sorted(set(bad))


def check_words():
    """Comments that promise instead of doing need an issue; machine paths have no place here."""
    bad = []
    for path in files(".c", ".h", ".py", ".sh", ".md", ".proto", ".txt", ".json", ".yml"):
        name = rel(path)
        if name == "tests/lint/lint.py":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not re.search(r"#\d+", line):
                bad.append(f"{name}:{number}: {line.strip()[:60]}")
    return bad


CHECKS = {"layers": check_layers, "sizes": check_sizes, "banned": check_banned, "headers": check_headers,
          "format": check_format, "purity": check_purity, "words": check_words}


def main():
    what = sys.argv[1]
    bad = CHECKS[what](*sys.argv[2:])
    for line in bad:
        print(line)
    count = len(files(".c", ".h"))
    print(f"{what}: {count} files, {len(bad)} offences")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
