"""What the .proto files say only in comments, as data: bounds, headers that fill fields, and
content types of raw bodies."""

import documents
from model import Wrong

# A request field of this name may also be sent as this header.
HEADERS = [
    ("request_id", "Idempotency-Key"),
    ("parent", "Millrace-Parent"),
    ("last_event_id", "Last-Event-ID"),
    ("accept", "Accept"),
]

# Numbers that HTTP refuses outside of low..high: by field name in every request message that has
# the field, or by "Message.field" if the name is ambiguous. The comments in the .proto files have
# the same bounds.
BOUNDS = {
    "wait_s": (0, 3600),
    "page_size": (0, 1000),
    "priority": (-100, 100),
    "deadline_s": (0, 1e9),
    "timeout_s": (0, 1e9),
    "retries": (0, 1000),
    "seconds": (0, 3600),
    "spans_max": (0, 100000),
    "points_max": (0, 10000),
    "nodes_max": (0, 100000),
    "TilesRequest.width": (0, 4096),
    "TilesRequest.rows": (0, 256),
    "WhatIfRequest.slots": (1, 1048576),
    "WhatIfRequest.processors": (1, 1048576),
    "WhatIfRequest.bandwidth": (1e-6, 1e6),
    "lease_s": (0, 3600),
    "deliveries_max": (0, 1000),
    "AppendRequest.entries_max": (0, 1000000),
    "ReadChannelRequest.entries_max": (0, 10000),
    "CreateQueueRequest.items_max": (0, 1000000),
    "TakeItemsRequest.items_max": (0, 1000),
}

# The role that a method needs. A method whose route is a GET needs a reader, any other method with
# a route needs a user. Exceptions and methods without a route are listed here. "Service.*" are all
# methods of a service.
ROLES = {
    "millrace.v1.Cluster.ReportUsage": "SERVICE",
    "millrace.v1.Cluster.Retire": "ADMIN",
    "millrace.v1.Jobs.SubmitStream": "USER",
    "millrace.v1.Collective.*": "SERVICE",
    "millrace.v1.Metrics.Read": "READER",
    "millrace.v1.Objects.Pull": "SERVICE",
    "millrace.v1.Objects.Renamed": "SERVICE",
    "millrace.v1.Objects.Where": "SERVICE",
    "millrace.v1.Parameters.*": "SERVICE",
    "millrace.v1.StoreSession.*": "SERVICE",
    "millrace.v1.Trainings.Barrier": "SERVICE",
    "millrace.v1.Trainings.Join": "SERVICE",
    "millrace.v1.Trainings.PlanRows": "SERVICE",
    "millrace.v1.Trainings.Report": "SERVICE",
    "millrace.v1.Waits.End": "READER",
    "millrace.v1.WorkerSession.*": "SERVICE",
}


# The services that call a method for themselves, not for a user: a service with a secret of its own
# may call only these (lib/rpc/util/auth.h). Every method must be listed; most have an empty list.
CALLERS = {
    "millrace.v1.Channels.Append": "worker",
    "millrace.v1.Channels.List": "",
    "millrace.v1.Channels.Read": "",
    "millrace.v1.Channels.Watch": "",
    "millrace.v1.Cluster.Account": "",
    "millrace.v1.Cluster.Info": "objectstore gateway",
    "millrace.v1.Cluster.Live": "",
    "millrace.v1.Cluster.Ops": "",
    "millrace.v1.Cluster.ReportUsage": "trainer gateway",
    "millrace.v1.Cluster.Retire": "",
    "millrace.v1.Cluster.Samples": "",
    "millrace.v1.Cluster.Watch": "",
    "millrace.v1.Cluster.Workers": "trainer gateway",
    "millrace.v1.Collective.Exchange": "worker",
    "millrace.v1.Jobs.Cancel": "trainer",
    "millrace.v1.Jobs.Explain": "",
    "millrace.v1.Jobs.FollowLogs": "",
    "millrace.v1.Jobs.Forget": "trainer",
    "millrace.v1.Jobs.Get": "trainer",
    "millrace.v1.Jobs.Graph": "",
    "millrace.v1.Jobs.List": "",
    "millrace.v1.Jobs.Logs": "",
    "millrace.v1.Jobs.Profile": "trainer",
    "millrace.v1.Jobs.Result": "",
    "millrace.v1.Jobs.Results": "",
    "millrace.v1.Jobs.Retry": "",
    "millrace.v1.Jobs.Submit": "trainer",
    "millrace.v1.Jobs.SubmitGraph": "",
    "millrace.v1.Jobs.SubmitStream": "",
    "millrace.v1.Jobs.Tiles": "",
    "millrace.v1.Jobs.Timeline": "",
    "millrace.v1.Jobs.Watch": "",
    "millrace.v1.Jobs.WhatIf": "",
    "millrace.v1.Metrics.Read": "gateway",
    "millrace.v1.Objects.Delete": "objectstore trainer",
    "millrace.v1.Objects.Get": "scheduler",
    "millrace.v1.Objects.List": "",
    "millrace.v1.Objects.Name": "worker trainer",
    "millrace.v1.Objects.Names": "",
    "millrace.v1.Objects.Persist": "objectstore worker",
    "millrace.v1.Objects.Pin": "",
    "millrace.v1.Objects.Pull": "objectstore worker",
    "millrace.v1.Objects.Put": "",
    "millrace.v1.Objects.Renamed": "objectstore",
    "millrace.v1.Objects.Resolve": "worker trainer",
    "millrace.v1.Objects.Stat": "trainer",
    "millrace.v1.Objects.Stats": "",
    "millrace.v1.Objects.Unname": "worker trainer",
    "millrace.v1.Objects.Where": "objectstore worker",
    "millrace.v1.Parameters.Pull": "worker",
    "millrace.v1.Parameters.Push": "worker",
    "millrace.v1.Queues.Ack": "worker",
    "millrace.v1.Queues.Close": "worker",
    "millrace.v1.Queues.Create": "worker",
    "millrace.v1.Queues.Delete": "",
    "millrace.v1.Queues.Get": "worker",
    "millrace.v1.Queues.List": "",
    "millrace.v1.Queues.Nack": "worker",
    "millrace.v1.Queues.Put": "worker",
    "millrace.v1.Queues.Take": "worker",
    "millrace.v1.StoreSession.Connect": "objectstore",
    "millrace.v1.Templates.Delete": "",
    "millrace.v1.Templates.Get": "",
    "millrace.v1.Templates.Install": "",
    "millrace.v1.Templates.Instantiate": "",
    "millrace.v1.Templates.List": "",
    "millrace.v1.Trainings.Barrier": "worker",
    "millrace.v1.Trainings.Forget": "",
    "millrace.v1.Trainings.Get": "worker",
    "millrace.v1.Trainings.Join": "worker",
    "millrace.v1.Trainings.List": "",
    "millrace.v1.Trainings.PlanRows": "worker",
    "millrace.v1.Trainings.Profile": "",
    "millrace.v1.Trainings.Report": "worker",
    "millrace.v1.Trainings.Start": "",
    "millrace.v1.Trainings.Stop": "",
    "millrace.v1.Trainings.Watch": "",
    "millrace.v1.Waits.End": "gateway",
    "millrace.v1.WorkerSession.Connect": "worker",
}


def callers_of(method):
    if method.full_name not in CALLERS:
        raise Wrong(f"{method.full_name}: which services call it? Add it to CALLERS in proto/gen/api.py")
    return CALLERS[method.full_name].split()


def check_callers(methods):
    gone = set(CALLERS) - {m.full_name for m in methods}
    if gone:
        raise Wrong(f"CALLERS in proto/gen/api.py: there is no method {', '.join(sorted(gone))}")


def role_of(method):
    for name in (method.full_name, method.service + ".*"):
        if name in ROLES:
            return ROLES[name]
    if not method.routes:
        raise Wrong(f"{method.full_name}: no route and no role; add it to ROLES in proto/gen/api.py")
    return "READER" if all(r.verb == "get" for r in method.routes) else "USER"

# Content types of raw bodies. If a body may have several types, generators of clients use the last
# one for all, or cannot tell a value from bytes. So openapi.json has one type, and `format` names
# the real one.
UPLOAD_TYPES = ["application/octet-stream"]
DOWNLOAD_TYPES = [
    "application/octet-stream",
    "application/json",
    "application/x-npy",
    "application/x-idx",
    "text/csv",
    "application/vnd.millrace.value",
    "image/png",
    "text/plain",
]


def request_messages(model):
    """Returns every message that a request may contain."""
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

# Fields that hold a value as a pack. Over HTTP the value itself is there, under this name.
VALUE_FIELDS = {"millrace.v1.TargetValue.pack": "value"}

# Streams that HTTP answers as one JSON object with the content of all messages.
COLLECTED = {"millrace.v1.Jobs.Results": "ResultSet"}

EXTRA_SCHEMAS = {
    "ResultSet": {
        "type": "object",
        "description": "Values by key. Integers have all their digits. NaN and the infinities are"
        ' "NaN", "Infinity" and "-Infinity".',
        "required": ["results", "places", "errors"],
        "properties": {
            "results": {
                "type": "object",
                "description": "Values of keys whose value is small",
                "additionalProperties": {},
            },
            "places": {
                "type": "object",
                "description": "Locations of the larger values",
                "additionalProperties": {"$ref": "#/components/schemas/ValuePlace"},
            },
            "errors": {
                "type": "object",
                "description": "Errors of keys that have no value",
                "additionalProperties": {"$ref": "#/components/schemas/Status"},
            },
            "error": {"$ref": "#/components/schemas/Status"},
        },
        "example": {"results": {"z": 3}, "places": {}, "errors": {}},
    },
    "Status": {
        "type": "object",
        "description": "An error, as google.rpc.Status.",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {
                "type": "integer",
                "format": "int32",
                "description": "google.rpc.Code, e.g. 5 for NOT_FOUND",
            },
            "message": {
                "type": "string",
                "description": "One sentence that names the field or key at fault",
            },
            "details": {"type": "array", "items": {"type": "object"}},
        },
        "example": {"code": 5, "message": 'there is no job "j1kq07ab-7"', "details": []},
    },
    "StreamEvent": {
        "type": "object",
        "description": "One event, for readers that parse the stream themselves.",
        "required": ["data"],
        "properties": {n: {"type": "string"} for n in ("id", "event", "data")},
    },
    **documents.SCHEMAS,
}

# The body of a method with a raw body: content type -> schema.
RAW_BODIES = {
    "millrace.v1.Jobs.Submit": {
        "application/json": {"$ref": "#/components/schemas/GraphDocument"}
    },
    "millrace.v1.Templates.Install": {
        "application/json": {"$ref": "#/components/schemas/GraphDocument"}
    },
    "millrace.v1.Templates.Instantiate": {
        "application/json": {"$ref": "#/components/schemas/TemplateParameters"}
    },
    "millrace.v1.Trainings.Start": {
        "application/json": {"$ref": "#/components/schemas/TrainingDocument"}
    },
    "millrace.v1.Objects.Put": {t: {"type": "string", "format": "binary"} for t in UPLOAD_TYPES},
}

# Descriptions of raw bodies, besides their schemas.
BODY_WORDS = {
    "millrace.v1.Objects.Put": "The value. Its content type selects the format: application/json,"
    " application/octet-stream (raw bytes), application/x-npy, application/x-idx, text/csv,"
    " application/vnd.millrace.value or application/vnd.millrace.text; `format` takes precedence over the content type.",
}

# Paths that the gateway answers itself: path -> (summary, content type, schema).
GATEWAY_PATHS = {
    "/healthz": ("Tells whether a job could run now", {"application/json": {"$ref": "#/components/schemas/Health"}}),
    "/metrics": ("Returns the metrics of all services, for Prometheus", {"text/plain": {"type": "string"}}),
    "/openapi.json": ("Returns this document", {"application/json": {"type": "object"}}),
}

# The answer with status 503 has the same schema for these paths.
NOT_NOW = ("/healthz",)

EXTRA_SCHEMAS["Health"] = {
    "type": "object",
    "description": "Whether a job could run.",
    "required": ["ready"],
    "properties": {
        "ready": {"type": "boolean"},
        "reason": {"type": "string", "description": "Why no job could run, in one sentence"},
    },
}
