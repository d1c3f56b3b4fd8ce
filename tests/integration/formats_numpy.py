#!/usr/bin/env python3
"""Files that NumPy, gzip and Python's csv module write are read by us, and the other way round.

Usage: formats_numpy.py PATH_OF_format_convert
Exit status 77: nothing was checked, and standard output says why.
"""
import csv
import gzip
import io
import itertools
import json
import math
import os
import subprocess
import sys
import unittest

try:
    import numpy as np
except ImportError:
    np = None

CONVERT = None
DATA = os.environ.get(
    "MILLRACE_TEST_DATA",
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "data"))
DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def convert(source, target, data, *options, fails=False):
    done = subprocess.run([CONVERT, source, target, *options], input=data, capture_output=True,
                          timeout=120, check=False)
    if fails:
        assert done.returncode == 1, (done.returncode, done.stderr)
        return done.stderr.decode()
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def npy_bytes(array, version=None):
    out = io.BytesIO()
    if version:
        np.lib.format.write_array(out, array, version=version)
    else:
        np.save(out, array)
    return out.getvalue()


def sample(dtype, shape, seed):
    random = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype == "bool":
        flat = random.integers(0, 2, size).astype(bool)
    elif dtype[0] == "f":
        flat = (random.standard_normal(size) * 100).astype(dtype)
        for i, special in enumerate([np.nan, np.inf, -np.inf, -0.0]):
            if i < size:
                flat[i] = special
    else:
        info = np.iinfo(dtype)
        flat = random.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    return flat.reshape(shape)


def needs(path):
    full = os.path.join(DATA, path)
    if not os.path.exists(full):
        print(f"SKIPPED: {path} is not in MILLRACE_TEST_DATA", flush=True)
        raise unittest.SkipTest(path)
    return full


class Npy(unittest.TestCase):
    def same(self, expected, file_bytes):
        ours = np.load(io.BytesIO(convert("npy", "npy", file_bytes)), allow_pickle=False)
        self.assertEqual(ours.shape, expected.shape)
        self.assertEqual(ours.dtype, expected.dtype.newbyteorder("="))
        self.assertTrue(ours.flags.c_contiguous)
        self.assertEqual(ours.tobytes(), np.ascontiguousarray(expected, ours.dtype).tobytes())

    def test_every_dtype_shape_order_and_byte_order(self):
        shapes = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (2, 3, 4, 5), (1, 1, 1)]
        for dtype, shape, order, end in itertools.product(DTYPES, shapes, "CF", "<>"):
            array = sample(dtype, shape, len(shape))
            array = np.array(array.astype(array.dtype.newbyteorder(end)), order=order)
            with self.subTest(dtype=dtype, shape=shape, order=order, end=end):
                self.same(array, npy_bytes(array))

    def test_every_version_of_the_format(self):
        array = sample("f4", (4, 6), 1)
        for version in [(1, 0), (2, 0), (3, 0)]:
            self.same(array, npy_bytes(array, version))

    def test_the_same_bytes_as_numpy(self):
        for dtype in DTYPES:
            array = sample(dtype, (3, 4), 3)
            self.assertEqual(convert("npy", "npy", npy_bytes(array)), npy_bytes(array))

    def test_sixteen_axes_and_large_transposes(self):
        self.same(*(lambda a: (a, npy_bytes(a)))(sample("i4", (2,) * 16, 4)))
        for shape in [(500, 333), (17, 100, 90), (1000, 1, 100)]:
            array = np.asfortranarray(sample("f8", shape, 5))
            self.same(array, npy_bytes(array))

    def test_what_numpy_writes_and_we_do_not_read_is_named(self):
        for array in [np.zeros(2, "c16"), np.array(["ab"]), np.zeros(2, "M8[s]"),
                      np.zeros(2, [("a", "f4")])]:
            words = convert("npy", "npy", npy_bytes(array), fails=True)
            self.assertIn("npy header", words)

    def test_json_of_tensors_is_exact(self):
        for dtype in DTYPES:
            array = sample(dtype, (5, 8), 6)
            got = json.loads(convert("npy", "json", npy_bytes(array)))
            back = np.array([[float(x) if isinstance(x, str) else x for x in row] for row in got],
                            dtype=array.dtype)
            self.assertEqual(back.tobytes(), array.tobytes(), dtype)
            if dtype[0] != "f":
                again = convert("json", "npy", json.dumps(array.tolist()).encode(),
                                f"dtype={array.dtype.name}")
                self.assertEqual(again, npy_bytes(array))

    def test_f32_texts_are_the_shortest(self):
        array = np.random.default_rng(7).standard_normal(20000).astype("f4")
        got = convert("npy", "csv", npy_bytes(array)).decode().split()
        for text, number in zip(got, array):
            self.assertEqual(np.float32(text), number)
            short = np.format_float_positional(number, unique=True, trim="0")
            self.assertLessEqual(len(text), max(len(short), len(f"{number}")), (text, short))

    def test_pictures_decode(self):
        array = sample("u1", (9, 13), 8)
        png = convert("npy", "png", npy_bytes(array))
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")


class Idx(unittest.TestCase):
    CODES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}

    def idx(self, code, array):
        head = bytes([0, 0, code, array.ndim]) + b"".join(
            n.to_bytes(4, "big") for n in array.shape)
        return head + array.astype(self.CODES[code]).tobytes()

    def test_every_type_plain_and_zipped(self):
        for code, dtype in self.CODES.items():
            for shape in [(), (0,), (5,), (2, 3, 4)]:
                array = sample(dtype[1:], shape, code)
                plain = self.idx(code, array)
                for data in [plain, gzip.compress(plain)]:
                    ours = np.load(io.BytesIO(convert("idx", "npy", data)))
                    self.assertEqual(ours.tobytes(), array.tobytes())
                    self.assertEqual(convert("idx", "idx", data), plain)

    def test_mnist(self):
        for name in ["train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                     "train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz"]:
            with open(needs(os.path.join("mnist", name)), "rb") as file:
                zipped = file.read()
            plain = gzip.decompress(zipped)
            ndim = plain[3]
            shape = [int.from_bytes(plain[4 + 4 * i:8 + 4 * i], "big") for i in range(ndim)]
            want = np.frombuffer(plain, "u1", offset=4 + 4 * ndim).reshape(shape)
            ours = np.load(io.BytesIO(convert("idx", "npy", zipped)))
            self.assertEqual(ours.dtype, np.uint8)
            self.assertTrue(np.array_equal(ours, want))
            self.assertEqual(convert("idx", "idx", zipped), plain)


class Csv(unittest.TestCase):
    FILES = [("adult.data.csv", ",", False), ("adult.test.csv", ",", False),
             ("bank-additional.csv", ";", True), ("california_housing.csv", ",", True),
             ("higgs_500.test.tsv", "\t", False), ("higgs_7k.train.tsv", "\t", False),
             ("iris.csv", ",", True), ("nyc_taxis_2019_sample.csv", ",", True),
             ("nycflights_sample.csv", ",", True), ("taxi-fare-train.csv", ",", True),
             ("titanic.csv", ",", True)]

    def agree(self, text, value, where):
        """Does the value match the text of the field? Types are inferred, so a number may be
        written in another form; anything else is the same text."""
        if value is None:
            self.assertEqual(text, "", where)
        elif isinstance(value, bool):
            self.assertEqual(text.lower(), "true" if value else "false", where)
        elif isinstance(value, int):
            self.assertEqual(int(text), value, where)
        elif isinstance(value, float):
            number = float(text)
            self.assertTrue(number == value or (math.isnan(number) and math.isnan(value)), where)
        elif value in ("NaN", "Infinity", "-Infinity") and text != value:
            self.assertEqual(str(float(text)), str(float(value)), where)
        else:
            self.assertEqual(text, value, where)

    def check(self, data, delimiter, header, name):
        rows = [row for row in csv.reader(io.StringIO(data.decode(), newline=""),
                                          delimiter=delimiter) if row]
        names = rows.pop(0) if header else [f"column{i}" for i in range(len(rows[0]))]
        options = [f"delimiter={'tab' if delimiter == chr(9) else delimiter}",
                   f"header={'true' if header else 'false'}", "orient=columns"]
        columns = json.loads(convert("csv", "json", data, *options))
        self.assertEqual(list(columns), names, name)
        for index, key in enumerate(names):
            self.assertEqual(len(columns[key]), len(rows), name)
            for number, value in enumerate(columns[key]):
                self.agree(rows[number][index], value, f"{name} row {number} column {key}")
        again = convert("csv", "csv", data, *options)
        self.assertEqual(json.loads(convert("csv", "json", again, *options)), columns, name)

    def test_files(self):
        for name, delimiter, header in self.FILES:
            with open(needs(os.path.join("tabular", name)), "rb") as file:
                data = file.read()
            with self.subTest(name):
                self.check(data, delimiter, header, name)

    def test_columns_of_one_name_stay_apart(self):
        columns = json.loads(convert("csv", "json", b"a,a,b,a_1,a\n1,2,3,4,5\n", "orient=columns"))
        self.assertEqual(list(columns), ["a", "a_1", "b", "a_1_3", "a_4"])

    def test_what_the_csv_module_writes(self):
        fields = ["", "x", "a,b", 'say "hi"', "two\nlines", "cr\r\nlf", " sp ", "ü", "1", "-2.5e3",
                  "true", "nan", "'", "\t"]
        for quoting in [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]:
            out = io.StringIO(newline="")
            writer = csv.writer(out, quoting=quoting)
            writer.writerow(["a", "b"])
            for pair in itertools.product(fields, fields):
                writer.writerow(pair)
            data = out.getvalue().encode()
            columns = json.loads(convert("csv", "json", data, "orient=columns"))
            rows = list(csv.reader(io.StringIO(out.getvalue(), newline="")))[1:]
            for index, key in enumerate("ab"):
                for row, value in zip(rows, columns[key]):
                    self.assertEqual(row[index], value or "")


def main():
    global CONVERT
    if np is None:
        print("SKIPPED: this Python has no NumPy, which the test compares with", flush=True)
        sys.exit(77)
    CONVERT = sys.argv.pop(1)
    unittest.main()


if __name__ == "__main__":
    main()
