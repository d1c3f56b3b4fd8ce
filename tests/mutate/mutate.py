#!/usr/bin/env python3
"""Mutation test of the four cores: how many random one-line changes do the unit tests and the simulator catch?

  scripts/mutate.sh N SEED [--files WORD] [--jobs J] [--keep FILE]
  scripts/mutate.sh --again FILE [--jobs J] [--keep FILE]

It draws N changes of one line (change.py makes them). The same N, SEED and sources give the same
changes. It copies the sources to a temporary folder and builds the cores and their tests there: the
unit tests with ASan and UBSan, the simulator as a release, which is four times as fast. It compiles
each changed file. A change that does not compile, or that compiles to the same object, is replaced
by another draw. The tests of the changed core run until one fails: unit tests first, then the
simulator in the modes of ctest. --files draws from files whose path has WORD. --keep writes the
changes that lived to FILE as JSON, and --again tries those changes instead of drawing new ones.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import change

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The libraries whose sources are changed. A program that links such a library, and no library of a shell, is a test
# of it.
CORES = ("mr_scheduler_core", "mr_worker_core", "mr_objectstore_core", "mr_trainer_core")
NOT_CHANGED = re.compile(r"(^|[/_])check\.c$")  # the checks of invariants are not changed, because they are tests themselves
PROGRAM = re.compile(r"bin/((?:test|scenario)_\w+|sim|sim_trainer)$")
TIMES_LONGER, SECONDS_LEAST = 10, 60  # limit of a test's time: ten times its usual time, at least 60 s, so that a busy machine fails no test
BYTES_MAX = 3 << 30  # limit of a test's resident memory


def copy_sources(to):
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    if (ROOT / ".deps").exists():
        (to / ".deps").symlink_to((ROOT / ".deps").resolve())
    return to


class Build:
    """The copy of the sources, built in one way, and the tests of each core that run in this build."""

    def __init__(self, source, folder, of_sim, flags, jobs):
        self.source, self.folder, self.of_sim = source, folder, of_sim
        self.run("cmake", "-S", self.source, "-B", self.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *flags, "-DMR_TESTS=ON")
        self.find_programs()
        self.run("ninja", "-C", self.folder, f"-j{jobs}", *self.links)
        self.find_sources()
        self.find_tests()

    @staticmethod
    def run(*command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def find_programs(self):
        """Sets `links` (program -> its link command) and `linked` (program -> the cores that it contains)."""
        self.links, self.linked = {}, {}
        for line in (self.folder / "build.ninja").read_text().split("\n"):
            m = re.match(r"build (bin/\w+): C_EXECUTABLE_LINKER", line)
            cores = [core for core in CORES if f"/lib{core}.a" in line]
            is_sim = m and os.path.basename(m.group(1)).startswith(("sim", "scenario_"))
            if m and cores and PROGRAM.match(m.group(1)) and "_shell.a" not in line and is_sim == self.of_sim:
                self.linked[m.group(1)] = cores
                self.links[m.group(1)] = self.run("ninja", "-C", self.folder, "-t", "commands", "-s", m.group(1))

    def find_sources(self):
        """Sets `sources`: path in the project -> (its core, the command that compiles it)."""
        self.sources = {}
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            path = os.path.relpath(entry["file"], self.source)
            for core in CORES:
                if f"/{core}.dir/" in entry["command"] and not NOT_CHANGED.search(path):
                    self.sources[path] = core, shlex.split(entry["command"])
        missing = set(CORES) - {core for core, _ in self.sources.values()}
        if missing:
            sys.exit(f"no sources of {', '.join(sorted(missing))} in compile_commands.json")

    def find_tests(self):
        """Sets `tests`: core -> [Test, ...]. These are all tests of ctest but those that plant bugs in the simulator."""
        listed = json.loads(self.run("ctest", "--test-dir", self.folder, "--show-only=json-v1"))
        self.tests = {core: [] for core in CORES}
        for entry in listed["tests"]:
            program = os.path.relpath(entry.get("command", ["/"])[0], self.folder)
            if program in self.links and not entry["name"].startswith("sim_catches_"):
                test = Test(self, entry["name"], program, entry["command"][1:])
                for core in self.linked[program]:
                    self.tests[core].append(test)


class Test:
    def __init__(self, build, name, program, arguments):
        self.build, self.name, self.program, self.arguments = build, name, program, arguments
        self.seconds, self.caught = 0.0, 0

    def run(self, program, seconds_max):
        """Returns None if the test passes, else how it failed."""
        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        p = subprocess.Popen([program, *self.arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=limits, start_new_session=True,
                             cwd=pathlib.Path(program).parent)
        end, wait, why = time.monotonic() + seconds_max, 0.01, None
        while p.poll() is None:
            if time.monotonic() > end:
                why = f"no end in {seconds_max:.0f} s"
            elif resident(p.pid) > BYTES_MAX:
                why = f"more than {BYTES_MAX >> 30} GiB"
            if why:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                return why
            time.sleep(wait)
            wait = min(0.2, wait * 1.5)
        if p.returncode < 0:
            return signal.Signals(-p.returncode).name
        return f"exit {p.returncode}" if p.returncode else None


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


class Mutant:
    def __init__(self, path, line, operator, old, new):
        self.path, self.line, self.operator, self.old, self.new = path, line, operator, old, new
        self.number, self.objects, self.verdict = 0, [], None # verdict: the name of the test that caught the change

    def __str__(self):
        return f"{self.path}:{self.line} [{self.operator}]\n    - {self.old.strip()}\n    + {self.new.strip()}"

    def compile(self, builds, folder, unchanged):
        """Compiles the changed file in each build. Returns False if it does not compile, or if the object of the last
        build, the release, is the same as without the change; else True. `unchanged` keeps the objects of unchanged
        files, by path."""
        original = builds[-1].source / self.path
        lines = original.read_text().split("\n")
        if lines[self.line - 1] != self.old:
            sys.exit(f"{self.path}:{self.line} is not the line that was changed")

        def object_of(build, text): # the name is always the same, because the object contains it
            changed, out = folder / original.name, folder / "changed.o"
            changed.write_text(text)
            command = build.sources[self.path][1]
            arguments = [str(changed) if x == str(original) else x for x in command if "ccache" not in x]
            arguments[arguments.index("-o") + 1] = str(out)
            done = subprocess.run(arguments, cwd=build.folder, capture_output=True)
            return out.read_bytes() if not done.returncode else None
        if self.path not in unchanged:
            unchanged[self.path] = object_of(builds[-1], "\n".join(lines))
        lines[self.line - 1] = self.new
        new = object_of(builds[-1], "\n".join(lines))
        if new is None or new == unchanged[self.path]:
            return False
        self.objects = [*(object_of(build, "\n".join(lines)) for build in builds[:-1]), new]
        return None not in self.objects

    def test(self, builds, folder, order):
        core, linked = builds[-1].sources[self.path][0], {}
        home = folder / f"run_{self.number}"
        home.mkdir()
        with order:
            tests = sorted((t for build in builds for t in build.tests[core]),
                           key=lambda t: (t.name.startswith("sim"), -t.caught, t.seconds, t.name))
        for build, content in zip(builds, self.objects):
            (home / f"{build.folder.name}.o").write_bytes(content)
        self.objects = []
        for test in tests:
            if test.program not in linked:
                linked[test.program] = link(test.build, test.program, home)
            why = test.run(linked[test.program], max(SECONDS_LEAST, TIMES_LONGER * test.seconds))
            if why:
                with order:
                    test.caught += 1
                self.verdict = f"{test.name} ({why})"
                break
        shutil.rmtree(home)
        return self


def link(build, program, home):
    """Links the program with the changed object before the archives, so that the archive's own object is not used.
    Returns the path of the program."""
    out = home / pathlib.Path(program).name
    command = build.links[program].replace(f" -o {program} ", f" {home}/{build.folder.name}.o -o {out} ")
    build.run("sh", "-c", f"cd {build.folder} && {command}")
    return str(out)


def draw(build, seed, word):
    """Yields all changes in a random order that the seed determines: first a line of a file, then an operator, then
    the new line."""
    dice, found = random.Random(seed), []
    for path in sorted(build.sources):
        if word not in path:
            continue
        text = (build.source / path).read_text()
        lines = text.split("\n")
        for number, operators in sorted(change.changes(text).items()):
            found.append((path, number, lines[number - 1], operators))
    while found: # a line may be drawn again, with another change
        at = dice.randrange(len(found))
        path, number, old, operators = found[at]
        name = dice.choice(sorted(operators))
        new = operators[name].pop(dice.randrange(len(operators[name])))
        yield Mutant(path, number, name, old, new)
        if not operators[name]:
            del operators[name]
        if not operators:
            found.pop(at)


def measure(builds):
    for test in {id(t): t for build in builds for tests in build.tests.values() for t in tests}.values():
        begin = time.monotonic()
        why = test.run(str(test.build.folder / test.program), 600)
        test.seconds = time.monotonic() - begin
        if why:
            sys.exit(f"{test.name} fails without any change: {why}")


def try_all(builds, folder, mutants, count, jobs):
    order, unchanged, refused, running = threading.Lock(), {}, 0, []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def end(*_):
            pool.shutdown(wait=False, cancel_futures=True)
            sys.exit("ended by a signal") # running tests end first, and the folder is removed
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)

        def say(future):
            if future.cancelled():
                return
            m = future.result()
            print(f"{m.number} {m}\n    {'CAUGHT by ' + m.verdict if m.verdict else 'LIVED'}", flush=True)
        for m in mutants:
            if len(running) == count:
                break
            if not m.compile(builds, folder, unchanged):
                refused += 1
                continue
            m.number = len(running) + 1
            running.append(pool.submit(m.test, builds, folder, order))
            running[-1].add_done_callback(say)
        tried = [future.result() for future in running]
    return tried, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     prog="scripts/mutate.sh")
    parser.add_argument("count", nargs="?", type=int, metavar="N")
    parser.add_argument("seed", nargs="?", type=int, metavar="SEED")
    parser.add_argument("--files", default="", metavar="WORD")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", metavar="FILE")
    parser.add_argument("--again", metavar="FILE")
    a = parser.parse_args()
    if a.again is None and a.seed is None:
        parser.error("N and SEED, or --again FILE")
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory(prefix="millrace-mutate-") as name:
        folder = pathlib.Path(name)
        source = copy_sources(folder / "src")
        os.environ.update(CCACHE_BASEDIR=str(folder), CCACHE_NOHASHDIR="1")
        builds = [Build(source, folder / "checked", False, ["-DCMAKE_C_FLAGS_RELEASE=-O1", "-DMR_SANITIZE=address,undefined"], a.jobs),
                  Build(source, folder / "release", True, ["-DCMAKE_C_FLAGS_RELEASE=-O2", "-DMR_SANITIZE=leak"], a.jobs)]
        measure(builds)
        if a.again:
            mutants = [Mutant(*row) for row in json.loads(pathlib.Path(a.again).read_text())]
        else:
            mutants = draw(builds[-1], a.seed, a.files)
        tried, refused = try_all(builds, folder, mutants, a.count or sys.maxsize, a.jobs)
    lived = [m for m in tried if not m.verdict]
    print("\nlived:" if lived else "", *lived, sep="\n")
    for core in CORES:
        of = [m for m in tried if builds[-1].sources[m.path][0] == core]
        if of:
            print(f"{core}: {sum(bool(m.verdict) for m in of)} of {len(of)} caught")
    caught = len(tried) - len(lived)
    print(f"{caught} of {len(tried)} caught: {100 * caught / max(1, len(tried)):.1f} % "
          f"({refused} more did not compile or made the same object)")
    if a.keep:
        rows = [(m.path, m.line, m.operator, m.old, m.new) for m in lived]
        pathlib.Path(a.keep).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
