"""Checks that docs/values.md is enough to write a client: its examples are right, and values of a
codec that was written from it (value_codec.py) are accepted, used and returned unchanged by a
real cluster, and the other way round."""
import base64
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

try:
    import value_codec as codec
except OSError as missing:
    print(f"SKIPPED: {missing}: values.md was not tried", file=sys.stderr)
    sys.exit(77)
from harness import ROOT, Cluster, HttpError  # noqa: E402

VALUE = "application/vnd.millrace.value"
PAGE = (ROOT / "docs/values.md").read_text()
PART = bytes.fromhex("00000000000000ab0000000000000001")
PACKS = {
    "nil": None, "true": True, "1.0": 1.0, "-0.5": -0.5, '"hi"': "hi", '"ä"': "ä", "bytes `00 ff`": b"\x00\xff",
    '[1, "a", nil]': [1, "a", None], '{"a": 1, "b": []}': {"a": 1, "b": []}, "input slot 2": codec.Input(2),
    "object 00000000000000ab0000000000000001": codec.Object(PART), "the arguments (input slot 0, 3)": [codec.Input(0), 3],
}
EXTENTS = {
    "the scalar 42": (codec.PACK, 42),
    'the bytes "hi"': (codec.BYTES, b"hi"),
    "the i16 tensor [[1, 2, 3], [4, 5, 6]]": (codec.TENSOR, [[1, 2, 3], [4, 5, 6]]),
    'the table with the columns a (i64: 1, 2) and b (utf8, nullable: "x", missing)':
        (codec.TABLE, [("a", 5, False, [1, 2]), ("b", 13, True, ["x", None])]),
}


def dumps():
    """The name and the bytes of each hex dump on the page."""
    for size, name, text in re.findall(r"\n(\d+) bytes: ([^\n]*)\n\n```hex\n(.*?)```", PAGE, re.S):
        data, again = b"", False
        for line in text.splitlines():
            if line == "*":
                again = True
                continue
            at, _, row = line.partition("  ")
            while again and len(data) < int(at, 16):
                data += data[-16:]
            again = False
            assert len(data) == int(at, 16), line
            data += bytes.fromhex(row)
        assert len(data) == int(size), name
        yield name, data


class Page(unittest.TestCase):
    def test_packs(self):
        rows = re.findall(r"^\| (.+) \| `([0-9a-f ]+)` \|$", PAGE, re.M)
        self.assertGreaterEqual(len(rows), 20)
        for name, row in rows:
            value = PACKS[name] if name in PACKS else int(name)
            self.assertEqual(codec.pack(value).hex(" "), row, name)
            self.assertEqual(codec.unpack(bytes.fromhex(row)), value, name)
            self.assertIs(type(codec.unpack(bytes.fromhex(row))), type(value), name)

    def test_job_ids(self):
        rows = re.findall(r"^\| `(j\S+)` \| `0x([0-9a-f]+)` \|$", PAGE, re.M)
        self.assertEqual(len(rows), 3)
        for text, number in rows:
            self.assertEqual((codec.job_number(text), codec.job_text(int(number, 16))), (int(number, 16), text))

    def test_extents(self):
        seen = dict(dumps())
        self.assertEqual(len(seen), 5)
        for name, value in EXTENTS.items():
            self.assertEqual(codec.read(seen[name]), value, name)
        kind, whole = codec.read(next(v for k, v in seen.items() if "cut into" in k))
        first, second = whole["parts"]
        self.assertEqual((kind, whole["kind"], whole["axis"]), (codec.COLLECTION, codec.TENSOR, 0))
        self.assertEqual(codec.value_of(first[1]), (codec.TENSOR, [1, 2]))
        self.assertEqual((second[0], second[5], second[6]), (PART, (2,), (2,)))


class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "1", "--threads", "1")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def put(self, extent):
        status, _, body = self.cluster.request("POST", "/v1/objects", extent, {"Content-Type": VALUE})
        if status != 200:
            raise HttpError(status, body.decode())
        return json.loads(body)

    def get(self, object_id, accept=VALUE):
        status, _, body = self.cluster.request("GET", f"/v1/objects/{object_id}", headers={"Accept": accept})
        self.assertEqual(status, 200, body)
        return body

    def kept(self, extent, kind):
        """Stores the value, gets it back unchanged, and returns the kind that the store has
        recognised."""
        info = self.put(extent)
        self.assertEqual(info["kind"], kind)
        self.assertEqual(self.get(info["id"]), extent)
        return info

    def test_the_examples_are_taken(self):
        for name, data in dumps():
            if "cut into" not in name:  # this one names an object that does not exist
                self.kept(data, name.replace("scalar", "json").replace("i16 ", "").split()[1])

    def test_tensors(self):
        for dtype, name in enumerate("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64".split(), 1):
            for shape in ((), (3,), (2, 3), (2, 0, 3), (1,) * 16):
                count = 1
                for n in shape:
                    count *= n
                info = self.kept(codec.tensor(dtype, shape, [i % 2 for i in range(count)]), "tensor")
                self.assertEqual((info["dtype"], [int(n) for n in info["shape"]]), (name, list(shape)))
        turned = codec.extent(codec.TENSOR, codec.struct.pack("<6h", 1, 4, 2, 5, 3, 6), 3, (2, 3), (2, 4))
        self.assertEqual(codec.read(turned), (codec.TENSOR, [[1, 2, 3], [4, 5, 6]]))
        info = self.put(turned)
        self.assertEqual(json.loads(self.get(info["id"], "application/json")), [[1, 2, 3], [4, 5, 6]])

    def test_tables(self):
        columns = [("flag", 1, True, [True, None, False]), ("größe", 12, False, [1.5, -2.0, 0.0]), ("n", 2, True, [None, -3, 7]),
                   ("name", 13, True, ["ä", "", None]), ("raw", 16, False, [b"", b"\x00\xff", b"z"]), ("day", 17, False, [0, 1, -1]),
                   ("at", 20, False, [0, 10 ** 6, 1]), ("long", 15, False, ["a", "bc", ""])]
        self.assertEqual(self.kept(codec.table(columns), "table")["summary"].split("]")[0], "table[3 rows, 8 columns")
        text = self.get(self.put(codec.table(columns[1:4]))["id"], "text/csv").decode()
        self.assertEqual(text.splitlines()[0], "größe,n,name")
        self.assertEqual(len(text.splitlines()), 4)
        self.kept(codec.table([("empty", 13, False, [])]), "table")

    def test_collections_of_inline_parts(self):
        halves = [codec.tensor(3, (2,), v) for v in ([1, 2], [3, 4])]
        parts = [(None, codec.pack(codec.Extent(h)), len(h), codec.TENSOR, 3, (2 * i,), (2,)) for i, h in enumerate(halves)]
        whole = codec.collection(codec.TENSOR, (4,), 0, parts, dtype=3)
        self.kept(whole, "collection")
        self.assertEqual([codec.value_of(p[1])[1] for p in codec.read(whole)[1]["parts"]], [[1, 2], [3, 4]])

    def test_what_is_damaged_is_refused(self):
        whole = codec.tensor(3, (2,), [1, 2])
        wrongs = [whole[:64], whole[:-1], whole[:16] + b"\x01" + whole[17:], b"MRV2" + whole[4:],
                  codec.extent(codec.TENSOR, b"\0\0", 3, (2,), (2,)), codec.extent(codec.TENSOR, b"\0" * 4, 13, (2,), (2,)),
                  codec.extent(codec.PACK, b"\xa1\xff"), codec.extent(codec.PACK, b"\x01\x02"), codec.extent(codec.BYTES, b"x", flags=2)]
        for wrong in wrongs:
            with self.assertRaises(HttpError) as refused:
                self.put(wrong)
            self.assertEqual(refused.exception.status, 400)

    def run_graph(self, tasks, targets):
        done = self.cluster.call("POST", "/v1/jobs:graph", {"tasks": tasks, "targets": targets, "wait_s": 60})
        self.assertEqual(done["job"]["state"], "JOB_DONE", done)
        return done["id"]

    def result(self, job, key):
        status, _, body = self.cluster.request("GET", f"/v1/jobs/{job}/results/{key}", headers={"Accept": VALUE})
        self.assertEqual(status, 200, body)
        return body

    def test_packs_go_in_as_literals_and_come_out_as_results(self):
        values = [None, True, 0, 127, 128, 2 ** 64 - 1, -32, -33, -2 ** 63, 1.5, "", "ä" * 200, b"\x00" * 300, list(range(20)),
                  {"k" * 40: [None, {"deep": []}]}, {str(i): i for i in range(20)}]
        tasks = [{"key": f"v{i}", "value": {"pack": base64.b64encode(codec.pack(v)).decode()}} for i, v in enumerate(values)]
        tensor = codec.pack(codec.Extent(codec.tensor(5, (3,), [1, 2, 3])))
        tasks += [{"key": "t", "value": {"pack": base64.b64encode(tensor).decode()}},
                  {"key": "sum", "op": "array.sum", "args": [{"ref": "t"}]}]
        job = self.run_graph(tasks, [t["key"] for t in tasks])
        for i, v in enumerate(values):
            extent = self.result(job, f"v{i}")
            self.assertEqual(codec.read(extent), (codec.PACK, v))
            self.assertEqual(extent, codec.extent(codec.PACK, codec.pack(v)))
        self.assertEqual(self.result(job, "t"), codec.tensor(5, (3,), [1, 2, 3]))
        self.assertEqual(codec.read(self.result(job, "sum"))[1], 6)

    def test_what_operators_and_readers_make_is_understood(self):
        rows = {"x": ["array.from_list", [[1, 2], [3, 4]]], "big": ["array.arange", 0, 5000]}
        job = self.cluster.submit({"dsk": rows, "targets": list(rows)})
        self.assertEqual(self.cluster.wait(job)["state"], "JOB_DONE")
        self.assertEqual(codec.job_text(codec.job_number(job)), job)
        self.assertEqual(codec.read(self.result(job, "x")), (codec.TENSOR, [[1, 2], [3, 4]]))
        self.assertEqual(codec.read(self.result(job, "big"))[1], list(range(5000)))
        status, _, body = self.cluster.request("POST", "/v1/objects", b"a,b\n1,x\n2,\n3,z\n", {"Content-Type": "text/csv"})
        self.assertEqual(status, 200, body)
        extent = self.get(json.loads(body)["id"])
        kind, columns = codec.read(extent)
        self.assertEqual((kind, [c[0] for c in columns], columns[0][3]), (codec.TABLE, ["a", "b"], [1, 2, 3]))
        self.assertEqual(codec.table(columns), extent)


if __name__ == "__main__":
    unittest.main(verbosity=2)
