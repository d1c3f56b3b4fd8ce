"""The floor plan (ranks.txt): layers, calls, cycles, symbols, folders, modules.

Includes are read from the sources. Calls and symbols are read with nm from the objects of a build."""
import collections
import json
import os
import pathlib
import re
import subprocess

from source import exported
from tree import OUTSIDE, component, counted, known

ONLY = {  # header pattern: the folder that may include it
    r"grpc/|grpc\.h": "lib/rpc",
    r"hiredis": "store/meta",
    r"microhttpd": "gateway",
    r"openssl/|gnutls/": "lib/host",
    r"oneapi/|dnnl": "lib/nn",
}
SEES = {"clients/": ("lib/", "store/arena/")}  # folders that clients in other languages may use
FILES_MAX = 24   # most .c and .h files in a folder
CIRCLE_MAX = 10  # most files in a circle of calls
# Symbols that C libraries look up in a program: functions that replace theirs (lib/host: intercept.h), and jemalloc's
# settings.
FOREIGN = {"main", "recv", "gnutls_record_recv", "malloc_conf"}


def programs_apart(mine, theirs):
    """True: the files belong to two programs, which may not use each other."""
    a, b = component(mine), component(theirs)
    return a != b and a.startswith(("services/", "gateway")) and b.startswith(("services/", "gateway"))


def refused(tree, mine, theirs):
    """Why a file may not use another, or None."""
    (own, rank), (other, below) = tree.room(mine), tree.room(theirs)
    if own is None or other is None or own == other:
        return None
    if programs_apart(mine, theirs):
        return f"{component(own)} does not see {component(other)}"
    for folder, seen in SEES.items():
        if mine.startswith(folder) and not theirs.startswith(seen):
            return f"{folder} sees {' and '.join(seen)} only"
    return None if below < rank else f"{own} has rank {rank}, {other} has {below}"


def check_layers(tree, shrink=False):
    folders = {str(p) for name in tree.names for p in pathlib.PurePath(name).parents}
    bad = [f"ranks.txt: there is no folder {folder}: remove the row" for folder in tree.ranks if folder not in folders]
    offences = {}
    for name in tree.files(".c", ".h"):
        own, _ = tree.room(name)
        if own is None:
            bad.append(f"{name}: its folder has no rank in ranks.txt")
            continue
        outside = name.startswith(OUTSIDE)
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not m:
                continue
            for pattern, folder in ONLY.items():
                if re.match(pattern, m[1]) and not outside and not (own + "/").startswith(folder + "/"):
                    bad.append(f"{name}:{number}: only {folder}/ includes <{m[1]}>")
            target = tree.included(m[1])
            if not target or outside:
                continue
            to = target
            why = refused(tree, name, target)
            if why:
                offences[f"{name} {to}"] = f"{name}:{number}: may not include {m[1]}: {why}"
            if os.path.basename(to) == "internal.h" and os.path.dirname(to) != os.path.dirname(name):
                offences[f"{name} {to}"] = f"{name}:{number}: {to} is for its own folder only"
    return bad + known(tree, "layers", offences, shrink)


class Objects:
    """Symbols that the objects of a build define and need, by source file."""

    def __init__(self, tree):
        self.objects, self.defines, self.needs = {}, collections.defaultdict(dict), collections.defaultdict(set)
        self.wanted = set()  # our sources that the build compiles
        self.others = set()  # the other objects: tests, benchmarks, examples, generated code
        sources = set(tree.sources())
        commands = json.loads((tree.build / "compile_commands.json").read_text())
        for c in commands:
            source = os.path.relpath(os.path.realpath(os.path.join(c["directory"], c["file"])), os.path.realpath(tree.root))
            m = re.search(r" -o (\S+)", c["command"])
            if m and not source.startswith(("..", "build/")):
                self.wanted.add(source)
                path = os.path.join(c["directory"], m[1])
                if source in sources and source not in self.objects and os.path.exists(path):
                    self.objects[source] = path
            elif m:
                path = os.path.join(c["directory"], m[1])
            if m and source not in sources and os.path.exists(path):
                self.others.add(path)
        by_path = {path: source for source, path in self.objects.items()}
        paths = sorted(by_path)
        for i in range(0, len(paths), 100):
            out = subprocess.run(["nm", "-A", "--format=posix", *paths[i:i + 100]], capture_output=True, text=True, check=True).stdout
            for line in out.splitlines():
                path, _, rest = line.partition(": ")
                words = rest.split()
                if len(words) < 2 or re.match(r"__asan|__odr|__ubsan|__tsan|__sanitizer|asan\.|_GLOBAL", words[0]):
                    continue
                source = by_path[path]
                if words[1] == "U":
                    self.needs[source].add(words[0])
                elif words[1] in "TDBRVWC":
                    self.defines[source][words[0]] = words[1]

    def needed(self):
        """Symbols that an object of the build needs from another object."""
        out = set().union(*self.needs.values())
        paths = sorted(self.others)
        for i in range(0, len(paths), 100):
            found = subprocess.run(["nm", "-u", "--format=posix", *paths[i:i + 100]], capture_output=True, text=True, check=True).stdout
            out.update(line.split()[0] for line in found.splitlines() if line.strip() and not line.endswith(":"))
        return out

    def archive(self, source):
        return re.search(r"CMakeFiles/([^/]+)\.dir/", self.objects[source])[1]

    def edges(self):
        """{source: {source that it calls: symbols}}. If two programs define a name, the caller's own program
        counts."""
        homes = collections.defaultdict(list)
        for source, symbols in sorted(self.defines.items()):
            for s in symbols:
                homes[s].append(source)
        out = collections.defaultdict(lambda: collections.defaultdict(set))
        for source, symbols in self.needs.items():
            for s in symbols - FOREIGN:
                near = [h for h in homes[s] if component(h) == component(source)] or homes[s]
                if near and source not in near:
                    out[source][near[0]].add(s)
        return out


def check_calls(tree, shrink=False):
    objects, bad, offences = Objects(tree), [], {}
    for name in tree.files(".c"):
        if name not in objects.wanted and not name.startswith(("examples/", "clients/")):
            bad.append(f"{name}: no CMake list names it")
    missing = [s for s in tree.sources() if s.endswith(".c") and s in objects.wanted and s not in objects.objects]
    if missing:
        bad.append(f"{len(missing)} sources are not built, for example {missing[0]}: build first")
    for source, targets in objects.edges().items():
        for target, symbols in targets.items():
            why = refused(tree, source, target)
            if why:
                for s in sorted(symbols):
                    offences[f"{source} {target} {s}"] = f"{source}: may not call {s} of {target}: {why}"
    return bad + known(tree, "calls", offences, shrink)


def circles(nodes, edges):
    """Strongly connected components of more than one file (Tarjan, without recursion)."""
    index, low, stack, on, out = {}, {}, [], set(), []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(sorted(edges.get(start, ()))))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            v, rest = work[-1]
            w = next((x for x in rest), None)
            if w is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                if low[v] == index[v]:
                    part = []
                    while not part or part[-1] != v:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        out.append(sorted(part))
            elif w not in index:
                index[w] = low[w] = len(index)
                stack.append(w)
                on.add(w)
                work.append((w, iter(sorted(edges.get(w, ())))))
            elif w in on:
                low[v] = min(low[v], index[w])
    return out


def check_cycles(tree, shrink=False):
    offences = {}
    edges = Objects(tree).edges()
    for part in circles(sorted(edges), edges):
        rooms = sorted({tree.room(f)[0] or "" for f in part})
        names = " ".join(part)
        for f in part:
            if len(rooms) > 1:
                offences[f"crosses {f}"] = f"{f}: in a circle of calls over {len(rooms)} folders: {names}"
        by_room = collections.defaultdict(set)
        for f in part:
            by_room[tree.room(f)[0]].add(f)
        for room, files in by_room.items():  # circles that are left inside a folder
            inside = {f: set(edges[f]) & files for f in files}
            for own in circles(sorted(files), inside):
                if len(own) > CIRCLE_MAX:
                    for f in own:
                        offences[f"large {f}"] = f"{f}: in a circle of {len(own)} files inside {room}, at most {CIRCLE_MAX}"
    return known(tree, "cycles", offences, shrink)


def check_symbols(tree, shrink=False):
    objects, counts, owners = Objects(tree), {}, collections.defaultdict(set)
    prefixes = {folder: words for folder, *words in tree.rows("prefixes.txt")}
    for source, symbols in sorted(objects.defines.items()):
        folder = os.path.dirname(source)
        while folder and folder not in prefixes:
            folder = os.path.dirname(folder)
        allowed = tuple(prefixes.get(folder, ["mr_"]))
        for s, kind in sorted(symbols.items()):
            if s not in FOREIGN and not s.startswith(allowed):
                key = component(source)
                have, first = counts.get(key, (0, f"{source}: {s}, should begin with {' or '.join(allowed)}"))
                counts[key] = (have + 1, first)
            if kind not in "VW" and s not in FOREIGN:
                owners[s].add(objects.archive(source))
    bad = counted(tree, "symbols", counts, "symbols without the prefix", shrink)
    twice = {s: f"{s}: defined in {' and '.join(sorted(where))}" for s, where in owners.items() if len(where) > 1}
    needed = objects.needed()
    alone = {s: f"{source}: {s} could be static, because no other file uses it" for source, symbols in objects.defines.items()
             for s, kind in symbols.items() if kind not in "VW" and s not in FOREIGN and s not in needed}
    return bad + known(tree, "symbols_twice", twice, shrink) + known(tree, "symbols_alone", alone, shrink)


def check_folders(tree, shrink=False):
    counts = collections.Counter(os.path.dirname(f) for f in tree.files(".c", ".h"))
    large = {folder: (n, f"at most {FILES_MAX}") for folder, n in counts.items() if n > FILES_MAX}
    return counted(tree, "folders", large, "C files", shrink)


def words_of(tree, name):
    return set(re.findall(r"\w+", tree.code(name)))


def check_modules(tree, shrink=False):
    """A .c file has a header of its name; or its folder has an internal.h; or the header of the folder's name
    declares what other files use of the .c file."""
    places, offences, rest = set(tree.sources()), {}, {}
    for name in tree.sources():
        folder = os.path.dirname(name)
        if not name.endswith(".c") or os.path.basename(name) == "main.c":
            continue
        if name[:-1] + "h" in places or folder + "/internal.h" in places:
            continue
        header = f"{folder}/{os.path.basename(folder)}.h"
        if header in places:
            rest[name] = (header, exported(tree.code(name)) - words_of(tree, header))
        else:
            offences[name] = f"{name}: has no header of its name, and its folder neither internal.h nor {header}"
    users = collections.defaultdict(set)
    for name in tree.files(".c"):
        for word in words_of(tree, name):
            users[word].add(name)
    for name, (header, missing) in rest.items():
        used = sorted(s for s in missing if users[s] - {name})
        if used:
            offences[name] = f"{name}: has no header of its name, and {header} does not declare {', '.join(used)}"
    return known(tree, "modules", offences, shrink)
