"""The generator: reads the descriptor set and writes tables.c, method_ids.h, openapi.json, and a
descriptor set that protoc-c can read. The build runs it; it writes only into --out."""

import argparse
import json
import os
import sys

import api
import openapi
import tables
from model import Model, Wrong


def plain(model):
    """Returns the descriptor set for protoc-c: without options of methods, and without the import of
    the file that declares these options."""
    out = type(model.set)()
    for f in model.set.file:
        if f.name in ("google/api/annotations.proto", "google/api/http.proto"):
            continue
        if f.name == "google/protobuf/descriptor.proto":
            continue
        copy = out.file.add()
        copy.CopyFrom(f)
        kept = [n for n in f.dependency if n != "google/api/annotations.proto"]
        del copy.dependency[:]
        copy.dependency.extend(kept)
        for service in copy.service:
            for method in service.method:
                method.ClearField("options")
    return out


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def routed(model, backends):
    out = []
    for method in model.methods:
        backend = backends.get(method.service.rsplit(".", 1)[1])
        if backend:
            out += [(route, backend) for route in method.routes]
    seen = {}
    for route, _ in out:
        shape = (route.verb, tuple((s.is_field, s.is_field or s.text) for s in route.segments), route.action)
        if shape in seen:
            raise Wrong(f"{route.verb} {route.path}: the same as {seen[shape]}")
        seen[shape] = route.path
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--descriptors", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--services", nargs="*", default=[], help="Service=backend")
    args = parser.parse_args()
    with open(args.descriptors, "rb") as f:
        model = Model(f.read())
    backends = dict(pair.split("=", 1) for pair in args.services)
    routes = routed(model, backends)
    document = openapi.document(model, [r for r, _ in routes], args.version)
    text = json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
    bounds = api.bounds(model)
    code = tables.tables(model, routes, api, bounds)
    out = args.out
    write(f"{out}/openapi.json", text)
    write(f"{out}/millrace/v1/method_ids.h", tables.method_ids(model.methods).encode())
    write(f"{out}/plain.binpb", plain(model).SerializeToString(deterministic=True))
    write(f"{out}/tables.c", code.encode())
    write(f"{out}/openapi.c", tables.openapi_source(text).encode())


if __name__ == "__main__":
    try:
        main()
    except Wrong as wrong:
        sys.exit(f"proto/gen: {wrong}")
