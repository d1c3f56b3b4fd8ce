"""Random jobs for stress.py, each with its expected result. Nothing here talks to a cluster."""


class Job:
    def __init__(self, kind, tasks, targets, values=None, sizes=None, **options):
        self.kind, self.id = kind, None
        self.graph = {"tasks": tasks, "targets": targets, **options}
        # of targets: the value, or the least number of its bytes
        self.values, self.sizes = values or {}, sizes or {}
        # a regular expression for the error's message, or None: the job must not fail
        self.may_fail = None
        self.may_succeed = True
        self.may_cancel = False
        self.is_forgotten = False


def task(op, *args, **options):
    return {"op": op, "args": list(args), **options}


def ref(key):
    return {"ref": key}


def options(rng, workers):
    """Options of a task that change how it runs and not its value."""
    o = {}
    if rng.random() < 0.2:
        o["priority"] = rng.randint(-3, 3)
    if rng.random() < 0.1:
        o["retries"] = rng.randint(0, 3)
    if rng.random() < 0.1:
        o["resources"] = {"gpu": 1}
    if rng.random() < 0.1:
        o["workers"] = [rng.choice(workers)]
        o["allow_other_workers"] = rng.random() < 0.5
    if rng.random() < 0.05:
        o["long_running"] = True
    if rng.random() < 0.1:
        o["timeout_s"] = 300
    if rng.random() < 0.1:
        o["pure"] = False
    return o


def chain(rng, workers):
    n, x = rng.choice((1, 5, 50, 400)), rng.randint(-1000, 1000)
    tasks = {"0": {"value": x}}
    for i in range(1, n + 1):
        tasks[str(i)] = task("inc", ref(str(i - 1)), **(options(rng, workers) if n < 100 else {}))
    return Job("chain", tasks, [str(n)], {str(n): x + n})


def dag(rng, workers):
    """Each task uses two earlier ones; a few tasks wait."""
    n = rng.choice((5, 30, 200))
    tasks, values = {}, {}
    for i in range(n):
        key = f"n/{i}"
        if i < 2 or rng.random() < 0.1:
            values[key] = rng.randint(0, 99)
            tasks[key] = {"value": values[key]}
            continue
        a, b = (f"n/{rng.randrange(i)}" for _ in range(2))
        op = rng.choice(("add", "sub", "min", "max", "list"))
        if op == "list":
            tasks[key] = task("sum", [ref(a), ref(b), 1], **options(rng, workers))
            values[key] = values[a] + values[b] + 1
        else:
            tasks[key] = task(op, ref(a), ref(b), **options(rng, workers))
            values[key] = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "min": min, "max": max}[op](values[a], values[b])
        if abs(values[key]) > 1 << 40:
            tasks[key], values[key] = {"value": 7}, 7
    targets = sorted(rng.sample(list(tasks), rng.randint(1, min(n, 20))))
    return Job("dag", tasks, targets, {k: values[k] for k in targets}, priority=rng.randint(-5, 5))


def wide(rng, workers):
    """Many short tasks, and a tree of sums above them."""
    n = rng.choice((20, 200, 1500))
    tasks = {f"leaf-{i}": task("test.record", i, rng.choice((0, 0, 0, 0.005))) for i in range(n)}
    level = list(tasks)
    while len(level) > 1:
        above = []
        for at in range(0, len(level), 8):
            key = f"sum-{len(tasks)}"
            tasks[key] = task("sum", [ref(k) for k in level[at:at + 8]])
            above.append(key)
        level = above
    return Job("wide", tasks, level, {level[0]: n * (n - 1) // 2}, labels={"n": str(n)})


def loop(rng, workers):
    n = rng.randint(1, 300)
    tasks = {"p-${i}": {"op": "mul", "args": ["${i}", "${i}"], "for": {"i": "${n}"}},
             "all": {"op": "sum", "args": [{"each": ref("p-${i}"), "for": {"i": "${n}"}}]}}
    return Job("loop", tasks, ["all"], {"all": sum(i * i for i in range(n))}, params={"n": n})


def blobs(rng, workers):
    """Large values that several tasks use."""
    n, size = rng.randint(1, 12), rng.choice((5000, 100000, 1000000))
    tasks, values = {}, {}
    for i in range(n):
        tasks[f"b/{i}"] = task("test.record", i, rng.choice((0, 0.02)), size, **options(rng, workers))
        tasks[f"s/{i}"] = task("test.size", ref(f"b/{i}"), ref(f"b/{rng.randrange(i + 1)}"))
    tasks["all"] = task("sum", [ref(f"s/{i}") for i in range(n)])
    targets = ["all"] + [f"b/{i}" for i in range(n) if rng.random() < 0.3]
    return Job("blobs", tasks, targets, {"all": 2 * n * size}, {k: size for k in targets[1:]})


def arrays(rng, workers):
    n, parts = rng.choice((10, 1000, 60000)), rng.randint(1, 6)
    tasks = {}
    for i in range(parts):
        tasks[f"a/{i}"] = task("array.arange", i * n, (i + 1) * n)
        tasks[f"t/{i}"] = task("array.add", ref(f"a/{i}"), 1, **options(rng, workers))
        tasks[f"s/{i}"] = task("array.sum", ref(f"t/{i}"))
    tasks["all"] = task("sum", [ref(f"s/{i}") for i in range(parts)])
    tasks["parts"] = task("collection", *[ref(f"t/{i}") for i in range(parts)])
    m = n * parts
    targets = ["all"] + (["parts"] if rng.random() < 0.5 else [])
    return Job("arrays", tasks, targets, {"all": m * (m + 1) // 2})


def shared(rng, workers):
    """Keys that the jobs of a namespace share, always with the same definition."""
    space = rng.randrange(3)
    picked = rng.sample(range(30), rng.randint(1, 8))
    tasks = {f"k/{i}": task("test.record", i * 7, 0.02, *([20000] if i % 5 == 4 else [])) for i in picked}
    values = {}
    for i in picked:
        tasks[f"u/{i}"] = task("test.size", ref(f"k/{i}")) if i % 5 == 4 else task("inc", ref(f"k/{i}"))
        values[f"u/{i}"] = 20000 if i % 5 == 4 else i * 7 + 1
    return Job("shared", tasks, list(values), values, namespace=f"ns{space}")


def persisted(rng, workers):
    i = rng.randrange(10)
    size = 50000 if i % 2 else 0
    tasks = {"p": task("test.record", i, 0.01, size, persist=f"persisted/{i}"), "n": task("test.size", ref("p")) if size else task("inc", ref("p"))}
    job = Job("persisted", tasks, ["n", "p"], {"n": size or i + 1})
    return job


def literals(rng, workers):
    n = rng.choice((1, 3000, 5000, 100000))
    values = {"text": "x" * n, "list": list(range(min(n, 3000))), "deep": {"a": [{"b": [None, True, 1.5, -1, 2**63]}]}, "e": ""}
    tasks = {k: {"literal": v} for k, v in values.items()}
    tasks["same"] = task("identity", ref("text"))
    return Job("literals", tasks, [*values, "same"], {k: v for k, v in values.items() if n < 4000 or k != "text"})


def failing(rng, workers):
    n = rng.randint(1, 20)
    tasks = {"bad": task("fail", "no such luck", retries=rng.randint(0, 3)), "after": task("inc", ref("bad"))}
    values = {}
    for i in range(n):
        tasks[f"ok/{i}"] = task("test.record", i, rng.choice((0, 0.01)))
        values[f"ok/{i}"] = i
    job = Job("failing", tasks, ["after", *values], values, on_error=rng.choice(("stop", "continue")))
    job.may_fail, job.may_succeed = "no such luck", False
    return job


def late(rng, workers):
    """A job in which a task, or the whole job, exceeds its time limit."""
    if rng.random() < 0.5:
        job = Job("late", {"s": task("sleep", 60, 1, timeout_s=0.3, retries=rng.randint(0, 1))}, ["s"])
    else:
        job = Job("late", {"s": task("sleep", 60, 1)}, ["s"], deadline_s=1)
    job.may_fail, job.may_succeed = "(?i)time|deadline|late", False
    return job


def slow(rng, workers):
    """A long job, to be cancelled."""
    n = rng.randint(1, 6)
    tasks = {f"s/{i}": task("sleep", rng.choice((0.5, 2, 4)), i, long_running=rng.random() < 0.3) for i in range(n)}
    tasks["sum"] = task("sum", [ref(k) for k in list(tasks)])
    return Job("slow", tasks, ["sum"], {"sum": n * (n - 1) // 2})


def many(rng, workers):
    """A job with thousands of targets."""
    n = rng.choice((500, 4000))
    tasks = {f"{i:05}".ljust(rng.choice((5, 40)), "k"): task("add", i, 1) for i in range(n)}
    return Job("many", tasks, list(tasks), {k: i + 1 for i, k in enumerate(tasks)})


def statistics(rng, workers):
    """The mean of random parts as a tree of moments; two jobs with the same seed must agree."""
    n, parts = 5000, rng.randint(1, 5)
    tasks = {f"x/{i}": task("array.arange", i * n, (i + 1) * n) for i in range(parts)}
    for i in range(parts):
        tasks[f"m/{i}"] = {"op": "array.moments", "args": [ref(f"x/{i}")], "kwargs": {"axis": 0}}
    tasks["m"] = {"op": "array.moments_merge", "args": [ref(f"m/{i}") for i in range(parts)]}
    tasks["mean"] = task("array.moments_mean", ref("m"))
    m = n * parts
    return Job("statistics", tasks, ["mean"], {"mean": (m - 1) / 2})


KINDS = {f.__name__: f for f in (chain, dag, wide, loop, blobs, arrays, shared, persisted, literals, failing, late, slow, many, statistics)}
WEIGHTS = {"slow": 0.5, "late": 0.5, "many": 0.3}


def make(rng, only, workers):
    names = only or list(KINDS)
    return KINDS[rng.choices(names, [WEIGHTS.get(n, 1) for n in names])[0]](rng, workers)
