/* Several services' counters in one answer: the text format wants each family once, with all its
 * series together, so the texts are taken apart and joined by family. */
#pragma once

#include "base/buf.h"

struct mr_prometheus;

struct mr_prometheus *mr_prometheus_new(void);
void mr_prometheus_free(struct mr_prometheus **p);

/* Adds one service's text; every series gets `labels` before its own: `instance="…",node="…"`.
 * Lines that are not the text format are dropped. */
void mr_prometheus_add(struct mr_prometheus *p, struct mr_str text, const char *labels);
void mr_prometheus_label(struct mr_buf *out, const char *name, const char *value); /* escaped */
void mr_prometheus_write(const struct mr_prometheus *p, struct mr_buf *out); /* families by name */
