/* Stands in for Cray's libpmi2.so (with -DPMI2) and libpmi.so (without), over files in the directory STANDIN_DIR. It is
 * as awkward as the real ones: an all-gather is not in rank order, values with certain characters and second puts are
 * refused, an empty value becomes "(null)". STANDIN_FAULT names what goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name) {
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

static int rank(void) { return number("ALPS_APP_PE"); }
static int size(void) { return number("STANDIN_SIZE"); }

static int is(const char *name, const char *value) {
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

static void path(char *out, const char *kind, const char *name) {
    snprintf(out, 4096, "%s/%s.%s", getenv("STANDIN_DIR"), kind, name);
}

/* Writes a file that is either there or not. */
static int publish(const char *kind, const char *name, const void *bytes, size_t len) {
    char to[4096], from[4200];
    path(to, kind, name);
    snprintf(from, sizeof from, "%s.%d.new", to, rank());
    FILE *file = fopen(from, "wb");
    if (!file) return -1;
    size_t written = fwrite(bytes, 1, len, file);
    return fclose(file) == 0 && written == len ? rename(from, to) : -1;
}

/* Reads a file that somebody publishes, within ten seconds; gives its length. */
static long fetch(const char *kind, const char *name, void *bytes, size_t room) {
    char from[4096];
    path(from, kind, name);
    for (int tries = 0; tries < 10000; tries++) {
        FILE *file = fopen(from, "rb");
        if (file) {
            long len = (long)fread(bytes, 1, room, file);
            fclose(file);
            return len;
        }
        usleep(1000);
    }
    return -1;
}

/* The bytes of all ranks, one after the other: that of place i is rank 2 - i, counted round. */
static int gather(const char *kind, const void *mine, char *all, int len) {
    static int calls;
    char name[64];
    calls++;
    snprintf(name, sizeof name, "%d.%d", calls, rank());
    if (publish(kind, name, mine, (size_t)len)) return 1;
    for (int i = 0; i < size(); i++) {
        snprintf(name, sizeof name, "%d.%d", calls, (2 - i + 2 * size()) % size());
        if (fetch(kind, name, all + (long)i * len, (size_t)len) != len) return 1;
    }
    return 0;
}

#ifdef PMI2
static struct { char key[256], value[2048]; } fresh[256];
static int waiting;

int PMI2_Init(int *spawned, int *ranks, int *mine, int *program) {
    if (is("STANDIN_FAULT", "init")) return 14;
    const char *no_fork = getenv("PMI_NO_FORK");
    char name[16];
    snprintf(name, sizeof name, "%d", rank());
    if (!no_fork) no_fork = "a helper was forked";
    if (publish("no-fork", name, no_fork, strlen(no_fork))) return 14;
    *spawned = *program = 0;
    *ranks = size();
    *mine = is("STANDIN_FAULT", "rank") ? size() : rank();
    return 0;
}

int PMI2_Finalize(void) {
    char name[16];
    if (is("STANDIN_FAULT", "finalize")) return 9;
    if (is("STANDIN_FAULT", "fence-late")) usleep(100000);
    snprintf(name, sizeof name, "%d", rank());
    return publish("finalized", name, "", 0);
}

int PMI2_Abort(int flag, const char message[]) {
    fprintf(stderr, "aborted (%d): %s\n", flag, message);
    _exit(1);
}

int PMI2_Job_GetId(char id[], int room) {
    snprintf(id, (size_t)room, "cray-%s", strrchr(getenv("STANDIN_DIR"), '/') + 1);
    return 0;
}

int PMI2_KVS_Put(const char key[], const char value[]) {
    char where[4096];
    path(where, "value", key);
    if (access(where, F_OK) == 0 || waiting == 256) return 4;
    if (strlen(key) > 63 || strlen(value) > 1023 || strpbrk(value, "/;= ")) return 6;
    for (int i = 0; i < waiting; i++)
        if (strcmp(fresh[i].key, key) == 0) return 4;
    strcpy(fresh[waiting].key, key);
    strcpy(fresh[waiting++].value, *value ? value : "(null)");
    return 0;
}

int PMI2_KVS_Fence(void) {
    if (is("STANDIN_FAULT", "fence")) sleep(600);
    if (is("STANDIN_FAULT", "fence-late")) {
        usleep(600000);
        return 1;
    }
    while (waiting > 0) {
        waiting--;
        if (publish("value", fresh[waiting].key, fresh[waiting].value, strlen(fresh[waiting].value))) return 1;
    }
    char *all = malloc((size_t)size());
    int failed = gather("fence", "x", all, 1);
    free(all);
    return failed;
}

int PMI2_KVS_Get(const char *job, int hint, const char key[], char value[], int room, int *len) {
    char where[4096];
    (void)job, (void)hint;
    path(where, "value", key);
    if (access(where, F_OK)) return 4;
    long found = fetch("value", key, value, (size_t)room - 1);
    if (found < 0) return 1;
    value[found] = 0;
    *len = (int)found;
    if (is("STANDIN_FAULT", "null")) strcpy(value, "(null)");
    return 0;
}
#else
int PMI_Allgather(void *mine, void *all, int len) {
    if (is("STANDIN_FAULT", "gather")) return 1;
    if (is("STANDIN_FAULT", "twice")) {
        for (int i = 0; i < size(); i++) memcpy((char *)all + (long)i * len, mine, (size_t)len);
        return 0;
    }
    return gather("gather", mine, all, len);
}

/* Two ranks on a node. */
int PMI_Get_nidlist_ptr(void **list) {
    static int nodes[64];
    if (!is("STANDIN_NODES", "list")) return 1;
    for (int i = 0; i < 64; i++) nodes[i] = 40 + i / 2;
    *list = nodes;
    return 0;
}

int PMI_Get_numpes_on_smp(int *count) {
    if (!is("STANDIN_NODES", "near")) return 1;
    *count = size() - rank() / 2 * 2 < 2 ? 1 : 2;
    return 0;
}

int PMI_Get_pes_on_smp(int *ranks, int count) {
    for (int i = 0; i < count; i++) ranks[i] = rank() / 2 * 2 + count - 1 - i;
    return 0;
}
#endif
