#include "services/scheduler/live/text.h"

#include "base/assert.h"

#include <string.h>

void mr_live_text(struct mr_str text, char *out, size_t out_bytes)
{
    static const char dots[] = "...";
    mr_assert(out_bytes > sizeof dots);
    bool is_cut = text.n >= out_bytes;
    size_t n = is_cut ? out_bytes - sizeof dots : text.n;
    const unsigned char *p = (const unsigned char *)text.p;
    /* no cut between the bytes of one character */
    while (is_cut && n && (p[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        out[i] = p[i] < 0x20 || p[i] == 0x7f || p[i] == '"' || p[i] == '\\' ? '?' : (char)p[i];
    memcpy(out + n, is_cut ? dots : "", is_cut ? sizeof dots : 1);
}
