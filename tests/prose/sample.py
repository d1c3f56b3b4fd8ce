#!/usr/bin/env python3
"""Draws sentences of the documents and comments of the sources, for a test of the prose with strangers.

    sample.py COUNT SEED [sentences|comments]

Prints COUNT sentences of README.md, CONTRIBUTING.md and docs/, and COUNT comments of the C, header, proto
and Lua files, as Markdown. Each stands with its file, line and context, as a reader of the file has it: the
title of the page, the heading, the paragraph before and the paragraph of a sentence; the comment at the head
of the file, the function or the type, and the lines before and after a comment. The same COUNT, SEED and
sources give the same draw. How the test goes on is written in docs/testing.md."""
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS_LEAST = 4  # a shorter text is a label
LINES_BEFORE, LINES_AFTER = 5, 8 # lines of code shown before and after a comment
HEAD_MAX = 500   # characters shown of the comment at the head of a file
NOT_DRAWN = "prose-read-by-strangers.md" # quotes sentences that were not understood
LITERAL = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
PATTERNS = { # strings are matched, too, so that comment marks inside them do not count
    ".c": LITERAL + r"|/\*.*?\*/|(?://[^\n]*\n[ \t]*)*//[^\n]*".replace(".*?", r"[\s\S]*?"),
    ".proto": LITERAL + r"|(?://[^\n]*\n[ \t]*)*//[^\n]*",
    ".lua": LITERAL + r"|(?:--[^\n]*\n[ \t]*)*--[^\n]*"}


def files(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True, text=True)
    return sorted(filter(None, out.stdout.split("\0")))


def paragraphs(text):
    """(line, context, paragraph) of Markdown, without code blocks; a list item or a table cell is a paragraph."""
    title, heading, head, block, begin, in_code, last = "", "", "", [], 0, False, ""
    for number, line in enumerate(text.split("\n") + [""], 1):
        bare = line.strip()
        starts = re.match(r"([-*]|\d+\.) ", bare)
        if block and (not bare or starts or bare[0] in "#|" or bare.startswith("```")):
            paragraph = " ".join(block)
            yield begin, f"“{title}”, section “{heading}”\n   {last}\n   {paragraph}", paragraph
            last = paragraph if last[-1:] != ":" or not was_item else last
            block = []
        if not bare.startswith("|"):
            head = ""
        if bare.startswith("```"):
            in_code = not in_code
        elif in_code or not bare or re.fullmatch(r"[|:\s-]+|<!--.*-->", bare):
            pass
        elif bare.startswith("#"):
            heading, last = bare.lstrip("# "), ""
            title = title or heading
        elif bare.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                yield number, f"“{title}”, section “{heading}”\n   {last}\n   {head}\n   {bare}", cell.strip()
            head = head or bare
        else:
            if not block:
                begin, was_item = number, bool(starts)
            block.append(bare[starts.end():] if starts else bare)


def sentences():
    for name in files("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/**/*.md"):
        if name.endswith(NOT_DRAWN):
            continue
        for line, context, paragraph in paragraphs((ROOT / name).read_text()):
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\"(])", paragraph):
                if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"`[^`]*`|\]\([^)]*\)", "", sentence))) >= WORDS_LEAST:
                    yield f"{name}:{line}", context, sentence


def code_around(lines, first, last, head):
    """The lines around a comment of the lines `first` to `last` (from 0), below the head of the file and the line
    that opens the function or type."""
    begin, end = max(0, first - LINES_BEFORE), last + 1 + LINES_AFTER
    opening = next((i for i in range(begin - 1, -1, -1) if re.match(r"[a-zA-Z_]", lines[i])), None)
    around = "\n".join(lines[begin:end]).rstrip()
    is_inside = opening is not None and not any(line.startswith("}") for line in lines[opening:first])
    parts = [head] if begin > 0 and head else []
    parts += [lines[opening]] if is_inside else []
    return "\n   ...\n".join([*parts, around])


def comments():
    """(place, code, comment). Lines of // or -- that touch each other are one comment."""
    for name in files("*.c", "*.h", "*.proto", "*.lua"):
        text, head = (ROOT / name).read_text(), None
        lines = text.split("\n")
        for found in re.finditer(PATTERNS.get(pathlib.Path(name).suffix, PATTERNS[".c"]), text):
            if not found[0].startswith(("/*", "//", "--")): # the match is a string
                continue
            head = head or found[0][:HEAD_MAX].rstrip()
            words = re.sub(r"\s+", " ", re.sub(r"(?m)^\s*(//|--|\*(?!/)|/\*)|\*/|/\*", " ", found[0])).strip()
            if len(re.findall(r"[A-Za-z]{2,}", words)) < WORDS_LEAST or "clang-format" in words:
                continue
            first = text.count("\n", 0, found.start())
            yield f"{name}:{first + 1}", code_around(lines, first, first + found[0].rstrip().count("\n"), head), words


def draw(found, count, seed):
    found = list(found)
    return random.Random(seed).sample(found, min(count, len(found))), len(found)


def main():
    if len(sys.argv) not in (3, 4) or not all(a.isdigit() for a in sys.argv[1:3]):
        sys.exit(__doc__)
    count, seed, only = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) == 4 else ""
    if only in ("", "sentences"):
        chosen, total = draw(sentences(), count, seed)
        print(f"# {len(chosen)} of {total} sentences, seed {seed}\n")
        for i, (place, context, sentence) in enumerate(chosen, 1):
            print(f"{i}. **{sentence}**\n   {place} · {context}\n")
    if only in ("", "comments"):
        chosen, total = draw(comments(), count, seed)
        print(f"# {len(chosen)} of {total} comments, seed {seed}\n")
        for i, (place, context, comment) in enumerate(chosen, 1):
            print(f"{i}. **{comment}**\n   {place}\n```\n{context}\n```\n")


if __name__ == "__main__":
    main()
