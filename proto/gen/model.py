"""Reads the descriptor set: messages, methods, comments and routes as plain Python objects."""

import re
from dataclasses import dataclass, field

from google.protobuf import descriptor_pb2 as d
from google.protobuf import descriptor_pool, message_factory

F = d.FieldDescriptorProto
VERBS = ("get", "put", "post", "delete", "patch")


class Wrong(Exception):
    """A .proto file breaks a rule of this project; the text names the place."""


@dataclass
class Segment:
    text: str
    is_field: bool = False
    rest: bool = False


@dataclass
class Route:
    verb: str
    path: str
    segments: list
    action: str
    body: str
    method: "Method" = None

    def bound(self):
        return [s.text for s in self.segments if s.is_field]


@dataclass
class Method:
    full_name: str
    service: str
    name: str
    request: str
    response: str
    client_streaming: bool
    server_streaming: bool
    comment: str
    routes: list = field(default_factory=list)

    @property
    def path(self):
        return f"/{self.service}/{self.name}"

    @property
    def enumerator(self):
        service = self.service.rsplit(".", 1)[1]
        return "MR_METHOD_" + snake(service).upper() + "_" + snake(self.name).upper()


@dataclass
class Message:
    full_name: str
    proto: object
    comment: str
    comments: dict
    is_map_entry: bool

    def field(self, name):
        for f in self.proto.field:
            if f.name == name:
                return f
        return None


def snake(name):
    """Returns a name in protoc-c's lower case: an underscore before each upper-case letter."""
    out, last_upper = "", True
    for c in name:
        if c.isupper() and not last_upper:
            out += "_"
        out += c.lower()
        last_upper = c.isupper()
    return out


def c_name(full_name):
    return "__".join(snake(part) for part in full_name.lstrip(".").split("."))


def parse_template(path):
    """Splits `/v1/jobs/{id}:cancel` into segments and action."""
    if not path.startswith("/"):
        raise Wrong(f"path {path!r} does not begin with a slash")
    action = None
    at = path.rfind(":")
    if at > path.rfind("/") and at > path.rfind("}"):
        path, action = path[:at], path[at + 1 :]
    segments = []
    for piece in path[1:].split("/"):
        if piece.startswith("{"):
            match = re.fullmatch(r"\{([a-z][a-z0-9_]*)(=\*\*|=\*)?\}", piece)
            if not match:
                raise Wrong(f"path {path!r}: {piece!r} is no {{field}} or {{field=**}}")
            segments.append(Segment(match[1], True, match[2] == "=**"))
        else:
            if not re.fullmatch(r"[a-z0-9_.-]+", piece):
                raise Wrong(f"path {path!r}: literal {piece!r}")
            segments.append(Segment(piece))
    at = [i for i, s in enumerate(segments) if s.rest]
    if len(at) > 1 or (at and any(s.is_field for s in segments[at[0] + 1 :])):
        raise Wrong(f"path {path!r}: only literals can follow '=**'")
    return segments, action


def parse_rule(rule):
    verb = rule.WhichOneof("pattern")
    if verb not in VERBS:
        raise Wrong(f"{rule.selector}: a rule without verb")
    if rule.response_body:  # no method of this project needs it
        raise Wrong(f"{rule.selector}: response_body is not supported")
    path = getattr(rule, verb)
    segments, action = parse_template(path)
    return Route(verb, path, segments, action, rule.body or None)


def tidy(comment):
    lines = [line.strip() for line in comment.strip().split("\n")]
    return re.sub(r"[ ]*\n(?=\S)", " ", "\n".join(lines)).strip()


class Model:
    def __init__(self, data):
        self.set = d.FileDescriptorSet.FromString(data)
        self.pool = descriptor_pool.DescriptorPool()
        for proto in self.set.file:
            self.pool.Add(proto) if hasattr(self.pool, "Add") else self.pool.AddSerializedFile(
                proto.SerializeToString()
            )
        self.messages, self.enums, self.methods = {}, {}, []
        self.services = {}
        for proto in self.set.file:
            self._file(proto)
        self.methods.sort(key=lambda m: m.path)

    def _class(self, name):
        kind = self.pool.FindMessageTypeByName(name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(kind)
        return message_factory.MessageFactory(self.pool).GetPrototype(kind)

    def _file(self, proto):
        comments = {}
        for location in proto.source_code_info.location:
            text = "\n".join(t for t in (location.leading_comments, location.trailing_comments) if t)
            if text:
                comments[tuple(location.path)] = tidy(text)
        package = proto.package
        for i, m in enumerate(proto.message_type):
            self._message(package, m, (4, i), comments)
        for i, e in enumerate(proto.enum_type):
            self._enum(package, e, (5, i), comments)
        for i, s in enumerate(proto.service):
            name = f"{package}.{s.name}"
            self.services[name] = comments.get((6, i)) or comments.get((12,), "")
            for j, m in enumerate(s.method):
                self._method(name, m, comments.get((6, i, 2, j), ""))

    def _message(self, scope, m, path, comments):
        name = f"{scope}.{m.name}"
        for f in m.field:
            if f.proto3_optional:
                raise Wrong(f"{name}.{f.name}: protoc-c refuses proto3 optional")
        fields = {f.name: comments.get(path + (2, i), "") for i, f in enumerate(m.field)}
        self.messages[name] = Message(
            name, m, comments.get(path, ""), fields, m.options.map_entry
        )
        for i, n in enumerate(m.nested_type):
            self._message(name, n, path + (3, i), comments)
        for i, e in enumerate(m.enum_type):
            self._enum(name, e, path + (4, i), comments)

    def _enum(self, scope, e, path, comments):
        values = [(v.name, v.number, comments.get(path + (2, i), "")) for i, v in enumerate(e.value)]
        self.enums[f"{scope}.{e.name}"] = (comments.get(path, ""), values)

    def _method(self, service, m, comment):
        method = Method(
            f"{service}.{m.name}",
            service,
            m.name,
            m.input_type.lstrip("."),
            m.output_type.lstrip("."),
            m.client_streaming,
            m.server_streaming,
            comment,
        )
        extension = self.pool.FindExtensionByName("google.api.http")
        options = self._class("google.protobuf.MethodOptions").FromString(
            m.options.SerializeToString()
        )
        if options.HasExtension(extension):
            rule = options.Extensions[extension]
            for r in [rule, *rule.additional_bindings]:
                method.routes.append(self._check(method, parse_rule(r)))
        self.methods.append(method)

    def _check(self, method, route):
        route.method = method
        request = self.messages[method.request]
        for name in route.bound():
            f = request.field(name)
            if f is None or f.type != F.TYPE_STRING or f.label == F.LABEL_REPEATED:
                raise Wrong(f"{method.full_name}: {{{name}}} is no text field of {method.request}")
        if route.body not in (None, "*") and request.field(route.body) is None:
            raise Wrong(f"{method.full_name}: no body field {route.body!r}")
        if len(request.proto.field) > 64:
            raise Wrong(f"{method.request} has more than 64 fields: the gateway counts them in 64 bits")
        if method.client_streaming and not self.raw_request(route):
            raise Wrong(f"{method.full_name}: a client stream over HTTP needs an HttpBody")
        return route

    def raw_request(self, route):
        if route.body in (None, "*"):
            return False
        f = self.messages[route.method.request].field(route.body)
        return f.type_name == ".google.api.HttpBody"

    def raw_response(self, route):
        return route.method.response == "google.api.HttpBody"

    def map_entry(self, f):
        """Returns the entry message of a map field, or None if the field is no map."""
        if f.type != F.TYPE_MESSAGE or f.label != F.LABEL_REPEATED:
            return None
        m = self.messages[f.type_name.lstrip(".")]
        return m if m.is_map_entry else None
