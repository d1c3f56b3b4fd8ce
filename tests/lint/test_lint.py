#!/usr/bin/env python3
"""Each rule of lint finds an offence that is planted. Each test makes a small tree without offences, changes it in
one place, and compiles it, so that nm has objects to read."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import lint  # noqa: E402
import tidy  # noqa: E402
from tree import Tree  # noqa: E402

CLEAN = {
    "tests/lint/ranks.txt": "0 lib/base\n10 lib/host\n21 lib/rpc\n60 services/a\n61 services/a/shell\n60 services/b\n99 tests\n",
    "tests/lint/prefixes.txt": "services/a mr_a_\n",
    "lib/base/list.h": "/* Lists. */\n#pragma once\nint mr_list_count(int n);\n",
    "lib/base/list.c": "#include \"base/list.h\"\n\nint mr_list_count(int n)\n{\n    return n;\n}\n",
    "lib/host/gate.h": "/* Gates. */\n#pragma once\nint mr_gate_open(int n);\n",
    "lib/host/gate.c": "#include \"host/gate.h\"\n\n#include \"base/list.h\"\n\nint mr_gate_open(int n)\n{\n    return mr_list_count(n);\n}\n",
    "lib/rpc/call.h": "/* Calls. */\n#pragma once\nint mr_rpc_call(int n);\n",
    "services/a/shell/loop.h": "/* The loop of a. */\n#pragma once\nint mr_a_loop(int n);\n",
    "services/a/core.h": "/* A. */\n#pragma once\nint mr_a_step(int n);\n",
    "services/a/core.c": "#include \"services/a/core.h\"\n\n#include \"host/gate.h\"\n\nint mr_a_step(int n)\n{\n    return mr_gate_open(n);\n}\n",
    "services/a/internal.h": "/* Inside a. */\n#pragma once\n",
    "services/b/core.h": "/* B. */\n#pragma once\nint mr_b_step(int n);\n",
    "tests/unit/test_steps.c": "#include \"services/a/core.h\"\n#include \"services/b/core.h\"\n\nint main(void)\n{\n    return mr_a_step(1) + mr_b_step(2);\n}\n",
    "services/b/core.c": "#include \"services/b/core.h\"\n\nint mr_b_step(int n)\n{\n    return n;\n}\n",
}
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ["-I.", "-Ilib"]


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mr-lint-")
        self.root = pathlib.Path(self.folder.name)
        for name, text in CLEAN.items():
            self.write(name, text)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add(self, name, text):
        self.write(name, (self.root / name).read_text() + text)

    def build(self, archives=None):
        """Compiles every .c file as CMake would, for a target with the name of the file's folder, or with the name in
        `archives`."""
        build, commands = self.root / "build", []
        for path in sorted(self.root.rglob("*.c")):
            source = str(path.relative_to(self.root))
            archive = (archives or {}).get(source, "mr_" + path.parent.name)
            target = f"CMakeFiles/{archive}.dir/{source}.o"
            (build / target).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", *INCLUDE, "-w", "-c", source, "-o", str(build / target)], cwd=self.root, check=True)
            commands.append({"directory": str(build), "file": str(path), "command": f"cc -I{self.root} -I{self.root}/lib -o {target} -c {path}"})
        (build / "compile_commands.json").write_text(json.dumps(commands))

    def check(self, name):
        return lint.CHECKS[name](Tree(self.root, build="build"))

    def finds(self, name, *words):
        found = self.check(name)
        for word in words:
            self.assertTrue(any(word in line for line in found), f"{name} did not name {word}: {found}")

    # ---- the tree as it is, and the lists --------------------------------------------------------

    def test_a_clean_tree_has_no_offence(self):
        self.build()
        for name in ("layers", "calls", "cycles", "symbols", "folders", "modules", "sizes", "banned", "words", "headers"):
            with self.subTest(name):
                self.assertEqual(self.check(name), [])

    def test_a_known_offence_passes_and_a_stale_row_does_not(self):
        self.add("lib/base/list.h", '#include "host/gate.h"\n')
        row = "lib/base/list.h lib/host/gate.h\n"
        self.write("tests/lint/known/layers.txt", "# why\n" + row)
        self.assertEqual(self.check("layers"), [])
        self.write("tests/lint/known/layers.txt", "# why\n" + row + "lib/base/list.h lib/host/gone.h\n")
        self.finds("layers", "lib/host/gone.h")
        lint.CHECKS["layers"](Tree(self.root), shrink=True)
        self.assertEqual((self.root / "tests/lint/known/layers.txt").read_text(), "# why\n" + row)

    def test_a_count_may_only_shrink(self):
        six = "\nint mr_list_add(int a, int b, int c, int d, int e, int f)\n{\n    return a;\n}\n"
        self.add("lib/base/list.c", six + six.replace("add", "sum"))
        self.write("tests/lint/known/parameters.txt", "1 lib/base\n")
        self.finds("sizes", "lib/base: 2 functions")
        self.write("tests/lint/known/parameters.txt", "3 lib/base\n")
        self.finds("sizes", "not 3")
        self.write("tests/lint/known/parameters.txt", "2 lib/base\n")
        self.assertEqual(self.check("sizes"), [])

    # ---- the floor plan ---------------------------------------------------------------------------

    def test_layers_a_higher_rank(self):
        self.add("lib/base/list.h", '#include "host/gate.h"\n')
        self.finds("layers", "lib/base/list.h:4")

    def test_layers_the_same_rank_in_another_folder(self):
        self.add("tests/lint/ranks.txt", "10 lib/other\n")
        self.write("lib/other/x.h", '#pragma once\n#include "host/gate.h"\n')
        self.finds("layers", "lib/other/x.h:2")

    def test_layers_another_service(self):
        self.write("services/a/shell/shell.h", '#pragma once\n#include "services/b/core.h"\n')
        self.finds("layers", "services/a does not see services/b")

    def test_layers_an_internal_header_of_another_folder(self):
        self.write("services/a/shell/shell.h", '#pragma once\n#include "services/a/internal.h"\n')
        self.finds("layers", "for its own folder only")

    def test_layers_a_foreign_library(self):
        self.add("lib/base/list.h", "#include <grpc/grpc.h>\n")
        self.finds("layers", "only lib/rpc/ includes")

    def test_layers_a_folder_without_a_rank(self):
        self.write("attic/x.h", "#pragma once\n")
        self.finds("layers", "attic/x.h")

    def test_layers_a_rank_without_a_folder(self):
        self.add("tests/lint/ranks.txt", "70 clients/c\n")
        self.finds("layers", "ranks.txt: there is no folder clients/c")

    def test_calls_a_prototype_by_hand(self):
        self.add("lib/base/list.c", "\nint mr_gate_open(int n);\nint mr_list_up(int n)\n{\n    return mr_gate_open(n);\n}\n")
        self.build()
        self.finds("calls", "may not call mr_gate_open")

    def test_calls_a_source_in_no_list(self):
        self.build()
        self.write("lib/base/orphan.c", "int mr_orphan;\n")
        self.finds("calls", "lib/base/orphan.c: no CMake list names it")

    def test_calls_a_source_that_is_not_built(self):
        self.build()
        next((self.root / "build").rglob("gate.c.o")).unlink()
        self.finds("calls", "1 sources are not built")

    def test_cycles_over_folders(self):
        self.add("lib/base/list.c", "\nint mr_gate_open(int n);\nint mr_list_up(int n)\n{\n    return mr_gate_open(n);\n}\n")
        self.build()
        self.finds("cycles", "lib/base/list.c: in a circle")

    def test_cycles_of_more_than_ten_files(self):
        for i in range(11):
            self.write(f"lib/base/c{i}.c", f"int mr_c{(i + 1) % 11}(int n);\nint mr_c{i}(int n)\n{{\n    return mr_c{(i + 1) % 11}(n);\n}}\n")
        self.build()
        self.finds("cycles", "in a circle of 11 files")

    def test_symbols_without_the_prefix(self):
        self.add("lib/base/list.c", "\nint helper(int n)\n{\n    return n;\n}\n")
        self.add("services/a/core.c", "\nint mr_b_thing(int n)\n{\n    return n;\n}\n")
        self.build()
        self.finds("symbols", "helper, should begin with mr_", "mr_b_thing, should begin with mr_a_")

    def test_symbols_in_two_archives(self):
        self.add("services/b/core.c", "\nint mr_gate_open(int n)\n{\n    return n;\n}\n")
        self.build({"services/b/core.c": "mr_b"})
        self.finds("symbols", "mr_gate_open: defined in mr_b and mr_host")

    def test_symbols_that_one_file_uses(self):
        self.add("lib/base/list.c", "\nint mr_list_sum(int n)\n{\n    return n;\n}\nint mr_list_last(int n)\n{\n    return mr_list_sum(n);\n}\n")
        self.add("lib/base/list.h", "int mr_list_sum(int n);\nint mr_list_last(int n);\n")
        self.write("tests/unit/test_list.c", '#include "base/list.h"\n\nint main(void)\n{\n    return mr_list_last(1);\n}\n')
        self.build()
        self.assertEqual(self.check("symbols"), ["lib/base/list.c: mr_list_sum could be static, because no other file uses it"])

    def test_folders_of_25_files(self):
        for i in range(23):
            self.write(f"lib/base/h{i}.h", "#pragma once\n")
        self.finds("folders", "lib/base: 25 C files")

    def test_modules_without_a_header(self):
        self.write("lib/base/alone.c", "int mr_alone;\n")
        self.write("services/a/alone.c", "int mr_a_alone;\n")  # no offence: its folder has an internal.h
        found = self.check("modules")
        self.assertEqual([line.split(":")[0] for line in found], ["lib/base/alone.c"])

    def test_modules_declared_in_the_header_of_their_folder(self):
        self.write("lib/host/host.h", "#pragma once\nint mr_part_open(int n);\nextern const int mr_parts[];\n")
        self.write("lib/host/part.c", "static int one(void)\n{\n    return 1;\n}\n\nint mr_part_open(int n)\n{\n    return one() + n;\n}\n"
                   "\nconst int mr_parts[2] = {1, 2};\nint mr_part_unused(int n)\n{\n    return n;\n}\n")
        self.assertEqual(self.check("modules"), [])
        self.add("lib/host/part.c", "\nint mr_part_close(int n)\n{\n    return n;\n}\n\nconst char *const mr_part_names[2] = {0};\n")
        self.write("lib/rpc/user.h", "#pragma once\n")
        self.write("lib/rpc/user.c", "int mr_part_close(int n);\nextern const char *const mr_part_names[2];\nint mr_user(void)\n{\n    return mr_part_close(mr_part_names[0] != 0);\n}\n")
        self.finds("modules", "lib/host/part.c: has no header of its name, and lib/host/host.h does not declare mr_part_close, mr_part_names")

    # ---- what stands in files ---------------------------------------------------------------------

    def test_sizes(self):
        self.write("lib/base/long.c", "int mr_x;\n" * 801)
        self.write("lib/base/long.h", "#pragma once\n" * 151)
        self.write("lib/base/f.c", "int mr_f(void)\n{\n" + "    ;\n" * 71 + "}\n")
        self.write("lib/base/p.c", "int mr_p(int a, int b, int (*c)(int, int), int d,\n    int e, int f)\n{\n    return a;\n}\n")
        self.write("lib/base/b.h", "#pragma once\nstruct mr_b {\n    bool a, b, c, d, e, f, g;\n    bool h, i, j, k, l, m : 1;\n};\n")
        self.finds("sizes", "long.c: 801 lines", "long.h: 151 lines", "f.c:2: a function of 71 lines", "mr_p has 6", "struct mr_b has 13 bools")

    def test_five_parameters_and_twelve_bools_pass(self):
        self.write("lib/base/p.c", "int mr_p(int a, int b, int (*c)(int, int), int d, int e)\n{\n    return a;\n}\n")
        self.write("lib/base/b.h", "#pragma once\nstruct mr_b {\n    bool a, b, c, d, e, f;\n    bool h, i, j, k, l, m;\n};\n")
        self.assertEqual(self.check("sizes"), [])

    def banned(self, body, word):
        self.write("lib/base/banned.c", "/* of strcpy() and goto nothing is said here */\nvoid mr_x(void)\n{\n    " + body + "\n}\n")
        self.finds("banned", word)

    def test_banned(self):
        self.banned("char *p = malloc(3);", "malloc() is banned")
        self.banned("goto out;", "goto")
        self.banned("mr_assert(!pthread_mutex_init(&l, NULL));", "pthread_mutex_init inside mr_assert")
        self.banned("mr_assert(write(fd, &one, 8) == 8);", "write inside mr_assert")
        self.banned("mr_assert(!mr_inbox_push(i, &x));", "mr_inbox_push inside mr_assert")
        self.banned("mr_assert((err = mr_x()) == 0);", "an assignment inside mr_assert")
        self.banned("mr_assert(n++ < 3);", "an assignment inside mr_assert")
        self.banned("char *p = (char *)(uintptr_t)q;", "mr_unconst()")
        self.banned("/* ---- a banner " + "-" * 60 + "\n */", "a banner broken in two")
        self.write("lib/base/once.h", "int mr_once;\n")
        self.finds("banned", "no #pragma once")

    def test_questions_in_assertions_pass(self):
        self.write("lib/base/ask.c", "void mr_x(void)\n{\n    mr_assert(mr_is_free(x) && a <= b && !mr_list_is_empty(l) && x->writer(y));\n}\n")
        self.assertEqual(self.check("banned"), [])

    def test_words(self):
        self.write("docs/x.md", "A thing.\nTO" "DO: the other thing\n")
        self.write("lib/rpc/log.c", 'void mr_x(void)\n{\n    mr_log(MR_WARN, "drain", "n=%u", n);\n    mr_log(\n        MR_WARN, "disk.not_moved", "n");\n'
                   '    mr_stats_counter(s, "millrace_calls", "Calls.", NULL);\n    mr_stats_gauge(s, "millrace_open_total", "Open.", NULL);\n'
                   '    ask("millrace_tasks_done");\n}\n')
        self.finds("words", "docs/x.md:2", 'event "drain"', "disk.not_moved", "millrace_calls only grows", "millrace_open_total ends in _total", "millrace_tasks_done sounds like")

    def test_headers_that_need_another_first(self):
        self.write("lib/base/bytes.h", "#pragma once\nuint64_t mr_list_bytes(void);\n")
        self.build()
        self.finds("headers", "lib/base/bytes.h: does not compile alone")

    def test_format(self):
        self.write(".clang-format", (REPOSITORY / ".clang-format").read_text())
        self.assertEqual(self.check("format"), [])
        self.add("lib/base/list.c", "int  mr_y ;\n")
        self.finds("format", "lib/base/list.c:7")

    def test_tidy(self):
        if not shutil.which(tidy.PROGRAM):
            self.skipTest(f"SKIPPED: {tidy.PROGRAM} is not installed")
        self.write(".clang-tidy", (REPOSITORY / ".clang-tidy").read_text())
        self.build()
        self.assertEqual(self.check("tidy"), [])
        self.add("lib/base/list.c", "\nint mr_list_odd(int n)\n{\n    if (n > 3);\n        n++;\n    return n;\n}\n")
        self.build()
        self.finds("tidy", "lib/base/list.c:10")

    def test_purity(self):
        self.write("services/a/time.c", "int nanosleep(void *a, void *b);\nint mr_a_time(void)\n{\n    return nanosleep(0, 0);\n}\n")
        self.build()
        o = next((self.root / "build").rglob("time.c.o"))
        subprocess.run(["ar", "rcs", str(self.root / "build/libmr_scheduler_core.a"), str(o)], check=True)
        self.finds("purity", "mr_scheduler_core: refers to nanosleep")


if __name__ == "__main__":
    unittest.main()
