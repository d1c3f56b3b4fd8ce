"""The graphs of the scheduler literature as data, independent of the systems that run them. A node is (op, args); an
arg is a number or a Ref, the index of an earlier node. OPS has each op as a Python function: the peers run these
functions, and `evaluate` computes expected values with them. ours.py maps the ops to operators of the same meaning.
All random numbers have seeds. This module knows no clusters, clocks or files."""
import random
import time

import numpy

SEED = 20221215


class Ref(int):
    """The value of the node with this index."""


class Graph:
    def __init__(self):
        self.nodes, self.targets = [], []

    def add(self, op, *args):
        self.nodes.append((op, args))
        return Ref(len(self.nodes) - 1)


def draw(side, stream):
    """A square block of uniform f64; the same stream gives the same numbers everywhere."""
    return numpy.random.Generator(numpy.random.PCG64(numpy.random.SeedSequence(SEED, spawn_key=(stream,)))).random((side, side))


# Functions of the module, not lambdas, so that peers may send their names instead of their code.


def inc(x):
    return x + 1


def double(x):
    return x * 2


def add(x, y):
    return x + y


def total_of(*values):
    return sum(values)


def most_of(*values):
    return max(values)


def least_of(*values):
    return min(values)


def numbers(low, high):
    return list(range(low, high))


def item(values, i):
    return values[i]


def wait_ms(ms, value):
    time.sleep(ms / 1000)
    return value


def arange(low, high):
    return numpy.arange(low, high)


def total(x):
    return x.sum().item()


def transpose(x):
    return x.T


OPS = {"inc": inc, "double": double, "add": add, "sum": total_of, "max": most_of, "min": least_of, "range": numbers, "item": item,
       "wait_ms": wait_ms, "arange": arange, "total": total, "draw": draw, "transpose": transpose}


def bag(n):
    """n empty tasks, all of them targets."""
    g = Graph()
    g.targets = [g.add("inc", i) for i in range(n)]
    return g


def merge(n):
    """n roots that are merged into one value."""
    g = Graph()
    g.targets = [g.add("sum", *[g.add("inc", i) for i in range(n)])]
    return g


def merge_slow(ms):
    def shape(n):
        g = Graph()
        g.targets = [g.add("sum", *[g.add("wait_ms", ms, i) for i in range(n)])]
        return g
    shape.__doc__ = f"n roots of {ms} ms into one."
    return shape


def tree(n):
    """n leaves that are summed in pairs."""
    g = Graph()
    level = [g.add("inc", i) for i in range(n)]
    while len(level) > 1:
        level = [g.add("add", level[i], level[i + 1]) if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    g.targets = level
    return g


def all_to_all(n):
    """n roots of n pieces, and n sums, each of one piece of every root: the shape of a shuffle."""
    g = Graph()
    roots = [g.add("range", i, i + n) for i in range(n)]
    g.targets = [g.add("sum", *[g.add("item", root, i) for root in roots]) for i in range(n)]
    return g


def stencil(n, steps=32):
    """n cells over 32 steps: each is the sum of itself and its neighbours in the step before."""
    g = Graph()
    cells = [g.add("inc", i) for i in range(n)]
    for _ in range(steps):
        cells = [g.add("sum", *cells[max(i - 1, 0):i + 2]) for i in range(n)]
    g.targets = cells
    return g


def transpose_sum(n, side=500):
    """(x + x.T).sum() of n x n blocks of 500 x 500 f64, which tasks draw."""
    g = Graph()
    x = [[g.add("draw", side, i * n + k) for k in range(n)] for i in range(n)]
    g.targets = [g.add("sum", *[g.add("total", g.add("add", x[i][k], g.add("transpose", x[k][i]))) for i in range(n) for k in range(n)])]
    return g


def map_fold(n, size=100):
    """A bag of n partitions of 100 numbers: two maps, a sum for each, and the sums folded in groups of eight."""
    g = Graph()
    level = [g.add("total", g.add("double", g.add("inc", g.add("arange", i * size, (i + 1) * size)))) for i in range(n)]
    while len(level) > 1:
        level = [g.add("sum", *level[i:i + 8]) for i in range(0, len(level), 8)]
    g.targets = level
    return g


def random_graph(n):
    """n nodes, each of a number and of 0 to 3 of the 200 nodes before it. Every node without a user is a target."""
    g, draws, used = Graph(), random.Random(SEED), set()
    for i in range(n):
        inputs = sorted({draws.randrange(max(0, i - 200), i) for _ in range(draws.randrange(4))}) if i else []
        used.update(inputs)
        g.add("max" if i % 2 else "min", draws.randrange(1_000_000), draws.randrange(1_000_000), *map(Ref, inputs))
    g.targets = [Ref(i) for i in range(n) if i not in used]
    return g


def chain(n):
    """n tasks, each with the one before as its input."""
    g = Graph()
    last = g.add("inc", 0)
    for _ in range(n - 1):
        last = g.add("inc", last)
    g.targets = [last]
    return g


class Shape:
    """`sizes`: n in a full run, in a quick one, and in the runs that warm up and choose a peer's best form."""

    def __init__(self, name, title, make, sizes, empty):
        self.name, self.title, self.make, self.empty = name, title, make, empty
        self.sizes = dict(zip(("full", "quick", "small"), sizes))


SHAPES = [
    Shape("merge", "merge: {n:,} roots into one", merge, (10_000, 3_000, 500), True),
    Shape("merge-1ms", "merge of {n:,} tasks of 1 ms", merge_slow(1), (4_000, 1_000, 100), False),
    Shape("merge-10ms", "merge of {n:,} tasks of 10 ms", merge_slow(10), (600, 100, 20), False),
    Shape("merge-100ms", "merge of {n:,} tasks of 100 ms", merge_slow(100), (60, 12, 4), False),
    Shape("tree", "binary tree of {n:,} leaves", tree, (1 << 15, 1 << 11, 1 << 8), True),
    Shape("all-to-all", "all to all, {n} x {n}", all_to_all, (100, 50, 16), True),
    Shape("stencil", "stencil, {n} cells over 32 steps", stencil, (160, 64, 8), True),
    Shape("transpose-sum", "(x + x.T).sum(), {n} x {n} blocks of 500 x 500 f64", transpose_sum, (16, 8, 4), False),
    Shape("map-fold", "map and fold of a bag of {n:,} partitions", map_fold, (2_048, 512, 64), True),
    Shape("random", "random graph of {n:,} tasks, seed 20221215", random_graph, (5_000, 2_000, 250), True),
]


def users_of(graph):
    """For each node, the number of nodes that use it, so that an evaluation can drop values after their last use."""
    users = [0] * len(graph.nodes)
    for _, args in graph.nodes:
        for a in args:
            if isinstance(a, Ref):
                users[a] += 1
    for t in graph.targets:
        users[t] += 1
    return users


def evaluate(graph):
    """The values of the targets, computed here one after the other."""
    users, values = users_of(graph), {}
    for i, (op, args) in enumerate(graph.nodes):
        given = [values[a] if isinstance(a, Ref) else a for a in args]
        values[i] = given[-1] if op == "wait_ms" else OPS[op](*given)
        for a in args:
            if isinstance(a, Ref):
                users[a] -= 1
                if not users[a]:
                    del values[a]
    return [values[t] for t in graph.targets]


def agree(seen, expected):
    """Compares values. Floats may have been added in another order; integers must be equal."""
    if len(seen) != len(expected):
        return False
    return all(abs(a - b) <= 1e-9 * abs(b) if isinstance(b, float) else a == b for a, b in zip(seen, expected))
