/* The tables of all messages. Above each table, the macro STRUCT is defined as the struct that the
 * table describes. */
#include "session/fields.h"

#include "base/defs.h"
#include "session/down.h"
#include "session/up.h"

#include <stddef.h>

#define AT(member) (uint16_t) offsetof(struct STRUCT, member)

/* clang-format off */
/* A field with a single value. `number` and `name` are those of session.proto. */
#define ONE(kind_, number_, name_, member_)                                                        \
    {.name = #name_, .number = (number_), .kind = MR_WS_##kind_, .at = AT(member_),                \
        .count = MR_WS_NOWHERE}
/* A nested message with its type. PART: the member is a struct. PART_IF: the member `has_` tells
 * whether the message has the field. LINK: the member is a pointer to a struct. */
#define PART(number_, name_, member_, type_)                                                       \
    {.name = #name_, .number = (number_), .kind = MR_WS_PART, .at = AT(member_),                   \
        .count = MR_WS_NOWHERE, .type = &(type_)}
#define PART_IF(number_, name_, member_, has_, type_)                                              \
    {.name = #name_, .number = (number_), .kind = MR_WS_PART, .at = AT(member_),                   \
        .count = AT(has_), .type = &(type_)}
#define LINK(number_, name_, member_, type_)                                                       \
    {.name = #name_, .number = (number_), .kind = MR_WS_LINK, .at = AT(member_),                   \
        .count = MR_WS_NOWHERE, .type = &(type_)}
/* Repeated fields. `count_` is the member with the number of elements. */
#define COLUMN(kind_, number_, name_, member_, count_, rule_)                                      \
    {.name = #name_, .number = (number_), .kind = MR_WS_COLUMN##kind_, .rule = MR_WS_##rule_,      \
        .at = AT(member_), .count = AT(count_)}
#define TEXTS(number_, name_, member_, count_)                                                     \
    {.name = #name_, .number = (number_), .kind = MR_WS_TEXTS, .at = AT(member_),                  \
        .count = AT(count_)}
#define ROWS(number_, name_, member_, count_, type_)                                               \
    {.name = #name_, .number = (number_), .kind = MR_WS_ROWS, .at = AT(member_),                   \
        .count = AT(count_), .type = &(type_)}

#define TYPE(name_, struct_, fields_)                                                              \
    {.name = (name_), .fields = (fields_), .fields_count = MR_ARRAY_LEN(fields_),                  \
        .bytes = sizeof(struct struct_)};                                                          \
    _Static_assert(MR_ARRAY_LEN(fields_) <= MR_WS_FIELDS_MAX, name_)

/* ---- both ways ------------------------------------------------------------------------------ */

#define STRUCT mr_ws_run
static const struct mr_ws_field run_fields[] = {
    ONE(U64, 1, job, job),
    ONE(U32, 2, count, count),
    ONE(BOOL, 3, unfused, unfused),
};
static const struct mr_ws_type run_type = TYPE("Run", mr_ws_run, run_fields);

#undef STRUCT
#define STRUCT mr_ws_refs
static const struct mr_ws_field refs_fields[] = {
    ROWS(1, runs, runs, runs_count, run_type),
    COLUMN(32, 2, index, index, count, LEADS),
    COLUMN(32, 3, attempt, attempt, count, MAY),
};
static const struct mr_ws_type refs_type = TYPE("TaskRefs", mr_ws_refs, refs_fields);

#undef STRUCT
#define STRUCT mr_ws_resource /* an entry of a map, which protobuf encodes as this message */
static const struct mr_ws_field resource_fields[] = {
    ONE(TEXT, 1, key, name),
    ONE(MICRO, 2, value, micro),
};
static const struct mr_ws_type resource_type =
    TYPE("ResourcesEntry", mr_ws_resource, resource_fields);

/* ---- scheduler to worker -------------------------------------------------------------------- */

#undef STRUCT
#define STRUCT mr_ws_registered
static const struct mr_ws_field registered_fields[] = {
    ONE(U64, 1, incarnation, incarnation),
    ONE(U32, 2, epoch, epoch),
    ONE(U64, 3, heartbeat_ns, heartbeat_ns),
    ONE(U64, 4, lease_ns, lease_ns),
    ONE(U64, 5, time_ns, time_ns),
    ONE(TEXT, 6, cluster_id, cluster_id),
    PART(7, adopt, adopt, refs_type),
    PART(8, keep, keep, refs_type),
    ONE(FIXED64, 9, scheduler, scheduler),
};
static const struct mr_ws_type registered_type =
    TYPE("Registered", mr_ws_registered, registered_fields);

#undef STRUCT
#define STRUCT mr_ws_node
static const struct mr_ws_field node_fields[] = {
    ONE(TEXT, 1, address, address),
    ONE(U64, 2, id, id),
};
static const struct mr_ws_type node_type = TYPE("Node", mr_ws_node, node_fields);

#undef STRUCT
#define STRUCT mr_ws_values
static const struct mr_ws_field values_fields[] = {
    ROWS(1, runs, runs, runs_count, run_type),
    COLUMN(32, 2, index, index, count, LEADS),
    COLUMN(32, 3, inline_bytes, inline_bytes, count, EQUAL),
    ONE(BYTES, 4, inline, inlined),
    COLUMN(_FIXED64, 5, object_maker, object_maker, objects_count, LEADS),
    COLUMN(_FIXED64, 6, object_number, object_number, objects_count, EQUAL),
    COLUMN(64, 7, object_bytes, object_bytes, objects_count, EQUAL),
    COLUMN(32, 8, object_node, object_node, objects_count, EQUAL),
};
static const struct mr_ws_type values_type = TYPE("Values", mr_ws_values, values_fields);

#undef STRUCT
#define STRUCT mr_ws_extra
static const struct mr_ws_field extra_fields[] = {
    ONE(U32, 1, row, row),
    ONE(U64, 2, timeout_ns, timeout_ns),
    ROWS(3, resources, resources, resources_count, resource_type),
    ONE(BOOL, 4, long_running, long_running),
    ONE(BOOL, 5, alone, alone),
    ONE(TEXT, 6, key, key),
    ONE(BOOL, 7, want_object, want_object),
    ONE(BOOL, 8, persist, persist),
    ONE(TEXT, 9, persist_name, persist_name),
    ONE(BYTES, 10, definition, definition),
};
static const struct mr_ws_type extra_type = TYPE("TaskExtra", mr_ws_extra, extra_fields);

#undef STRUCT
#define STRUCT mr_ws_tasks
static const struct mr_ws_field tasks_fields[] = {
    ROWS(1, runs, runs, runs_count, run_type),
    COLUMN(32, 2, index, index, count, LEADS),
    COLUMN(32, 3, attempt, attempt, count, MAY),
    {.name = "op", .number = 4, .kind = MR_WS_COLUMN32, .rule = MR_WS_ONE, .at = AT(op),
        .count = AT(count), .one = AT(op_of_all)},
    ONE(BYTES, 5, args, args),
    COLUMN(32, 6, args_bytes, args_bytes, count, EQUAL),
    COLUMN(32, 7, inputs_count, inputs_count, count, MAY),
    COLUMN(32, 8, inputs, inputs, inputs_total, LEADS),
    COLUMN(32, 9, last_use, last_use, last_use_count, LEADS),
    COLUMN(_SIGNED32, 10, priority, priority, count, MAY),
    COLUMN(32, 11, order, order, count, MAY),
    ROWS(12, extra, extras, extras_count, extra_type),
    COLUMN(32, 13, uses, uses, count, MAY),
};
static const struct mr_ws_type tasks_type = TYPE("Tasks", mr_ws_tasks, tasks_fields);

#undef STRUCT
#define STRUCT mr_ws_down
static const struct mr_ws_field down_fields[] = {
    LINK(1, registered, registered, registered_type),
    TEXTS(2, ops, ops, ops_count),
    ROWS(3, nodes, nodes, nodes_count, node_type),
    PART(4, values, values, values_type),
    PART(5, tasks, tasks, tasks_type),
    PART(6, cancel, cancel, refs_type),
    PART(7, release, release, refs_type),
    PART(8, steal, steal, refs_type),
    PART(9, fetch, fetch, refs_type),
    ONE(BOOL, 10, drain, drain),
    ONE(U64, 11, heard, heard),
    COLUMN(64, 12, forget_jobs, forget_jobs, forget_jobs_count, LEADS),
    PART(13, leave, leave, refs_type),
};
const struct mr_ws_type mr_ws_down_type = TYPE("SchedulerMessage", mr_ws_down, down_fields);

/* ---- worker to scheduler -------------------------------------------------------------------- */

#undef STRUCT
#define STRUCT mr_ws_failure
static const struct mr_ws_field failure_fields[] = {
    ONE(U32, 1, row, row),
    ONE(I32, 2, code, code),
    ONE(TEXT, 3, message, message),
    ONE(TEXT, 4, arguments, arguments),
    ONE(TEXT, 5, log, log),
};
static const struct mr_ws_type failure_type = TYPE("TaskFailure", mr_ws_failure, failure_fields);

#undef STRUCT
#define STRUCT mr_ws_completed
static const struct mr_ws_field completed_fields[] = {
    ROWS(1, runs, tasks.runs, tasks.runs_count, run_type),
    COLUMN(32, 2, index, tasks.index, tasks.count, LEADS),
    COLUMN(32, 3, attempt, tasks.attempt, tasks.count, EQUAL),
    COLUMN(32, 4, outcome, outcome, tasks.count, MAY),
    COLUMN(32, 5, inline_bytes, inline_bytes, tasks.count, MAY),
    ONE(BYTES, 6, inline, inlined),
    COLUMN(_FIXED64, 7, object_maker, object_maker, objects_count, LEADS),
    COLUMN(_FIXED64, 8, object_number, object_number, objects_count, EQUAL),
    COLUMN(64, 9, object_bytes, object_bytes, objects_count, EQUAL),
    ONE(U64, 10, base_ns, base_ns),
    COLUMN(64, 11, started_ns, started_ns, tasks.count, MAY),
    COLUMN(64, 12, duration_ns, duration_ns, tasks.count, MAY),
    COLUMN(64, 13, cpu_ns, cpu_ns, tasks.count, MAY),
    COLUMN(32, 14, slot, slot, tasks.count, MAY),
    ROWS(15, failures, failures, failures_count, failure_type),
    COLUMN(64, 16, input_ns, input_ns, tasks.count, MAY),
    COLUMN(64, 17, output_ns, output_ns, tasks.count, MAY),
    COLUMN(64, 18, late_ns, late_ns, tasks.count, MAY),
    COLUMN(64, 19, waited_ns, waited_ns, tasks.count, MAY),
    COLUMN(64, 20, delayed_ns, delayed_ns, tasks.count, MAY),
    COLUMN(64, 21, room_ns, room_ns, tasks.count, MAY),
    COLUMN(64, 22, training_shares, training, tasks.count, MAY),
    COLUMN(64, 23, restore_ns, restore_ns, tasks.count, MAY),
};
static const struct mr_ws_type completed_type =
    TYPE("Completed", mr_ws_completed, completed_fields);

#undef STRUCT
#define STRUCT mr_ws_missing
static const struct mr_ws_field missing_fields[] = {
    ONE(U64, 1, job, job),
    ONE(U32, 2, index, index),
    ONE(U32, 3, attempt, attempt),
    ONE(U32, 4, input, input),
    ONE(TEXT, 5, why, why),
};
static const struct mr_ws_type missing_type = TYPE("MissingInput", mr_ws_missing, missing_fields);

#undef STRUCT
#define STRUCT mr_ws_log
static const struct mr_ws_field log_fields[] = {
    ONE(U64, 1, job, job),
    ONE(U32, 2, index, index),
    ONE(U32, 3, attempt, attempt),
    ONE(TEXT, 4, text, text),
    ONE(U64, 5, dropped, lost),
};
static const struct mr_ws_type log_type = TYPE("TaskLog", mr_ws_log, log_fields);

#undef STRUCT
#define STRUCT mr_ws_heartbeat
static const struct mr_ws_field heartbeat_fields[] = {
    ONE(U64, 1, sequence, sequence),
    ONE(U64, 2, time_ns, time_ns),
    ONE(U64, 3, memory_used_bytes, memory_used_bytes),
    ONE(U64, 4, held_bytes, held_bytes),
    ONE(U32, 5, queued, queued),
    ONE(U32, 6, running, running),
    ONE(U64, 7, tasks_started, tasks_started),
    ONE(U64, 8, tasks_done, tasks_done),
    PART(9, running_tasks, running_tasks, refs_type),
    COLUMN(64, 10, running_ns, running_ns, running_tasks.count, IGNORE),
    ONE(U64, 11, queue_ns, queue_ns),
    ONE(U64, 12, cpu_ns, cpu_ns),
    ONE(U64, 13, received_bytes, received_bytes),
    ONE(U64, 14, sent_bytes, sent_bytes),
};
static const struct mr_ws_type heartbeat_type =
    TYPE("Heartbeat", mr_ws_heartbeat, heartbeat_fields);

#undef STRUCT
#define STRUCT mr_ws_operator
static const struct mr_ws_field operator_fields[] = {
    ONE(TEXT, 1, name, name),
    ONE(U32, 2, args_min, args_min),
    ONE(U32, 3, args_max, args_max),
    ONE(BOOL, 4, deterministic, deterministic),
    ONE(BOOL, 5, by_reference, by_reference),
    ONE(U64, 6, cost_ns, cost_ns),
    ONE(TEXT, 7, info_json, info_json),
    ONE(BOOL, 8, long_running, long_running),
    ONE(BOOL, 9, passes, passes),
};
static const struct mr_ws_type operator_type =
    TYPE("OpDescriptor", mr_ws_operator, operator_fields);

#undef STRUCT
#define STRUCT mr_ws_register
static const struct mr_ws_field register_fields[] = {
    ONE(U32, 1, protocol_version, protocol_version),
    ONE(U32, 2, layout_version, layout_version),
    ONE(TEXT, 3, name, name),
    ONE(TEXT, 4, node, node),
    ONE(U64, 5, store, store),
    ONE(TEXT, 6, store_address, store_address),
    ONE(U32, 7, slots, slots),
    ONE(U64, 8, memory_bytes, memory_bytes),
    ROWS(9, resources, resources, resources_count, resource_type),
    TEXTS(10, runtimes, runtimes, runtimes_count),
    ROWS(11, ops, ops, ops_count, operator_type),
    ONE(U64, 12, incarnation, incarnation),
    ONE(U32, 13, epoch, epoch),
    ONE(U64, 14, time_ns, time_ns),
    ONE(U32, 15, pid, pid),
    ONE(TEXT, 16, version, version),
    PART(17, holding, holding, completed_type),
    PART(18, queued, queued, refs_type),
    PART_IF(19, suspects, suspects, has_suspects, refs_type),
    ONE(TEXT, 20, address, address),
    ONE(FIXED64, 21, scheduler, scheduler),
    ONE(U64, 22, began_ns, began_ns),
    ONE(U32, 23, processors, processors),
};
static const struct mr_ws_type register_type = TYPE("Register", mr_ws_register, register_fields);

#undef STRUCT
#define STRUCT mr_ws_up
static const struct mr_ws_field up_fields[] = {
    LINK(1, register, reg, register_type),
    LINK(2, heartbeat, heartbeat, heartbeat_type),
    PART(3, completed, completed, completed_type),
    PART(4, given, given, refs_type),
    PART(5, started, started, refs_type),
    PART(6, unknown, unknown, refs_type),
    ROWS(7, missing, missing, missing_count, missing_type),
    PART(8, left_slot, left_slot, refs_type),
    ROWS(9, logs, logs, logs_count, log_type),
    ONE(BOOL, 10, leaving, leaving),
    ONE(U64, 11, received_first, received_first),
    COLUMN(64, 12, received_ns, received_ns, received_count, LEADS),
    ONE(U64, 13, paused_from_ns, paused_from_ns),
    ONE(U64, 14, paused_until_ns, paused_until_ns),
};
const struct mr_ws_type mr_ws_up_type = TYPE("WorkerMessage", mr_ws_up, up_fields);
/* clang-format on */
