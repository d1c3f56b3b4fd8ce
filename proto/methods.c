/* Lookups in the generated tables, which are in the build directory (tables.c). The extern
 * declarations below must match these tables. */
#include "proto/methods.h"

#include "base/assert.h"

/* The first table is sorted by path, the second by name. */
extern const struct mr_proto_method mr_proto_method_table[];
extern const ProtobufCMessageDescriptor *const mr_proto_map_entry_table[];
extern const size_t mr_proto_map_entries_count;
extern const struct mr_route mr_proto_route_table[];
extern const size_t mr_proto_routes_count;
extern const struct mr_proto_bound mr_proto_bound_table[];
extern const size_t mr_proto_bounds_count;
extern const struct mr_proto_value_field mr_proto_value_field_table[];
extern const unsigned char mr_proto_descriptor_bytes[];
extern const size_t mr_proto_descriptor_bytes_count;
extern const unsigned char mr_proto_openapi_text[];
extern const size_t mr_proto_openapi_bytes;

const struct mr_proto_method *mr_proto_method(enum mr_method_id id)
{
    mr_assert((unsigned)id < MR_METHOD_COUNT);
    return &mr_proto_method_table[id];
}

const struct mr_proto_method *mr_proto_method_find(struct mr_str path)
{
    size_t low = 0, high = MR_METHOD_COUNT;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = mr_str_cmp(path, mr_str(mr_proto_method_table[mid].path));
        if (c == 0) return &mr_proto_method_table[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

enum mr_role mr_proto_role(struct mr_str path)
{
    const struct mr_proto_method *method = mr_proto_method_find(path);
    return method ? method->role : MR_ROLE_READER;
}

unsigned mr_proto_callers(struct mr_str path)
{
    const struct mr_proto_method *method = mr_proto_method_find(path);
    return method ? method->callers : MR_SERVICES_ALL;
}

bool mr_proto_is_map_entry(const ProtobufCMessageDescriptor *type)
{
    size_t low = 0, high = mr_proto_map_entries_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = strcmp(type->name, mr_proto_map_entry_table[mid]->name);
        if (c == 0) return type == mr_proto_map_entry_table[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return false;
}

const struct mr_route *mr_proto_routes(size_t *count)
{
    *count = mr_proto_routes_count;
    return mr_proto_route_table;
}

const struct mr_proto_bound *mr_proto_bound_find(
    const ProtobufCMessageDescriptor *message, const char *field)
{
    for (size_t i = 0; i < mr_proto_bounds_count; i++) {
        const struct mr_proto_bound *b = &mr_proto_bound_table[i];
        if (b->message == message && !strcmp(b->field, field)) return b;
    }
    return NULL;
}

const char *mr_proto_value_field_find(const ProtobufCMessageDescriptor *message, const char *field)
{
    for (const struct mr_proto_value_field *v = mr_proto_value_field_table; v->message; v++)
        if (v->message == message && !strcmp(v->field, field)) return v->shown;
    return NULL;
}

struct mr_str mr_proto_descriptor_set(void)
{
    return mr_str_of(mr_proto_descriptor_bytes, mr_proto_descriptor_bytes_count);
}

struct mr_str mr_proto_openapi(void)
{
    return mr_str_of(mr_proto_openapi_text, mr_proto_openapi_bytes);
}
