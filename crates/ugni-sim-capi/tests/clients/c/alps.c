/* What a client asks ALPS, and what it may not: before PMI, during, after, or without. */
#include <alps/libalpslli.h>
#include <alps/libalpsutil.h>
#include <gni_pub.h>
#include <pmi.h>
#include <pmi_cray_ext.h>

#include <pthread.h>
#include <unistd.h>

#include "check.h"

_Static_assert(sizeof(alpsAppGni_t) == 16 && offsetof(alpsAppGni_t, ptag) == 12, "what a NIC needs");
_Static_assert(offsetof(alpsAppGni_t, local_addr) == 4 && offsetof(alpsAppGni_t, cookie) == 8, "what a NIC needs");
_Static_assert(sizeof(alpsAppLLIGni_t) == 24 && offsetof(alpsAppLLIGni_t, u) == 8, "an answer");
_Static_assert(sizeof(alpsAppLayout_t) == 28 && offsetof(alpsAppLayout_t, controlNid) == 24, "a layout");

static uint64_t apid;
static alpsAppGni_t nic;

static void nonsense(void)
{
    int status;
    size_t count;
    char byte;
    GIVES(alps_app_lli_unlock(), -1);
    GIVES(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0), -1);
    OK(alps_app_lli_lock());
    GIVES(alps_app_lli_lock(), -1);
    GIVES(alps_app_lli_get_response(&status, &count), -1);
    GIVES(alps_app_lli_get_response_bytes(&byte, 1), -1);
    OK(alps_app_lli_put_request(4711, NULL, 0));
    GIVES(alps_app_lli_get_response(NULL, &count), -1);
    GIVES(alps_app_lli_get_response(&status, NULL), -1);
    OK(alps_app_lli_get_response(&status, &count));
    CHECK(status == ALPS_APP_LLI_ALPS_STAT_UNKNOWN && count == 0);
    GIVES(alps_app_lli_get_response_bytes(&byte, 1), -1);
    OK(alps_app_lli_unlock());
}

/* A number of a list with colons. */
static unsigned long listed(const char *name, int at)
{
    const char *list = getenv(name);
    while (list && at-- > 0)
        list = strchr(list, ':') + 1;
    CHECK(list);
    return strtoul(list, NULL, 10);
}

static void ask(void)
{
    int status;
    size_t count;
    uint64_t number;
    alpsAppLLIGni_t nics;
    OK(alps_app_lli_lock());
    OK(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0));
    GIVES(alps_app_lli_get_response_bytes(&number, sizeof number), -1);
    OK(alps_app_lli_get_response(&status, &count));
    CHECK(status == ALPS_APP_LLI_ALPS_STAT_OK && count == sizeof number);
    GIVES(alps_app_lli_get_response_bytes(&number, sizeof number + 1), -1);
    GIVES(alps_app_lli_get_response_bytes(NULL, sizeof number), -1);
    OK(alps_app_lli_get_response_bytes(&number, 4));
    OK(alps_app_lli_get_response_bytes((char *)&number + 4, 4));
    GIVES(alps_app_lli_get_response_bytes(&status, 1), -1);
    CHECK(number != 0 && (apid == 0 || apid == number));
    apid = number;
    OK(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_GNI, NULL, 0));
    OK(alps_app_lli_get_response(&status, &count));
    CHECK(status == ALPS_APP_LLI_ALPS_STAT_OK && count == sizeof nics);
    OK(alps_app_lli_get_response_bytes(&nics, count));
    OK(alps_app_lli_unlock());
    CHECK(nics.count == 1);
    memcpy(&nic, nics.u.buf, sizeof nic);
    CHECK(getenv("ALPS_APP_PE") != NULL);
    CHECK(nic.device_id == (int)listed("PMI_GNI_DEV_ID", 0));
    CHECK(nic.local_addr == listed("PMI_GNI_LOC_ADDR", nic.device_id));
    CHECK(nic.cookie == listed("PMI_GNI_COOKIE", 0));
    CHECK(nic.ptag == listed("PMI_GNI_PTAG", 0));
}

static void place(int size)
{
    alpsAppLayout_t layout;
    int *nodes, *nids, *pes, *lens, *start, *total, *here, *cpus;
    struct in_addr *ips;
    GIVES(alps_get_placement_info(apid + 1, &layout, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), -1);
    GIVES(alps_get_placement_info(apid, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), -1);
    GIVES(alps_get_placement_info(apid, &layout, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), 1);
    CHECK(layout.firstPe == 0 && layout.numTotalPes >= 1 && layout.numPesHere == layout.numTotalPes);
    CHECK(size == 0 || layout.numTotalPes == size);
    CHECK(layout.peDepth == 1 && layout.numCmds == 1 && layout.numTargets == 0);
    GIVES(alps_get_placement_info(apid, &layout, &nodes, &nids, &pes, &lens, &ips, &start, &total, &here, &cpus), 1);
    CHECK(!nids && !pes && !lens && !ips);
    CHECK(*start == 0 && *total == layout.numTotalPes && *here == layout.numPesHere && *cpus == 1);
    for (int i = 0; i < layout.numTotalPes; i++)
        CHECK(nodes[i] == layout.controlNid || getenv("GASWORKS_UGNI_NODES") != NULL); /* all are here */
    free(nodes), free(start), free(total), free(here), free(cpus);
}

static int entered;

static void *converse(void *unused)
{
    for (int i = 0; i < 100; i++) {
        OK(alps_app_lli_lock());
        CHECK(entered++ == 0);
        OK(alps_app_lli_put_request(ALPS_APP_LLI_ALPS_REQ_APID, NULL, 0));
        CHECK(entered-- == 1);
        OK(alps_app_lli_unlock());
    }
    return unused;
}

/* The second rank asks when the first has been answered. */
static void apart(const char *marker)
{
    int first = strcmp(getenv("PMI_RANK"), "0") == 0, size = atoi(getenv("PMI_SIZE"));
    while (!first && access(marker, F_OK) != 0)
        usleep(1000);
    ask(), place(size);
    unsigned address, processor;
    CHECK(GNI_CdmGetNicAddress(0, &address, &processor) == GNI_RC_SUCCESS && address == nic.local_addr);
    CHECK(strcmp(getenv("ALPS_APP_PE"), getenv("PMI_RANK")) == 0);
    if (first)
        CHECK(fclose(fopen(marker, "w")) == 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int spawned, size = 0;
    nonsense();
    if (strcmp(what, "apart") == 0)
        apart(argv[2]);
    if (strcmp(what, "first") == 0)
        ask(), place(0); /* ALPS before PMI */
    if (strcmp(what, "alone") != 0) {
        OK(PMI_Init(&spawned));
        OK(PMI_Get_size(&size));
        ask(), place(size);
        OK(PMI_Barrier());
        OK(PMI_Finalize());
    }
    ask(), place(size); /* and after it, or without */
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, converse, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("%llu %u %u\n", (unsigned long long)apid, nic.ptag, nic.cookie);
    return 0;
}
