"""A data set that every training rule can learn: for each class, points around one corner of a cube. Makes .npy
files."""
import array
import random
import struct

FEATURES, CLASSES = 16, 4


def npy(typecode, descr, shape, values):
    """The bytes of a .npy file, version 1.0."""
    dims = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(typecode, values).tobytes()


def clouds(n, seed):
    r = random.Random(seed)
    x, y = [], []
    for _ in range(n):
        label = r.randrange(CLASSES)
        x += [r.gauss(1.5 if i % CLASSES == label else 0, 1) for i in range(FEATURES)]
        y.append(label)
    return npy("f", "<f4", (n, FEATURES), x), npy("i", "<i4", (n,), y)
