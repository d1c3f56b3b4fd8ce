/* The names of all keys that millrace writes in Redis. Each key begins with a prefix, "millrace:"
 * by default. In a Redis Cluster all keys are in one hash slot only if the prefix has a hash tag.
 */
#pragma once

#define MR_META_PREFIX "millrace:"

/* Hash: id, epoch, incarnation, sequence, base, format. */
#define MR_META_CLUSTER "cluster"
/* Stream of journal records: entry ids <sequence>-0, fields r. */
#define MR_META_JOURNAL "journal"
/* Stream: a snapshot that becomes the journal when it is complete. */
#define MR_META_STAGING "journal:new"

/* Hash: name -> packed name record. */
#define MR_META_NAMES "names"
/* Hash: object id (16 bytes) -> packed place record. */
#define MR_META_OBJECTS "objects"
/* Hash: name -> packed time and text. */
#define MR_META_TEMPLATES "templates"
/* Hash: node -> packed node record. */
#define MR_META_NODES "nodes"

/* One stream a job: entry ids <epoch>-<n>. Field b is a block of spans; field f is the packed place
 * of a block in the job's file. */
#define MR_META_TRACE "trace:"
/* Hash: job -> packed counts of its trace. */
#define MR_META_TRACES "traces"

/* Number: grows with each start of a trainer. */
#define MR_META_TRAINER_EPOCH "trainer:epoch"
/* Hash: session -> its record, as the trainer encodes it. */
#define MR_META_TRAININGS "trainings"
/* Hash: session -> its document, as submitted. */
#define MR_META_TRAINING_DOCUMENTS "trainings:documents"

/* One stream a channel. Fields: v is JSON text, t the time in ns, k the token of the append. */
#define MR_META_CHANNEL "channel:"
/* Hash: channel -> bound of its entries. */
#define MR_META_CHANNELS "channels"
/* Hash: channel -> id of the entry after which no entry was dropped. */
#define MR_META_CHANNEL_FLOORS "channels:floor"

/* Stream, the change feed: field c is a channel that has changed, field q a queue. */
#define MR_META_TAIL "tail"
/* Approximate bound of the change feed, in entries. */
#define MR_META_TAIL_MAX "10000"

/* Several hashes, sorted sets and lists for each queue. */
#define MR_META_QUEUE "queue:"
/* Sorted set of the names of queues, with equal scores. */
#define MR_META_QUEUES "queues"
/* Set: names of objects that may be released. With ":aside", a list: keys of the items of deleted
 * queues. */
#define MR_META_QUEUE_RELEASED "queues:released"
