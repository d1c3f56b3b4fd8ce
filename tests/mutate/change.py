"""One-line changes of C sources: finds the changes that are possible in a file, and the new line for each.

Only lines of function bodies are changed; a body begins and ends with a brace in the first column. Comments, string
literals and directives are not changed, and neither are assertions and functions that check invariants, because they
do the checking."""
import re

TOKEN = re.compile(r"""(?P<space>\s+)|(?P<comment>/\*.*?(?:\*/|$)|//.*)|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<word>[A-Za-z_]\w*)|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+\.\d\w*|\d+[uUlL]*)
    |(?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""", re.X)
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "++": "--", "--": "++", "+=": "-=", "-=": "+="}
LOGICAL = {"&&": "||", "||": "&&", "!": ""}
BITS = {"|": "&", "&": "|", "|=": "&=", "&=": "|="}
WORDS = {"true": "false", "false": "true"}
NOT_DELETED = re.compile(r"(return|break|continue|case|default|do|else|goto|switch|for|while|if)\b")
CHECK = re.compile(r"(static )?void \w*check\w*\(const ")  # functions that check invariants
DECLARATION = re.compile(r"(const|static|struct|enum|union|unsigned|MR_AUTO)\b|[A-Za-z_]\w*\s*\**\s+\**[A-Za-z_]\w*")
ASSERTION = re.compile(r"\b(mr_assert|static_assert|MR_PANIC|MR_UNREACHABLE)\b")


def code_lines(text):
    """Yields (number, line) of each line of a function body that does not begin inside a comment and may be changed."""
    is_body = is_comment = is_skipped = False
    head = ""
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\w", line):
            head = line
        if line == "{":
            is_body = not CHECK.match(head)
        elif line == "}":
            is_body = False
        starts_in_comment = is_comment
        last = max(line.rfind("/*"), -1)
        is_comment = line.find("*/", last + 2) < 0 if last >= 0 else is_comment and "*/" not in line
        if not is_body or starts_in_comment or line == "{":
            continue
        is_skipped = is_skipped or bool(ASSERTION.search(line)) or line.lstrip().startswith("#")
        if not is_skipped:
            yield number, line
        if line.rstrip().endswith(";") or line.lstrip().startswith("#") and not line.endswith("\\"):
            is_skipped = False


def tokens(line):
    """Yields (kind, text, position, text of the token before) of each token that is neither space nor comment."""
    before = ""
    for m in TOKEN.finditer(line):
        if m.lastgroup in ("space", "comment"):
            continue
        yield m.lastgroup, m.group(), m.start(), before
        before = m.group()


def is_value_end(token):
    return bool(re.fullmatch(r"\w+|\)|\]", token)) and token not in ("return", "case", "sizeof")


def number_changes(text):
    value = int(re.sub("[uUlL]+$", "", text), 0)
    suffix = re.search("[uUlL]*$", text).group()
    return ["1" + suffix] if value == 0 else ["0" + suffix, "2" + suffix] if value == 1 else [f"{value + 1}{suffix}"]


def token_changes(line):
    is_array = re.match(r"\s*[\w ]+[ *]\w+\[[^=]*;", line)  # a declaration of an array: a larger size changes nothing
    for kind, text, at, before in tokens(line):
        after, name, to = line[at + len(text):], None, []
        if kind == "number" and "." not in text and not is_array:
            name, to = "constant", number_changes(text)
        elif kind == "word" and text in WORDS:
            name, to = "constant", [WORDS[text]]
        elif kind != "op":
            continue
        elif text in RELATIONS:
            name, to = "relation", [RELATIONS[text]]
        elif text in ARITHMETIC and (text not in "+-" or is_value_end(before)):
            name, to = "arithmetic", [ARITHMETIC[text]]
        elif text in LOGICAL:
            name, to = "logical", [LOGICAL[text]]
        elif text in BITS and (text != "&" or is_value_end(before)):
            name, to = "bits", [BITS[text]]
        for new in to:
            yield name, line[:at] + new + after


def closing(line, at):
    """Returns the position of the parenthesis that closes the one at `at`; -1: it is on another line."""
    depth = 0
    for kind, text, start, _ in tokens(line):
        if start < at or kind != "op":
            continue
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return start
    return -1


def statement_changes(line):
    indent, rest = re.match(r"(\s*)(.*)", line).groups()
    condition = re.match(r"(?:\} )?(?:else )?(if|while) \(", rest)
    if condition:
        begin = len(indent) + condition.end()
        end = closing(line, begin - 1)
        if end < 0:
            return
        for value in ("true", "false") if condition.group(1) == "if" else ("false",):
            yield "condition", line[:begin] + value + line[end:]
        indent, rest = re.match(r"(.{%d}\s*)(.*)" % (end + 1), line).groups()
    m = re.match(r"return (.+);", rest)
    if m:
        for value in ("0", "1"):
            if m.group(1) != value:
                yield "return", indent + f"return {value};" + rest[m.end():]
    m = re.match(r"(.+?);(\s*/\*.*)?$", rest)
    if not m or NOT_DELETED.match(rest) or DECLARATION.match(rest) or rest.count("(") != rest.count(")"):
        return
    if re.search(r"[\w\]]\s*([-+|&^*/]|<<|>>)?=[^=]|\+\+|--|\w\(", rest):
        yield "delete", indent + "(void)0;"


def changes(text):
    """Returns all possible changes as {line number: {operator: [new line, ...]}}."""
    found = {}
    for number, line in code_lines(text):
        for name, new in [*token_changes(line), *statement_changes(line)]:
            if new != line:
                found.setdefault(number, {}).setdefault(name, []).append(new)
    return found
