"""Schemas of what goes to its service verbatim and therefore stands in no proto: jobs (docs/graphs.md)
and descriptions of trainings (docs/training.md). They are flat on purpose: generators of clients make
one class of each, where `oneOf` gives them a class for every mixture. Defaults stand in words: with the
keyword `default` generators take a field for one that has to be given, or give it always."""

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
# A number, or what stands for one when the job is made of its parameters.
COUNT = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}

EACH = {
    "type": "object",
    "description": "A list: `each` once for every value of the variables of `for`",
    "required": ["each", "for"],
    "properties": {
        "each": any_value("An argument, or a key, with `${variable}` in it"),
        "for": mapping(ANY, 'Variables: `{"i": 20}` is 0 to 19, `{"i": ["a", "b"]}` these'),
    },
    "additionalProperties": False,
    "example": {"each": {"ref": "part-${i}"}, "for": {"i": 20}},
}

TASK_OPTIONS = {
    "retries": {"type": "integer", "minimum": 0, "maximum": 1000, "description": "Runs after the first (0)"},
    "priority": {**PRIORITY, "description": "Within the job; larger goes first (0)"},
    "timeout_s": {"type": "number", "minimum": 0, "description": "Seconds, of one attempt"},
    "workers": {
        "description": "Name of a worker or node it may run on, or several",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 1024}],
    },
    "allow_other_workers": {"type": "boolean", "description": "`workers` is a wish (false)"},
    "resources": mapping({"type": "number", "minimum": 0}, "Taken while it runs, e.g. `{\"gpu\": 1}`"),
    "pure": {"type": "boolean", "description": "false: never joined with an equal task (true)"},
    "persist": {
        "description": "Write the result to the node's disk; a text also names it",
        "anyOf": [{"type": "boolean"}, {"type": "string"}],
    },
    "long_running": {"type": "boolean", "description": "Has no slot (false)"},
}

ENTRY = {
    "type": "object",
    "description": "One entry of a graph: a task (`op`), a value (`value`, `literal`), another key (`ref`), or a"
    " stored object (`object`, `name`). The other fields are a task's.",
    "properties": {
        "op": text("Name of the operator; GET /v1/ops lists them"),
        "args": {
            "description": "Positional arguments: plain values, and at any depth `{\"ref\": key}`, `{\"object\": id}`,"
            " `{\"name\": name}` and nested tasks",
            "anyOf": [{"type": "array", "items": ANY}, ref("GraphEach")],
        },
        "kwargs": mapping(ANY, "Arguments by name"),
        "for": mapping(ANY, 'The entry stands for several: `{"i": 20}` is i from 0 to 19, in the key as `${i}`'),
        "value": any_value("This value; `${name}` in its texts is filled in"),
        "literal": any_value("This value, to the letter"),
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
    "description": "Tasks that run round after round until one says stop. `NAME.carried` and `NAME.count` come out of it.",
    "required": ["max", "carry", "tasks", "next"],
    "properties": {
        "max": {**COUNT, "description": "Rounds at most, 1 to 32768"},
        "carry": mapping(ANY, "What goes from round to round, by name: the argument that the first round begins with"),
        "tasks": mapping(ref("GraphEntry"), "The body: entries as those of a job"),
        "next": mapping(ANY, "What each carried name is in the next round: an argument"),
        "until": any_value("An argument: true, or a number but 0, ends the loop after the round. None: all rounds come"),
    },
    "additionalProperties": False,
}

JOB = {
    "type": "object",
    "description": "A job: a graph in canonical form (`tasks`) or in the `dsk` dialect, exactly one of the two. See"
    " docs/graphs.md.",
    "properties": {
        "tasks": mapping(ref("GraphEntry"), "Entries by key"),
        "dsk": mapping(ANY, "Entries by key, as in Dask: `[\"inc\", \"x\"]` is a task, a text that is a key a reference"),
        "targets": {
            "type": "array",
            "description": "Keys that are wanted. Left out: every key that no other needs",
            "items": {"anyOf": [{"type": "string"}, ref("GraphEach")]},
        },
        "repeat": mapping(ref("GraphLoop"), "Loops that the scheduler runs, by name"),
        "params": mapping(ANY, "Values for `${name}`, with their defaults"),
        "name": text("For people, at most 256 bytes"),
        "namespace": text("Keys are unique in it, and shared with its other jobs"),
        "labels": mapping({"type": "string"}, "For people and for lists, at most 64"),
        "priority": {**PRIORITY, "description": "Larger goes first (0); jobs of one priority share the workers"},
        "deadline_s": {"type": "number", "minimum": 0, "description": "Seconds from acceptance"},
        "on_error": {"type": "string", "enum": ["stop", "continue"], "description": "What the first failed task does (stop)"},
        "fuse": {"type": "boolean", "description": "false: every task is run and reported by itself (true)"},
        "request_id": text("The same id twice is one job; the header Idempotency-Key is the same"),
    },
    "additionalProperties": False,
    "example": {"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]},
}

TRAINING = {
    "type": "object",
    "description": "What is to be trained, on what, by whom, and until when; see docs/training.md",
    "required": ["model", "data"],
    "properties": {
        "name": text("For people, and for the kept model's name"),
        "params": mapping(ANY, "Values for `${name}`; the graph gets them, too"),
        "graph": ref("GraphDocument"),
        "model": mapping(ANY, "`input`, the shape of one example, and `layers`"),
        "init": mapping(ANY, "One of `seed`, `model`, `checkpoint`"),
        "data": mapping(ANY, "`train`, `validation` and `test`, or `queue`; `batch`, `shuffle`, `seed`, `remainder`"),
        "roles": mapping(ANY, "How many `ps`, `worker` and `scorer`, or how to start them"),
        "update": mapping(ANY, "`rule`: async, sync or allreduce"),
        "optimizer": mapping(ANY, "`type`: sgd, adam or rmsprop; `learning_rate`, `schedule` and others"),
        "loss": text("cross_entropy, mse or hinge"),
        "score": mapping(ANY, "`every_s` or `every_steps`; `examples`"),
        "stop": mapping(ANY, "`threshold`, `patience`, `epochs`, `steps`, `time_s`"),
        "checkpoint": mapping(ANY, "`every_steps`, `keep`"),
        "limits": mapping({"type": "number"}, "Seconds for phases, by name"),
        "channel": text("Where its scores go"),
        "save": text("The name of the kept model"),
    },
    "example": {
        "model": {"input": [2], "layers": [{"type": "Dense", "units": 1}]},
        "data": {"train": {"x": {"name": "train/x"}, "y": {"name": "train/y"}}},
        "loss": "mse",
    },
}

PARAMETERS = {
    "type": "object",
    "description": "Values for some of a template's parameters, each of the kind of its default",
    "properties": {"params": mapping(ANY, "By name; what is left out has its default")},
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
