/* Encodes and decodes google.rpc.Status (fields: 1 code, 2 message, 3 details), Any (1 type_url, 2
 * value) and ErrorInfo (1 reason, 2 domain). */
#include "rpc/status.h"

#include "base/protowire.h"

#define ERROR_INFO "type.googleapis.com/google.rpc.ErrorInfo"
#define DOMAIN "millrace"
#define INFO_BYTES_MAX 256

static const int codes[] = {
#define MR_ROW(name, value, grpc, http, words) value,
    MR_ERRORS(MR_ROW)
#undef MR_ROW
};

void mr_rpc_details_begin(struct mr_buf *b, int code, struct mr_str message)
{
    mr_protowire_add_varint(b, 1, (uint64_t)code);
    mr_protowire_add_bytes(b, 2, message);
}

void mr_rpc_details_add(struct mr_buf *b, struct mr_str type_url, struct mr_str value)
{
    struct mr_buf any;
    mr_buf_init(&any, type_url.n + value.n + 32);
    mr_protowire_add_bytes(&any, 1, type_url);
    mr_protowire_add_bytes(&any, 2, value);
    mr_protowire_add_bytes(b, 3, mr_buf_str(&any));
    mr_buf_fini(&any);
}

struct mr_rpc_status mr_rpc_status_of(const struct mr_error *e, struct mr_buf *details)
{
    int code = e->code ? e->code : MR_EUNKNOWN;
    struct mr_str text = mr_str(e->text[0] ? e->text : mr_err_words(code));
    struct mr_rpc_status s = {.code = mr_err_grpc(code), .message = text};
    if (!details) return s;
    mr_buf_clear(details);
    /* No details are needed: mr_err_from_grpc turns the gRPC code back into `code`. */
    if (mr_err_from_grpc(s.code) == code) return s;
    struct mr_buf info;
    mr_buf_init(&info, INFO_BYTES_MAX);
    mr_protowire_add_bytes(&info, 1, mr_str(mr_err_name(code)));
    mr_protowire_add_bytes(&info, 2, MR_STR(DOMAIN));
    mr_rpc_details_begin(details, s.code, text);
    mr_rpc_details_add(details, MR_STR(ERROR_INFO), mr_buf_str(&info));
    mr_buf_fini(&info);
    if (!mr_buf_status(details)) s.details = mr_buf_str(details);
    return s;
}

/* Returns the bytes of the first field `number`. Empty: the message has no such field. */
static struct mr_str field_of(struct mr_str message, uint32_t number)
{
    struct mr_protowire_reader r = mr_protowire_read(message);
    struct mr_protowire_field f;
    while (!mr_protowire_next(&r, &f))
        if (f.number == number && f.type == MR_PROTOWIRE_BYTES) return f.bytes;
    return mr_str_of("", 0);
}

/* Returns the MR_E… code in the details. MR_OK: the details have no code, or a code that does not
 * belong to `grpc_code`. */
static int code_in_details(struct mr_str details, int grpc_code)
{
    struct mr_str any = field_of(details, 3);
    if (!mr_str_eq(field_of(any, 1), MR_STR(ERROR_INFO))) return MR_OK;
    struct mr_str info = field_of(any, 2);
    if (!mr_str_eq(field_of(info, 2), MR_STR(DOMAIN))) return MR_OK;
    struct mr_str reason = field_of(info, 1);
    for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++)
        if (mr_str_eq(reason, mr_str(mr_err_name(codes[i]))) && mr_err_grpc(codes[i]) == grpc_code)
            return codes[i];
    return MR_OK;
}

int mr_rpc_status_error(const struct mr_rpc_status *status, struct mr_error *e)
{
    if (status->code == 0) return MR_OK;
    int code = code_in_details(status->details, status->code);
    if (!code) code = mr_err_from_grpc(status->code);
    if (!status->message.n) return mr_fail(e, code, "%s", mr_err_words(code));
    return mr_fail(e, code, "%.*s", MR_STR_ARG(status->message));
}
