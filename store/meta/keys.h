/* Every key that millrace writes in Redis, spelled once. {p} is the prefix, "millrace:" by default;
 * all are in one hash slot of a Redis cluster only if the prefix carries a hash tag. */
#pragma once

#define MR_META_PREFIX "millrace:"

#define MR_META_CLUSTER "cluster" /* hash: id, epoch, incarnation, sequence, base, format */
#define MR_META_JOURNAL "journal" /* stream: ids <sequence>-0, fields r: records */
#define MR_META_STAGING                                                                            \
    "journal:new"                 /* stream: a snapshot that becomes the journal when it is whole */
#define MR_META_NAMES "names"     /* hash: name -> pack of a name record */
#define MR_META_OBJECTS "objects" /* hash: id (16 bytes) -> pack of an object record */
#define MR_META_TEMPLATES "templates" /* hash: name -> pack of when, and the text */
#define MR_META_NODES "nodes"         /* hash: node -> pack of a node record */
#define MR_META_TRACE                                                                              \
    "trace:"                    /* streams, one a job, ids <epoch>-<n>: field b: a block of spans; \
                                 * field f: pack of where one lies in the job's file */
#define MR_META_TRACES "traces" /* hash: job -> pack of its trace's counts */
#define MR_META_TRAINER_EPOCH "trainer:epoch" /* grows with each start of a trainer */
#define MR_META_TRAININGS "trainings" /* hash: session -> its record (services/trainer/core*.c) */
#define MR_META_TRAINING_DOCUMENTS                                                                 \
    "trainings:documents"                       /* hash: session -> document as submitted */
#define MR_META_CHANNEL "channel:"              /* streams, fields v: JSON text, t: ns, k: token */
#define MR_META_CHANNELS "channels"             /* hash: channel -> bound */
#define MR_META_CHANNEL_FLOORS "channels:floor" /* hash: channel -> id after which all is there */
#define MR_META_TAIL "tail"      /* stream: field c: channel, q: queue that changed */
#define MR_META_TAIL_MAX "10000" /* entries of the change feed, about */
#define MR_META_QUEUE "queue:"   /* per queue: hashes, sorted sets and lists */
#define MR_META_QUEUES "queues"  /* sorted set of the queues, all of score 0 */
#define MR_META_QUEUE_RELEASED                                                                     \
    "queues:released" /* set: names of objects that may go; with ":aside" list: keys of items of   \
                         deleted queues */
