/* Tables that map the fields of session.proto to members of the model. encode.c and decode.c walk
 * them. tests/unit/session/test_codec.c compares them with session.proto. A new field needs a line
 * in session.proto, a member in up.h or down.h, and a row in fields.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mr_ws_kind {
    /* one value; absent: 0 or empty */
    MR_WS_U32,
    MR_WS_U64,
    MR_WS_I32,
    MR_WS_BOOL,
    MR_WS_FIXED64,
    MR_WS_MICRO, /* uint64_t of millionths; a double on the wire */
    MR_WS_TEXT,  /* struct mr_str, as the next */
    MR_WS_BYTES,
    /* a message */
    /* a struct in the struct; `count`, if there is one, is a bool: the message has it */
    MR_WS_PART,
    MR_WS_LINK, /* a pointer to a struct; absent: NULL */
    /* repeated: a pointer to rows, whose number is the uint32_t `count` */
    MR_WS_COLUMN32,
    MR_WS_COLUMN64,
    MR_WS_COLUMN_SIGNED32, /* zigzag */
    MR_WS_COLUMN_FIXED64,
    MR_WS_TEXTS, /* of struct mr_str */
    MR_WS_ROWS,  /* of structs, each a message */
};

enum mr_ws_rule { /* of the length of a column */
    MR_WS_LEADS,  /* its length is the number of rows */
    MR_WS_EQUAL,
    MR_WS_MAY,    /* equal, or the column is absent: NULL */
    MR_WS_IGNORE, /* a column of any other length counts as absent */
    /* equal, or one value for all rows: then the column is NULL, and `one` has the value */
    MR_WS_ONE,
};

#define MR_WS_NOWHERE UINT16_MAX

struct mr_ws_type;

struct mr_ws_field {
    const char *name; /* in session.proto */
    uint16_t number;
    uint8_t kind; /* enum mr_ws_kind */
    uint8_t rule; /* enum mr_ws_rule */
    /* offsets in the struct */
    uint16_t at;
    uint16_t count;
    uint16_t one;
    const struct mr_ws_type *type; /* of PART, LINK and ROWS */
};

#define MR_WS_FIELDS_MAX 24

struct mr_ws_type {
    const char *name;                 /* of the message in session.proto */
    const struct mr_ws_field *fields; /* ascending by number */
    uint16_t fields_count;
    uint16_t bytes; /* of the struct */
};

extern const struct mr_ws_type mr_ws_down_type; /* SchedulerMessage: struct mr_ws_down */
extern const struct mr_ws_type mr_ws_up_type;   /* WorkerMessage: struct mr_ws_up */
