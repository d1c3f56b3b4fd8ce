"""Uses the timeline of the dashboard in a real Chromium, on a synthetic job: gestures, keys, themes, a
source that fails. timeline_browser.py WORK: Playwright is installed once, from npm, into WORK. Without
npm or Chromium the test is skipped, loudly (77)."""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import chromium  # noqa: E402

PACKAGE = "playwright-core@1.57.0"
INSTALL_SECONDS = 240


def skip(why):
    print(f"SKIPPED: the timeline in a browser: {why}", file=sys.stderr)
    sys.exit(77)


def install(folder):
    if not shutil.which("npm"):
        skip("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "installed"
    if mark.exists() and mark.read_text() == PACKAGE:
        return
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PACKAGE]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        skip(f"npm cannot install {PACKAGE}: {' '.join(done.stdout.split())[-300:]}")
    mark.write_text(PACKAGE)


if not chromium.find():
    skip("Chromium is missing (Debian: chromium)")
work = pathlib.Path(sys.argv[1])
install(work)
# Node finds the packages beside the script.
shutil.copy(HERE / "dashboard/timeline.mjs", work)
env = dict(os.environ, CHROMIUM=chromium.find())
sys.exit(subprocess.run(["node", str(work / "timeline.mjs"), str(HERE.parents[1])], env=env).returncode)
