"""Every message, field, enum, value, oneof, service and method of our protos has a leading comment and no trailing
comment, which most generators drop; and every file has a go_package: proto_comments.py DESCRIPTORS. Reads the
descriptor set of the build. Needs no network."""
import sys

from google.protobuf import descriptor_pb2 as d

bad = []
seen = 0


def check(f, comments, path, name):
    global seen
    seen += 1
    leading, trailing = comments.get(path, ("", ""))
    if not leading.strip():
        bad.append(f"{f.name}: {name} has no leading comment")
    if trailing.strip():
        bad.append(f"{f.name}: {name} has a trailing comment; move it above")


def check_enum(f, comments, path, enum, scope):
    check(f, comments, path, f"enum {scope}{enum.name}")
    for i, value in enumerate(enum.value):
        check(f, comments, path + (2, i), f"value {value.name}")


def check_message(f, comments, path, message, scope=""):
    if message.options.map_entry:
        return
    name = f"{scope}{message.name}"
    check(f, comments, path, f"message {name}")
    for i, field in enumerate(message.field):
        check(f, comments, path + (2, i), f"field {name}.{field.name}")
    for i, oneof in enumerate(message.oneof_decl):
        check(f, comments, path + (8, i), f"oneof {name}.{oneof.name}")
    for i, nested in enumerate(message.nested_type):
        check_message(f, comments, path + (3, i), nested, name + ".")
    for i, enum in enumerate(message.enum_type):
        check_enum(f, comments, path + (4, i), enum, name + ".")


def check_file(f):
    comments = {tuple(at.path): (at.leading_comments, at.trailing_comments) for at in f.source_code_info.location}
    if not f.options.go_package:
        bad.append(f"{f.name}: no go_package")
    for i, message in enumerate(f.message_type):
        check_message(f, comments, (4, i), message)
    for i, enum in enumerate(f.enum_type):
        check_enum(f, comments, (5, i), enum, "")
    for i, service in enumerate(f.service):
        check(f, comments, (6, i), f"service {service.name}")
        for j, method in enumerate(service.method):
            check(f, comments, (6, i, 2, j), f"method {service.name}.{method.name}")


with open(sys.argv[1], "rb") as file:
    protos = d.FileDescriptorSet.FromString(file.read())
for proto in protos.file:
    if proto.package.startswith("millrace."):
        check_file(proto)
print("\n".join(bad))
print(f"{seen} elements, {len(bad)} offences")
sys.exit(1 if bad or not seen else 0)
