/* Metrics of several services in one text. Prometheus' format (0.0.4) wants all series of a family
 * together, so the texts are taken apart and merged by family. No I/O. */
#pragma once

#include "base/buf.h"

struct mr_prometheus;

struct mr_prometheus *mr_prometheus_new(void);
void mr_prometheus_free(struct mr_prometheus **p);

/* Adds the text of one service. Every series gets `labels` before its own labels:
 * `instance="…",node="…"`. Lines in another format are dropped. */
void mr_prometheus_add(struct mr_prometheus *p, struct mr_str text, const char *labels);

struct mr_prometheus_family {
    const char *name, *type, *help;
};

/* Adds one series with its value. */
void mr_prometheus_add_value(struct mr_prometheus *p, const struct mr_prometheus_family *family,
    const char *labels, uint64_t value);

/* Appends name="value" with the value escaped, after a comma if `out` has a label already. */
void mr_prometheus_label(struct mr_buf *out, const char *name, const char *value);
/* Appends the merged text, with the families sorted by name. */
void mr_prometheus_write(const struct mr_prometheus *p, struct mr_buf *out);
