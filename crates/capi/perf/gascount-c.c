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
enum { SHORT = 140, PING = 141, PONG = 142, MEDIUM = 143 };
/* Puts and gets go round in so many bytes of the segment, from whose beginning on. */
enum { RING = 4096 };

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

static void takes(gex_Token_t token, void *payload, size_t len) {
  (void)token, (void)payload, (void)len;
  handled++;
}

static gex_AM_Entry_t handlers[] = {
    {SHORT, (gex_AM_Fn_t)counts, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "short"},
    {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "ping"},
    {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL, "pong"},
    {MEDIUM, (gex_AM_Fn_t)takes, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
};

static void check(int code, const char *call) {
  if (code == GASNET_OK) return;
  fprintf(stderr, "gascount-c: %s: %s\n", call, gasnet_ErrorName(code));
  gasnet_exit(1);
}

/* Puts and gets: rank, place and length are known only while the program runs, and the bytes are checked. */
__attribute__((noinline)) static int moves(const char *operation, gex_TM_t tm, char *base, unsigned long n) {
  volatile gex_Rank_t known_rank = 0;
  volatile size_t known_len = 24;
  gex_Rank_t rank = known_rank;
  size_t len = known_len;
  uint64_t sum = 0, wanted = 0, word = 0, words[3] = {1, 2, 3};
  unsigned long i;
  int is_put = strstr(operation, "put") != NULL;
  for (i = 0; i < RING / 8; i++) ((uint64_t *)base)[i] = is_put ? 0 : i;
#define PLACE (base + i * 8 % RING)
  if (strcmp(operation, "get-val") == 0) {
    for (i = 0; i < n; i++) sum += gex_RMA_GetBlockingVal(tm, rank, PLACE, 8, 0);
  } else if (strcmp(operation, "put-val") == 0) {
    for (i = 0; i < n; i++) gex_RMA_PutBlockingVal(tm, rank, PLACE, i, 8, 0);
  } else if (strcmp(operation, "put-8") == 0) {
    for (i = 0; i < n; i++) {
      word = i;
      gex_RMA_PutBlocking(tm, rank, PLACE, &word, 8, 0);
    }
  } else if (strcmp(operation, "get-8") == 0) {
    for (i = 0; i < n; i++) {
      gex_RMA_GetBlocking(tm, &word, rank, PLACE, 8, 0);
      sum += word;
    }
  } else if (strcmp(operation, "put-n") == 0) {
    for (i = 0; i < n; i++) gex_RMA_PutBlocking(tm, rank, PLACE, words, len, 0);
  } else if (strcmp(operation, "put-n-nbi") == 0) {
    for (i = 0; i < n; i++) gex_RMA_PutNBI(tm, rank, PLACE, words, len, GEX_EVENT_NOW, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
  } else if (strcmp(operation, "put-n-nb") == 0) {
    for (i = 0; i < n; i++) gex_Event_Wait(gex_RMA_PutNB(tm, rank, PLACE, words, len, GEX_EVENT_NOW, 0));
  } else if (strcmp(operation, "fetch-add") == 0) {
    /* Words stay as they are: what was fetched adds up as of gets. */
    gex_AD_t ad;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_FADD, 0);
    for (i = 0; i < n; i++) {
      gex_Event_Wait(gex_AD_OpNB_U64(ad, &word, rank, PLACE, GEX_OP_FADD, 0, 0, GEX_FLAG_RANK_IS_JOBRANK));
      sum += word;
    }
  } else {
    return 0;
  }
  i = n - 1;
  memcpy(&word, PLACE, 8);
  if (is_put) {
    wanted = operation[4] == 'n' ? words[0] : i;
    sum = word;
  } else {
    /* Whole rounds, and the beginning of another. */
    unsigned long round = RING / 8, rest = n % round;
    wanted = n / round * (round * (round - 1) / 2) + (rest ? rest * (rest - 1) / 2 : 0);
  }
  if (n > 0 && sum != wanted) {
    fprintf(stderr, "gascount-c: %s moved wrong bytes: %llu, not %llu\n", operation, (unsigned long long)sum,
            (unsigned long long)wanted);
    gasnet_exit(1);
  }
  return 1;
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
  } else if (strcmp(operation, "medium-8") == 0) {
    for (i = 1; i <= n; i++) {
      (void)gex_AM_RequestMedium0(tm, 0, MEDIUM, &i, 8, GEX_EVENT_NOW, 0);
      GASNET_BLOCKUNTIL(handled >= i);
    }
  } else if (!moves(operation, tm, (char *)gex_Segment_QueryAddr(segment), n)) {
    fprintf(stderr, "gascount-c: %s is no operation: see ci/counts\n", operation);
    gasnet_exit(1);
  }
  printf("allocations %lu\n", made - before);
  fflush(stdout);
  gasnet_exit(0);
  return 1;
}
