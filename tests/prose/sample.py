#!/usr/bin/env python3
"""Draws sentences of the documents and comments of the sources, for a test of the prose with strangers.

    sample.py COUNT SEED [sentences|comments]

Prints COUNT sentences of README.md, CONTRIBUTING.md and docs/, and COUNT comments of the C, header, proto
and Lua files, as Markdown. Each stands with its file, line and context: the heading and the paragraph of a
sentence, the lines of code after a comment. The same COUNT, SEED and sources give the same draw. How the
test goes on is written in docs/testing.md."""
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS_LEAST = 4  # a shorter text is a label
CODE_LINES = 3   # lines of code shown after a comment
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
    heading, head, block, begin, in_code = "", "", [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        bare = line.strip()
        starts = re.match(r"([-*]|\d+\.) ", bare)
        if block and (not bare or starts or bare[0] in "#|" or bare.startswith("```")):
            yield begin, f"Section “{heading}”: {' '.join(block)}", " ".join(block)
            block = []
        if not bare.startswith("|"):
            head = ""
        if bare.startswith("```"):
            in_code = not in_code
        elif in_code or not bare or re.fullmatch(r"[|:\s-]+", bare):
            pass
        elif bare.startswith("#"):
            heading = bare.lstrip("# ")
        elif bare.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                yield number, f"Section “{heading}”, table\n   {head}\n   {bare}", cell.strip()
            head = head or bare
        else:
            if not block:
                begin = number
            block.append(bare[starts.end():] if starts else bare)


def sentences():
    for name in files("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/**/*.md"):
        for line, context, paragraph in paragraphs((ROOT / name).read_text()):
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\"(])", paragraph):
                if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"`[^`]*`|\]\([^)]*\)", "", sentence))) >= WORDS_LEAST:
                    yield f"{name}:{line}", context, sentence


def comments():
    """(place, code, comment). Lines of // or -- that touch each other are one comment."""
    for name in files("*.c", "*.h", "*.proto", "*.lua"):
        text = (ROOT / name).read_text()
        for found in re.finditer(PATTERNS.get(pathlib.Path(name).suffix, PATTERNS[".c"]), text):
            if not found[0].startswith(("/*", "//", "--")): # the match is a string
                continue
            words = re.sub(r"\s+", " ", re.sub(r"(?m)^\s*(//|--|\*(?!/)|/\*)|\*/|/\*", " ", found[0])).strip()
            if len(re.findall(r"[A-Za-z]{2,}", words)) < WORDS_LEAST or "clang-format" in words:
                continue
            begin = text.rfind("\n", 0, found.start()) + 1
            before = text[begin:found.start()].strip()
            after = text[found.end():].lstrip("\n").split("\n")[:CODE_LINES]
            yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}", before or "\n".join(after).rstrip(), words


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
