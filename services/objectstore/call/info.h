/* ObjectInfo: the description of an object in the replies of Stat, List, Put and other methods.
 * Texts and arrays are in the call's arena. */
#pragma once

#include "services/objectstore/call/call.h"

Millrace__V1__ObjectInfo *mr_ostore_call_info(
    struct mr_ostore_call *call, const struct mr_ostore_info *info);
