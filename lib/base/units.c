#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

void mr_bytes_text(uint64_t bytes, char out[MR_BYTES_TEXT_MAX])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        (void)snprintf(out, MR_BYTES_TEXT_MAX, "%" PRIu64 " B", bytes);
        return;
    }
    double v = (double)bytes / 1024;
    unsigned unit = 0;
    while (v >= 1023.95 && unit < 5) { /* "%.1f" would print 1023.95 and more as 1024.0 */
        v /= 1024;
        unit++;
    }
    (void)snprintf(out, MR_BYTES_TEXT_MAX, "%.1f %s", v, units[unit]);
}
