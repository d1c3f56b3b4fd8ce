#!/usr/bin/env python3
"""The rules of STYLE.md and of the floor plan that a program can check.

    lint.py CHECK [BUILD] [--shrink]

| check   | file     | rule |
|---------|----------|------|
| layers  | plan.py  | includes go to folders of a lower rank (ranks.txt) or stay inside one; internal.h is for its own folder; services do not see each other; gRPC, hiredis, … only where they belong |
| calls   | plan.py  | the same for calls, by the symbols of the objects in BUILD; each source stands in a CMake list |
| cycles  | plan.py  | no circle of files that call each other crosses a folder, none has more than 10 files |
| symbols | plan.py  | symbols that are not static begin with mr_ or what prefixes.txt says; none is defined in two archives; another file, maybe a test, uses each of them |
| folders | plan.py  | at most 24 .c and .h in a folder |
| modules | plan.py  | a .c has a header of its name, or its folder an internal.h, or FOLDER/FOLDER.h declares what other files use of the .c |
| sizes   | source.py| 800 lines a file, 150 a header (250 a private one), 70 a function; 5 parameters a function; 12 bools a struct |
| banned  | source.py| banned functions, goto, no #pragma once, work inside mr_assert, banners in two lines, casts by way of uintptr_t outside mr_unconst() |
| words   | words.py | TODO wants an issue; a metric that only grows ends in _total; an event is noun.verb |
| headers | tools.py | each header compiles when included alone |
| format  | tools.py | clang-format has nothing to say |
| purity  | tools.py | no core archive refers to a symbol of the outside world |
| tidy    | tidy.py  | clang-tidy has nothing to say (.clang-tidy); its static analyzer is apart, as `analyze`, and no test |

Each check prints every offence with its file, and fails if there was one, or nothing to look at.
Offences of the day on which a check came stand in known/CHECK.txt, by their place on the floor plan. The
lists only shrink: a new offence fails, and so does a row whose offence is gone, until `--shrink` has
removed the row. test_lint.py plants an offence for each rule and sees that it is found."""
import pathlib
import sys

import source
import plan
import tidy
import tools
import words
from tree import Tree

CHECKS = {"layers": plan.check_layers, "calls": plan.check_calls, "cycles": plan.check_cycles,
          "symbols": plan.check_symbols, "folders": plan.check_folders, "modules": plan.check_modules,
          "sizes": source.check_sizes, "banned": source.check_banned, "words": words.check_words,
          "headers": tools.check_headers, "format": tools.check_format, "purity": tools.check_purity,
          "tidy": tidy.check_tidy, "analyze": tidy.check_analyze}
BUILT = {"calls", "cycles", "symbols", "headers", "purity", "tidy", "analyze"}  # these look at a build


def main():
    words_given = [a for a in sys.argv[1:] if not a.startswith("--")]
    if not words_given or words_given[0] not in CHECKS or (words_given[0] in BUILT) != (len(words_given) == 2):
        print(__doc__, file=sys.stderr)
        return 2
    tree = Tree(pathlib.Path(__file__).resolve().parents[2], build=words_given[1] if len(words_given) == 2 else None)
    bad = CHECKS[words_given[0]](tree, shrink="--shrink" in sys.argv)
    for line in bad:
        print(line)
    count = len(tree.files(".c", ".h"))
    print(f"{words_given[0]}: {count} files, {len(bad)} offences")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
