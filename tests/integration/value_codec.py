"""Packs, extents and ids, read and written from docs/values.md alone. Standard library, and
libxxhash for the header's checksum."""
import ctypes
import struct

BASE_32 = "0123456789abcdefghjkmnpqrstvwxyz"
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8}  # of dtypes, and of columns of these types
CODES = {1: "?", 2: "b", 3: "h", 4: "i", 5: "q", 6: "B", 7: "H", 8: "I", 9: "Q", 10: "e", 11: "f", 12: "d",
         17: "i", 18: "q", 19: "q", 20: "q", 21: "q"}
TENSOR, TABLE, PACK, BYTES, MODEL, COLLECTION = range(1, 7)
xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype, xxhash.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]


class Wrong(Exception):
    pass


class Input(int):
    """An input slot, extension 1."""


class Object(bytes):
    """An object id, extension 3: the 16 bytes."""


class Extent(bytes):
    """A value, extension 2."""


def need(condition, what):
    if not condition:
        raise Wrong(what)


# ---- packs -------------------------------------------------------------------------------------

def counted(n, short, short_max, tags):
    """A tag with a count: in the short form, or with 1, 2 or 4 bytes (0: this form does not exist)."""
    if n <= short_max:
        return bytes([short | n])
    for width, tag in zip((1, 2, 4), tags):
        if tag and n < 1 << 8 * width:
            return bytes([tag]) + n.to_bytes(width, "big")
    raise Wrong("too long")


def extension(number, data):
    fixed = {1: 0xd4, 2: 0xd5, 4: 0xd6, 8: 0xd7, 16: 0xd8}.get(len(data))
    head = bytes([fixed]) if fixed else counted(len(data), 0, -1, (0xc7, 0xc8, 0xc9))
    return head + bytes([number]) + data


def pack_integer(v):
    if -32 <= v <= 127:
        return struct.pack("b", v)
    tags = ((0xcc, "B"), (0xcd, ">H"), (0xce, ">I"), (0xcf, ">Q")) if v >= 0 else \
        ((0xd0, "b"), (0xd1, ">h"), (0xd2, ">i"), (0xd3, ">q"))
    for tag, code in tags:
        try:
            return bytes([tag]) + struct.pack(code, v)
        except struct.error:
            continue
    raise Wrong("an integer beyond 64 bits")


def pack(v):
    if v is None or v is True or v is False:
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[v]
    if isinstance(v, Input):
        return extension(1, v.to_bytes(4, "big"))
    if isinstance(v, (Extent, Object)):
        return extension(2 if isinstance(v, Extent) else 3, bytes(v))
    if isinstance(v, int):
        return pack_integer(v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        text = v.encode()
        return counted(len(text), 0xa0, 31, (0xd9, 0xda, 0xdb)) + text
    if isinstance(v, bytes):
        return counted(len(v), 0, -1, (0xc4, 0xc5, 0xc6)) + v
    if isinstance(v, list):
        return counted(len(v), 0x90, 15, (0, 0xdc, 0xdd)) + b"".join(map(pack, v))
    need(isinstance(v, dict), "no pack")
    return counted(len(v), 0x80, 15, (0, 0xde, 0xdf)) + b"".join(pack(k) + pack(x) for k, x in v.items())


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        need(n <= len(self.data) - self.at, "cut off")
        self.at += n
        return bytes(self.data[self.at - n:self.at])

    def number(self, code):
        return struct.unpack(">" + code, self.take(struct.calcsize(code)))[0]

    def extension(self, n):
        number, data = self.take(1)[0], self.take(n)
        need(number in (1, 2, 3) and len(data) == {1: 4, 3: 16}.get(number, len(data)), "an unknown extension")
        return Input(int.from_bytes(data, "big")) if number == 1 else (Extent if number == 2 else Object)(data)

    def items(self, n, is_map, depth):
        need(depth < 64 and n <= len(self.data) - self.at, "nested too deep, or cut off")
        if not is_map:
            return [self.item(depth + 1) for _ in range(n)]
        pairs = [(self.item(depth + 1), self.item(depth + 1)) for _ in range(n)]
        need(all(isinstance(k, str) for k, _ in pairs), "a key that is no text")
        return dict(pairs)

    def item(self, depth=0):
        tag = self.take(1)[0]
        if tag <= 0x7f or tag >= 0xe0:
            return tag - 256 if tag >= 0xe0 else tag
        if tag <= 0x9f:
            return self.items(tag & 15, tag <= 0x8f, depth)
        if tag <= 0xbf:
            return self.take(tag & 31).decode()
        if tag in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[tag]
        if 0xca <= tag <= 0xd3:
            return self.number("fdBHIQbhiq"[tag - 0xca])
        if 0xd4 <= tag <= 0xd8:
            return self.extension(1 << tag - 0xd4)
        need(tag != 0xc1, "a tag that is never used")
        groups = ((0xc4, "BHI", self.take), (0xc7, "BHI", self.extension), (0xd9, "BHI", lambda n: self.take(n).decode()),
                  (0xdc, "HI", lambda n: self.items(n, False, depth)), (0xde, "HI", lambda n: self.items(n, True, depth)))
        first, codes, make = next(g for g in reversed(groups) if tag >= g[0])
        return make(self.number(codes[tag - first]))


def unpack(data):
    r = Reader(data)
    v = r.item()
    need(r.at == len(data), "bytes after the end")
    return v


# ---- extents -----------------------------------------------------------------------------------

def up(n):
    return (n + 63) // 64 * 64


def checksum(header):
    return xxhash.XXH3_64bits(header, len(header))


def extent(kind, data, dtype=0, shape=(), strides=(), meta=b"", flags=0):
    words = struct.pack(f"<{len(shape)}Q{len(strides)}q", *shape, *strides)
    data_at = up(64 + len(words))
    meta_at = up(data_at + len(data)) if meta else 0
    nbytes = meta_at + len(meta) if meta else data_at + len(data)
    fields = ["4sHBBBBHIQQQQQ", b"MRV1", 1, kind, dtype, len(shape), 0, 64 + len(words), flags, nbytes, data_at, len(data), meta_at,
              len(meta)]
    head = struct.pack("<" + fields[0], *fields[1:])
    total = head + struct.pack("<Q", checksum(head + bytes(8) + words)) + words
    out = total.ljust(data_at, b"\0") + data
    return out.ljust(meta_at, b"\0") + meta if meta else out


def row_major(dtype, shape):
    out, step = [], SIZES[dtype]
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return out[::-1]


def tensor(dtype, shape, elements):
    """`elements` in row-major order."""
    return extent(TENSOR, struct.pack(f"<{len(elements)}{CODES[dtype]}", *elements), dtype, shape, row_major(dtype, shape))


def bits(flags):
    out = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        out[i // 8] |= bool(flag) << i % 8
    return bytes(out)


def column_data(kind, rows):
    """(offsets, data) of a column; None is missing."""
    if kind == 1:
        return b"", bits([bool(r) for r in rows])
    if kind not in (13, 14, 15, 16):
        return b"", struct.pack(f"<{len(rows)}{CODES[kind]}", *(r or 0 for r in rows))
    texts = [(r or "").encode() if kind in (13, 15) else r or b"" for r in rows]
    ends = [0]
    for t in texts:
        ends.append(ends[-1] + len(t))
    return struct.pack(f"<{len(ends)}{'i' if kind < 15 else 'q'}", *ends), b"".join(texts)


def table(columns):
    """`columns`: [(name, type, nullable, rows)]."""
    count = len(columns[0][3]) if columns else 0
    data, rows, names, first = bytearray(), [], b"", up(64 + 16)

    def put(b):
        data.extend(bytes(up(len(data)) - len(data)) + b)
        return first + len(data) - len(b)

    for name, kind, nullable, cells in columns:
        offsets, cells_data = column_data(kind, cells)
        validity_at = put(bits([c is not None for c in cells])) if nullable else 0
        offsets_at = put(offsets) if offsets else 0
        rows.append([kind, int(nullable), len(name.encode()), len(names), sum(c is None for c in cells), validity_at, offsets_at,
                     put(cells_data), len(cells_data), 0])
        names += name.encode()
    data.extend(bytes(up(len(data)) - len(data)))
    names_at = first + len(data) + 64 * len(rows)
    for r in rows:
        r[3] += names_at
    meta = b"".join(struct.pack("<HHIQQQQQQQ", *r) for r in rows) + names
    return extent(TABLE, bytes(data), shape=(count, len(columns)), meta=meta)


def collection(kind, shape, axis, parts, dtype=0, divisions=None):
    """`parts`: [(16 bytes of an id or None, inline pack or None, nbytes, kind, dtype, start, shape)]."""
    data = pack(divisions) if divisions is not None else b""
    first = up(64 + 8 * len(shape))
    head = struct.pack("<IBBHQQQ", len(parts), kind, axis, 0, first if data else 0, len(data), 0)
    for part_id, inline, nbytes, part_kind, part_dtype, start, part_shape in parts:
        maker, number = struct.unpack(">QQ", part_id) if part_id else (0, 0)
        head += struct.pack(f"<QQQQIBBH{2 * len(shape)}Q", maker, number, nbytes, first + len(data) if inline else 0,
                            len(inline or b""), part_kind, part_dtype, 0, *start, *part_shape)
        data += inline or b""
    return extent(COLLECTION, data, dtype, shape, meta=head)


def header(b):
    """Checks an extent and returns the fields of its header."""
    need(len(b) >= 64, "cut off")
    magic, layout, kind, dtype, ndim, zero, header_bytes, flags, nbytes, data_at, data_n, meta_at, meta_n, said = \
        struct.unpack_from("<4sHBBBBHIQQQQQQ", b)
    words = 2 * ndim if kind == TENSOR else ndim
    need(magic == b"MRV1" and layout == 1 and 1 <= kind <= 6 and ndim <= 16 and not zero and not flags & ~1, "no extent")
    need(header_bytes == 64 + 8 * words and header_bytes <= len(b) and nbytes <= len(b), "cut off")
    need(said == checksum(b[:56] + bytes(8) + b[64:header_bytes]), "a damaged header")
    end = meta_at + meta_n if meta_n else data_at + data_n
    need(data_at == up(header_bytes) and end == nbytes and (not meta_n or meta_at % 64 == 0 and meta_at >= data_at + data_n),
         "regions that do not fit")
    return {"kind": kind, "dtype": dtype, "shape": list(struct.unpack_from(f"<{ndim}Q", b, 64)), "flags": flags,
            "strides": list(struct.unpack_from(f"<{ndim}q", b, 64 + 8 * ndim)) if kind == TENSOR else None,
            "data": (data_at, data_n), "meta": (meta_at, meta_n)}


def read_tensor(b, h):
    code, size = "<" + CODES[h["dtype"]], SIZES[h["dtype"]]
    at, n = h["data"]

    def walk(axis, offset):
        if axis == len(h["shape"]):
            need(offset + size <= n, "a stride that leads out")
            return struct.unpack_from(code, b, at + offset)[0]
        return [walk(axis + 1, offset + i * h["strides"][axis]) for i in range(h["shape"][axis])]
    return walk(0, 0)


def read_bits(b, at, n):
    return [bool(b[at + i // 8] >> i % 8 & 1) for i in range(n)]


def read_table(b, h):
    rows, columns = h["shape"]
    out = []
    for i in range(columns):
        kind, flags, name_n, name_at, missing, validity, offsets, data, _, zero = \
            struct.unpack_from("<HHIQQQQQQQ", b, h["meta"][0] + 64 * i)
        need(not zero and not flags & ~1, "reserved fields")
        if kind == 1:
            cells = read_bits(b, data, rows)
        elif kind in (13, 14, 15, 16):
            ends = struct.unpack_from(f"<{rows + 1}{'i' if kind < 15 else 'q'}", b, offsets)
            cells = [b[data + p:data + q] for p, q in zip(ends, ends[1:])]
            cells = [c.decode() for c in cells] if kind in (13, 15) else cells
        else:
            cells = list(struct.unpack_from(f"<{rows}{CODES[kind]}", b, data))
        there = read_bits(b, validity, rows) if validity else [True] * rows
        need(missing == there.count(False), "a wrong count of what is missing")
        out.append((b[name_at:name_at + name_n].decode(), kind, bool(flags), [c if t else None for c, t in zip(cells, there)]))
    return out


def read_collection(b, h):
    at, ndim = h["meta"][0], len(h["shape"])
    count, kind, axis, zero, divisions, divisions_n, zero2 = struct.unpack_from("<IBBHQQQ", b, at)
    need(not zero and not zero2 and h["meta"][1] == 32 + count * (40 + 16 * ndim), "entries that do not fit")
    parts = []
    for i in range(count):
        maker, number, nbytes, inline, inline_n, part_kind, dtype, _, *dims = \
            struct.unpack_from(f"<QQQQIBBH{2 * ndim}Q", b, at + 32 + i * (40 + 16 * ndim))
        need((maker or number) != 0 or inline, "neither an id nor an inline part")
        parts.append((None if inline else struct.pack(">QQ", maker, number), b[inline:inline + inline_n] if inline else None, nbytes,
                      part_kind, dtype, tuple(dims[:ndim]), tuple(dims[ndim:])))
    return {"kind": kind, "axis": axis, "parts": parts,
            "divisions": unpack(b[divisions:divisions + divisions_n]) if divisions else None}


def read(b):
    """(kind, content of the extent)"""
    h = header(b)
    at, n = h["data"]
    if h["kind"] == TENSOR:
        return TENSOR, read_tensor(b, h)
    if h["kind"] == TABLE:
        return TABLE, read_table(b, h)
    if h["kind"] == COLLECTION:
        return COLLECTION, read_collection(b, h)
    if h["kind"] == MODEL:
        meta_at, meta_n = h["meta"]
        return MODEL, (struct.unpack_from(f"<{h['shape'][0]}f", b, at), unpack(b[meta_at:meta_at + meta_n]))
    return h["kind"], unpack(b[at:at + n]) if h["kind"] == PACK else b[at:at + n]


def value_of(packed):
    """A pack as a value: extension 2 contains an extent."""
    v = unpack(packed)
    return read(v) if isinstance(v, Extent) else (PACK, v)


# ---- ids ---------------------------------------------------------------------------------------

def object_text(b):
    return b.hex()


def job_text(job):
    tag, number = job >> 32, job & 0xffffffff
    digits = "".join(BASE_32[tag >> 5 * i & 31] for i in reversed(range(7)))
    return f"j{digits if tag >= 1000000 else tag}-{number}"


def job_number(text):
    tag, _, number = text[1:].partition("-")
    value = int(tag) if len(tag) < 7 else sum(BASE_32.index(d) << 5 * i for i, d in enumerate(reversed(tag)))
    return value << 32 | int(number)
