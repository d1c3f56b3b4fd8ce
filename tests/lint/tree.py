"""The tree that is checked: its files, the ranks of its folders, and the lists of known offences."""
import functools
import os
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
OUTSIDE = ("tests/", "bench/", "examples/")  # not part of a program: any folder may be included there


class Tree:
    def __init__(self, root, lint=None, build=None):
        self.root = pathlib.Path(root)
        self.lint = pathlib.Path(lint or self.root / "tests/lint")  # has ranks.txt and known/
        self.build = self.root / build if build else None
        self.ranks = {folder: int(rank) for rank, folder in self.rows("ranks.txt")}

    def rows(self, name):
        """The lines of a data file as lists of words; none if there is no such file."""
        path = self.lint / name
        if not path.exists():
            return []
        lines = path.read_text().splitlines()
        return [line.split() for line in lines if line.strip() and not line.startswith("#")]

    @functools.cached_property
    def names(self):
        """All files that belong to the project, as paths from its root."""
        if (self.root / ".git").exists():
            out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=self.root,
                                 capture_output=True, text=True, check=True).stdout.split("\n")
        else:
            out = [str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()]
        return [f for f in sorted(out) if f and (self.root / f).exists()]

    def files(self, *suffixes):
        return [f for f in self.names if f.endswith(suffixes)]

    def sources(self):
        """C files of the programs and libraries themselves."""
        return [f for f in self.files(".c", ".h") if not f.startswith(OUTSIDE)]

    @functools.cache
    def text(self, name):
        return (self.root / name).read_text(errors="replace")

    @functools.cache
    def code(self, name):
        return strip(self.text(name))

    @functools.cache
    def room(self, name):
        """(folder, rank) of a file: the deepest folder above the file that has a rank, or (None, None)."""
        folder = os.path.dirname(name)
        while folder and folder not in self.ranks:
            folder = os.path.dirname(folder)
        return (folder, self.ranks[folder]) if folder else (None, None)

    def included(self, text):
        """The path, from the root, of an included file of the project, or None."""
        for base in ("", "lib/", "tests/", "tests/unit/"):
            if (self.root / (base + text)).exists():
                return base + text
        return None


def strip(text):
    """The text with comments and literals replaced by spaces; lines stay."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m[0])
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def component(path):
    """The part of the project that a path belongs to, such as lib/host, store/meta, services/worker, ops or cli."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("lib", "store", "services", "clients") else parts[0]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def known(tree, check, offences, shrink=False):
    """The offences {key: message} that are not in known/CHECK.txt.

    A row of that file is a key. A row whose offence is gone is an offence itself, so the lists only shrink. With
    `shrink` such rows are removed instead."""
    path = tree.lint / "known" / f"{check}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    rows = {line for line in lines if line.strip() and not line.startswith("#")}
    gone = rows - set(offences)
    if shrink and gone:
        path.write_text("".join(line + "\n" for line in lines if line not in gone))
        gone = set()
    bad = [message for key, message in sorted(offences.items()) if key not in rows]
    return bad + [f"{path.name}: no longer true, remove the row (lint.py CHECK --shrink): {row}" for row in sorted(gone)]


def counted(tree, check, counts, what, shrink=False):
    """As known(), for {key: (count, first message)}: a row is `count key`."""
    path = tree.lint / "known" / f"{check}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    bad, out, seen = [], [], set()
    for line in lines:
        if not line.strip() or line.startswith("#"):
            out.append(line)
            continue
        allowed, key = line.split(None, 1)
        seen.add(key)
        have, first = counts.get(key, (0, ""))
        if have > int(allowed):
            bad.append(f"{key}: {have} {what}, {allowed} are known; for example {first}")
        elif have < int(allowed) and not shrink:
            bad.append(f"{path.name}: {key} has {have} {what} by now, not {allowed}: lint.py CHECK --shrink")
        if have:
            out.append(f"{min(have, int(allowed))} {key}")
    bad += [f"{key}: {have} {what}; for example {first}" for key, (have, first) in sorted(counts.items())
            if have and key not in seen]
    if shrink and path.exists():
        path.write_text("".join(line + "\n" for line in out))
    return bad
