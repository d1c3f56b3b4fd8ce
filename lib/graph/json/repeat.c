/* "repeat": loops with a condition. The field "tasks" is the loop's body. Its entries are read like
 * those of the job and become round 0, in which the entry "next" of the loop `fit` has the key
 * `fit[0].next`. The builder makes all later rounds (build/unroll.h).
 *
 *   {"fit": {"max": 50, "carry": {"state": {"ref": "start"}},
 *            "tasks": {"next": {"op": "step", "args": [{"ref": "state"}]},
 *                      "done": {"op": "is_done", "args": [{"ref": "state"}, {"ref": "next"}]}},
 *            "next": {"state": {"ref": "next"}}, "until": {"ref": "done"}}} */
#include "graph/json/internal.h"
#include "graph/build/unroll.h"

#include <stdio.h>

enum field { F_MAX, F_CARRY, F_TASKS, F_NEXT, F_UNTIL, F_COUNT };

static const char *const fields[F_COUNT] = {"max", "carry", "tasks", "next", "until"};

struct loop {
    struct mr_repeat r;
    struct mr_repeat_carry carry[MR_LOOP_CARRY_MAX];
    yyjson_val *at[F_COUNT];
};

/* ---- one loop -------------------------------------------------------------------------------- */

static int wrong(struct mr_json *j, enum field f, const yyjson_val *v, const char *want)
{
    if (!v) return mr_fail(j->e, MR_EINVAL, "has no \"%s\", which must be %s", fields[f], want);
    return mr_fail(
        j->e, MR_EINVAL, "\"%s\" is %s, but must be %s", fields[f], mr_json_kind(v), want);
}

static int read_max(struct mr_json *j, struct loop *l)
{
    int err = MR_OK;
    yyjson_val *v = l->at[F_MAX];
    if (v) v = mr_json_resolve(j, v, NULL, &err);
    if (err) return err;
    if (!v || !yyjson_is_uint(v)) return wrong(j, F_MAX, v, "a number of rounds");
    l->r.rounds = (uint32_t)MR_MIN(yyjson_get_uint(v), (uint64_t)UINT32_MAX);
    return MR_OK;
}

static int read_fields(struct mr_json *j, yyjson_val *object, struct loop *l)
{
    if (!yyjson_is_obj(object))
        return mr_fail(j->e, MR_EINVAL, "is %s, but must be an object", mr_json_kind(object));
    yyjson_obj_iter it = yyjson_obj_iter_with(object);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        unsigned f = 0;
        while (f < F_COUNT && !mr_str_eq(mr_json_text(k), mr_str(fields[f])))
            f++;
        if (f == F_COUNT && mr_str_eq(mr_json_text(k), MR_STR("repeat")))
            return mr_fail(j->e, MR_EINVAL,
                "a loop inside of a loop is not possible; let a task of the body run it");
        if (f == F_COUNT) return mr_json_unknown(j, "field", mr_json_text(k), fields, F_COUNT);
        if (l->at[f]) return mr_fail(j->e, MR_EINVAL, "\"%s\" appears twice", fields[f]);
        l->at[f] = yyjson_obj_iter_get_val(k);
    }
    return read_max(j, l);
}

static int read_head(struct mr_json *j, yyjson_val *key, struct loop *l)
{
    *l = (struct loop){.r = {.name = mr_json_text(key), .until = MR_NODE_NONE}};
    l->r.carry = l->carry;
    int err = read_fields(j, yyjson_obj_iter_get_val(key), l);
    if (err) return err;
    yyjson_val *carry = l->at[F_CARRY];
    if (!carry || !yyjson_is_obj(carry))
        return wrong(j, F_CARRY, carry, "an object of names and what each begins with");
    if (!l->at[F_TASKS] || !yyjson_is_obj(l->at[F_TASKS]))
        return wrong(j, F_TASKS, l->at[F_TASKS], "an object of keys");
    if (!l->at[F_NEXT] || !yyjson_is_obj(l->at[F_NEXT]))
        return wrong(j, F_NEXT, l->at[F_NEXT], "an object of what is carried on");
    l->r.carry_count = (uint32_t)MR_MIN(yyjson_obj_size(carry), (size_t)MR_LOOP_CARRY_MAX + 1);
    yyjson_obj_iter it = yyjson_obj_iter_with(carry);
    for (uint32_t i = 0; i < MR_MIN(l->r.carry_count, (uint32_t)MR_LOOP_CARRY_MAX); i++)
        l->carry[i] = (struct mr_repeat_carry){
            .name = mr_json_text(yyjson_obj_iter_next(&it)), .next = MR_NODE_NONE};
    return MR_OK;
}

/* Gives the node `node` the value `v` from the loop's JSON. If `v` is a task, it is read like an
 * entry of "tasks", so it may have options; but "for" is refused. */
static int write_node(struct mr_json *j, uint32_t node, yyjson_val *v)
{
    if (yyjson_is_obj(v) && yyjson_obj_get(v, "op")) {
        if (mr_json_entry_loop(j, v))
            return mr_fail(j->e, MR_EINVAL, "\"for\" makes many tasks where one is wanted");
        return mr_json_entry(j, node, v);
    }
    int err = mr_builder_value(j->b, node, j->e);
    if (!err) err = mr_json_write(j, v, (struct mr_json_mode){true, true}, 0);
    if (!err) err = mr_builder_value_end(j->b, j->e);
    return err;
}

static int write_firsts(struct mr_json *j, struct loop *l)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(l->at[F_CARRY]);
    for (uint32_t i = 0; i < l->r.carry_count; i++) {
        yyjson_val *v = yyjson_obj_iter_get_val(yyjson_obj_iter_next(&it));
        mr_builder_scope(j->b, &l->r); /* the scope gives the key the loop's name as prefix */
        int err = mr_builder_own(j->b, l->carry[i].name, &l->carry[i].first, j->e);
        mr_builder_scope(j->b, NULL);
        if (!err) err = write_node(j, l->carry[i].first, v);
        if (err) return mr_fail_within(j->e, err, "carried", l->carry[i].name);
    }
    return MR_OK;
}

/* Sets `*node` to the node that an argument stands for. For {"ref": key} this is the key's node.
 * Any other argument becomes a new node named `what`. */
static int read_node(struct mr_json *j, struct mr_str what, yyjson_val *v, uint32_t *node)
{
    yyjson_val *ref = yyjson_obj_size(v) == 1 ? yyjson_obj_get(v, "ref") : NULL;
    int err = MR_OK;
    if (ref) {
        ref = mr_json_resolve_text(j, ref, &err);
        if (err) return err;
        if (yyjson_is_str(ref)) return mr_builder_ref(j->b, mr_json_text(ref), node, j->e);
    }
    uint32_t before = j->b->keys.count;
    err = mr_builder_own(j->b, what, node, j->e);
    if (!err && *node != before)
        return mr_fail(j->e, MR_EINVAL,
            "\"%.*s\" is a key of the body, too; give it as {\"ref\": …}", MR_SHOWN(what));
    return err ? err : write_node(j, *node, v);
}

static int read_next(struct mr_json *j, struct loop *l)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(l->at[F_NEXT]);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        uint32_t i = 0;
        while (i < l->r.carry_count && !mr_str_eq(l->carry[i].name, mr_json_text(k)))
            i++;
        if (i == l->r.carry_count)
            return mr_fail(
                j->e, MR_EINVAL, "\"next\": \"%.*s\" is not carried", MR_SHOWN(mr_json_text(k)));
        if (l->carry[i].next != MR_NODE_NONE)
            return mr_fail(
                j->e, MR_EINVAL, "\"next\": \"%.*s\" appears twice", MR_SHOWN(mr_json_text(k)));
        char what[MR_LOOP_NAME_BYTES_MAX + 8];
        int n = snprintf(what, sizeof what, "next.%.*s", MR_STR_ARG(l->carry[i].name));
        int err =
            read_node(j, mr_str_of(what, (size_t)n), yyjson_obj_iter_get_val(k), &l->carry[i].next);
        if (err) return err;
    }
    for (uint32_t i = 0; i < l->r.carry_count; i++)
        if (l->carry[i].next == MR_NODE_NONE)
            return mr_fail(j->e, MR_EINVAL,
                "\"next\" does not say what becomes of \"%.*s\", which is carried",
                MR_STR_ARG(l->carry[i].name));
    return MR_OK;
}

static int check_body(struct mr_json *j, const struct loop *l)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(l->at[F_TASKS]);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it))
        for (uint32_t i = 0; i < l->r.carry_count; i++)
            if (mr_str_eq(l->carry[i].name, mr_json_text(k)))
                return mr_fail(j->e, MR_EINVAL, "\"%.*s\" is both carried and a key of the body",
                    MR_SHOWN(mr_json_text(k)));
    return MR_OK;
}

static int one_loop(struct mr_json *j, yyjson_val *key)
{
    struct loop l;
    int err = read_head(j, key, &l);
    if (!err) err = check_body(j, &l);
    if (!err) err = write_firsts(j, &l);
    if (err) return err;
    bool is_dsk = j->dsk;
    j->dsk = false;
    l.r.from = j->b->keys.count;
    mr_builder_scope(j->b, &l.r);
    err = mr_json_entries(j, l.at[F_TASKS]);
    if (!err) err = read_next(j, &l);
    if (!err && l.at[F_UNTIL]) err = read_node(j, MR_STR("until"), l.at[F_UNTIL], &l.r.until);
    mr_builder_scope(j->b, NULL);
    j->dsk = is_dsk;
    return err ? err : mr_builder_repeat(j->b, &l.r, j->e);
}

static int within(struct mr_json *j, int err, yyjson_val *key)
{
    if (!strncmp(j->e->text, "key \"", 5) || !strncmp(j->e->text, "repeat \"", 8)) return err;
    return mr_fail_within(j->e, err, "repeat", mr_json_text(key));
}

int mr_json_repeat_declare(struct mr_json *j, yyjson_val *repeat)
{
    if (!yyjson_is_obj(repeat))
        return mr_fail(j->e, MR_EINVAL, "field \"repeat\" is %s, but must be an object of loops",
            mr_json_kind(repeat));
    if (yyjson_obj_size(repeat) > MR_LOOPS_MAX)
        return mr_fail(j->e, MR_EINVAL, "field \"repeat\" has more than %d loops", MR_LOOPS_MAX);
    int err = mr_json_no_duplicates(j, repeat);
    yyjson_obj_iter it = yyjson_obj_iter_with(repeat);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it)) {
        struct loop l;
        err = read_head(j, k, &l);
        if (!err) err = mr_repeat_declare(j->b, &l.r, j->e);
        if (err) err = within(j, err, k);
    }
    return err;
}

int mr_json_repeat(struct mr_json *j, yyjson_val *repeat)
{
    int err = MR_OK;
    yyjson_obj_iter it = yyjson_obj_iter_with(repeat);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it)) {
        err = one_loop(j, k);
        if (err) err = within(j, err, k);
    }
    return err;
}
