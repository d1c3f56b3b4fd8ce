"""Checks of words in logs, metrics and comments."""
import re

from tree import known, line_of

STATES = {"connected", "queued", "paused", "unacknowledged", "unread"}  # endings of names that describe a present state
TEXTS = (".c", ".h", ".py", ".sh", ".md", ".proto", ".txt", ".json", ".yml")


def check_words(tree, shrink=False):
    bad, offences = [], {}
    for name in tree.files(*TEXTS):
        if name.startswith("tests/lint/") or name == "STYLE.md":
            continue
        for number, line in enumerate(tree.text(name).splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not re.search(r"#\d+", line):
                bad.append(f"{name}:{number}: {line.strip()[:60]}")
    for name in tree.sources():
        text = tree.text(name)
        for m in re.finditer(r'\bmr_log\(\s*[A-Za-z_ ?:.>-]+,\s*"([^"]*)"', text):
            if not re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", m[1]) or ".not_" in m[1]:
                offences[f"event {m[1]}"] = f"{name}:{line_of(text, m.start())}: event \"{m[1]}\" is no noun.verb"
        for series in re.findall(r'"(millrace_\w+)"', text):
            last = series.rsplit("_", 1)[1]
            if re.fullmatch(r"\w+ed|done|sent|stolen|held|lost|made|read|written", last) and last not in STATES:
                offences[f"series {series}"] = f"{name}: {series} sounds like a count of what happened: a counter, whose name ends in _total"
        for series in re.findall(r'"(millrace_\w+)",\s*"counter"', text):
            if not series.endswith("_total"):
                offences[f"counter {series}"] = f"{name}: {series} only grows: its name ends in _total"
        for kind, series in re.findall(r'\bmr_stats_(counter|gauge|histogram)(?:_ask)?\(\s*[^,;]*,\s*"(\w*)"', text):
            if kind == "counter" and not series.endswith("_total"):
                offences[f"counter {series}"] = f"{name}: {series} only grows: its name ends in _total"
            if kind != "counter" and series.endswith("_total"):
                offences[f"{kind} {series}"] = f"{name}: {series} ends in _total and is a {kind}"
    return bad + known(tree, "words", offences, shrink)
