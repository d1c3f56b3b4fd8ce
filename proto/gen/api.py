"""What the protos say in comments only, as data: bounds, headers that fill fields, and the content
types of raw bodies."""

# A field of a request with this name may come as this header.
HEADERS = [
    ("request_id", "Idempotency-Key"),
    ("last_event_id", "Last-Event-ID"),
    ("accept", "Accept"),
]

# Numbers that HTTP refuses outside of low..high, by field name in every request message that has
# the field, or by "Message.field" where the name alone is not enough. The comments in the protos
# say the same in words.
BOUNDS = {
    "wait_s": (0, 3600),
    "page_size": (0, 1000),
    "priority": (-100, 100),
    "deadline_s": (0, 1e9),
    "timeout_s": (0, 1e9),
    "retries": (0, 1000),
    "seconds": (0, 3600),
    "spans_max": (0, 100000),
    "nodes_max": (0, 100000),
}

# What raw bodies are made of.
UPLOAD_TYPES = [
    "application/octet-stream",
    "application/json",
    "application/x-npy",
    "application/x-idx",
    "text/csv",
]
DOWNLOAD_TYPES = UPLOAD_TYPES + ["application/vnd.millrace.value", "image/png", "text/plain"]


def request_messages(model):
    """Every message that a request may contain."""
    todo = [m.request for m in model.methods if m.routes]
    seen = []
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.append(name)
        for f in model.messages[name].proto.field:
            if f.type_name and f.type_name.lstrip(".") in model.messages:
                todo.append(f.type_name.lstrip("."))
    return sorted(seen)


def bound_of(message, name):
    short = message.rsplit(".", 1)[1]
    return BOUNDS.get(f"{short}.{name}", BOUNDS.get(name))


def bounds(model):
    out = []
    for message in request_messages(model):
        for f in model.messages[message].proto.field:
            bound = bound_of(message, f.name)
            if bound:
                out.append((message, f.name, float(bound[0]), float(bound[1])))
    return out
