/* The names of all keys that millrace writes in Redis. Each key begins with a prefix, "millrace:"
 * by default. In a Redis Cluster all keys are in one hash slot only if the prefix has a hash tag.
 */
#pragma once

#define MR_META_PREFIX "millrace:"

/* A hash with the fields id, epoch, incarnation, sequence, base, format. */
#define MR_META_CLUSTER "cluster"
/* A stream of journal records. Entry ids are <sequence>-0, and all fields are named r. */
#define MR_META_JOURNAL "journal"
/* A stream with a snapshot, which becomes the journal when it is complete. */
#define MR_META_STAGING "journal:new"

/* A hash: name -> packed record of the name. */
#define MR_META_NAMES "names"
/* A hash: object id (16 bytes) -> packed record of one store that has the object. */
#define MR_META_OBJECTS "objects"
/* A hash: template's name -> packed time of its installation and packed JSON text. */
#define MR_META_TEMPLATES "templates"
/* A hash: node -> packed record of the node. */
#define MR_META_NODES "nodes"

/* Prefix of one stream for each job. Entry ids are <epoch>-<n>. Field b is a block of spans; field
 * f is the packed place of a block in the job's file. */
#define MR_META_TRACE "trace:"
/* A hash: job -> packed counts of its trace. */
#define MR_META_TRACES "traces"

/* A number that grows with each start of a trainer. */
#define MR_META_TRAINER_EPOCH "trainer:epoch"
/* A hash: session -> its record, as the trainer encodes it. */
#define MR_META_TRAININGS "trainings"
/* A hash: session -> its document, as submitted. */
#define MR_META_TRAINING_DOCUMENTS "trainings:documents"

/* Prefix of one stream for each channel. Field v is JSON text, t the time in ns, k the token of the
 * append. */
#define MR_META_CHANNEL "channel:"
/* A hash: channel -> bound of the number of its entries. */
#define MR_META_CHANNELS "channels"
/* A hash: channel -> id of the entry after which no entry was dropped. */
#define MR_META_CHANNEL_FLOORS "channels:floor"

/* A stream, the change feed. Field c names a channel that has changed, field q a queue. */
#define MR_META_TAIL "tail"
/* The approximate bound of the change feed, in entries. */
#define MR_META_TAIL_MAX "10000"

/* Prefix of several hashes, sorted sets and lists for each queue. */
#define MR_META_QUEUE "queue:"
/* A sorted set of the names of queues, with equal scores. */
#define MR_META_QUEUES "queues"
/* A set of names of objects. Each name held its object for an item of a queue. The item is gone, so
 * the name may be deleted. The key with ":aside" appended is a list of keys, one for each deleted
 * queue that had items. Each of these keys is a hash of the queue's items. */
#define MR_META_QUEUE_RELEASED "queues:released"
