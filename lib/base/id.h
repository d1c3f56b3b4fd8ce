/* Texts, bytes and comparisons of ids. */
#pragma once

#include "base/id_type.h"
#include "base/str.h"

/* Each start of a scheduler draws an incarnation at random. Its upper 32 bits are the tag of the
 * ids that it gives out, so that no id is given twice, whatever Redis has lost. As text a tag has 7
 * digits of base 32 (0-9, a-z without i, l, o, u). Tags below a million are epochs of schedulers
 * that drew none, and stand as decimal numbers: none is drawn. */
#define MR_TAG_DRAWN_MIN 1000000u
#define MR_JOB_ID_TEXT_MAX 32
#define MR_OBJECT_ID_TEXT_MAX 33

void mr_job_id_format(mr_job_id id, char out[MR_JOB_ID_TEXT_MAX]);
int mr_job_id_parse(struct mr_str text, mr_job_id *out); /* MR_EINVAL */
void mr_object_id_format(mr_object_id id, char out[MR_OBJECT_ID_TEXT_MAX]);
int mr_object_id_parse(struct mr_str text, mr_object_id *out);      /* MR_EINVAL */
void mr_object_id_to_bytes(mr_object_id id, unsigned char out[16]); /* big endian, as on the wire */
int mr_object_id_from_bytes(struct mr_str bytes, mr_object_id *out); /* MR_EINVAL if not 16 bytes */

static inline mr_job_id mr_job_id_make(uint32_t tag, uint32_t number)
{
    return (mr_job_id){(uint64_t)tag << 32 | number};
}

static inline uint32_t mr_job_id_tag(mr_job_id id)
{
    return (uint32_t)(id.v >> 32);
}

static inline bool mr_object_id_eq(mr_object_id a, mr_object_id b)
{
    return a.maker == b.maker && a.number == b.number;
}

static inline bool mr_object_id_is_none(mr_object_id a)
{
    return !a.maker && !a.number;
}

static inline uint64_t mr_hash_u64(uint64_t x) /* splitmix64's finalizer (Steele et al. 2014) */
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t mr_object_id_hash(mr_object_id a)
{
    return mr_hash_u64(a.maker + 0x9e3779b97f4a7c15u * a.number);
}
