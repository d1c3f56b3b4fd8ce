"""Checks that other programs make: headers (cc), format (clang-format), purity (nm)."""
import concurrent.futures
import os
import re
import subprocess

PURE = ["mr_scheduler_core", "mr_worker_core", "mr_objectstore_core", "mr_trainer_core", "mr_graph", "mr_session"]
IMPURE = re.compile(
    r"^(open|openat|read|write|pread|pwrite|socket|connect|accept|bind|listen|send|recv|sendmsg|recvmsg|poll|epoll_\w+|select|"
    r"clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|pthread_\w+|getenv|secure_getenv|random|rand|getrandom|fopen|fread|fwrite|"
    r"printf|puts|fork|execve|kill|syscall|grpc_\w+|redis\w+|MHD_\w+|mr_clock_\w+|mr_log\w*|mr_rpc_\w+|mr_inbox_\w+|mr_thread_\w+)$")


def side_by_side(work, items):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(work, items))


def check_headers(tree, shrink=False):
    """Every header compiles when included alone."""
    flags = sorted(set(re.findall(r"-(?:I|isystem )\S+", (tree.build / "compile_commands.json").read_text())))
    command = ["cc", "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Werror", "-x", "c", "-", *" ".join(flags).split()]

    def compile_alone(name):
        run = subprocess.run(command, input=f'#include "{tree.root / name}"\n', capture_output=True, text=True, cwd=tree.root)
        return f"{name}: does not compile alone: {(run.stderr.splitlines() or [''])[0]}" if run.returncode else None

    return [b for b in side_by_side(compile_alone, [f for f in tree.sources() if f.endswith(".h")]) if b]


def check_format(tree, shrink=False):
    def compare(names):
        run = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *names], cwd=tree.root, capture_output=True, text=True)
        return re.findall(r"^(\S+?:\d+):\d+: error: code should be clang-formatted", run.stderr, re.M)

    names = tree.files(".c", ".h")
    return sorted({b for found in side_by_side(compare, [names[i:i + 50] for i in range(0, len(names), 50)]) for b in found})


def check_purity(tree, shrink=False):
    """No core archive refers to a symbol of the outside world."""
    bad, seen = [], 0
    for core in PURE:
        for archive in tree.build.rglob(f"lib{core}.a"):
            seen += 1
            out = subprocess.run(["nm", "-u", "--format=posix", str(archive)], capture_output=True, text=True, check=True).stdout
            for line in out.splitlines():
                symbol = line.split()[0] if line and not line.endswith(":") else ""
                if IMPURE.match(symbol):
                    bad.append(f"{core}: refers to {symbol}")
    if not seen:
        bad.append("no core archive was built")
    return sorted(set(bad))
