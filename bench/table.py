"""The report of a run, made from the JSON that run.py writes: as text, with the bound of each row and whether it
holds; as a page of docs/results/; and as rows of the table in docs/benchmarks.md. Measures nothing.

    table.py JSON                 prints the text
    table.py JSON PAGE RESULTS    fills the table of PAGE, and writes the report as a page into the folder RESULTS"""
import json
import os
import pathlib
import sys

import mnist
import shapes

OURS, OLD_DASK, NEW_DASK, RAY = "millrace", "dask-debian", "dask-newest", "ray"
SYSTEMS = (OURS, OLD_DASK, NEW_DASK, RAY)
BEGIN, END = "<!-- bench/run.sh --markdown: begin -->", "<!-- bench/run.sh --markdown: end -->"

# row: title, whether "more" or "less" is better, by how much millrace must lead Debian's Dask, and Ray
ROWS = {
    "empty": ("{n:,} empty tasks, all results fetched", "more", 200, 50),
    "empty-many": ("{n:,} empty tasks, all results fetched", "more", 200, None),
    "empty-big": ("{n:,} empty tasks, all results fetched", "more", None, None),
    "empty-http": ("{n:,} empty tasks over HTTP/JSON", "more", None, None),
    "accepted": ("graph of {n:,} tasks accepted", "less", None, None),
    "latency": ("one task, client to client, p50 of {n:,}", "less", 40, 1),
    "chain": ("chain of {n:,}, unfused", "less", 500, 1),
    "chain-fused": ("chain of {n:,}, fusion allowed", "less", None, None),
    **{s.name: (s.title, "less", 20 if s.empty else 1, 1) for s in shapes.SHAPES},
    "memory": ("scheduler memory per task, two inputs, {n:,} tasks", "less", 20, 1),
    "idle": ("idle CPU of the whole cluster, {n} s", "less", None, None),
    "put-small": ("put an object of 1 kB", "less", None, 1),
    "get-small": ("get an object of 1 kB", "less", None, 1),
    "put-big": ("put an object of 64 MiB, copied by several threads", "more", None, 1),
    "put-one": ("put an object of 64 MiB, copied by one thread", "more", None, None),
    "get-big": ("get an object of 64 MiB", "less", None, 1),
    "mnist": ("MNIST job, {n} copies: all three stages", "less", 3, None),
    "mnist-persist": ("MNIST job, first stage: {n} copies of the images converted to f32, result held in memory", "less", None, None),
    "mnist-stats": ("MNIST job, second stage: mean and variance over axis 0", "less", None, None),
    "mnist-rechunk": ("MNIST job, third stage: rechunk to (10000, 784), result held in memory", "less", None, None),
    "spill": ("all to all of {n} times the store's memory", "less", None, None),
    "glm": ("logistic GLM, 1,000,000 x 20 in 8 chunks, {n} iterations", "less", 1, None),
}
# Bounds of millrace alone, in the row's unit. The bound of `latency`, one task, must hold on two processors, too.
BOUNDS = {"empty": 200_000, "latency": 250, "chain": 20, "memory": 300, "idle": 1}
ALONE = ("chain-fused", "empty-big", "empty-http", "accepted", "idle", "put-one", "spill")  # rows that only millrace has


def figure(v, unit):
    if unit == "s" and v < 1:
        return figure(v * 1e3, "ms")
    if unit == "us" and v >= 10_000:
        return figure(v / 1e3, "ms")
    if unit == "us/task" and v >= 10_000:
        return figure(v / 1e3, "ms/task")
    text = f"{v:,.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}" if v >= 0.1 else f"{v:.3f}"
    return f"{text} {unit}".replace("tasks/s", "/s").replace("us/task", "us a task").replace("ms/task", "ms a task").replace(" us", " µs")


def spread(least, most, unit):
    """The least and the most, unless the figure shows them already."""
    said = " /s" if unit == "tasks/s" else " a task" if unit == "us/task" else "" if unit in ("s", "us") else " " + unit
    return [figure(v, unit).removesuffix(said) for v in (least, most)]


def shown(cell, n):
    if cell is None:
        return "not measured"
    if "error" in cell:
        return "failed: " + cell["error"].replace("|", "/").replace("\n", " ")[:90]
    unit = cell["unit"]
    text = figure(cell["median"], unit)
    if cell["runs"] > 1:
        text += f" ({spread(cell['min'], cell['max'], unit)[0]} to {spread(cell['min'], cell['max'], unit)[1]})"
    notes = [f"n = {cell['n']:,}"] if cell.get("n") not in (n, None) else []
    notes += [cell["note"]] if cell.get("note") else []
    return text + (f" [{'; '.join(notes)}]" if notes else "")


def ratio(ours, peer, better):
    """How many times better millrace is; None if one of the two has no figure."""
    if not ours or not peer or "error" in ours or "error" in peer or ours["unit"] != peer["unit"]:
        return None
    if min(ours["median"], peer["median"]) <= 0:
        return None
    return ours["median"] / peer["median"] if better == "more" else peer["median"] / ours["median"]


def lines_of(report):
    """The title of a row and, for each system, its figure and millrace's lead."""
    for name, (title, better, _, _) in ROWS.items():
        cells = report["rows"].get(name, {})
        peers = [s for s in SYSTEMS[1:] if s in report["systems"]]
        if not cells:
            continue  # no system ran the row: --only, no data, or no bench/glm.py
        ours = cells.get(OURS)
        n = (ours or {}).get("n") or next((c["n"] for c in cells.values() if "n" in c), 0)
        line = [title.format(n=n), shown(ours, n)]
        for system in peers:
            theirs = cells.get(system)
            absent = name in ALONE or (theirs is None and not applies(name, system))
            lead = ratio(ours, theirs, better)
            line += ["-" if absent else shown(theirs, n), f"{lead:,.1f}" if lead and lead < 100 else f"{lead:,.0f}" if lead else "-"]
        yield line


def applies(name, system):
    if name.startswith(("put-", "get-")):
        return system == RAY
    if name.startswith("mnist") or name in ("glm", "empty-many"):
        return system != RAY
    return True


def header(report):
    out = ["what", "millrace"]
    for s in SYSTEMS[1:]:
        if s in report["systems"]:
            out += [report["systems"][s].split(",")[0], "ratio"]
    return out


def short(report, system):
    """A peer's name and version, such as "Dask 2022.12.1"."""
    return report["systems"][system].split(",")[0].replace(" distributed", "").split("+")[0]


def verdicts(report):
    """Each bound with the figure of this run and whether it holds: first the fixed bounds, then those against
    peers."""
    for name, bound in BOUNDS.items():
        cells = report["rows"].get(name, {})
        if not cells:
            continue
        title, better, *_ = ROWS[name]
        cell = cells.get(OURS) or {}
        unit, value = cell.get("unit", ""), cell.get("median")
        good = value is not None and (value >= bound if better == "more" else value <= bound)
        yield (f"{title.format(n=cell.get('n', 0))}: {figure(value, unit) if value is not None else 'no figure'}, "
               f"asked for at {'least' if better == 'more' else 'most'} {figure(bound, unit)}", good)
    for name, (title, better, dask_bar, ray_bar) in ROWS.items():
        for system, bar in ((OLD_DASK, dask_bar), (RAY, ray_bar)):
            cells = report["rows"].get(name, {})
            if bar is None or system not in report["systems"] or not applies(name, system) or not cells:
                continue
            lead = ratio(cells.get(OURS), cells.get(system), better)
            title_text = title.format(n=(cells.get(OURS) or {}).get("n", 0))
            yield (f"{title_text}: {f'{lead:,.1f} times' if lead else 'no figure beside'} {short(report, system)}, "
                   f"asked for {'more than 1' if bar == 1 else f'at least {bar}'}", bool(lead) and (lead > 1 if bar == 1 else lead >= bar))


def bandwidth(report):
    """For each stage of the array job: GB/s of the bytes that must move (median, least and most of the rounds), and
    the share of the copying speed."""
    copy, out = report.get("copy_bytes_per_s"), []
    systems = [s for s in SYSTEMS[:3] if s in report["systems"]]
    for stage in mnist.STAGES:
        line, moved = [], 0
        for system in systems:
            c = report["rows"].get(stage, {}).get(system)
            if not copy or not c or "median" not in c:
                line.append("-")
                continue
            moved = mnist.bytes_moved(c["n"])[stage]
            median, least, most = (moved / c[k] / 1e9 for k in ("median", "max", "min"))
            line.append(f"{median:.1f} GB/s ({least:.1f} to {most:.1f}), {median * 1e9 / copy:.0%} ({least * 1e9 / copy:.0%} to {most * 1e9 / copy:.0%})")
        if moved:
            out.append([stage, f"{moved / 1e9:.1f} GB", *line])
    return [["stage", "bytes that must move", *systems], *out] if out else []


def head(report):
    kind = "quick run, preliminary" if report["quick"] else "full run"
    out = [f"{report['date']}, {kind}, commit {report['commit']}, {report['seconds']:.0f} s in all",
           f"{report['machine']}; load average {report['load_before']:.2f} before, {report['load_after']:.2f} after"]
    return out + [f"{s}: {v}" for s, v in report["systems"].items() if s != OURS]


def copying(report):
    return f"Bandwidth of the array job, beside copying by 4 threads, {report['copy_bytes_per_s'] / 1e9:.1f} GB/s read and written:"


def columns(rows):
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows]


def pipes(rows):
    return ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0]), *("| " + " | ".join(r) + " |" for r in rows[1:])]


def text(report):
    out = head(report) + ["", *columns([header(report), *lines_of(report)]), ""]
    shares = bandwidth(report)
    out += [copying(report), *columns(shares), ""] if shares else []
    out += [f"{'holds' if good else 'NOT MET'}: {sentence}" for sentence, good in verdicts(report)]
    return "\n".join(out)


def markdown(report):
    out = [*("- " + line for line in head(report)), "", *pipes([header(report), *lines_of(report)])]
    shares = bandwidth(report)
    out += ["", copying(report), "", *pipes(shares)] if shares else []
    missed = [sentence for sentence, good in verdicts(report) if not good]
    out += ["", f"Bounds for these rows that are not met: {len(missed)} of {len(list(verdicts(report)))}.", *(["", *("- " + m for m in missed)] if missed else [])]
    for name, lines in report.get("alone", {}).items():
        if name == "bench_graph":
            continue  # this text is long and is in the JSON
        out += ["", f"`{name}`:", "", "```", *lines, "```"]
    return "\n".join(out)


def leads(report, name):
    """millrace's lead over each peer and, if the row has a ceiling, its share of the ceiling."""
    cells, out = report["rows"][name], []
    for system in SYSTEMS[1:]:
        lead = ratio(cells.get(OURS), cells.get(system), ROWS[name][1]) if system in report["systems"] else None
        if lead:
            out.append(f"{lead:,.1f} x {short(report, system)}" if lead < 100 else f"{lead:,.0f} x {short(report, system)}")
    for stage, _, ours, *_ in bandwidth(report)[1:]:
        if stage == name and ours != "-":
            out.append(f"{ours.split(', ')[1].split(' ')[0]} of the speed of copying with 4 threads")
    return ", ".join(out)


def newest(report, page):
    """The rows of docs/benchmarks.md that this run replaces. A row without a peer does not replace a row with
    peers."""
    peers = [s for s in SYSTEMS[1:] if s in report["systems"]]
    for name, (title, *_) in ROWS.items():
        ours = report["rows"].get(name, {}).get(OURS)
        if not ours or "error" in ours:
            continue
        n = ours.get("n") or 0
        lead = leads(report, name)
        alone = not (name in ALONE or any(ratio(ours, report["rows"][name].get(s), "more") for s in peers))
        yield [title.format(n=n) + (", millrace alone" if alone else ""), shown(ours, n), lead or "-",
               "`bench/run.sh --quick`" if report["quick"] else "`bench/run.sh`", report["machine"].split(",")[0], f"[{report['date']}]({page})"]


def between(text, path):
    """The text before the marks, between them and after them."""
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{path}: the marks {BEGIN} and {END} are not there")
    before, rest = text.split(BEGIN, 1)
    return (before, *rest.split(END, 1))


def fill(path, content):
    """Puts `content` in place of the text between the marks."""
    before, old, after = between(path.read_text(), path)
    path.write_text(f"{before}{BEGIN}\n{content(old)}\n{END}{after}")


def merged(old, rows):
    """The table `old` with these rows instead of those with the same names; new rows come last."""
    lines = [line for line in old.strip().splitlines() if line.startswith("|")]
    names = {line.split("|")[1].strip(): i for i, line in enumerate(lines)}
    for row in rows:
        line = "| " + " | ".join(row) + " |"
        if row[0] in names:
            lines[names[row[0]]] = line
        else:
            lines.append(line)
    return "\n".join(lines)


def write_markdown(report, page, results):
    """Writes the report as a page of `results`, and its rows into the table of `page`."""
    page, beside = pathlib.Path(page), any(s in report["systems"] for s in SYSTEMS[1:])
    to = pathlib.Path(results) / f"{report['date']}-{'beside-dask-and-ray' if beside else 'millrace-alone'}.md"
    if not to.exists():
        to.write_text(f"# {report['date']}: millrace {'beside Dask and Ray' if beside else 'alone'}\n\n"
                      f"Command: `bench/run.sh`.\n\n{BEGIN}\n{END}\n")
        print(f"a new page: {to}. Add it to {results}/README.md.")
    fill(to, lambda _: markdown(report))
    fill(page, lambda old: merged(old, newest(report, os.path.relpath(to, page.parent))))


if __name__ == "__main__":
    seen = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if len(sys.argv) > 3:
        write_markdown(seen, sys.argv[2], sys.argv[3])
    else:
        print(text(seen))
