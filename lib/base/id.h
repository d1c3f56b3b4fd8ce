/* Ids as text and as bytes; comparison and hashing of ids. */
#pragma once

#include "base/id_type.h"
#include "base/str.h"

/* The upper 32 bits of an id that a scheduler gives out are its tag. A scheduler draws a random
 * 64-bit incarnation at each start, and the upper half of the incarnation is the tag. So no id is
 * given out twice, even if Redis has lost data. As text, a tag has 7 digits of base 32 (0-9 and a-z
 * without i, l, o, u). Tags below MR_TAG_DRAWN_MIN are not random: they come from old schedulers
 * that counted their starts, and are written as decimal numbers. */
#define MR_TAG_DRAWN_MIN 1000000u
#define MR_JOB_ID_TEXT_MAX 32
#define MR_OBJECT_ID_TEXT_MAX 33

void mr_job_id_format(mr_job_id id, char out[MR_JOB_ID_TEXT_MAX]);
/* Reads the text of a job id. MR_EINVAL: `text` is not the text of a job id. */
int mr_job_id_parse(struct mr_str text, mr_job_id *out);
void mr_object_id_format(mr_object_id id, char out[MR_OBJECT_ID_TEXT_MAX]);
/* Reads the text of an object id. MR_EINVAL: `text` is not the text of an object id. */
int mr_object_id_parse(struct mr_str text, mr_object_id *out);
/* Writes `maker` and then `number` as big-endian bytes, which is the form of object ids in
 * messages. */
void mr_object_id_to_bytes(mr_object_id id, unsigned char out[16]);
int mr_object_id_from_bytes(struct mr_str bytes, mr_object_id *out); /* MR_EINVAL: not 16 bytes */

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

/* The finalizer of splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014). */
static inline uint64_t mr_hash_u64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t mr_object_id_hash(mr_object_id a)
{
    return mr_hash_u64(a.maker + 0x9e3779b97f4a7c15u * a.number);
}
