/* Sets the options of nodes and of the job. Equal sets of options are kept once. */
#include "graph/build/options.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/build/builder_state.h"
#include "graph/options.h"
#include "graph/options_pack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t options_add(struct mr_builder *b, const struct mr_task_options *o)
{
    struct mr_str pack = mr_buf_str(&b->options_scratch);
    uint64_t hash = XXH3_64bits(pack.p, pack.n);
    uint32_t slot = hash & (MR_BUILDER_CACHE - 1);
    uint32_t known = b->options_cache[slot].index_1;
    if (known && mr_str_eq(b->options_pack[known - 1], pack)) return known - 1;

    if (b->options_count == b->options_room) {
        uint32_t old = b->options_room, room = old ? old * 2 : 8;
        b->options = mr_grow(b->options, old * sizeof *b->options, room * sizeof *b->options);
        b->options_pack =
            mr_grow(b->options_pack, old * sizeof *b->options_pack, room * sizeof *b->options_pack);
        b->options_room = room;
    }
    uint32_t at = b->options_count++;
    mr_task_options_copy(&b->text, o, &b->options[at]);
    b->options_pack[at] = mr_text_arena_copy(&b->text, pack);
    b->options_cache[slot].hash = hash;
    b->options_cache[slot].index_1 = b->options_count;
    return at;
}

int mr_builder_options(
    struct mr_builder *b, uint32_t node, const struct mr_task_options *o, struct mr_error *e)
{
    if (!o->given) return MR_OK;
    int err = mr_task_options_check(o, e);
    if (err) return mr_fail_within(e, err, "key", mr_builder_key(b, node));
    mr_buf_clear(&b->options_scratch);
    mr_task_options_pack(&b->options_scratch, o);
    mr_assert(!mr_buf_status(&b->options_scratch));
    err = mr_builder_wrote(b, node, b->options_scratch.n, e);
    if (err) return err;
    if (!b->option_of) {
        size_t bytes = b->nodes_room * sizeof *b->option_of;
        b->option_of = mr_alloc(bytes);
        memset(b->option_of, 0xff, bytes);
    }
    b->option_of[node] = options_add(b, o);
    if (b->text.bytes <= MR_MAX(b->args.bytes_max, (size_t)1 << 20)) return MR_OK;
    return mr_fail(e, MR_ELIMIT, "all options together exceed %zu bytes", b->args.bytes_max);
}

int mr_builder_job(struct mr_builder *b, const struct mr_job_options *job, struct mr_error *e)
{
    int err = mr_job_options_check(job, e);
    if (err) return err;
    mr_job_options_copy(&b->text, job, &b->job);
    return MR_OK;
}
