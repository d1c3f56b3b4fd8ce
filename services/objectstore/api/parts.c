/* The objects that Delete and Persist act on: the parts of a collection, and the collection. */
#include "services/objectstore/api/internal.h"

#include "store/object/collection.h"

void mr_parts_take(struct mr_ostore_call *call)
{
    struct parts *p = mr_ostore_call_take(call, sizeof *p);
    mr_object_id whole = call->id;
    call->more = p;
    struct mr_value v;
    struct mr_collection c;
    bool is_collection = !call->err && call->view.pin &&
                         !mr_value_check(mr_str_of(call->view.p, call->view.bytes), &v, NULL) &&
                         v.kind == MR_VALUE_COLLECTION && !mr_collection_open(&v, &c, NULL);
    uint32_t count = is_collection ? c.count : 0;
    p->ids = mr_ostore_call_take(call, (count + 1) * sizeof *p->ids);
    p->bytes = mr_ostore_call_take(call, (count + 1) * sizeof *p->bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_collection_part part;
        if (mr_collection_part(&c, i, &part, NULL) || mr_object_id_is_none(part.id)) continue;
        p->persisting.bytes += part.nbytes;
        p->bytes[p->count] = part.nbytes;
        p->ids[p->count++] = part.id;
    }
    p->persisting.bytes += call->view.bytes;
    p->bytes[p->count] = call->view.bytes;
    p->ids[p->count++] = whole;
}
