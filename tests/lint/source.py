"""Checks of the text of C files: sizes and banned words."""
import re

from tree import OUTSIDE, component, counted, known, line_of

LINES_MAX, HEADER_MAX, PRIVATE_MAX, FUNCTION_MAX = 800, 150, 250, 70
PARAMETERS_MAX, BOOLS_MAX = 5, 12
# hiredis' own commands write without MSG_NOSIGNAL, so a write to a dead Redis would end the process.
BANNED = (r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|rand|srand|random|srandom|time|localtime|gmtime|gets|setjmp|"
          r"longjmp|signal|system|alloca|malloc|calloc|realloc|redis\w*Command\w*)\s*\(")
MAY_BANNED = {  # path of a file: banned words that it may use
    "lib/base/alloc.c": {"calloc", "realloc"},  # the only place that takes memory from the heap
}
# Words in the names of functions that change something, so that an assertion must not call them.
WORKS = (r"pthread_(?!self|equal)\w+|getrandom|epoll_ctl|setfs[ug]id|EVP_Digest|write|read|pwrite|pread|close|fcntl|ftruncate|\w*_sha256|"
         r"(?:\w+_)?(?:push|pop|init|create|add|put|remove|insert|unlink|open|send|set|take|free|push_wait)")
ASKS = {"mr_framing_free"}  # asks how much is free, and changes nothing


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


def split_top(text):
    """Splits at commas outside parentheses."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append(text[last:i])
            last = i + 1
    return parts + [text[last:]]


def enclosed(text, at):
    """The text in the parentheses that open at text[at]."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return text[at + 1:i]
    return text[at + 1:]


def signatures(code):
    """(line, name, parameters) of every function that is defined."""
    for m in re.finditer(r"^(?!#)[A-Za-z_][^;{}]*?\b(\w+)\(([^;{}]*)\)\n\{$", code, re.M):
        outer = re.match(r"[^(]*?(\w+)\(", m[0])  # a function that returns a function pointer has two parameter lists
        inside = enclosed(m[0], outer.end() - 1)
        parameters = [] if inside.strip() in ("", "void") else split_top(inside)
        yield line_of(code, m.start()), outer[1], parameters


def exported(code):
    """Names of the functions and objects that are defined and not static."""
    functions = re.findall(r"^(?!#|static\b)[A-Za-z_][^;{}(]*?\b(\w+)\([^;{}]*\)\n\{$", code, re.M)
    objects = re.findall(r"^(?!#|static\b|extern\b|(?:__extension__ )?typedef\b)[A-Za-z_][\w \t*]*?\b(\w+)(?:\[[^\]]*\])*(?:;| =)", code, re.M)
    return {*functions, *objects}


def structs(code):
    """(line, name, bool members) of every struct with a body."""
    for m in re.finditer(r"\bstruct\s+(\w+)\s*\{", code):
        depth, i = 1, m.end()
        while depth and i < len(code):
            depth += (code[i] == "{") - (code[i] == "}")
            i += 1
        members = re.findall(r"\bbool\s+([^;()]*);", code[m.end():i])
        yield line_of(code, m.start()), m[1], sum(len(split_top(x)) for x in members)


def check_sizes(tree, shrink=False):
    bad, long_lists, many = [], {}, {}
    for name in tree.files(".c", ".h"):
        lines = tree.text(name).splitlines()
        private = re.search(r"for (its|the) (core's )?own files only|of each other|private to|Only core\*\.c include",
                            " ".join(lines[:6]), re.I)
        limit = LINES_MAX if not name.endswith(".h") or name.startswith("tests/") else PRIVATE_MAX if private else HEADER_MAX
        if len(lines) > limit:
            bad.append(f"{name}: {len(lines)} lines, at most {limit}")
        if name.startswith(OUTSIDE):
            continue
        for start, length in functions(lines):
            if length > FUNCTION_MAX:
                bad.append(f"{name}:{start}: a function of {length} lines, at most {FUNCTION_MAX}")
        for line, function, parameters in signatures(tree.code(name)):
            if len(parameters) > PARAMETERS_MAX:
                key = component(name)
                have, first = long_lists.get(key, (0, f"{name}:{line}: {function} has {len(parameters)}"))
                long_lists[key] = (have + 1, first)
        for line, struct, bools in structs(tree.code(name)):
            if bools > BOOLS_MAX:
                many[f"{bools} {name} {struct}"] = f"{name}:{line}: struct {struct} has {bools} bools, at most {BOOLS_MAX}"
    bad += counted(tree, "parameters", long_lists, f"functions of more than {PARAMETERS_MAX} parameters", shrink)
    return bad + known(tree, "bools", many, shrink)


def works_in_assert(code):
    """(line, code) of assertions that change something."""
    for m in re.finditer(r"\bmr_assert\(", code):
        inside = enclosed(code, m.end() - 1)
        if re.search(r"\+\+|--|[^=!<>]=(?!=)", inside):
            yield line_of(code, m.start()), "an assignment"
        for call in re.finditer(rf"(?<![\w.>])({WORKS})\(", inside):
            if call[1] not in ASKS and not re.search(r"(^|_)(is|has|may)_", call[1]):
                yield line_of(code, m.start()), f"a call of {call[1]}"


def check_banned(tree, shrink=False):
    bad, casts, banners = [], {}, {}
    for name in tree.files(".c", ".h"):
        text, code = tree.text(name), tree.code(name)
        for number, line in enumerate(code.splitlines(), 1):
            for m in re.finditer(BANNED, line):
                if m[1] not in MAY_BANNED.get(name, ()):
                    bad.append(f"{name}:{number}: {m[1]}() is banned")
            if re.search(r"\bgoto\b", line):
                bad.append(f"{name}:{number}: goto")
        if name.endswith(".h") and "#pragma once" not in code:
            bad.append(f"{name}: no #pragma once")
        bad += [f"{name}:{line}: {what} inside mr_assert" for line, what in works_in_assert(code)
                if not name.startswith(OUTSIDE)]
        for m in re.finditer(r"/\* -{3,} [^\n]*\n \*", text):
            bad.append(f"{name}:{line_of(text, m.start())}: a banner broken in two: at most 100 columns")
        for m in re.finditer(r"\*+\)\s*\(uintptr_t\)", code):
            if name.startswith(OUTSIDE) or name == "lib/base/unconst.h":
                continue
            key = component(name)
            have, first = casts.get(key, (0, f"{name}:{line_of(code, m.start())}"))
            casts[key] = (have + 1, first)
    return bad + counted(tree, "casts", casts, "casts by way of uintptr_t outside mr_unconst()", shrink)
