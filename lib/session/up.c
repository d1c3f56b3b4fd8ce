/* Checks the columns of a WorkerMessage, as the scheduler's core needs them. */
#include "session/up.h"

#include "base/limits.h"
#include "base/pack.h"

static int failures_check(const struct mr_ws_completed *c, struct mr_error *e)
{
    for (uint32_t i = 0; i < c->failures_count; i++) {
        uint32_t row = c->failures[i].row;
        if (row >= c->tasks.count || (i && row <= c->failures[i - 1].row))
            return mr_fail(e, MR_EFORMAT, "completed.failures: row %u is out of place", row);
    }
    return MR_OK;
}

/* Checks the values of completed tasks. The inline value of each row must be a pack (base/pack.h),
 * and the rows' lengths must add up to the length of `inlined`. There must be one object for each
 * row that is OK and has no inline value. */
static int values_check(const struct mr_ws_completed *c, struct mr_error *e)
{
    size_t total = 0;
    uint32_t objects = 0;
    for (uint32_t i = 0; i < c->tasks.count; i++) {
        uint32_t n = mr_ws_cell(c->inline_bytes, i, 0);
        bool ok = mr_ws_cell(c->outcome, i, MR_OUTCOME_OK) == MR_OUTCOME_OK;
        if (n > c->inlined.n - total)
            return mr_fail(e, MR_EFORMAT, "completed.inline: ends inside row %u", i);
        if (n && mr_pack_check(mr_str_of(c->inlined.p + total, n), 0, e)) return MR_EFORMAT;
        total += n;
        objects += ok && !n;
    }
    if (total != c->inlined.n)
        return mr_fail(
            e, MR_EFORMAT, "completed.inline: %zu bytes, its rows have %zu", c->inlined.n, total);
    if (c->objects_count != objects)
        return mr_fail(
            e, MR_EFORMAT, "completed.object_*: %u rows, expected %u", c->objects_count, objects);
    return MR_OK;
}

static int completed_check(const struct mr_ws_completed *c, struct mr_error *e)
{
    int err = mr_ws_refs_check("completed", &c->tasks, e);
    if (!err) err = values_check(c, e);
    return err ? err : failures_check(c, e);
}

int mr_ws_version_check(const struct mr_ws_register *r, struct mr_error *e)
{
    if (r->protocol_version == MR_PROTOCOL_VERSION && r->layout_version == MR_LAYOUT_VERSION)
        return MR_OK;
    return mr_fail(e, MR_ESTATE,
        "worker \"%.*s\" speaks protocol %u with value layout %u, this scheduler %d with %d",
        MR_STR_ARG(r->name), r->protocol_version, r->layout_version, MR_PROTOCOL_VERSION,
        MR_LAYOUT_VERSION);
}

static int resources_check(const struct mr_ws_register *r, struct mr_error *e)
{
    if (r->resources_count > MR_RESOURCES_MAX)
        return mr_fail(e, MR_ELIMIT, "register.resources: at most %d kinds", MR_RESOURCES_MAX);
    for (uint32_t i = 0; i < r->resources_count; i++)
        if (r->resources[i].micro == UINT64_MAX)
            return mr_fail(e, MR_EINVAL, "register.resources: \"%.*s\" is not between 0 and 1e12",
                MR_STR_ARG(r->resources[i].name));
    return MR_OK;
}

static int register_check(const struct mr_ws_register *r, struct mr_error *e)
{
    int err = mr_ws_version_check(r, e);
    if (err) return err;
    if (!r->name.n || r->name.n > MR_LABEL_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "register.name: 1 to %d bytes", MR_LABEL_BYTES_MAX);
    if (r->address.n > MR_ADDRESS_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "register.address: at most %d bytes", MR_ADDRESS_BYTES_MAX);
    if (r->slots < 1 || r->slots > MR_SLOTS_MAX)
        return mr_fail(e, MR_EINVAL, "register.slots: 1 to %d, not %u", MR_SLOTS_MAX, r->slots);
    err = resources_check(r, e);
    for (uint32_t i = 0; i < r->ops_count && !err; i++) {
        size_t n = r->ops[i].name.n;
        if (!n || n > MR_OP_NAME_BYTES_MAX)
            err = mr_fail(e, MR_EINVAL, "register.ops: a name of %zu bytes", n);
    }
    if (!err) err = completed_check(&r->holding, e);
    if (!err) err = mr_ws_refs_check("register.queued", &r->queued, e);
    return err ? err : mr_ws_refs_check("register.suspects", &r->suspects, e);
}

int mr_ws_up_check(const struct mr_ws_up *m, struct mr_error *e)
{
    int err = m->reg ? register_check(m->reg, e) : MR_OK;
    if (!err && m->heartbeat)
        err = mr_ws_refs_check("heartbeat.running_tasks", &m->heartbeat->running_tasks, e);
    if (!err) err = completed_check(&m->completed, e);
    if (!err) err = mr_ws_refs_check("given", &m->given, e);
    if (!err) err = mr_ws_refs_check("started", &m->started, e);
    if (!err) err = mr_ws_refs_check("unknown", &m->unknown, e);
    return err ? err : mr_ws_refs_check("left_slot", &m->left_slot, e);
}
