/* Runs each file of a corpus through a fuzz target once, without libFuzzer, so that committed
 * findings stay fixed. Usage: fuzz_x DIR... */
#include "base/alloc.h"

#include <dirent.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    (void)fseek(f, 0, SEEK_END);
    long n = ftell(f);
    (void)fseek(f, 0, SEEK_SET);
    if (n < 0) {
        (void)fclose(f);
        return -1;
    }
    MR_AUTO(mr_free_ptr) uint8_t *data = mr_alloc((size_t)n);
    size_t got = fread(data, 1, (size_t)n, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, got);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) {
            (void)fprintf(stderr, "no corpus at %s\n", argv[i]);
            return 1;
        }
        for (struct dirent *e = readdir(d); e; e = readdir(d)) {
            if (e->d_name[0] == '.') continue;
            MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", argv[i], e->d_name);
            if (run_file(path) == 0) files++;
        }
        (void)closedir(d);
    }
    (void)printf("%d inputs\n", files);
    return files ? 0 : 1;
}
