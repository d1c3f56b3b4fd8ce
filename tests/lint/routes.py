"""No route is written twice: the paths of the API are in the protos, and in no C source."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = {"gateway/server/login.c", "proto/gen/login.py"}  # the gateway's own route, which no proto has
FOLDERS = ["gateway", "proto", "lib", "services", "store", "ops"]

wrong = []
for folder in FOLDERS:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix not in (".c", ".h", ".py"):
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for line in text.split("\n"):
            is_own = str(path.relative_to(ROOT)) in OWN and re.search(r"[\"']/v1/log(in|out)[\"']", line)
            if re.search(r"[\"']/v1/[a-z]", line) and not is_own:
                wrong.append(f"{path.relative_to(ROOT)}: a route is spelled out: {line.strip()}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
