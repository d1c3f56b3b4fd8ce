#!/usr/bin/env python3
"""Every operator against NumPy: types, shapes, empty arrays, NaN, broadcasting and wrong input.

    ops_numpy.py MR_OP_RUN LIBEXAMPLE_OPS [FILTER]

Operators run in one helper process (op_run.c); each case is a call, NumPy's answer and a tolerance."""
import collections
import gzip
import io
import itertools
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np

warnings.filterwarnings("ignore")
np.seterr(all="ignore")

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
# in the order of enum mr_dtype
NUMBERS = [0, "b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
NAMES = {"bool": "bool", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8", "u2": "u16", "u4": "u32",
         "u8": "u64", "f2": "f16", "f4": "f32", "f8": "f64"}
INTS = DTYPES[1:9]
FLOATS = DTYPES[9:]
RNG = np.random.default_rng(7)


# ---- packs -----------------------------------------------------------------------------------

class Slot(int):
    """Stands for the n-th input."""


class Extent(str):
    """Stands for a value that an operator has made, by the name under which it is kept."""


def pack(v, inputs):
    if isinstance(v, Extent):
        inputs.append(v)
        v = Slot(len(inputs) - 1)
    if isinstance(v, np.ndarray) or isinstance(v, np.generic):
        inputs.append(np.asarray(v))
        v = Slot(len(inputs) - 1)
    if isinstance(v, Slot):
        return b"\xd6\x01" + struct.pack(">I", v)
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        return (b"\xd3" + struct.pack(">q", v)) if v < 1 << 63 else (b"\xcf" + struct.pack(">Q", v))
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        raw = v.encode()
        return b"\xdb" + struct.pack(">I", len(raw)) + raw
    if isinstance(v, bytes):
        return b"\xc6" + struct.pack(">I", len(v)) + v
    if isinstance(v, (list, tuple)):
        return b"\xdd" + struct.pack(">I", len(v)) + b"".join(pack(x, inputs) for x in v)
    if isinstance(v, dict):
        return b"\xdf" + struct.pack(">I", len(v)) + b"".join(pack(k, inputs) + pack(x, inputs) for k, x in v.items())
    raise TypeError(v)


def unpack(b, at=0):
    t = b[at]
    take = lambda f: struct.unpack_from(">" + f, b, at + 1)[0]
    if t <= 0x7F: return t, at + 1
    if t >= 0xE0: return t - 256, at + 1
    if t == 0xC0: return None, at + 1
    if t in (0xC2, 0xC3): return t == 0xC3, at + 1
    if t in (0xCA, 0xCB): return take("f" if t == 0xCA else "d"), at + (5 if t == 0xCA else 9)
    sized = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
    if t in sized: return take(sized[t]), at + 1 + struct.calcsize(">" + sized[t])
    lengths = {0xC4: "B", 0xC5: "H", 0xC6: "I", 0xC7: "B", 0xC8: "H", 0xC9: "I", 0xD9: "B", 0xDA: "H", 0xDB: "I",
               0xDC: "H", 0xDD: "I", 0xDE: "H", 0xDF: "I"}
    if t in lengths:
        n, start = take(lengths[t]), at + 1 + struct.calcsize(">" + lengths[t])
    elif 0xD4 <= t <= 0xD8:
        n, start = 1 << (t - 0xD4), at + 1
    else:
        n, start = (t & 31 if t >= 0xA0 else t & 15), at + 1
    if t in (0xC4, 0xC5, 0xC6): return bytes(b[start:start + n]), start + n
    if t in (0xC7, 0xC8, 0xC9) or 0xD4 <= t <= 0xD8:
        data = b[start + 1:start + 1 + n]
        return (extent(data) if b[start] == 2 else ("ext", b[start], bytes(data))), start + 1 + n
    if t in (0xD9, 0xDA, 0xDB) or 0xA0 <= t <= 0xBF: return b[start:start + n].decode(), start + n
    out, at = [], start
    if t in (0xDC, 0xDD) or 0x90 <= t <= 0x9F:
        for _ in range(n):
            v, at = unpack(b, at)
            out.append(v)
        return out, at
    for _ in range(n):
        k, at = unpack(b, at)
        v, at = unpack(b, at)
        out.append((k, v))
    return dict(out), at


def extent(b):
    """Reads a value in millrace's layout."""
    magic, version, kind, dtype, ndim, _, header, _, nbytes, data_at, data_bytes = struct.unpack_from("<IHBBBBHIQQQ", b)
    assert magic == 0x3156524D and version == 1, (magic, version)
    data = b[data_at:data_at + data_bytes]
    if kind == 1:
        shape = struct.unpack_from(f"<{ndim}Q", b, 64)
        return np.frombuffer(data, dtype=np.dtype(NUMBERS[dtype]).newbyteorder("<")).reshape(shape).copy()
    if kind == 3:
        return unpack(data)[0]
    if kind == 4:
        return bytes(data)
    return ("extent", kind, bytes(b[:nbytes]))


# ---- the helper ------------------------------------------------------------------------------

class Failed(Exception):
    pass


class Helper:
    def __init__(self, *argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.extents = {}

    def read(self, n):
        b = self.process.stdout.read(n)
        if len(b) != n:
            raise SystemExit(f"the helper died: {self.process.wait()}")
        return b

    def call(self, op, *args, **named):
        inputs = []
        body = [pack("", inputs) + pack(list(args), inputs)] + [pack(k, inputs) + pack(v, inputs) for k, v in named.items()]
        packed = b"\xdf" + struct.pack(">I", len(body)) + b"".join(body) if named else pack(list(args), inputs)
        blob = lambda b: struct.pack("<I", len(b)) + b
        out = [blob(op.encode()), blob(packed), struct.pack("<I", len(inputs))]
        for a in inputs:
            if isinstance(a, Extent):
                out.append(b"e" + blob(self.extents[a]))
                continue
            f = io.BytesIO()
            np.lib.format.write_array(f, a, version=(1, 0))
            out.append(b"n" + blob(f.getvalue()))
        self.process.stdin.write(b"".join(out))
        self.process.stdin.flush()
        code, kind, n = struct.unpack("<icI", self.read(9))
        raw = self.read(n)
        if kind == b"x":
            raise Failed(raw.decode())
        if kind == b"i":
            return inputs[struct.unpack("<I", raw)[0]]
        return extent(raw) if kind == b"e" else unpack(raw)[0]

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


HELPER = None
CASES = collections.Counter()
BAD = []
FILTER = ""


def show(v):
    return f"{v.dtype}{list(v.shape)} {v.ravel()[:6]}" if isinstance(v, np.ndarray) else repr(v)[:200]


def report(op, args, text):
    BAD.append(op)
    if len(BAD) <= 40:
        print(f"FAILED {op}({', '.join(show(a) if not isinstance(a, list) else '[' + ', '.join(show(x) for x in a) + ']' for a in args)}): {text}")


def same(got, want, ulp):
    """Compares type, shape and elements; numbers stand for arrays without axes."""
    want = np.asarray(want)
    if not isinstance(got, np.ndarray):
        if want.shape != ():
            return f"got {show(got)}, wanted {show(want)}"
        kinds = {"b": bool, "i": int, "u": int, "f": float}
        if want.dtype.kind in kinds and type(got) is not kinds[want.dtype.kind]:
            return f"got {type(got).__name__} {got}, wanted {show(want)}"
        got = np.asarray(got).astype(want.dtype)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"got {show(got)}, wanted {show(want)}"
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else f"got {show(got)}, wanted {show(want)}"
    if np.array_equal(got, want, equal_nan=True):
        return None
    if ulp:
        eps = float(np.finfo(want.dtype).eps)
        g, w = got.astype("f8"), want.astype("f8")
        # A number near the limit of the smaller type may overflow on one side only.
        top = float(np.finfo(want.dtype).max) * (1 - 4 * ulp * eps)
        g, w = np.clip(g, -top, top), np.clip(w, -top, top)
        if np.allclose(g, w, rtol=ulp * eps, atol=ulp * float(np.finfo(want.dtype).tiny) * 8, equal_nan=True):
            return None
    return f"got {show(got)}, wanted {show(want)}"


def check(op, args, want, ulp=0, **named):
    if FILTER not in op:
        return
    CASES[op] += 1
    try:
        got = HELPER.call(op, *args, **named)
    except Failed as e:
        report(op, args, f"{named} {e}")
        return
    text = same(got, want, ulp) if isinstance(want, (np.ndarray, np.generic)) else (
        None if got == want and type(got) is type(want) else f"got {show(got)}, wanted {want!r}")
    if text:
        report(op, args, f"{named} {text}")


def refused(op, args, words, **named):
    if FILTER not in op:
        return
    CASES[op] += 1
    try:
        got = HELPER.call(op, *args, **named)
        report(op, args, f"{named} got {show(got)}, wanted an error with \"{words}\"")
    except Failed as e:
        if words not in str(e) or not str(e).startswith(op + ":"):
            report(op, args, f"{named} error \"{e}\", wanted \"{words}\"")


# ---- values ----------------------------------------------------------------------------------

SHAPES = [(), (1,), (5,), (0,), (3, 4), (0, 3), (2, 0), (1, 7), (2, 3, 4), (67,), (4, 1, 5)]


def values(dtype, shape, special=True):
    """Elements over the whole range of the type, with its extreme values."""
    d = np.dtype(dtype)
    n = int(np.prod(shape))
    if d.kind == "b":
        return RNG.integers(0, 2, n).astype(d).reshape(shape)
    if d.kind in "iu":
        info = np.iinfo(d)
        a = RNG.integers(max(info.min, -100), min(info.max, 100), n, endpoint=True).astype(d)
        corners = np.array([info.min, info.max, 0, 1, info.max - 1], dtype=d)
    else:
        a = (RNG.standard_normal(n) * 10).astype(d)
        info = np.finfo(d)
        corners = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, info.max, info.tiny, 0.5, 1.5, 2.5], dtype=d)
    if special and n:
        where = RNG.random(n) < 0.25
        a[where] = RNG.choice(corners, int(where.sum()))
    return a.reshape(shape)


# ---- families --------------------------------------------------------------------------------

BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide,
          "floor_divide": np.floor_divide, "mod": np.mod, "power": np.power, "minimum": np.minimum, "maximum": np.maximum,
          "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
          "greater": np.greater, "greater_equal": np.greater_equal,
          "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
PAIRS = [((5,), (5,)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (6,)), ((7,), ()), ((0,), (1,)), ((2, 3, 4), (3, 1)), ((67,), (67,)), ((0, 3), (3,))]


def test_binary():
    for name, f in BINARY.items():
        op = "array." + name
        for a, b in itertools.product(DTYPES, DTYPES):
            # all shapes for equal types; for others two, and one that differs from pair to pair
            for sa, sb in (PAIRS if a == b else PAIRS[:2] + [PAIRS[3 + (len(a + b) + ord(a[0])) % 5]]):
                x, y = values(a, sa), values(b, sb)
                if name == "power":
                    y = (np.abs(y) % 7 if y.dtype.kind in "iub" else values(b, sb, False) / np.dtype(b).type(8)).astype(y.dtype)
                    x = x if x.dtype.kind != "f" else values(a, sa, False)
                # NumPy 1 lets the value of an array without axes decide the type; an axis of length 1 prevents that
                nx, ny = (v.reshape(1) if v.shape == () else v for v in (x, y))
                try:
                    want = f(nx, ny)
                except TypeError:
                    refused(op, [x, y], "is not defined for bool")
                    continue
                except ValueError:
                    refused(op, [x, y], "negative integer powers")
                    continue
                want = np.asarray(want)
                ulp = 4 if name == "power" else 2 if name in ("mod", "floor_divide") and want.dtype.kind == "f" else 0
                if want.dtype == np.float16 and name in ("mod", "floor_divide"):
                    # Quotients of f16 are not exact in f16: compares with the same computed in f64.
                    want = f(nx.astype("f8"), ny.astype("f8")).astype("f2")
                    ulp = 2
                if want.dtype == np.float32 and name in ("mod", "floor_divide"):
                    want = f(nx.astype("f8"), ny.astype("f8")).astype("f4")
                check(op, [x, y], want, ulp)
        refused(op, [values("f4", (2, 3)), values("f4", (2,))], "cannot be broadcast")
        refused(op, ["text", 1], 'argument "x": expected array, got text')
        refused(op, [1], 'argument "y" is missing')
    for a in DTYPES:  # a number beside a tensor keeps the tensor's type
        x = values(a, (5,))
        if a != "bool":
            check("array.add", [x, 1], np.add(x, np.dtype(a).type(1)))
            check("array.multiply", [2, x], np.multiply(np.dtype(a).type(2), x))
        if a in FLOATS:
            check("array.add", [x, 0.5], np.add(x, np.dtype(a).type(0.5)))
        elif a != "bool":
            check("array.add", [x, 0.5], np.add(x.astype("f8"), 0.5))
    refused("array.add", [values("i1", (3,)), 1000], 'argument "y": 1000 does not fit i8')
    refused("array.add", [values("u2", (3,)), -1], "-1 does not fit u16")
    refused("array.subtract", [values("bool", (3,)), values("bool", (3,))], "subtract is not defined for bool")
    refused("array.power", [values("i4", (3,), False), np.array([1, -1, 2], "i4")], "negative integer powers")
    check("array.add", [[1, 2], [[1.5], [2]]], np.add([1, 2], [[1.5], [2]]))
    refused("array.add", [[1, [2]], 1], "a nested list of numbers")
    refused("array.add", [[[1], [2, 3]], 1], "must have one length")


UNARY = {n: getattr(np, n) for n in ("sign square sqrt reciprocal exp expm1 log log1p log2 log10 sin cos tan tanh "
                                     "floor ceil trunc isnan isinf isfinite logical_not").split()}
UNARY.update(abs=np.abs, neg=np.negative, round=np.round, sigmoid=lambda x: 1 / (1 + np.exp(-x)))


def test_unary():
    exact = {"abs", "neg", "sign", "square", "sqrt", "reciprocal", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "logical_not"}
    for name, f in UNARY.items():
        op = "array." + name
        for a in DTYPES:
            for shape in SHAPES:
                x = values(a, shape)
                if a in FLOATS and name in ("sin", "cos", "tan"):
                    x = values(a, shape, False)
                if name in ("floor", "ceil", "trunc", "round") and a not in FLOATS:
                    # the floor of an integer is itself
                    check(op, [x], x if x.shape else np.asarray(x))
                    continue
                if name == "reciprocal" and a not in FLOATS:
                    want = np.true_divide(1, x.astype(np.sqrt(x).dtype)).astype(np.sqrt(x).dtype)
                elif name == "sigmoid":
                    t = np.sqrt(x).dtype
                    want = np.asarray(f(x.astype(t).astype("f8"))).astype(t)
                else:
                    try:
                        want = f(x)
                    except TypeError:
                        refused(op, [x], f"{name} is not defined for bool")
                        continue
                want = np.asarray(want)
                if want.dtype == np.float16 and name not in exact:
                    want = np.asarray(f(x.astype("f2").astype("f4"))).astype("f2")
                check(op, [x], np.asarray(want), 0 if name in exact else 8)
    refused("array.exp", [{"a": 1}], "expected array, got dict")


REDUCE = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all, "mean": np.mean,
          "var": np.var, "std": np.std, "argmin": np.argmin, "argmax": np.argmax}


def axes_of(shape):
    n = len(shape)
    yield None
    for i in range(n):
        yield i
        yield i - n
    for pair in itertools.combinations(range(n), 2):
        yield list(pair)


def test_reductions():
    shapes = [(), (5,), (0,), (3, 4), (0, 3), (2, 0), (0, 0), (2, 0, 3), (2, 3, 4), (300, 3), (3, 300), (130, 70), (2, 1, 5), (1, 1), (257, 2, 3)]
    for name, f in REDUCE.items():
        op = "array." + name
        for a in DTYPES:
            for shape in shapes:
                x = values(a, shape, special=name not in ("var", "std", "prod", "mean", "sum"))
                if name in ("prod",):
                    x = (np.sign(x) * (np.abs(x) % 3 + 1)).astype(a) if a in INTS else (np.abs(x) / 8 + 0.5).astype(a) if a in FLOATS else x
                for axis in axes_of(shape):
                    if name.startswith("arg") and isinstance(axis, list):
                        continue
                    keep = RNG.random() < 0.3
                    np_axis = tuple(axis) if isinstance(axis, list) else axis
                    wide = x.astype("f8") if a in ("f2", "f4") and name in ("sum", "prod", "mean", "var", "std") else x
                    try:
                        want = np.asarray(f(wide, axis=np_axis, keepdims=keep))
                    except ValueError:
                        refused(op, [x], "of no elements", axis=axis, keepdims=keep)
                        continue
                    if wide is not x:
                        want = want.astype(a)
                    ulp = 64 if a in FLOATS or name in ("mean", "var", "std") else 0
                    if want.dtype.kind == "f" and name == "sum":
                        # The bound on the error is proportional to the sum of the absolute values,
                        # not to the result.
                        bound = float(np.abs(wide.astype("f8")).sum()) + 1
                        if FILTER in op:
                            CASES[op] += 1
                            got = np.asarray(HELPER.call(op, x, axis=axis, keepdims=keep)).astype("f8")
                            if got.shape != want.shape or np.abs(got - want.astype("f8")).max(initial=0) > bound * float(np.finfo(want.dtype).eps):
                                report(op, [x], f"axis={axis} got {show(got)}, wanted {show(want)}")
                        continue
                    if name == "mean" and want.dtype.kind == "f":
                        if FILTER in op:
                            CASES[op] += 1
                            got = np.asarray(HELPER.call(op, x, axis=axis, keepdims=keep)).astype("f8")
                            bound = (float(np.abs(wide.astype("f8")).max(initial=0)) + 1e-300) * 8 * float(np.finfo(want.dtype).eps)
                            if got.shape != want.shape or not np.allclose(got, want.astype("f8"), rtol=0, atol=bound, equal_nan=True):
                                report(op, [x], f"axis={axis} got {show(got)}, wanted {show(want)}")
                        continue
                    check(op, [x], want, ulp, axis=axis, keepdims=keep)
        refused(op, [values("f4", (3, 4))], "axis 2 of an array with 2 axes", axis=2)
        refused(op, [values("f4", (3, 4))], "axis -3", axis=-3)
        refused(op, [values("f4", (3, 4))], 'argument "axis": expected', axis="x")
        if not name.startswith("arg"):
            refused(op, [values("f4", (3, 4))], "given twice", axis=[0, 0])
    for a in FLOATS:  # NaN and infinity
        for x in ([1, np.nan, 2], [np.inf, 1], [np.inf, -np.inf], [-0.0, 0.0], [np.nan, np.inf]):
            x = np.array(x, dtype=a)
            for name in REDUCE:
                if name == "mean" or name == "sum":
                    check("array." + name, [x], np.asarray(REDUCE[name](x)))
                elif name in ("var", "std"):
                    check("array." + name, [x], np.asarray(REDUCE[name](x)))
                else:
                    check("array." + name, [x], np.asarray(REDUCE[name](x)))
    # numbers of rows and columns that are, and that are not, multiples of the block size
    for rows, width in ((7, 127), (8, 128), (9, 129), (130, 784), (3, 1000)):
        for dtype in ("f4", "f8", "u1", "i4"):
            x = (RNG.normal(size=(rows, width)) * 50 + 100).astype(dtype)
            check("array.var", [x], np.var(x.astype("f8"), axis=0).astype("f4" if dtype == "f4" else "f8"), 1 << 12, axis=0)
    for ddof in (0, 1, 2.5):
        x = RNG.standard_normal((40, 5))
        check("array.var", [x], np.var(x, axis=0, ddof=ddof), 64, axis=0, ddof=ddof)
        check("array.std", [x], np.std(x, axis=1, ddof=ddof), 64, axis=1, ddof=ddof)
    # Far from zero, the variance must still be right, where a sum of squares would lose all digits.
    x = (RNG.standard_normal((5000, 3)) + 1e8)
    check("array.var", [x], np.var(x, axis=0), 1 << 24, axis=0)
    # The same at very large means. x - mean is exact here, so the reference is exact.
    for mean in (1e10, -1e10, 1e12, 2.0 ** 50):
        x = mean + RNG.standard_normal((20011, 3)) * 0.87
        want = np.var(x - mean, axis=0)
        check("array.var", [x], want, 1 << 10, axis=0)
        check("array.std", [x[:, 0]], np.sqrt(want[0]), 1 << 10)
        # parts of a collection, merged one after the other and as a tree
        for count in (2, 37, 149):
            parts = [HELPER.call("array.moments", p, axis=0) for p in np.array_split(x, count)]
            check("array.moments_var", [HELPER.call("array.moments_merge", parts)], want, 1 << 10)
            while len(parts) > 1:
                parts = [HELPER.call("array.moments_merge", *parts[i:i + 4]) for i in range(0, len(parts), 4)]
            check("array.moments_var", parts, want, 1 << 10)
            check("array.moments_mean", parts, mean + np.mean(x - mean, axis=0), 1)
    y = np.concatenate([[1e10], RNG.standard_normal(1000)])
    check("array.var", [y], np.var(y), 1 << 12)
    check("array.mean", [np.full(1000, 2 ** 62, "i8")], np.float64(2 ** 62))
    check("array.sum", [np.full(3, 200, "u1")], np.uint64(600))
    check("array.sum", [np.full(3, 2 ** 62, "i8")], np.full(3, 2 ** 62, "i8").sum())


def test_moments():
    for a in DTYPES:
        for shape, axis in [((40, 5), 0), ((40, 5), None), ((7, 3, 9), [0, 2]), ((1, 4), 0), ((300, 70), 0)]:
            x = values(a, shape, False)
            np_axis = tuple(axis) if isinstance(axis, list) else axis
            parts = np.array_split(x, 3, axis=0) if shape[0] > 2 and axis in (0, None) else [x]
            wide = x.astype("f8")
            m = [HELPER.call("array.moments", p, axis=axis) for p in parts]
            for p in m:
                CASES["array.moments"] += 1
                if p.dtype != np.float64 or p.shape[0] != 4:
                    report("array.moments", [x], show(p))
            merged = HELPER.call("array.moments_merge", *m)
            CASES["array.moments_merge"] += 1
            again = HELPER.call("array.moments_merge", m)
            if not np.array_equal(merged, again):
                report("array.moments_merge", m, "a list and single parts differ")
            scale = float(np.abs(wide).max(initial=1)) + 1
            for op, want in [("mean", wide.mean(axis=np_axis)), ("var", wide.var(axis=np_axis)), ("std", wide.std(axis=np_axis))]:
                CASES["array.moments_" + op] += 1
                got = HELPER.call("array.moments_" + op, merged)
                if not np.allclose(got, want, rtol=1e-9, atol=1e-12 * scale * scale) or np.shape(got) != np.shape(want):
                    report("array.moments_" + op, [x], f"got {show(got)}, wanted {show(want)}")
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 3)]:
        got = HELPER.call("array.moments", np.zeros(shape), axis=0)
        want = np.zeros((4,) + shape[1:])
        want[0] = shape[0]
        CASES["array.moments"] += 1
        if not np.array_equal(got, want):
            report("array.moments", [np.zeros(shape)], show(got))
        check("array.moments_mean", [got], np.zeros(shape).mean(axis=0))
    x = RNG.standard_normal((1000, 7)).astype("f4")
    tree = [HELPER.call("array.moments", p, axis=0) for p in np.array_split(x, 16)]
    while len(tree) > 1:
        tree = [HELPER.call("array.moments_merge", *tree[i:i + 3]) for i in range(0, len(tree), 3)]
    check("array.moments_mean", [tree[0]], x.astype("f8").mean(axis=0).astype("f4"), 4, dtype="f32")
    check("array.moments_var", [tree[0]], x.astype("f8").var(axis=0, ddof=1), 1 << 12, ddof=1)
    refused("array.moments_mean", [np.zeros((3, 3))], "expected moments, f64[4,…], got f64[3,3]")
    refused("array.moments_merge", [np.zeros((4, 2)), np.zeros((4, 4))], "differ in shape")
    refused("array.moments_mean", [np.zeros((4, 2))], "expected f16, f32 or f64", dtype="i32")
    for op, f in [("sum", np.sum), ("min", np.min), ("max", np.max), ("prod", np.prod), ("any", np.any), ("all", np.all)]:
        for a in DTYPES:
            x = values(a, (20, 3), False)
            if op == "prod":
                x = (x != 0).astype(a)
            parts = [HELPER.call("array.reduce_partial", p, op, axis=0) for p in np.array_split(x, 4)]
            want = f(x.astype("f8") if a in FLOATS and op in ("sum", "prod") else x, axis=0)
            check("array.reduce_merge", [op, parts], np.asarray(want), 64)
    check("array.reduce_partial", [np.full(4, 200, "u1"), "sum"], np.uint64(800))
    check("array.reduce_partial", [np.full((4, 2), 0.1, "f4"), "sum"], np.full((4, 2), np.float32(0.1), "f8").sum(axis=0), 8, axis=0)
    refused("array.reduce_partial", [np.zeros(3), "median"], 'got "median"')
    refused("array.reduce_merge", ["mean", [np.zeros(3)]], "expected sum, prod, min, max, any or all")
    refused("array.reduce_merge", ["sum", []], "needs one part")


def test_shapes():
    for a in DTYPES:
        x = values(a, (4, 6))
        for shape in ([24], [-1], [2, -1], [3, 8], [4, 6], [1, 24, 1], [2, 2, 2, 3]):
            check("array.reshape", [x, shape], x.reshape(shape))
        # -1 as a length, with empty arrays
        empty = np.zeros((0, 3), a)
        for shape in ([-1], [-1, 4], [0, -1], [2, -1], [0, 5], [3, 0, 2]):
            check_or_refused("array.reshape", [empty, shape], lambda: empty.reshape(shape), "do not fill it")
        refused("array.reshape", [empty, [-1, 0]], "do not fill it")
        check("array.transpose", [x], x.T)
        y = values(a, (2, 3, 4, 5))
        check("array.transpose", [y, [2, 0, -1, 1]], y.transpose(2, 0, 3, 1))
        for to in DTYPES:
            v = values(a, (40,), False)
            if a in FLOATS and to[0] == "u":
                v = np.abs(v)
            check("array.astype", [v, NAMES[to]], v.astype(to))
            if a not in FLOATS or to in FLOATS:
                w = values(a, (40,))
                check("array.astype", [w, NAMES[to]], w.astype(to))
        parts = [values(a, (n, 3)) for n in (2, 0, 4)]
        check("array.concat", [parts], np.concatenate(parts))
        check("array.stack", [[x, x + x]], np.stack([x, x + x]))
        check("array.stack", [[x, x]], np.stack([x, x], axis=-1), axis=-1)
        check("array.tile", [x, 2], np.tile(x, 2))
        check("array.tile", [x, [2, 1, 3]], np.tile(x, (2, 1, 3)))
        check("array.tile", [values(a, (3,)), [0]], np.tile(values(a, (3,)), 0))
        check("array.copy", [x], x)
        check("array.take", [x, [0, -1, 2, 2]], np.take(x, [0, -1, 2, 2], axis=0))
        check("array.take", [y, np.array([[0, 1], [2, 0]], "i4")], np.take(y, [[0, 1], [2, 0]], axis=1), axis=1)
        check("array.where", [x != 0, x, x + x], np.where(x != 0, x, x + x))
        for n in (1, 3, 4, 7):
            got = HELPER.call("array.split", y, n, axis=3)
            for i, (g, w) in enumerate(zip(got, np.array_split(y, n, axis=3))):
                CASES["array.split"] += 1
                if same(g, w, 0):
                    report("array.split", [y], f"{n} parts: part {i}: {same(g, w, 0)}")
                check("array.part", [y, i, n], w, axis=3)
    check("array.astype", [np.array([300.7, -300.7, np.nan, 1e30]), "i8"], np.array([127, -128, 0, 127], "i1"))
    check("array.astype", [np.array([-1.5, 300, 2.9]), "u8"], np.array([0, 255, 2], "u1"))
    check("array.concat", [[values("i1", (2,)), values("u1", (2,))]], np.zeros(4, "i2") * 0 + np.concatenate([values("i1", (0,)), values("u1", (0,)), np.zeros(4, "i2")])[:4]) if False else None
    a, b = values("i2", (2, 3)), values("f4", (2, 2))
    check("array.concat", [[a, b]], np.concatenate([a, b], axis=1), axis=1)
    x = values("f8", (5, 7, 3))
    for start, stop, step in itertools.product([None, 0, 2, -3, 9], [None, 5, -1, 0], [None, 1, 2, -1, -3]):
        check("array.slice", [x, start, stop, step], x[start:stop:step])
        check("array.slice", [x, [None, start], [None, stop], [None, step]], x[:, start:stop:step])
    refused("array.reshape", [x, [4, 4]], "the 105 elements of f64[5,7,3] do not fill it")
    refused("array.reshape", [x, [-1, -1]], "only one length may be -1")
    refused("array.reshape", [np.zeros((0, 3)), [-1, 0]], "do not fill it")
    refused("array.transpose", [x, [0, 1]], "each of the 3 axes once")
    refused("array.transpose", [x, [0, 1, 1]], "given twice")
    refused("array.concat", [[]], "needs one tensor")
    refused("array.concat", [[np.zeros((2, 2)), np.zeros((2, 3))]], "differ in more than axis 0")
    refused("array.concat", [[np.float64(1), np.float64(2)]], "axis 0 of 0")
    refused("array.stack", [[np.zeros(2), np.zeros(3)]], "differ in shape")
    refused("array.take", [x, [5]], "no element 5 along an axis of 5")
    refused("array.take", [x, [0.5]], "expected integers, got f64")
    refused("array.slice", [x, 0, 1, 0], "expected not 0")
    refused("array.slice", [x, [0, 0, 0, 0]], "4 bounds for a tensor of 3 axes")
    refused("array.split", [x, 0], "expected 1 to 65536, got 0")
    refused("array.part", [x, 3, 3], "expected 0 to 2, got 3")
    refused("array.astype", [x, "f128"], 'no type "f128"')
    refused("array.tile", [x, -1], "expected 0 to")


def test_clip():
    for a in DTYPES[1:]:
        x = values(a, (50,))
        low, high = np.dtype(a).type(3), np.dtype(a).type(50)
        check("array.clip", [x, 3, 50], np.clip(x, low, high))
        check("array.clip", [x, 3], np.maximum(x, low))
        check("array.clip", [x], np.minimum(x, high), high=50)
    refused("array.clip", [values("f4", (3,))], 'needs "low" or "high"')


def check_or_refused(op, args, numpys, words):
    try:
        want = numpys()
    except (ValueError, OverflowError):
        return refused(op, args, words)
    return check(op, args, want)


def test_outside():
    """A number outside an integer type is refused as an element of an array; comparisons with it
    work as in NumPy."""
    compare = {"equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
               "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b}
    for a in INTS:
        info = np.iinfo(a)
        x = np.array([[info.min, 0, 1, info.max]], a)
        for n in (info.min - 1, info.max + 1, -1, 300, -(1 << 63), (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
            if not -(1 << 63) <= n < 1 << 64:
                continue
            exact = x.astype(object)
            for name, f in compare.items():
                check("array." + name, [x, n], f(exact, n).astype(bool))
                check("array." + name, [n, x], f(n, exact).astype(bool))
            if info.min <= n <= info.max:
                check("array.full", [[2], n], np.full(2, n, a), dtype=NAMES[a])
                check("array.from_list", [[0, n]], np.array([0, n], a), dtype=NAMES[a])
            else:
                refused("array.full", [[2], n], f'argument "value": {n} does not fit {NAMES[a]}', dtype=NAMES[a])
                refused("array.from_list", [[0, n]], f'argument "items": {n} does not fit {NAMES[a]}', dtype=NAMES[a])
        for n in (float("nan"), float("inf"), 1e30):
            refused("array.full", [[2], n], f"does not fit {NAMES[a]}", dtype=NAMES[a])
            refused("array.from_list", [[[0.5], [n]]], f"does not fit {NAMES[a]}", dtype=NAMES[a])
        check("array.full", [[2], 100.75], np.full(2, 100, a), dtype=NAMES[a])
        check("array.full", [[2], np.array([1 << 40])], np.full(2, 0, a) if info.bits < 64 else np.full(2, 1 << 40, a), dtype=NAMES[a])
    check("array.less", [np.zeros((0, 3), "u1"), 300], np.zeros((0, 3), bool))
    refused("array.add", [np.zeros(3, "u1"), 300], "300 does not fit u8")


def test_create():
    for a in DTYPES:
        check("array.full", [[2, 3], 1], np.full((2, 3), 1, a), dtype=NAMES[a])
        check("array.zeros", [[0, 3], NAMES[a]], np.zeros((0, 3), a))
        if a not in ("bool",):
            check("array.arange", [0, 10, 3], np.arange(0, 10, 3).astype(a), dtype=NAMES[a])
    check("array.full", [[2, 3], 1.5], np.full((2, 3), 1.5))
    check("array.full", [[2, 3], [1, 2, 3]], np.full((2, 3), [1, 2, 3]))
    check("array.full", [[], 7], np.full((), 7))
    refused("array.full", [[3], [[1, 2, 3]]], "larger than the shape")
    refused("array.full", [[1], [1, 2, 3]], "larger than the shape")
    refused("array.full", [[1 << 39, 1 << 39], 0], "array.full: ")
    refused("array.full", [[-1], 0], "expected 0 to")
    for args in [(5,), (2, 9), (9, 2, -2), (0, 1, 0.1), (1.5, -2, -0.25), (0,), (3, 3)]:
        check("array.arange", list(args), np.arange(*args))
    refused("array.arange", [0, 1, 0], "expected not 0")
    refused("array.arange", [0, 1e30], "are too many")
    check("array.from_list", [[[1, 2], [3, 4]]], np.array([[1, 2], [3, 4]]))
    check("array.from_list", [[[1, 2.5]], "f32"], np.array([[1, 2.5]], "f4"))
    check("array.from_list", [[True, False]], np.array([True, False]))
    check("array.from_list", [[]], np.array([]))
    check("array.one_hot", [np.array([0, 2, 1], "u1"), 3], np.eye(3, dtype="f4")[[0, 2, 1]])
    check("array.one_hot", [np.array([[0], [1]], "i8"), 2, "bool"], np.eye(2, dtype="bool")[[[0], [1]]])
    check("array.one_hot", [np.zeros(0, "i4"), 5, "i16"], np.zeros((0, 5), "i2"))
    refused("array.one_hot", [[0, 3], 3], "label 3 is not one of 3 classes")
    refused("array.one_hot", [[0, -1], 3], "label -1")
    refused("array.one_hot", [[0.5], 3], "expected integers, got f64")
    x = RNG.integers(0, 256, (50, 28)).astype("u1")
    check("array.scale", [x], x.astype("f4") / np.float32(255))
    check("array.scale", [x, 10, 20], (x.astype("f8") - 10) / 10, dtype="f64")
    check("array.scale", [x], (x.astype("f4") / np.float32(255)).astype("f2"), dtype="f16")
    refused("array.scale", [x.astype("f4")], 'argument "high" is needed for f32')
    refused("array.scale", [x, 3, 3], 'expected "low" < "high"')


def test_lists():
    x = [values(a, (2, 3), False) for a in ("i4", "f4", "i4")]
    check("array.mean", [x], np.stack(x).mean(axis=0), 8, axis=0)
    check("array.max", [[[x[0], x[2]], [x[2], x[0]]]], np.array([[x[0], x[2]], [x[2], x[0]]]).max(axis=1), axis=1)
    check("array.add", [[np.float32(1.5), 2], 1], np.array([1.5, 2], "f8") + 1)
    check("array.from_list", [[np.int8(3), True]], np.array([3, 1], "i1"))
    check("array.sum", [[[], []]], np.float64(0))
    check("array.from_list", [[[2 ** 63, 1]]], np.array([[2.0 ** 63, 1]]))
    refused("array.mean", [[x[0], x[0].T]], "the items of the list differ in shape")
    refused("array.mean", [[x[0], 1]], "the items of the list differ in shape")
    refused("array.mean", [[[1], 2]], "must have one length")
    deep = 1
    for _ in range(17):
        deep = [deep]
    refused("array.mean", [deep], "nested deeper than 16")


def test_random():
    for name, bits in [("pcg64", np.random.PCG64), ("philox", np.random.Philox)]:
        for seed in (0, 1, 42, 2 ** 32, 2 ** 62 + 12345):
            g = lambda: np.random.Generator(bits(seed))
            check("array.random", [[1000], seed], g().random(1000), generator=name)
            check("array.random", [[10, 11], seed], g().uniform(-2, 5, (10, 11)), 1, generator=name, low=-2, high=5)
            check("array.random", [[1001], seed], g().random(1001, dtype="f4"), generator=name, dtype="f32")
            for low, high in [(0, 1), (0, 10), (-5, 5), (0, 2 ** 32), (0, 2 ** 32 + 5), (-2 ** 63, 2 ** 63 - 1), (0, 2 ** 31 + 1)]:
                check("array.random", [[999], seed], g().integers(low, high, 999), generator=name, distribution="integers", low=low, high=high)
            stream = np.random.Generator(bits(np.random.SeedSequence(seed, spawn_key=(3,))))
            check("array.random", [[100], seed], stream.random(100), generator=name, stream=3)
        normal = HELPER.call("array.random", [200000], 5, generator=name, distribution="normal", mean=3, std=2)
        u = np.random.Generator(bits(5)).integers(0, 2 ** 64, 200000, dtype="u8", endpoint=False) >> np.uint64(11)
        import statistics
        dist = statistics.NormalDist()
        want = [3 + 2 * dist.inv_cdf((float(v) + 0.5) / 2 ** 53) for v in u[:2000]]
        CASES["array.random"] += 1
        if not np.allclose(normal[:2000], want, rtol=1e-12) or abs(normal.mean() - 3) > 0.03 or abs(normal.std() - 2) > 0.03:
            report("array.random", [], f"normal: mean {normal.mean()}, std {normal.std()}")
    refused("array.random", [[3], 1], "expected pcg64 or philox, got \"mt\"", generator="mt")
    refused("array.random", [[3], 1], "expected uniform, normal or integers", distribution="cauchy")
    refused("array.random", [[3], -1], "expected 0 to")
    refused("array.random", [[3], 1], 'ints "low" < "high"', distribution="integers", low=3, high=3)
    refused("array.random", [[3], 1], "0 or more", distribution="normal", std=-1)


def test_matmul():
    pairs = [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
             ((0, 4), (4, 3)), ((3, 0), (0, 2)), ((65, 70), (70, 33))]
    for a in DTYPES:
        for b in (a, "f4"):
            for sa, sb in pairs:
                x, y = values(a, sa, False), values(b, sb, False)
                t = np.result_type(a, b)
                want = np.matmul(x.astype("f8"), y.astype("f8")) if t.kind == "f" else np.matmul(x, y)
                op = "array.matmul"
                if FILTER not in op:
                    continue
                CASES[op] += 1
                got = np.asarray(HELPER.call(op, x, y))
                if t.kind == "f":
                    eps = float(np.finfo(t).eps) * 200 * (1 + float(np.abs(x).astype("f8").max(initial=0)) * float(np.abs(y).astype("f8").max(initial=0)))
                    ok = got.shape == np.shape(want) and np.allclose(got.astype("f8"), want.astype(t).astype("f8"), rtol=float(np.finfo(t).eps) * 8, atol=eps)
                else:
                    ok = got.shape == np.shape(want) and np.array_equal(got, want)
                if not ok:
                    report(op, [x, y], f"got {show(got)}, wanted {show(np.asarray(want))}")
    refused("array.matmul", [np.zeros((2, 3)), np.zeros((2, 3))], "f64[2,3] and f64[2,3] cannot be multiplied")
    refused("array.matmul", [np.zeros((2, 3)), 1.0], "cannot be multiplied")
    refused("array.matmul", [np.zeros((2, 2, 3)), np.zeros((3, 3, 3))], "cannot be broadcast")


def test_scalars_with_tensors():
    x, y = values("f8", (3, 4), False), values("i4", (4,), False)
    check("add", [x, y], x + y)
    check("inc", [y], y + 1)
    check("sub", [1, x], 1 - x)
    check("mul", [x, 2.5], x * 2.5)
    check("div", [y, 4], y / 4)
    check("neg", [x], -x)
    check("abs", [y], np.abs(y))
    check("pow", [np.abs(x), 0.5], np.abs(x) ** 0.5, 4)
    check("mod", [y, 7], y % np.int32(7))
    check("floor_div", [y, 7], y // np.int32(7))
    check("sum", [x], np.sum(x), 16)
    check("min", [x], np.min(x))
    check("max", [y], np.asarray(np.max(y).astype("i8")))
    check("sum", [[x, x, 1]], x + x + 1)
    check("sum", [x, x], x + x)
    check("min", [[x, x + 1, 0.0]], np.minimum(np.minimum(x, x + 1), 0.0))
    check("max", [x, y], np.maximum(x, y))
    check("compare", [x, "<", 0], x < 0)
    check("compare", [x, "==", x], x == x)
    check("not", [y], np.logical_not(y))
    check("where", [x > 0, x, 0.0], np.where(x > 0, x, 0.0))
    check("where", [True, x, y], x)
    check("len", [x], 3)
    check("get_item", [x, -1], x[-1])
    check("get_item", [x, [1, 2]], float(x[1, 2]))
    check("get_item", [y, 0], int(y[0]))
    refused("get_item", [x, 3], "no item 3 among 3")
    refused("get_item", [x, [0, 0, 0]], "3 indices into a tensor of 2 axes")
    check("concat", [x, x], np.concatenate([x, x]))
    check("concat", [[x, y.reshape(1, 4)]], np.concatenate([x, y.reshape(1, 4)]))
    check("concat", [b"ab", b"c"], b"abc")
    check("identity", [x], x)
    check("sleep", [0, x], x)
    got = HELPER.call("list", x, 1, "a")
    CASES["list"] += 1
    if not np.array_equal(got[0], x) or got[1:] != [1, "a"]:
        report("list", [x], show(got))
    check("sum", [np.float64(2.5)], 2.5)
    check("dict", [[["a", 1], ["b", [2]]]], {"a": 1, "b": [2]})
    check("dict", [{"a": 1}], {"a": 1})
    refused("dict", [[["a"]]], "item 0: expected [name, value]")
    refused("fail", ["on purpose"], "fail: on purpose")
    refused("range", [0, 10, 0], "expected not 0")


def test_files(folder):
    for a in DTYPES:
        x = values(a, (5, 3))
        np.save(folder / "x.npy", x)
        check("array.from_npy", ["x.npy"], x)
        check("array.from_npy", [str(folder / "x.npy")], x)
        check("array.from_npy", [(folder / "x.npy").read_bytes()], x)
        np.save(folder / "f.npy", np.asfortranarray(x))
        check("array.from_npy", ["f.npy"], x)
        np.save(folder / "b.npy", x.astype(x.dtype.newbyteorder(">")))
        check("array.from_npy", ["b.npy"], x)
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    # gzipped files
    a, b = values("f4", (5, 3)), values("i8", (4,))
    np.savez(folder / "two.npz", a=a, b=b)
    np.savez_compressed(folder / "one.npz", np.zeros(5000))
    check("array.from_npy", ["two.npz", "a"], a)
    check("array.from_npy", ["two.npz", "b.npy"], b)
    check("array.from_npy", ["one.npz"], np.zeros(5000))
    check("array.from_npy", [(folder / "two.npz").read_bytes(), "b"], b)
    refused("array.from_npy", ["two.npz"], "say which array; the archive has a, b")
    refused("array.from_npy", ["two.npz", "c"], "there is no such array; the archive has a, b")
    np.save(folder / "x.npy", a)
    for level in (1, 9):
        (folder / "x.npy.gz").write_bytes(gzip.compress((folder / "x.npy").read_bytes(), level))
        check("array.from_npy", ["x.npy.gz"], a)
    check("array.from_npy", [(folder / "x.npy.gz").read_bytes()], a)
    (folder / "cut.npy.gz").write_bytes((folder / "x.npy.gz").read_bytes()[:-9])
    refused("array.from_npy", ["cut.npy.gz"], "damaged or cut off")
    (folder / "cut.npz").write_bytes((folder / "two.npz").read_bytes()[:-30])
    refused("array.from_npy", ["cut.npz"], "cut off")
    (folder / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2.5\n") + gzip.compress(b"3,4.5\n"))
    plain = HELPER.call("table.from_csv", b"a,b\n1,2.5\n3,4.5\n")
    for source in ("t.csv.gz", (folder / "t.csv.gz").read_bytes()):
        CASES["table.from_csv"] += 1
        if HELPER.call("table.from_csv", source) != plain:
            report("table.from_csv", [source], "a gzipped file gives another table")
    images = RNG.integers(0, 256, (7, 4, 5)).astype("u1")
    raw = struct.pack(">HBBIII", 0, 8, 3, 7, 4, 5) + images.tobytes()
    (folder / "i-idx3-ubyte").write_bytes(raw)
    (folder / "i-idx3-ubyte.gz").write_bytes(gzip.compress(raw))
    for source in ("i-idx3-ubyte", "i-idx3-ubyte.gz", raw, gzip.compress(raw)):
        check("array.from_idx", [source], images)
    (folder / "short.npy").write_bytes((folder / "x.npy").read_bytes()[:-1])
    (folder / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\x04\x00abcd")
    refused("array.from_npy", ["short.npy"], '"short.npy": the file is shorter')
    refused("array.from_npy", ["bad.npy"], '"bad.npy": ')
    refused("array.from_npy", ["absent.npy"], 'no file "absent.npy" beneath the data root')
    refused("array.from_npy", ["../x.npy"], "--data-root")
    check("digits.load", ["i-idx3-ubyte.gz"], images)
    check("digits.load", ["i-idx3-ubyte.gz", 7, 0, "images", 0, True], images.reshape(7, 20))
    check("digits.load", ["i-idx3-ubyte", 7, 0, "images", 0, True], images.reshape(7, 20))
    # A named data set is read or refused; only if none is named, digits are drawn.
    check("digits.load", [[".", "i-idx3-ubyte.gz"]], images)
    for nothing in (None, [None, "absent"]):
        check("digits.load", [nothing, 20, 3, "images", 0, True], HELPER.call("digits.draw", 20, 3).reshape(20, 784))
        check("digits.load", [nothing, 20, 3], HELPER.call("digits.draw", 20, 3))
        check("digits.load", [nothing, 20, 3, "labels", 40], HELPER.call("digits.draw", 20, 3, 40, "labels"))
        check("digits.source", [nothing, 4], "drawn with seed 4: no data was given")
    check("digits.source", ["i-idx3-ubyte.gz"], "read from i-idx3-ubyte.gz")
    check("digits.source", [[".", "i-idx3-ubyte.gz"]], "read from ./i-idx3-ubyte.gz")
    for op in ("digits.load", "digits.source"):
        refused(op, ["absent"], 'no file "absent" beneath the data root')
        refused(op, [[".", "absent"]], 'no file "./absent" beneath the data root')
        refused(op, ["../absent"], '"../absent" lies outside the data root')
        refused(op, ["/etc/passwd"], "start with --data-root DIR")
        refused(op, ["folder"], "is a directory")
        refused(op, ["loop"], "too many links")
        refused(op, [["x"]], "[directory, name]")
        refused(op, [""], "expected a path")
    refused("digits.load", ["bad.npy"], '"bad.npy": ')
    refused("array.from_npy", ["/etc/passwd"], "--data-root")
    refused("array.from_idx", ["."], "is a directory")
    refused("array.from_idx", [b"\0\0\x08"], "array.from_idx: ")
    text = "\n".join(f"line {i} {'wörd ' * (i % 7)}" for i in range(5000)) + "\n"
    (folder / "t.txt").write_text(text, encoding="utf-8")
    size = len(text.encode())
    check("text.read", ["t.txt"], text)
    check("text.read", ["t.txt", 0, 7], text[:7])
    for step in (1000, 4096, 33333, size, 7):
        starts = range(0, size, step) if step > 100 else range(0, 200, step)
        parts = [HELPER.call("text.read", "t.txt", s, step, delimiter="\n") for s in starts]
        CASES["text.read"] += 1
        whole = "".join(parts)
        if whole != text and not (step == 7 and text.startswith(whole) and whole.endswith("\n")):
            report("text.read", ["t.txt", step], f"{len(whole)} characters of {len(text)}")
    refused("text.read", ["t.txt", 0, text.index("ö") + 1], "are not UTF-8")
    refused("text.read", ["t.txt", 0, 5, "ab"], "expected one character")
    (folder / "x.bin").write_bytes(b"\xff\xfe")
    refused("text.read", ["x.bin"], "are not UTF-8")


def test_text():
    text = "the cat  the\tdog\n\nThe cat\u00e9 naïve "
    check("text.split", [text], [w for w in text.split(" ") for w in w.split()])
    check("text.split", [text, " "], text.split(" "))
    check("text.split", ["a--b----c", "--"], "a--b----c".split("--"))
    check("text.split", ["", "x"], "".split("x"))
    check("text.split", [""], [])
    refused("text.split", ["a", ""], "is empty")
    big = " ".join(RNG.choice([f"w{i}" for i in range(3000)], 50000).tolist())
    want = dict(sorted(collections.Counter(big.split()).items()))
    check("text.count_words", [big], want)
    check("text.count_words", [["A b", "a B b"]], {"a": 2, "b": 3}, lower=True)
    check("text.count_words", [[]], {})
    parts = [dict(collections.Counter(big[i:i + 5000].split())) for i in range(0, len(big), 5000)]
    merged = dict(sorted(sum((collections.Counter(p) for p in parts), collections.Counter()).items()))
    check("text.merge_counts", parts, merged)
    check("text.merge_counts", [parts], merged)
    check("text.merge_counts", [], {})
    top = [[w, n] for w, n in sorted(want.items(), key=lambda p: (-p[1], p[0]))[:5]]
    check("text.top", [want, 5], top)
    refused("text.merge_counts", [{"a": "x"}], '"a": expected int, got text')
    refused("text.merge_counts", [{"a": 2 ** 63 - 1}, {"a": 1}], "does not fit 64 bits")
    refused("text.count_words", [[1]], "expected texts, got int")


def test_tables(folder):
    rows = [(i, i * 0.5 if i % 7 else "", ["true", "false"][i % 2], f"na\u00efve, {i}" if i % 5 else "") for i in range(200)]
    csv = "id,half,even,name\n" + "".join(f'{a},{b},{c},"{d}"\n' if d else f"{a},{b},{c},\n" for a, b, c, d in rows)
    (folder / "t.csv").write_text(csv, encoding="utf-8")
    for source in ("t.csv", csv.encode()):
        t = HELPER.call("table.from_csv", source)
        CASES["table.from_csv"] += 1
        if t[:2] != ("extent", 2):
            report("table.from_csv", [], show(t))
    HELPER.extents["t"] = t[2]
    table = Extent("t")
    check("table.columns", [table], [["id", "i64"], ["half", "f64"], ["even", "bool"], ["name", "utf8"]])
    half = np.array([np.nan if r[1] == "" else r[1] for r in rows])
    ids = np.arange(200)
    even = np.array([r[2] == "true" for r in rows])
    check("table.column", [table, "id"], ids)
    check("table.column", [table, "half"], half)
    check("table.column", [table, "even"], even)
    check("table.column", [table, "name"], [r[3] or None for r in rows])
    check("table.to_tensor", [table], np.stack([ids, half, even], axis=1).astype("f8"))
    check("table.to_tensor", [table, ["half", "id"], "f32"], np.stack([half, ids], axis=1).astype("f4"))
    check("len", [table], 200)
    for n in (0, 1, 63, 200, 1000):
        HELPER.extents["h"] = HELPER.call("table.head", table, n)[2]
        head = Extent("h")
        CASES["table.head"] += 1
        check("len", [head], min(n, 200))
        if n:
            check("table.column", [head, "name"], [r[3] or None for r in rows[:n]])
            check("table.to_tensor", [head], np.stack([ids, half, even], axis=1).astype("f8")[:n])
    refused("table.column", [table, "absent"], "table.column: ")
    refused("table.to_tensor", [table, ["name"]], 'column "name" is utf8, not numbers')
    refused("table.to_tensor", [table, None, "i32"], "expected f16, f32 or f64")
    refused("table.from_csv", ["t.csv", "ab"], "expected one character")
    refused("table.from_csv", [b"a,b\n1,2\n3\n"], "table.from_csv: ")
    refused("table.head", [np.zeros(3)], 'argument "table": expected value, got tensor')


def png_pixels(b):
    assert b[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, colour = struct.unpack(">IIBB", b[16:26])
    data, at = b"", 8
    while at < len(b):
        n, kind = struct.unpack(">I4s", b[at:at + 8])
        data += b[at + 8:at + 8 + n] if kind == b"IDAT" else b""
        at += 12 + n
    return width, height, depth, colour, zlib.decompress(data)


def test_images():
    x = RNG.integers(0, 256, (9, 12)).astype("u1")
    CASES["image.png"] += 1
    if png_pixels(HELPER.call("image.png", x))[:4] != (12, 9, 8, 0):
        report("image.png", [x], "wrong header")
    HELPER.call("image.png", RNG.random((9, 12)), low=0, high=1)
    HELPER.call("image.png", RNG.integers(0, 256, (9, 12, 3)).astype("u1"))
    refused("image.png", [np.zeros(3)], "image.png: ")
    refused("image.png", [x], "go together", low=1)
    digits = HELPER.call("digits.draw", 300, 5)
    labels = HELPER.call("digits.draw", 300, 5, what="labels")
    CASES["digits.draw"] += 3
    if digits.shape != (300, 28, 28) or digits.dtype != np.uint8 or set(labels) != set(range(10)):
        report("digits.draw", [], f"{show(digits)} {show(labels)}")
    if not np.array_equal(HELPER.call("digits.draw", 50, 5, 100), digits[100:150]):
        report("digits.draw", [], "a range differs from the same range of the whole")
    means = np.array([digits[labels == d].mean(axis=0) for d in range(10)])
    distance = ((digits[:, None].astype("f8") - means[None]) ** 2).sum(axis=(2, 3))
    if (distance.argmin(axis=1) == labels).mean() < 0.8:
        report("digits.draw", [], f"only {(distance.argmin(axis=1) == labels).mean():.2f} lie nearest to their own kind")


def test_collections():
    parts = [values("f4", (n, 3)) for n in (4, 2, 5)]
    got = HELPER.call("collection", parts)
    CASES["collection"] += 1
    if got[:2] != ("extent", 6):
        report("collection", [], show(got))
    refused("collection", [[np.zeros((2, 3)), np.zeros((2, 4))]], "differs from part 0 in the length of axis 1")
    refused("array.collection", [[np.zeros((2, 3))]], "axis 5 of 2", axis=5)
    for args in (parts, [parts]):
        CASES["collection"] += 1
        if HELPER.call("collection", *args) != got:
            report("collection", [], "a list and single parts differ")
    flat = HELPER.call("array.collection", [p.T for p in parts], axis=1)
    CASES["array.collection"] += 1
    if flat[:2] != ("extent", 6) or flat == got:
        report("array.collection", [], show(flat))
    refused("array.partition", [1, 0], 'argument "collection": expected value, got int')


def test_plugin():
    check("example.collatz", [27], 111)
    x = values("f4", (20,), False)
    check("example.smooth", [x, 4], np.convolve(x.astype("f8"), np.ones(4) / 4, "valid").astype("f4"), 64)
    refused("example.smooth", [x.astype("f8")], "expected f32 with one axis")
    refused("example.collatz", [0], "expected an int from 1")


def main():
    global HELPER, FILTER
    helper, plugin = sys.argv[1:3]
    FILTER = sys.argv[3] if len(sys.argv) > 3 else ""
    with tempfile.TemporaryDirectory() as folder:
        HELPER = Helper(helper, "--data-root", folder, "--plugin", plugin)
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(pathlib.Path(folder)) if test.__code__.co_argcount else test()
        code = HELPER.close()
    names = subprocess.run([helper, "--plugin", plugin, "--list", ""], capture_output=True, text=True, check=True).stdout.split()
    # tested by ops_glm.py, ops_sklearn.py and unit tests
    untested = [n for n in names if not CASES[n] and n != "example.crash" and not n.startswith(("glm.", "ml.", "nn."))]
    if not FILTER and untested:
        BAD.extend(untested)
        print("operators without a case:", *untested)
    print(f"{sum(CASES.values())} cases of {len(CASES)} operators, {len(BAD)} failed; helper ended with {code}")
    if BAD:
        print(dict(collections.Counter(BAD)))
    return 1 if BAD or code or not CASES else 0


if __name__ == "__main__":
    sys.exit(main())
