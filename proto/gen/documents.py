"""Schemas of documents that the gateway passes on unchanged, so no .proto file describes them: jobs
(docs/graphs.md) and training sessions (docs/training.md). The schemas avoid `oneOf`, for which
client generators make a class for every combination. Default values are in the descriptions,
because generators treat a field with the keyword `default` as required, or always send it."""

ANY = {}  # any JSON value


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def text(description, **more):
    return {"type": "string", "description": description, **more}


def mapping(values, description):
    return {"type": "object", "description": description, "additionalProperties": values}


def any_value(description):
    return {"description": description}


PRIORITY = {"type": "integer", "minimum": -100, "maximum": 100}
# A number, or a text that the job's parameters replace by a number.
COUNT = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}

EACH = {
    "type": "object",
    "description": "A list that has `each` once for every value of the variables of `for`",
    "required": ["each", "for"],
    "properties": {
        "each": any_value("An argument, or a key, with `${variable}` in it"),
        "for": mapping(ANY, 'Variables: `{"i": 20}` means 0 to 19, `{"i": ["a", "b"]}` means these items'),
    },
    "additionalProperties": False,
    "example": {"each": {"ref": "part-${i}"}, "for": {"i": 20}},
}

TASK_OPTIONS = {
    "retries": {"type": "integer", "minimum": 0, "maximum": 1000,
                "description": "Attempts after the first one that fails; default 0"},
    "priority": {**PRIORITY, "description": "Priority within the job; larger runs sooner; default 0"},
    "timeout_s": {"type": "number", "minimum": 0, "description": "Seconds that one attempt may take"},
    "workers": {
        "description": "Name of a worker or node that may run the task, or a list of such names",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 1024}],
    },
    "allow_other_workers": {"type": "boolean", "description": "`workers` is a preference; default false"},
    "resources": mapping({"type": "number", "minimum": 0}, "Resources that the task takes while it runs, e.g. `{\"gpu\": 1}`"),
    "pure": {"type": "boolean", "description": "false: never share the result with an equal task; default true"},
    "persist": {
        "description": "Write the result to the node's disk; a text also gives the result this name",
        "anyOf": [{"type": "boolean"}, {"type": "string"}],
    },
    "long_running": {"type": "boolean", "description": "The task does not occupy a slot; default false"},
}

ENTRY = {
    "type": "object",
    "description": "One entry of a graph: a task (`op`), a value (`value`, `literal`), another key (`ref`), or a"
    " stored object (`object`, `name`). All other fields belong to tasks.",
    "properties": {
        "op": text("Name of the operator; GET /v1/ops lists them"),
        "args": {
            "description": "Positional arguments: plain values, and at any depth `{\"ref\": key}`, `{\"object\": id}`,"
            " `{\"name\": name}` and nested tasks",
            "anyOf": [{"type": "array", "items": ANY}, ref("GraphEach")],
        },
        "kwargs": mapping(ANY, "Arguments by name"),
        "for": mapping(ANY, 'The entry stands for several entries: `{"i": 20}` means i from 0 to 19; the key contains `${i}`'),
        "value": any_value("A value; `${name}` in its texts is replaced"),
        "literal": any_value("A value in which nothing is replaced"),
        "ref": text("The value of another key"),
        "object": text("A stored object, by its id"),
        "name": text("A stored object, by its name"),
        **TASK_OPTIONS,
    },
    "additionalProperties": False,
    "example": {"op": "add", "args": [{"ref": "x"}, 1]},
}

LOOP = {
    "type": "object",
    "description": "A loop: tasks that run in rounds until a condition ends the loop. Its results are `NAME.carried`, one for"
    " each carried value, and `NAME.count`.",
    "required": ["max", "carry", "tasks", "next"],
    "properties": {
        "max": {**COUNT, "description": "Largest number of rounds, 1 to 32768"},
        "carry": mapping(ANY,
                         "Values that pass from round to round, by name: for each its value in the first round, an argument"),
        "tasks": mapping(ref("GraphEntry"), "The body: entries like those of a job"),
        "next": mapping(ANY, "For each carried name its value in the next round: an argument"),
        "until": any_value("Condition, an argument: true, or a number other than 0, ends the loop after the round. Default: all"
            " rounds run"),
    },
    "additionalProperties": False,
}

JOB = {
    "type": "object",
    "description": "A job: a graph in canonical form (`tasks`) or in the `dsk` dialect, exactly one of the two. See"
    " docs/graphs.md.",
    "properties": {
        "tasks": mapping(ref("GraphEntry"), "Entries by key"),
        "dsk": mapping(ANY,
                       "Entries by key, as in Dask: `[\"inc\", \"x\"]` is a task; a text that is equal to a key is a reference"),
        "targets": {
            "type": "array",
            "description": "Keys whose values are wanted. Default: every key that no other entry refers to",
            "items": {"anyOf": [{"type": "string"}, ref("GraphEach")]},
        },
        "repeat": mapping(ref("GraphLoop"), "Loops that the scheduler runs, by name"),
        "params": mapping(ANY, "Values for `${name}`, with their defaults"),
        "name": text("Name for people, at most 256 bytes"),
        "namespace": text("All jobs of a namespace share their keys"),
        "labels": mapping({"type": "string"}, "Labels for people and filters, at most 64"),
        "priority": {**PRIORITY,
                     "description": "Larger runs sooner; default 0. Jobs of equal priority share the workers equally"},
        "deadline_s": {"type": "number", "minimum": 0, "description": "Seconds from acceptance after which the job fails"},
        "on_error": {"type": "string", "enum": ["stop", "continue"],
                     "description": "stop: the first task that fails for good ends the job. continue: tasks that"
                     " do not need the failed task still run. Default stop"},
        "fuse": {"type": "boolean", "description": "false: run and report every task by itself; default true"},
        "request_id": text("Idempotency key: two submissions with the same id are one job."
                           " The header Idempotency-Key has the same meaning"),
    },
    "additionalProperties": False,
    "example": {"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]},
}

TRAINING = {
    "type": "object",
    "description": "Description of a training: model, data, roles and stop rule; see docs/training.md",
    "required": ["model", "data"],
    "properties": {
        "name": text("Name for people, and for the name of the saved model"),
        "params": mapping(ANY, "Values for `${name}`, also in the graph"),
        "graph": ref("GraphDocument"),
        "model": mapping(ANY, "`input`, the shape of one example, and `layers`"),
        "init": mapping(ANY, "One of `seed`, `model`, `checkpoint`"),
        "data": mapping(ANY, "`train`, `validation` and `test`, or `queue`; `batch`, `shuffle`, `seed`, `remainder`"),
        "roles": mapping(ANY, "Numbers of `ps`, `worker` and `scorer`, or how to start these roles"),
        "update": mapping(ANY, "`rule`: async, sync or allreduce"),
        "optimizer": mapping(ANY, "`type`: sgd, adam or rmsprop; `learning_rate`, `schedule` and others"),
        "loss": text("cross_entropy, mse or hinge"),
        "score": mapping(ANY, "`every_s` or `every_steps`; `examples`"),
        "stop": mapping(ANY, "`threshold`, `patience`, `epochs`, `steps`, `time_s`"),
        "checkpoint": mapping(ANY, "`every_steps`, `keep`"),
        "limits": mapping({"type": "number"}, "Limits of phases in seconds, by name"),
        "channel": text("Name of the channel for scores"),
        "save": text("Name of the saved model"),
    },
    "example": {
        "model": {"input": [2], "layers": [{"type": "Dense", "units": 1}]},
        "data": {"train": {"x": {"name": "train/x"}, "y": {"name": "train/y"}}},
        "loss": "mse",
    },
}

PARAMETERS = {
    "type": "object",
    "description": "Values for some of a template's parameters, each with the JSON type of its default",
    "properties": {"params": mapping(ANY, "Values by name; parameters that are left out have their defaults")},
    "additionalProperties": False,
    "example": {"params": {"copies": 20}},
}

SCHEMAS = {
    "GraphDocument": JOB,
    "GraphEntry": ENTRY,
    "GraphEach": EACH,
    "GraphLoop": LOOP,
    "TrainingDocument": TRAINING,
    "TemplateParameters": PARAMETERS,
}
