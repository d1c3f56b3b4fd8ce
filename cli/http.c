#include "cli/http.h"

#include <curl/curl.h>

static size_t take(char *p, size_t size, size_t count, void *ctx)
{
    struct mr_buf *out = ctx;
    mr_buf_add(out, p, size * count);
    return mr_buf_status(out) ? 0 : size * count;
}

int mr_http_get(
    const char *url, mr_duration timeout_ns, struct mr_buf *out, int *status, struct mr_error *e)
{
    char why[CURL_ERROR_SIZE] = "";
    long code = 0;
    CURL *curl = curl_easy_init();
    if (!curl) return mr_fail(e, MR_EINTERNAL, "libcurl does not start");
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / MR_MS));
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    CURLcode err = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(curl);
    *status = (int)code;
    if (err) return mr_fail(e, MR_EAWAY, "%s: %s", url, why[0] ? why : curl_easy_strerror(err));
    return MR_OK;
}
