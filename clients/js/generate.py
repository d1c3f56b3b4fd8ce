#!/usr/bin/env python3
"""Writes what the JavaScript client needs to know about messages, from the gateway's openapi.json:
api.d.ts (types of all messages) and wide.js (which fields are 64-bit integers).

    generate.py OPENAPI OUT    OUT: the directory of the two files
"""
import json
import pathlib
import re
import sys

HEAD = "Generated from openapi.json by clients/js/generate.py. Do not edit."
WORDS = re.compile(r"^[A-Za-z_]\w*$")
COLUMNS = 98


def ref_of(schema):
    """The name of the message that a schema refers to, or None."""
    inner = schema.get("allOf", [])
    ref = schema.get("$ref") or (inner[0].get("$ref") if len(inner) == 1 else None)
    return ref.split("/")[-1] if ref else None


def is_wide(schema):
    return schema.get("type") == "string" and schema.get("format") in ("uint64", "int64")


def type_of(schema):
    """The TypeScript type of a schema."""
    if ref_of(schema):
        return ref_of(schema)
    if is_wide(schema):
        return "bigint"
    if "enum" in schema:
        return " | ".join(json.dumps(e) for e in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(type_of(s) for s in schema[word])
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{type_of(schema['items']) if 'items' in schema else 'any'}>"
    if kind in ("integer", "number"):
        return "number"
    if kind in ("boolean", "string"):
        return kind
    if kind == "object" and "properties" in schema:
        return body_of(schema, "    ")
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"{{[name: string]: {type_of(more) if isinstance(more, dict) and more else 'any'}}}"
    return "any"


def comment(text, indent):
    if not text:
        return ""
    lines = [""]
    for word in text.replace("*/", "* /").split():
        if lines[-1] and len(indent) + 4 + len(lines[-1]) + len(word) > COLUMNS:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"


def body_of(schema, indent):
    out = "{\n"
    for name, member in schema.get("properties", {}).items():
        mark = "" if name in schema.get("required", []) else "?"
        key = name if WORDS.match(name) else json.dumps(name)
        out += comment(member.get("description"), indent) + f"{indent}{key}{mark}: {type_of(member)};\n"
    return f"{out}{indent[4:]}}}"


def types_of(schemas):
    out = f"/* {HEAD} */\n"
    for name, schema in schemas.items():
        out += "\n" + comment(schema.get("description", "").split("\n")[0], "")
        if schema.get("type") == "object" and "properties" in schema:
            out += f"export interface {name} {body_of(schema, '    ')}\n"
        else:
            out += f"export type {name} = {type_of(schema)};\n"
    return out


def inner_of(schema):
    """The schema of a list's items or of a map's values, and whether the schema is a map."""
    if schema.get("type") == "array" and "items" in schema:
        return inner_of(schema["items"])[0], False
    if schema.get("type") == "object" and "properties" not in schema and schema.get("additionalProperties"):
        more = schema["additionalProperties"]
        if isinstance(more, dict):
            return inner_of(more)[0], True
    return schema, False


def wides_of(schemas):
    """For each message with 64-bit integers, and for each such field, "int" or the message inside;
    "{" in front of a map. Messages that contain such messages are found by repetition."""
    wides, grew = {}, True
    while grew:
        grew = False
        for name, schema in schemas.items():
            row = wides.get(name, {})
            for field, member in schema.get("properties", {}).items():
                inner, is_map = inner_of(member)
                ref = ref_of(inner)
                kind = "int" if is_wide(inner) else ref if ref in wides or ref == name and row else None
                if kind and field not in row:
                    row[field] = ("{" if is_map else "") + kind
                    wides[name], grew = row, True
    out = f"/* {HEAD}\n * For each message its fields with 64-bit integers: \"int\", or the message inside; \"{{\" means a map. */\n"
    out += "/** @type {{[message: string]: {[field: string]: string}}} */\nexport const WIDE = {\n"
    for name in sorted(wides):
        out += f"    {name}: {json.dumps(wides[name])},\n"
    return out + "};\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    schemas = json.loads(pathlib.Path(sys.argv[1]).read_text())["components"]["schemas"]
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    (out / "api.d.ts").write_text(types_of(schemas))
    (out / "wide.js").write_text(wides_of(schemas))


main()
