"""The models of the reference fits of generalized linear models, as matrices, for tests of the
operators and of the whole system. Each model has X without a column of ones, y, weights and
offset (None: none), the family by millrace's name, and the expected coefficients in the order of
X with the intercept last."""
import csv
import json

import numpy as np

FAMILIES = {"gaussian": "normal", "binomial": "logistic", "poisson": "poisson"}
NAMES = ("longley", "star98", "lbw", "cpunish", "spector", "InsectSprays", "warpbreaks", "Insurance")


class Model:
    def __init__(self, reference, columns, y, weights=None, offset=None):
        self.name, self.family = reference["name"], FAMILIES[reference["family"]]
        self.x = np.column_stack([np.asarray(c, "f8") for c in columns])
        self.y = np.asarray(y, "f8")
        self.weights = None if weights is None else np.asarray(weights, "f8")
        self.offset = None if offset is None else np.asarray(offset, "f8")
        at = reference["terms"].index("const")
        order = [i for i in range(len(reference["terms"])) if i != at] + [at]
        self.computed = np.array(reference["computed"]["params"])[order]
        self.std_err = np.array(reference["computed"]["std_err"])[order]
        published = reference.get("published")
        self.published = np.array(published["params"])[order] if published else None
        self.deviance = reference["computed"]["deviance"]
        self.scale = reference["computed"]["scale"]

    def chunks(self, n):
        """X, y, weights, offset of each of n chunks of unequal length."""
        cuts = [len(self.y) * i // n + (1 if 0 < i < n and i % 2 else 0) for i in range(n + 1)]
        part = lambda v, a, b: None if v is None else v[a:b]  # noqa: E731
        return [tuple(part(v, a, b) for v in (self.x, self.y, self.weights, self.offset)) for a, b in zip(cuts, cuts[1:])]


def read(path):
    text = path.read_text()
    if path.stem == "spector":
        rows = list(csv.reader(text.splitlines(), delimiter=" ", quotechar="'", skipinitialspace=True))
    else:
        rows = list(csv.reader(text.splitlines()))
    return {name: [row[i] for row in rows[1:] if row] for i, name in enumerate(rows[0])}


def levels(column, names):
    return [[float(v == name) for v in column] for name in names]


def numbers(table, names):
    return [[float(v) for v in table[name]] for name in names]


def load(directory, name):
    reference = next(m for m in json.loads((directory / "reference.json").read_text())["models"] if m["name"] == name)
    t = read(directory / reference["file"])
    terms = [x for x in reference["terms"] if x != "const"]
    if name == "longley":
        return Model(reference, numbers(t, terms), numbers(t, ["TOTEMP"])[0])
    if name == "star98":
        good, total = (np.array(v) for v in numbers(t, ["PR50M", "MATHTOT"]))
        return Model(reference, numbers(t, terms), good / total, weights=total)
    if name == "lbw":
        columns = numbers(t, ["age", "lwt"]) + levels(t["race"], ["black", "other"]) + numbers(t, ["smoke", "ptl", "ht", "ui"])
        return Model(reference, columns, numbers(t, ["low"])[0])
    if name == "cpunish":
        t["log(VC100k96)"] = [float(np.log(float(v))) for v in t["VC100k96"]]
        return Model(reference, numbers(t, terms), numbers(t, ["EXECUTIONS"])[0])
    if name == "spector":
        return Model(reference, numbers(t, terms), numbers(t, ["GRADE"])[0])
    if name == "InsectSprays":
        return Model(reference, levels(t["spray"], "BCDEF"), numbers(t, ["count"])[0])
    if name == "warpbreaks":
        return Model(reference, levels(t["wool"], "B") + levels(t["tension"], "MH"), numbers(t, ["breaks"])[0])
    columns = (levels(t["District"], "234") + levels(t["Group"], ["1-1.5l", "1.5-2l", ">2l"])
               + levels(t["Age"], ["25-29", "30-35", ">35"]))
    return Model(reference, columns, numbers(t, ["Claims"])[0], offset=np.log(numbers(t, ["Holders"])[0]))
