/* An index over serialized FileDescriptorSets: which file declares a symbol or an extension. A
 * server makes the index at its start from generated descriptors. The depth of nested messages is
 * bounded. */
#pragma once

#include "base/err.h"
#include "base/index.h"
#include "base/str.h"

#define MR_DESCRIPTOR_NAME_MAX 512

struct mr_descriptor_file {
    struct mr_str name;
    struct mr_str bytes; /* the serialized FileDescriptorProto */
};

struct mr_descriptor_symbol {
    char *name; /* the full name without the leading dot */
    uint32_t file;
    bool is_service;
};

struct mr_descriptor_extension {
    char *extendee;
    uint32_t number;
    uint32_t file;
};

struct mr_descriptors {
    struct mr_descriptor_file *files;
    uint32_t files_count;
    struct mr_descriptor_symbol *symbols;
    uint32_t symbols_count;
    struct mr_descriptor_extension *extensions;
    uint32_t extensions_count;
    struct mr_index by_symbol;
};

void mr_descriptors_init(struct mr_descriptors *d);
void mr_descriptors_fini(struct mr_descriptors *d);

/* Adds the files of a serialized FileDescriptorSet. The bytes are borrowed. A file that is already
 * in the index is skipped. MR_EFORMAT: the bytes are malformed. MR_ELIMIT: there are too many files
 * or symbols. */
int mr_descriptors_add(struct mr_descriptors *d, struct mr_str set, struct mr_error *e);

/* Return the number of the file that has this name, declares this symbol or declares this
 * extension. MR_INDEX_NONE: there is no such file. */
uint32_t mr_descriptors_file(const struct mr_descriptors *d, struct mr_str name);
uint32_t mr_descriptors_symbol_file(const struct mr_descriptors *d, struct mr_str symbol);
uint32_t mr_descriptors_extension_file(
    const struct mr_descriptors *d, struct mr_str extendee, uint32_t number);
