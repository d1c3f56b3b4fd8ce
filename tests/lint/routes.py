"""No route is written twice: the paths of the API stand in the protos, and in no C source."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["gateway", "proto", "lib", "services", "store", "ops"]

wrong = []
for folder in FOLDERS:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in (".c", ".h", ".py"):
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for line in text.split("\n"):
            if re.search(r"[\"']/v1/[a-z]", line):
                wrong.append(f"{path.relative_to(ROOT)}: a route is spelled out: {line.strip()}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
