/* Does one operation of the library many times and nothing else, so that what it costs can be counted: `gascount` from C.
   `gascount-c OPERATION N`, as a job of one rank, which sends to itself: no transport carries that, so it is what the C face adds that is
   counted. At its end it prints how many allocations the operations made. */
#include <gasnetex.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts allocations, and passes every call on to the system's allocator. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *at, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
static unsigned long made;
void *malloc(size_t size) {
  made++;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  made++;
  return __libc_calloc(count, size);
}
void *realloc(void *at, size_t size) {
  made++;
  return __libc_realloc(at, size);
}
int posix_memalign(void **at, size_t align, size_t size) {
  made++;
  *at = __libc_memalign(align, size);
  return *at == NULL ? ENOMEM : 0;
}

/* So many requests leave before any is handled. */
enum { FLOOD = 32 };
enum { SHORT = 140, PING = 141, PONG = 142 };

static unsigned long handled, replied;

static void counts(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  (void)token, (void)high, (void)low;
  handled++;
}
static void ping(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  handled++;
  (void)gex_AM_ReplyShort2(token, PONG, 0, high, low);
}
static void pong(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low) {
  (void)token, (void)high, (void)low;
  replied++;
}

static gex_AM_Entry_t handlers[] = {
    {SHORT, (gex_AM_Fn_t)counts, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "short"},
    {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "ping"},
    {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL, "pong"},
};

static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "gascount-c: %s: %s\n", call, gasnet_ErrorName(code));
  gasnet_exit(1);
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  gex_Segment_t segment;
  const char *operation;
  volatile unsigned long known_late;
  unsigned long n, i, before;
  check(gex_Client_Init(&client, &ep, &tm, "gascount-c", &argc, &argv, 0), "gex_Client_Init");
  check(gex_Segment_Attach(&segment, tm, 1 << 20), "gex_Segment_Attach");
  check(gex_EP_RegisterHandlers(ep, handlers, sizeof handlers / sizeof *handlers), "gex_EP_RegisterHandlers");
  if (argc != 3) {
    fprintf(stderr, "gascount-c: wanted: gascount-c OPERATION N\n");
    gasnet_exit(1);
  }
  operation = argv[1];
  known_late = strtoul(argv[2], NULL, 10);
  n = known_late;
  before = made;
  if (before == 0) {
    fprintf(stderr, "gascount-c: the library's allocations are not counted\n");
    gasnet_exit(1);
  }
  if (strcmp(operation, "poll") == 0) {
    for (i = 1; i <= n; i++) check(gasnet_AMPoll(), "gasnet_AMPoll");
  } else if (strcmp(operation, "short-request") == 0) {
    for (i = 1; i <= n; i++) {
      (void)gex_AM_RequestShort2(tm, 0, SHORT, 0, 0, (gex_AM_Arg_t)i);
      GASNET_BLOCKUNTIL(handled >= i);
    }
  } else if (strcmp(operation, "short-flood") == 0) {
    for (i = 1; i <= n; i++) {
      (void)gex_AM_RequestShort2(tm, 0, SHORT, 0, 0, (gex_AM_Arg_t)i);
      if (i % FLOOD == 0) GASNET_BLOCKUNTIL(handled >= i);
    }
    GASNET_BLOCKUNTIL(handled >= n);
  } else if (strcmp(operation, "short-round-trip") == 0) {
    for (i = 1; i <= n; i++) {
      (void)gex_AM_RequestShort2(tm, 0, PING, 0, 0, (gex_AM_Arg_t)i);
      GASNET_BLOCKUNTIL(replied >= i);
    }
  } else {
    fprintf(stderr, "gascount-c: %s is no operation: see ci/counts\n", operation);
    gasnet_exit(1);
  }
  printf("allocations %lu\n", made - before);
  fflush(stdout);
  gasnet_exit(0);
  return 1;
}
