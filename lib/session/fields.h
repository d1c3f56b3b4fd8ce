/* Tables that map the fields of session.proto to members of the structs in refs.h, up.h and down.h.
 * encode.c and decode.c walk the tables. tests/unit/session/test_fields.c compares the tables with
 * session.proto. A new field needs a line in session.proto, a member in up.h or down.h, and a row
 * in fields.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mr_ws_kind {
    /* A single value. If the field is absent, the member is 0 or empty. */
    MR_WS_U32,
    MR_WS_U64,
    MR_WS_I32,
    MR_WS_BOOL,
    MR_WS_FIXED64,
    MR_WS_MICRO, /* the member is a uint64_t of millionths, the field a double */
    MR_WS_TEXT,  /* the member is a struct mr_str, also for MR_WS_BYTES */
    MR_WS_BYTES,
    /* A nested message. */
    /* The member is a struct. If `count` in the field's row is not MR_WS_NOWHERE, `count` is the
     * offset of a bool, which tells whether the message has the field. */
    MR_WS_PART,
    MR_WS_LINK, /* the member is a pointer to a struct; NULL: the field is absent */
    /* A repeated field. The member is a pointer to an array. `count` in the field's row is the
     * offset of a uint32_t, the length of the array. */
    MR_WS_COLUMN32,
    MR_WS_COLUMN64,
    MR_WS_COLUMN_SIGNED32, /* zigzag on the wire */
    MR_WS_COLUMN_FIXED64,
    MR_WS_TEXTS, /* array of struct mr_str */
    MR_WS_ROWS,  /* array of structs; each is a nested message */
};

enum mr_ws_rule { /* how long a column must be */
    MR_WS_LEADS,  /* the length of this column is the number of rows */
    MR_WS_EQUAL,
    MR_WS_MAY,    /* The length is the number of rows, or 0: then the member is NULL. */
    MR_WS_IGNORE, /* a column of another length than the number of rows counts as absent */
    /* The length is the number of rows, or 1. A column of length 1 has one value for all rows: the
     * member at the offset `at` is NULL, and the member at the offset `one` has the value. */
    MR_WS_ONE,
};

#define MR_WS_NOWHERE UINT16_MAX

struct mr_ws_type;

struct mr_ws_field {
    const char *name; /* name of the field in session.proto */
    uint16_t number;
    uint8_t kind; /* enum mr_ws_kind */
    uint8_t rule; /* enum mr_ws_rule */
    /* Offsets of members in the C struct that has the values of the fields. */
    uint16_t at;
    uint16_t count;
    uint16_t one;
    const struct mr_ws_type *type; /* type of the nested message, for PART, LINK and ROWS */
};

#define MR_WS_FIELDS_MAX 24

struct mr_ws_type {
    const char *name;                 /* name of the message in session.proto */
    const struct mr_ws_field *fields; /* ascending by number */
    uint16_t fields_count;
    uint16_t bytes; /* size of the C struct that has the values of the fields */
};

extern const struct mr_ws_type mr_ws_down_type; /* SchedulerMessage: struct mr_ws_down */
extern const struct mr_ws_type mr_ws_up_type;   /* WorkerMessage: struct mr_ws_up */
