"""Writes openapi.json: the HTTP routes, for people and tools. JSON follows proto3 JSON with the
original field names: 64-bit integers are texts, bytes are base64, enums are names."""

import re

import api
import login
from model import F, Wrong

ERROR = {
    "description": "The request was refused or failed",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}},
}
EVENTS = "text/event-stream"
LINES = "application/x-ndjson"

U64_IN = {"anyOf": [{"type": "string", "pattern": "^(0|[1-9][0-9]{0,18})$"},
                    {"type": "integer", "minimum": 0, "maximum": 2**53}]}
I64_IN = {"anyOf": [{"type": "string", "pattern": "^(0|-?[1-9][0-9]{0,17})$"},
                    {"type": "integer", "minimum": -(2**53), "maximum": 2**53}]}
U64_OUT = {"type": "string", "pattern": "^[0-9]{1,20}$", "format": "uint64"}
I64_OUT = {"type": "string", "pattern": "^-?[0-9]{1,19}$", "format": "int64"}

SIGNED_32 = (F.TYPE_INT32, F.TYPE_SINT32, F.TYPE_SFIXED32)
UNSIGNED_32 = (F.TYPE_UINT32, F.TYPE_FIXED32)
SIGNED_64 = (F.TYPE_INT64, F.TYPE_SINT64, F.TYPE_SFIXED64)
UNSIGNED_64 = (F.TYPE_UINT64, F.TYPE_FIXED64)


def short(full_name):
    return full_name.lstrip(".").rsplit(".", 1)[1]


def sentence(comment):
    return re.split(r"(?<=[.?])\s", comment, maxsplit=1)[0].rstrip(".")


class Document:
    def __init__(self, model, routes, version):
        self.model, self.routes, self.version = model, routes, version
        self.inputs = set(api.request_messages(model))
        self.schemas = {}
        self.owner = {}

    # ---- schemas ----------------------------------------------------------------------------

    def scalar(self, message, f, incoming):
        if f.type in SIGNED_32:
            out = {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}
        elif f.type in UNSIGNED_32:
            out = {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**32 - 1}
        elif f.type in SIGNED_64:
            out = dict(I64_IN if incoming else I64_OUT)
        elif f.type in UNSIGNED_64:
            out = dict(U64_IN if incoming else U64_OUT)
        elif f.type in (F.TYPE_DOUBLE, F.TYPE_FLOAT):
            number = {"type": "number", "format": "double"}
            words = {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}
            out = number if incoming else {"anyOf": [number, words]}
        elif f.type == F.TYPE_BOOL:
            out = {"type": "boolean"}
        elif f.type == F.TYPE_STRING:
            out = {"type": "string"}
        elif f.type == F.TYPE_BYTES:
            out = {"type": "string", "format": "byte"}
        elif f.type == F.TYPE_ENUM:
            out = {"$ref": "#/components/schemas/" + self.enum(f.type_name.lstrip("."))}
        elif f.type == F.TYPE_MESSAGE:
            out = {"$ref": "#/components/schemas/" + self.message(f.type_name.lstrip("."))}
        else:
            raise Wrong(f"{message}.{f.name}: no JSON for type {f.type}")
        bound = api.bound_of(message, f.name) if incoming else None
        if bound and out.get("type") in ("integer", "number"):
            out["minimum"], out["maximum"] = bound
        return out

    def field(self, message, f, incoming):
        entry = self.model.map_entry(f)
        if entry:
            value = self.scalar(entry.full_name, entry.field("value"), incoming)
            return {"type": "object", "additionalProperties": value}
        out = self.scalar(message, f, incoming)
        if f.label == F.LABEL_REPEATED:
            return {"type": "array", "items": out}
        return out

    def described(self, schema, comment):
        if not comment:
            return schema
        if "$ref" in schema:
            return {"allOf": [schema], "description": comment}
        return {**schema, "description": comment}

    def register(self, full_name):
        name = short(full_name)
        if self.owner.setdefault(name, full_name) != full_name:
            raise Wrong(f"two messages are called {name}: {self.owner[name]} and {full_name}")
        return name

    def enum(self, full_name):
        name = self.register(full_name)
        comment, values = self.model.enums[full_name]
        lines = [f"`{v}`: {words}" for v, _, words in values if words]
        self.schemas[name] = {
            "type": "string",
            "enum": [v for v, _, _ in values],
            "description": "\n".join([comment or name, *lines]),
        }
        return name

    def is_always_there(self, full_name, f):
        """True: the field is always in an answer. Default values are written, except for messages and
        fields of a oneof."""
        if f"{full_name}.{f.name}" in api.VALUE_FIELDS or f.HasField("oneof_index"):
            return False
        return f.label == F.LABEL_REPEATED or f.type != F.TYPE_MESSAGE

    def message(self, full_name):
        name = self.register(full_name)
        if name in self.schemas:
            return name
        self.schemas[name] = {}
        m = self.model.messages[full_name]
        incoming = full_name in self.inputs
        properties = {}
        for f in m.proto.field:
            value = api.VALUE_FIELDS.get(f"{full_name}.{f.name}")
            schema = {} if value else self.field(full_name, f, incoming)
            properties[value or f.name] = self.described(schema, m.comments[f.name])
        out = {"type": "object", "description": m.comment or name, "properties": properties}
        if incoming:  # every field of a request has a default
            out["additionalProperties"] = False
        else:
            always = [f.name for f in m.proto.field if self.is_always_there(full_name, f)]
            if always:
                out["required"] = always
        self.schemas[name] = out
        return name

    # ---- operations -------------------------------------------------------------------------

    def parameter(self, message, f, where, required):
        schema = self.scalar(message.full_name, f, True)
        if "anyOf" in schema:
            schema = dict(schema["anyOf"][0])
        out = {"name": f.name, "in": where, "required": required, "schema": schema}
        if f.type == F.TYPE_MESSAGE:
            raise Wrong(f"{message.full_name}.{f.name}: a message cannot be a query parameter")
        if f.label == F.LABEL_REPEATED:
            out["schema"] = {"type": "array", "items": schema, "maxItems": 1000}
            out["style"], out["explode"] = "form", True
        if required:
            out["schema"] = {**schema, "minLength": 1}
        if message.comments[f.name]:
            out["description"] = message.comments[f.name]
        return out

    def parameters(self, route):
        message = self.model.messages[route.method.request]
        bound = route.bound()
        out = [self.parameter(message, message.field(n), "path", True) for n in bound]
        for f in message.proto.field:
            if f.name in bound or route.body == "*" or f.name == route.body:
                continue
            out.append(self.parameter(message, f, "query", False))
        names = {f.name for f in message.proto.field}
        for name, header in api.HEADERS:
            if name in names and header != "Accept":
                out.append(
                    {
                        "name": header,
                        "in": "header",
                        "required": False,
                        "schema": {"type": "string"},
                        "description": f"The same as `{name}`",
                    }
                )
        return out

    def request_body(self, route):
        if route.body is None:
            return None
        if self.model.raw_request(route):
            content = api.RAW_BODIES[route.method.full_name]
            out = {"required": True, "content": {t: {"schema": s} for t, s in content.items()}}
            words = api.BODY_WORDS.get(route.method.full_name)
            return {"description": words, **out} if words else out
        if route.body == "*":
            name = self.body_message(route)
        else:
            f = self.model.messages[route.method.request].field(route.body)
            name = self.message(f.type_name.lstrip("."))
        schema = {"$ref": f"#/components/schemas/{name}"}
        return {"required": False, "content": {"application/json": {"schema": schema}}}

    def body_message(self, route):
        """Returns the request without the fields that are in the path."""
        full_name = route.method.request
        name = self.message(full_name)
        schema = self.schemas[name]
        kept = {k: v for k, v in schema["properties"].items() if k not in route.bound()}
        self.schemas[name] = {**schema, "properties": kept}
        return name

    def success(self, route):
        method = route.method
        if self.model.raw_response(route):
            binary = {"type": "string", "format": "binary"}
            content = {
                t: {"schema": {} if t == "application/json" else binary} for t in api.DOWNLOAD_TYPES
            }
            content["application/octet-stream"] = {"schema": binary}
            return {"description": "The value", "content": content}
        name = method.response
        schema = {"$ref": "#/components/schemas/" + self.message(name)}
        if not method.server_streaming:
            return self.json_answer(schema)
        lines = {
            "type": "string",
            "description": f"Each line is a {short(name)} in JSON",
            "x-line-schema": schema,
        }
        # Generated clients read the whole answer as one text; a browser uses an EventSource.
        event = {
            "anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/StreamEvent"}],
            "description": f"Server-Sent Events. `data` of an event is a {short(name)} in JSON; for type `error` it is a"
            " Status. A client that sends the `id` as `Last-Event-ID` resumes after this event.",
            "x-event-schema": schema,
            "x-error-event-schema": {"$ref": "#/components/schemas/Status"},
            "example": 'id: 1\ndata: {}\n\n',
        }
        content = {EVENTS: {"schema": event}, LINES: {"schema": lines}}
        if method.full_name in api.COLLECTED:
            ref = "#/components/schemas/" + api.COLLECTED[method.full_name]
            content = {"application/json": {"schema": {"$ref": ref}}, **content}
        return {"description": "A stream", "content": content}

    def json_answer(self, schema):
        return {"description": "Done", "content": {"application/json": {"schema": schema}}}

    def operation(self, route, number):
        method = route.method
        service = method.service.rsplit(".", 1)[1]
        suffix = "" if number == 0 else str(number + 1)
        out = {
            "operationId": f"{service}{method.name}{suffix}",
            "tags": [service],
            "summary": sentence(method.comment) or method.name,
            "description": method.comment or method.name,
        }
        parameters = self.parameters(route)
        if parameters:
            out["parameters"] = parameters
        body = self.request_body(route)
        if body:
            out["requestBody"] = body
        out["responses"] = {"200": self.success(route), "4XX": ERROR, "5XX": ERROR}
        if self.model.raw_response(route):
            binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
            out["responses"]["206"] = {"description": "The part that `Range` requests", "content": binary}
            out["responses"]["304"] = {"description": "`If-None-Match` has the value's `ETag`"}
        if method.server_streaming and not self.model.raw_response(route):
            gone = "No more events will come: a client should not reconnect"
            out["responses"]["204"] = {"description": gone}
        return out

    def gateway_operation(self, path, summary, content, not_now):
        answer = {t: {"schema": s} for t, s in content.items()}
        out = {
            "operationId": "Gateway" + path.strip("/").split(".")[0].capitalize(),
            "tags": ["Gateway"],
            "summary": summary,
            "description": summary,
            "responses": {"200": {"description": "Done", "content": answer}, "4XX": ERROR, "5XX": ERROR},
        }
        if not_now:
            del out["responses"]["5XX"]
            out["responses"]["503"] = {"description": "No job could run now", "content": answer}
        return out

    def build(self):
        paths = {}
        for route in self.routes:
            path = re.sub(r"=\*\*?\}", "}", route.path)
            paths.setdefault(path, {})[route.verb] = self.operation(
                route, route.method.routes.index(route)
            )
        for path, (summary, content) in api.GATEWAY_PATHS.items():
            paths[path] = {
                "get": self.gateway_operation(path, summary, content, path in api.NOT_NOW)
            }
        paths.update(login.paths(ERROR))
        services = sorted({r.method.service for r in self.routes})
        tags = [
            {"name": short(s), "description": self.model.services.get(s) or short(s)} for s in services
        ]
        tags.append({"name": "Gateway", "description": "Methods that the gateway answers itself."})
        return {
            "openapi": "3.0.3",
            "info": {
                "title": "millrace",
                "version": self.version,
                "description": "Task graphs over HTTP. Streams (`/events`) are Server-Sent Events; a client"
                " resumes a stream with `Last-Event-ID`. A parameter in a path may contain slashes as"
                " `%2F`. Every GET route also accepts HEAD. 64-bit integers are texts in answers, and texts or"
                " numbers in requests.",
                "license": {
                    "name": "Apache-2.0",
                    "url": "https://www.apache.org/licenses/LICENSE-2.0",
                },
            },
            "servers": [{"url": "/"}],
            "security": [{}, {"bearer": []}],
            "tags": tags,
            "paths": dict(sorted(paths.items())),
            "components": {
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "Only if the gateway was started with --token-file",
                    }
                },
                "schemas": dict(sorted({**self.schemas, **api.EXTRA_SCHEMAS, **login.SCHEMAS}.items())),
            },
        }


def document(model, routes, version):
    return Document(model, routes, version).build()
