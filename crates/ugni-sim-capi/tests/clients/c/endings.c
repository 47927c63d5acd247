/* One put, and an end: by its name, or by a signal that nobody can heed, when everything was given up. */
#include <signal.h>
#include <unistd.h>

#include "net.h"

int main(int count, char **words)
{
    CHECK(count == 2);
    job_begin();
    net_begin(0, ENTRIES);
    gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, (job.rank + 1) % job.size, 0, 4096, 100);
    net_run((job.rank + 1) % job.size, &put);
    net_end();
    fflush(stdout);
    if (strcmp(words[1], "_exit") == 0)
        _exit(0);
    if (strcmp(words[1], "_Exit") == 0)
        _Exit(0);
    if (strcmp(words[1], "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(words[1], "kill") == 0)
        raise(SIGKILL);
    return 0;
}
