/* What a client does with PMI: `pmi` does all of it, or what its first word says. */
#include <pmi.h>
#include <pmi2.h>
#include <pmi_cray_ext.h>

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static int size, rank;
static char job[256];

/* Nothing works before a job is joined, and after it was left. */
static void outside(void)
{
    int number = 7;
    char text[64];
    void *list;
    OK(PMI_Initialized(&number));
    CHECK(number == PMI_FALSE && !PMI2_Initialized());
    GIVES(PMI_Initialized(NULL), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Init(NULL), PMI_ERR_INVALID_ARG);
    GIVES(PMI2_Init(&number, &number, NULL, &number), PMI2_ERR_INVALID_ARG);
    GIVES(PMI_Finalize(), PMI_ERR_INIT);
    GIVES(PMI_Get_size(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_rank(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_universe_size(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_appnum(&number), PMI_ERR_INIT);
    GIVES(PMI_Publish_name("a", "b"), PMI_ERR_INIT);
    GIVES(PMI_Unpublish_name("a"), PMI_ERR_INIT);
    GIVES(PMI_Lookup_name("a", text), PMI_ERR_INIT);
    GIVES(PMI_Barrier(), PMI_ERR_INIT);
    GIVES(PMI_KVS_Get_my_name(text, 64), PMI_ERR_INIT);
    GIVES(PMI_KVS_Get_name_length_max(&number), PMI_ERR_INIT);
    GIVES(PMI_KVS_Get_key_length_max(&number), PMI_ERR_INIT);
    GIVES(PMI_KVS_Get_value_length_max(&number), PMI_ERR_INIT);
    GIVES(PMI_KVS_Put("a", "b", "c"), PMI_ERR_INIT);
    GIVES(PMI_KVS_Commit("a"), PMI_ERR_INIT);
    GIVES(PMI_KVS_Get("a", "b", text, 64), PMI_ERR_INIT);
    GIVES(PMI_Spawn_multiple(0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL), PMI_ERR_INIT);
    GIVES(PMI_Get_id(text, 64), PMI_ERR_INIT);
    GIVES(PMI_Get_id_length_max(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_kvs_domain_id(text, 64), PMI_ERR_INIT);
    GIVES(PMI_Get_clique_size(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_clique_ranks(&number, 1), PMI_ERR_INIT);
    GIVES(PMI2_Finalize(), PMI2_ERR_INIT);
    GIVES(PMI2_Job_Spawn(0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL), PMI2_ERR_INIT);
    GIVES(PMI2_Job_GetId(text, 64), PMI2_ERR_INIT);
    GIVES(PMI2_Job_GetRank(&number), PMI2_ERR_INIT);
    GIVES(PMI2_Job_Connect("a", NULL), PMI2_ERR_INIT);
    GIVES(PMI2_Job_Disconnect("a"), PMI2_ERR_INIT);
    GIVES(PMI2_KVS_Put("a", "b"), PMI2_ERR_INIT);
    GIVES(PMI2_KVS_Fence(), PMI2_ERR_INIT);
    GIVES(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "a", text, 64, &number), PMI2_ERR_INIT);
    GIVES(PMI2_Info_GetSize(&number), PMI2_ERR_INIT);
    GIVES(PMI2_Info_GetNodeAttr("a", text, 64, &number, 1), PMI2_ERR_INIT);
    GIVES(PMI2_Info_GetNodeAttrIntArray("a", &number, 1, &number, &number), PMI2_ERR_INIT);
    GIVES(PMI2_Info_PutNodeAttr("a", "b"), PMI2_ERR_INIT);
    GIVES(PMI2_Info_GetJobAttr("a", text, 64, &number), PMI2_ERR_INIT);
    GIVES(PMI2_Info_GetJobAttrIntArray("a", &number, 1, &number, &number), PMI2_ERR_INIT);
    GIVES(PMI2_Nameserv_publish("a", NULL, "b"), PMI2_ERR_INIT);
    GIVES(PMI2_Nameserv_lookup("a", NULL, text, 64), PMI2_ERR_INIT);
    GIVES(PMI2_Nameserv_unpublish("a", NULL), PMI2_ERR_INIT);
    GIVES(PMIX_Ring("a", &number, &number, text, text, 64), PMI2_ERR_INIT);
    GIVES(PMI_Allgather(&number, &number, 4), PMI_ERR_INIT);
    GIVES(PMI_Allgatherv(&number, 4, &number, &number), PMI_ERR_INIT);
    GIVES(PMI_Allgather_on_smp(&number, &number, 4), PMI_ERR_INIT);
    GIVES(PMI_Bcast(&number, 4), PMI_ERR_INIT);
    GIVES(PMI_Get_numpes_on_smp(&number), PMI_ERR_INIT);
    GIVES(PMI_Get_pes_on_smp(&number, 1), PMI_ERR_INIT);
    GIVES(PMI_Get_nidlist_ptr(&list), PMI_ERR_INIT);
    GIVES(PMI_Get_nid(0, &number), PMI_ERR_INIT);
    GIVES(PMI_Get_app_size(0, &number), PMI_ERR_INIT);
}

static void join(void)
{
    int spawned = 7, appnum = 7, number = 7;
    OK(PMI2_Init(&spawned, &size, &rank, &appnum));
    CHECK(spawned == 0 && appnum == 0 && size > 0 && rank >= 0 && rank < size);
    /* The other version sees it, and counts. */
    OK(PMI_Initialized(&number));
    CHECK(number == PMI_TRUE && PMI2_Initialized());
    OK(PMI_Init(&spawned));
    OK(PMI_Finalize());
    OK(PMI_Get_rank(&number));
    CHECK(number == rank);
    OK(PMI2_Job_GetRank(&number));
    CHECK(number == rank);
    OK(PMI_Get_size(&number));
    CHECK(number == size);
    OK(PMI_Get_universe_size(&number));
    CHECK(number == size);
    OK(PMI_Get_app_size(0, &number));
    CHECK(number == size);
    GIVES(PMI_Get_app_size(1, &number), PMI_ERR_INVALID_ARG);
    OK(PMI_Get_appnum(&number));
    CHECK(number == 0);
    GIVES(PMI_Get_size(NULL), PMI_ERR_INVALID_ARG);
}

static void names(void)
{
    char text[256];
    int number;
    OK(PMI2_Job_GetId(job, sizeof job));
    int needed = (int)strlen(job) + 1;
    CHECK(needed > 1);
    int (*gets[])(char[], int) = {PMI_KVS_Get_my_name, PMI_Get_id, PMI_Get_kvs_domain_id, PMI2_Job_GetId};
    for (int i = 0; i < 4; i++) {
        OK(gets[i](text, needed));
        CHECK(strcmp(text, job) == 0);
        GIVES(gets[i](text, needed - 1), PMI_ERR_INVALID_LENGTH);
        GIVES(gets[i](text, 0), PMI_ERR_INVALID_LENGTH);
        GIVES(gets[i](text, -1), PMI_ERR_INVALID_LENGTH);
        GIVES(gets[i](NULL, 256), PMI_ERR_INVALID_ARG);
    }
    OK(PMI_KVS_Get_name_length_max(&number));
    CHECK(number == 256);
    OK(PMI_Get_id_length_max(&number));
    CHECK(number == 256);
    OK(PMI_KVS_Get_key_length_max(&number));
    CHECK(number == PMI2_MAX_KEYLEN);
    OK(PMI_KVS_Get_value_length_max(&number));
    CHECK(number == PMI2_MAX_VALLEN);
}

static void pairs_of_pmi1(void)
{
    char key[64], value[1024], got[1024];
    snprintf(key, sizeof key, "one-%d", rank);
    snprintf(value, sizeof value, "a;b=/ \n%d", rank);
    OK(PMI_KVS_Put(job, key, value));
    GIVES(PMI_KVS_Put(job, key, value), PMI_ERR_INVALID_KEY);
    OK(PMI_Barrier());
    GIVES(PMI_KVS_Get(job, key, got, sizeof got), PMI_FAIL); /* nobody has committed it */
    OK(PMI_KVS_Commit(job));
    GIVES(PMI_KVS_Get(job, key, got, sizeof got), PMI_FAIL); /* nobody has met */
    OK(PMI_Barrier());
    for (int other = 0; other < size; other++) {
        snprintf(key, sizeof key, "one-%d", other);
        snprintf(value, sizeof value, "a;b=/ \n%d", other);
        OK(PMI_KVS_Get(job, key, got, (int)strlen(value) + 1));
        CHECK(strcmp(got, value) == 0);
        GIVES(PMI_KVS_Get(job, key, got, (int)strlen(value)), PMI_ERR_INVALID_LENGTH);
        GIVES(PMI_KVS_Put(job, key, "again"), PMI_ERR_INVALID_KEY);
    }
    GIVES(PMI_KVS_Get(job, "absent", got, sizeof got), PMI_FAIL);
    GIVES(PMI_KVS_Get(job, "absent", NULL, 9), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Get(job, NULL, got, sizeof got), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Get("another job", key, got, sizeof got), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Get(NULL, key, got, sizeof got), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Put("another job", key, value), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Put(job, NULL, value), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Put(job, "key", NULL), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Commit("another job"), PMI_ERR_INVALID_ARG);
    GIVES(PMI_KVS_Put(job, "", value), PMI_ERR_INVALID_KEY);
    memset(got, 'x', sizeof got);
    got[64] = 0;
    GIVES(PMI_KVS_Put(job, got, value), PMI_ERR_INVALID_KEY_LENGTH);
    got[64] = 'x', got[1023] = 0;
    OK(PMI_KVS_Put(job, rank ? "longest-of-another" : "longest", got)); /* several have put the former */
    char longer[1025];
    memset(longer, 'x', sizeof longer);
    longer[1024] = 0;
    GIVES(PMI_KVS_Put(job, "longer", longer), PMI_ERR_INVALID_VAL_LENGTH);
}

static void pairs_of_pmi2(void)
{
    char key[64], value[1024], got[1024];
    int len = 7;
    snprintf(key, sizeof key, "two-%d", rank);
    OK(PMI2_KVS_Put(key, rank % 2 ? "" : "value"));
    OK(PMI2_KVS_Put("of-all", job + rank % 2)); /* the lowest rank's stays */
    GIVES(PMI2_KVS_Put(key, "again"), PMI2_ERR_INVALID_KEY);
    OK(PMI2_KVS_Fence());
    for (int other = 0; other < size; other++) {
        snprintf(key, sizeof key, "two-%d", other);
        OK(PMI2_KVS_Get(other % 3 ? job : NULL, other % 2 ? other : PMI2_ID_NULL, key, got, sizeof got, &len));
        CHECK(strcmp(got, other % 2 ? "" : "value") == 0 && len == (int)strlen(got));
    }
    OK(PMI2_KVS_Get(NULL, 0, "of-all", got, sizeof got, &len));
    CHECK(strcmp(got, job) == 0);
    OK(PMI2_KVS_Get(NULL, 0, "longest", value, sizeof value, &len)); /* what PMI-1 has put, and nobody committed */
    CHECK(len == 1023 && strlen(value) == 1023);
    OK(PMI2_KVS_Get(NULL, 0, "longest", got, 10, &len));
    CHECK(len == -1023 && strlen(got) == 9);
    GIVES(PMI2_KVS_Get(NULL, 0, "absent", got, sizeof got, &len), PMI2_FAIL);
    CHECK(len == 0);
    GIVES(PMI2_KVS_Get(NULL, 0, "longest", got, 0, &len), PMI2_ERR_INVALID_LENGTH);
    GIVES(PMI2_KVS_Get(NULL, 0, "longest", NULL, 9, &len), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_KVS_Get(NULL, 0, "longest", got, 9, NULL), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_KVS_Get(NULL, 0, NULL, got, 9, &len), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_KVS_Get("another job", 0, "longest", got, 9, &len), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_KVS_Get(NULL, size, "longest", got, 9, &len), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_KVS_Get(NULL, -2, "longest", got, 9, &len), PMI2_ERR_INVALID_ARG);
}

static void attributes(void)
{
    char name[64], text[64], wanted[64];
    int found = 7, count = 7, list[3];
    OK(PMI2_Info_GetJobAttr("universeSize", text, sizeof text, &found));
    CHECK(found == 1 && atoi(text) == size);
    OK(PMI2_Info_GetJobAttrIntArray("universeSize", list, 3, &count, &found));
    CHECK(found == 1 && count == 1 && list[0] == size);
    OK(PMI2_Info_GetJobAttr("PMI_process_mapping", text, sizeof text, &found));
    snprintf(wanted, sizeof wanted, "(vector,(0,1,%d))", size); /* all are here */
    CHECK(found == 1 && strcmp(text, wanted) == 0);
    GIVES(PMI2_Info_GetJobAttrIntArray("PMI_process_mapping", list, 3, &count, &found), PMI2_ERR_INVALID_VAL);
    GIVES(PMI2_Info_GetJobAttr("PMI_process_mapping", text, 5, &found), PMI2_ERR_INVALID_LENGTH);
    CHECK(found == 0);
    OK(PMI2_Info_GetJobAttr("something", text, sizeof text, &found));
    CHECK(found == 0);
    GIVES(PMI2_Info_GetJobAttr("something", NULL, 5, &found), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_Info_GetJobAttr(NULL, text, 5, &found), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_Info_GetJobAttr("something", text, 5, NULL), PMI2_ERR_INVALID_ARG);

    /* The last one is waited for by the first, and so on. */
    snprintf(name, sizeof name, "list-%d", (rank + 1) % size);
    if (rank == size - 1) {
        OK(PMI2_Info_GetNodeAttr("nothing", text, sizeof text, &found, 0));
        CHECK(found == 0);
        OK(PMI2_Info_GetNodeAttrIntArray(name, list, 3, &count, &found));
        CHECK(found == 0 && count == 0);
    } else {
        OK(PMI2_Info_GetNodeAttr(name, text, sizeof text, &found, 1));
        CHECK(found == 1 && atoi(text) == rank + 1);
    }
    snprintf(name, sizeof name, "list-%d", rank);
    snprintf(text, sizeof text, "%d, -5,7", rank);
    OK(PMI2_Info_PutNodeAttr(name, text));
    OK(PMI2_Info_GetNodeAttrIntArray(name, list, 3, &count, &found));
    CHECK(found == 1 && count == 3 && list[0] == rank && list[1] == -5 && list[2] == 7);
    GIVES(PMI2_Info_GetNodeAttrIntArray(name, list, 2, &count, &found), PMI2_ERR_INVALID_LENGTH);
    GIVES(PMI2_Info_GetNodeAttrIntArray(name, NULL, 3, &count, &found), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_Info_PutNodeAttr("", "x"), PMI2_ERR_INVALID_KEY);
    GIVES(PMI2_Info_PutNodeAttr("x", NULL), PMI2_ERR_INVALID_ARG);
    char longest[1025];
    memset(longest, 'x', sizeof longest);
    longest[1024] = 0;
    GIVES(PMI2_Info_PutNodeAttr("x", longest), PMI2_ERR_INVALID_VAL_LENGTH);
    GIVES(PMI2_Info_PutNodeAttr(longest, "x"), PMI2_ERR_INVALID_KEY_LENGTH);
}

static void gathers(void)
{
    struct { int rank, sum; } mine = {rank, rank * rank}, all[size];
    int order[size], again[size], lens[size], number = 77, here, others = 0;
    OK(PMI_Allgather(&rank, order, sizeof rank));
    OK(PMI_Allgather(&rank, again, sizeof rank));
    CHECK(memcmp(order, again, sizeof order) == 0);
    OK(PMI_Allgather(&mine, all, sizeof mine));
    char seen[size];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < size; i++) {
        CHECK(order[i] >= 0 && order[i] < size && !seen[order[i]]++);
        CHECK(all[i].rank == order[i] && all[i].sum == order[i] * order[i]);
        others += order[i] != i;
    }
    CHECK((others > 0) == (size > 1)); /* it is never that of the ranks */

    char bytes[64], every[64 * size];
    int total = 0;
    memset(bytes, 'a' + rank, sizeof bytes);
    for (int i = 0; i < size; i++)
        lens[i] = order[i] * 3, total += lens[i];
    memset(every, '!', sizeof every);
    OK(PMI_Allgatherv(bytes, rank * 3, every, lens));
    for (int i = 0, at = 0; i < size; at += lens[i++])
        for (int j = 0; j < lens[i]; j++)
            CHECK(every[at + j] == 'a' + order[i]);
    CHECK(every[total] == '!');
    lens[0]++;
    GIVES(PMI_Allgatherv(bytes, rank * 3, every, lens), PMI_ERR_INVALID_LENGTH);
    GIVES(PMI_Allgatherv(bytes, 3, NULL, lens), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Allgatherv(bytes, 3, every, NULL), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Allgatherv(NULL, 3, every, lens), PMI_ERR_INVALID_ARG);
    OK(PMI_Allgather(NULL, NULL, 0));
    GIVES(PMI_Allgather(bytes, every, -1), PMI_ERR_INVALID_LENGTH);
    GIVES(PMI_Allgather(NULL, every, 1), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Allgather(bytes, NULL, 1), PMI_ERR_INVALID_ARG);
    if (size > 1)
        GIVES(PMI_Allgather(bytes, every, rank ? 1 : 2), PMI_ERR_INVALID_LENGTH);

    OK(PMI_Get_numpes_on_smp(&here));
    CHECK(here == size);
    OK(PMI2_Info_GetSize(&number));
    CHECK(number == size);
    OK(PMI_Get_clique_size(&number));
    CHECK(number == size);
    OK(PMI_Get_pes_on_smp(again, size));
    OK(PMI_Get_clique_ranks(order, size));
    OK(PMI_Allgather_on_smp(&mine, all, sizeof mine));
    for (int i = 0; i < size; i++)
        CHECK(again[i] == i && order[i] == i && all[i].rank == i && all[i].sum == i * i);
    GIVES(PMI_Get_pes_on_smp(again, size - 1), PMI_ERR_INVALID_LENGTH);
    GIVES(PMI_Get_clique_ranks(again, -1), PMI_ERR_INVALID_LENGTH);
    GIVES(PMI_Get_pes_on_smp(NULL, size), PMI_ERR_INVALID_ARG);

    number = rank ? 5 : 4711;
    OK(PMI_Bcast(&number, sizeof number));
    CHECK(number == 4711);
    GIVES(PMI_Bcast(NULL, 4), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Bcast(&number, -4), PMI_ERR_INVALID_LENGTH);

    char mine_text[16], left[16], right[16];
    int place, places;
    snprintf(mine_text, sizeof mine_text, "rank %d", rank);
    OK(PMIX_Ring(mine_text, &place, &places, left, right, sizeof left));
    CHECK(place == rank && places == size);
    CHECK(atoi(left + 5) == (rank + size - 1) % size && atoi(right + 5) == (rank + 1) % size);
    GIVES(PMIX_Ring(NULL, &place, &places, left, right, sizeof left), PMI2_ERR_INVALID_ARG);
    GIVES(PMIX_Ring(mine_text, &place, &places, left, right, 0), PMI2_ERR_INVALID_LENGTH);
}

static void nodes(void)
{
    int *list, *again, number;
    OK(PMI_Get_nidlist_ptr((void **)&list));
    OK(PMI_Get_nidlist_ptr((void **)&again));
    CHECK(list == again);
    for (int i = 0; i < size; i++) {
        OK(PMI_Get_nid(i, &number));
        CHECK(number == list[i] && number == list[0] && number >= 0 && number < 1 << 18);
    }
    GIVES(PMI_Get_nid(size, &number), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Get_nid(-1, &number), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Get_nidlist_ptr(NULL), PMI_ERR_INVALID_ARG);
    const char *names[] = {"PMI_GNI_DEV_ID", "PMI_GNI_LOC_ADDR", "PMI_GNI_PTAG", "PMI_GNI_COOKIE"};
    unsigned values[4];
    CHECK(getenv("ALPS_APP_PE") != NULL && atoi(getenv("ALPS_APP_PE")) == rank);
    for (int i = 0; i < 4; i++) {
        CHECK(getenv(names[i]) != NULL);
        values[i] = (unsigned)strtoul(getenv(names[i]), NULL, 10);
    }
    CHECK(values[0] == 0 && values[1] == (unsigned)list[rank]);
    CHECK(values[2] >= 3 && values[2] <= 253 && values[3] > 0 && values[3] < 1u << 31);
    unsigned all[size][4];
    OK(PMI_Allgather(values, all, sizeof values));
    for (int i = 0; i < size; i++)
        CHECK(memcmp(all[i], values, sizeof values) == 0);
}

static void what_nobody_offers(void)
{
    char text[8];
    int major = 0, minor = -1, revision = -1;
    GIVES(PMI_Publish_name("a", "b"), PMI_FAIL);
    GIVES(PMI_Publish_name("a", NULL), PMI_ERR_INVALID_ARG);
    GIVES(PMI_Unpublish_name("a"), PMI_FAIL);
    GIVES(PMI_Lookup_name("a", text), PMI_FAIL);
    GIVES(PMI_Spawn_multiple(0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL), PMI_FAIL);
    GIVES(PMI2_Job_Spawn(0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL), PMI2_FAIL);
    GIVES(PMI2_Job_Connect(job, NULL), PMI2_FAIL);
    GIVES(PMI2_Job_Disconnect(job), PMI2_FAIL);
    GIVES(PMI2_Nameserv_publish("a", NULL, "b"), PMI2_FAIL);
    GIVES(PMI2_Nameserv_lookup("a", NULL, text, 8), PMI2_FAIL);
    GIVES(PMI2_Nameserv_lookup(NULL, NULL, text, 8), PMI2_ERR_INVALID_ARG);
    GIVES(PMI2_Nameserv_unpublish("a", NULL), PMI2_FAIL);
    OK(PMI_Get_version_info(&major, &minor, &revision));
    CHECK(major == 5 && minor == 0 && revision == 0);
    GIVES(PMI_Get_version_info(&major, NULL, &revision), PMI_ERR_INVALID_ARG);
}

static void *wait_for_all(void *unused)
{
    PMI_Barrier();
    return unused;
}

/* Two handles of one library: what is begun by one is seen by the other, also after they are closed. */
static void opened_twice(void)
{
    void *one = dlopen("libpmi.so", RTLD_NOW | RTLD_LOCAL), *two = dlopen("libpmi2.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(one && two);
    int (*init)(int *, int *, int *, int *), (*initialized)(int *), (*gather)(void *, void *, int), (*finalize)(void);
    *(void **)&init = dlsym(two, "PMI2_Init");
    *(void **)&finalize = dlsym(two, "PMI2_Finalize");
    *(void **)&initialized = dlsym(one, "PMI_Initialized");
    *(void **)&gather = dlsym(one, "PMI_Allgather");
    CHECK(init && finalize && initialized && gather);
    int spawned, number = 7, all[64];
    OK(initialized(&number));
    CHECK(number == PMI_FALSE);
    OK(init(&spawned, &size, &rank, &number));
    OK(initialized(&number));
    CHECK(number == PMI_TRUE && size <= 64);
    OK(gather(&rank, all, sizeof rank));
    OK(finalize());
    OK(dlclose(one));
    OK(dlclose(two));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "open") == 0) {
        opened_twice();
        printf("rank %d of %d\n", rank, size);
        return 0;
    }
    outside();
    if (strcmp(what, "abort-outside") == 0)
        PMI_Abort(9, "outside");
    join();
    if (strcmp(what, "leave") == 0) {
        if (rank > 0)
            PMI_Barrier();
        return 0; /* without a word, while the others wait */
    }
    if (strcmp(what, "abort") == 0 && rank == size - 1)
        PMI_Abort(42, "no more");
    if (strcmp(what, "abort2") == 0 && rank == 0)
        PMI2_Abort(1, NULL);
    if (strcmp(what, "abort-waiting") == 0 && rank == 0) {
        pthread_t waiting;
        CHECK(pthread_create(&waiting, NULL, wait_for_all, NULL) == 0);
        usleep(300000);
        PMI_Abort(43, "while another thread waits");
    }
    if (strncmp(what, "abort", 5) == 0)
        for (;;)
            sleep(60);
    names();
    if (strcmp(what, "variables") != 0) {
        pairs_of_pmi1();
        pairs_of_pmi2();
        attributes();
        gathers();
        nodes();
        what_nobody_offers();
        OK(PMI_Finalize());
        outside();
        /* Another job, which knows nothing of the first. */
        char first[256], value[8];
        int spawned;
        strcpy(first, job);
        OK(PMI_Init(&spawned));
        names();
        CHECK(strcmp(first, job) != 0);
        GIVES(PMI_KVS_Get(job, "one-0", value, sizeof value), PMI_FAIL);
        nodes();
    }
    OK(PMI2_Finalize());
    printf("rank %d of %d: %s %s %s %s\n", rank, size, getenv("PMI_GNI_DEV_ID"), getenv("PMI_GNI_LOC_ADDR"),
           getenv("PMI_GNI_PTAG"), getenv("PMI_GNI_COOKIE"));
    return 0;
}
