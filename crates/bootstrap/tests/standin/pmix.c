/* Stands in for libpmix.so.2 in a job of one rank, for what no real one does on demand: STANDIN_FAULT names what goes
 * wrong. The types are those that tests/standin/layout.c checks. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct proc { char nspace[256]; uint32_t rank; };
struct value { uint16_t type; union { uint32_t number; char *text; uint64_t all[3]; } data; };

static char keys[256][512];
static char *texts[256];
static int count;

static int is(const char *value) {
    const char *text = getenv("STANDIN_FAULT");
    return text && strcmp(text, value) == 0;
}

int PMIx_Init(struct proc *me, void *info, size_t infos) {
    (void)info, (void)infos;
    if (is("init-hangs")) sleep(600);
    if (is("init-refused")) return -25;
    memset(me, 0, sizeof *me);
    snprintf(me->nspace, sizeof me->nspace, "standin-%d", (int)getpid());
    return 0;
}

static int ends;

int PMIx_Finalize(const void *info, size_t infos) {
    (void)info, (void)infos;
    __atomic_store_n(&ends, 1, __ATOMIC_SEQ_CST);
    if (is("fence-until-end")) usleep(100000);
    if (is("finalize-hangs")) sleep(600);
    if (is("finalize-refused")) return -27;
    puts("finalized");
    fflush(stdout);
    return 0;
}

int PMIx_Abort(int status, const char *text, void *procs, size_t count) {
    (void)procs, (void)count;
    printf("aborted with %d: %s\n", status, text);
    fflush(stdout);
    if (is("abort-hangs")) sleep(600);
    return 0;
}

int PMIx_Put(uint8_t scope, const char *key, struct value *value) {
    if (is("put-refused") || scope != 3 || value->type != 3 || count == 256) return -27;
    strcpy(keys[count], key);
    texts[count++] = strdup(value->data.text);
    return 0;
}

int PMIx_Commit(void) { return 0; }

int PMIx_Fence(const void *procs, size_t count, const void *info, size_t infos) {
    (void)procs, (void)count, (void)info, (void)infos;
    if (is("fence-hangs")) sleep(600);
    if (is("fence-until-end")) {
        while (!__atomic_load_n(&ends, __ATOMIC_SEQ_CST)) usleep(1000);
        return -61;
    }
    return is("fence-refused") ? -61 : 0;
}

int PMIx_Get(const struct proc *proc, const char *key, const void *info, size_t infos, struct value **out) {
    (void)proc, (void)info, (void)infos;
    struct value *value = calloc(1, sizeof *value);
    *out = value;
    if (strcmp(key, "pmix.job.size") == 0) {
        value->type = is("size-is-text") ? 3 : 14;
        if (value->type == 14) value->data.number = is("size-is-0") ? 0 : 1;
        return 0;
    }
    const char *node = getenv("STANDIN_NODE");
    if (strcmp(key, "pmix.nodeid") == 0 && node) {
        value->type = 14;
        value->data.number = (uint32_t)atoi(node);
        return 0;
    }
    for (int i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0) {
            value->type = is("get-another-kind") ? 27 : 3;
            if (is("get-a-number")) {
                value->type = 14;
                value->data.number = 12;
                return 0;
            }
            value->data.text = strdup(is("get-damaged") ? "(null)" : texts[i]);
            return is("get-nothing") ? (*out = NULL, 0) : 0;
        }
    free(value);
    *out = NULL;
    return -46;
}

/* A handler, as far as it is registered here. */
struct info { char key[512]; uint32_t flags; struct value value; };
typedef void (*done)(int, void *, size_t, void *, void *, void *);
typedef void (*handler)(size_t, int, const void *, struct info *, size_t, void *, size_t, done, void *);
static handler handle;
static struct info with;

static void completed(int status, void *results, size_t count, void *call, void *data, void *own) {
    (void)results, (void)count, (void)call, (void)data;
    printf("completed with %d%s\n", status, own == &with ? "" : ", and something else");
    fflush(stdout);
}

static void *vanish(void *nothing) {
    usleep(200000);
    handle(0, -61, NULL, &with, 1, NULL, 0, completed, &with);
    return nothing;
}

int PMIx_Register_event_handler(int *codes, size_t count, struct info *info, size_t infos, handler function,
                                void *call, void *data) {
    pthread_t thread;
    if (is("watch-refused")) return -27;
    if (count != 2 || codes[0] != -61 || codes[1] != -101 || infos != 1 || call || data) return -27;
    handle = function;
    with = *info;
    if (is("vanishes")) pthread_create(&thread, NULL, vanish, NULL);
    return 0;
}

const char *PMIx_Error_string(int status) { return status == -61 ? "LOST-CONNECTION" : "REFUSED"; }
