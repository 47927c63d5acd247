/* Threads of each rank that put, get and send at once, and share a lock with their handlers. */
#include <gasnet.h>
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define ROUNDS 2000

static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, next;
static uint64_t *there;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static long came, told;
static gasnett_cond_t changed = GASNETT_COND_INITIALIZER;
static int working;

static void say(gex_Token_t token, gex_AM_Arg_t one) {
  gex_HSL_Lock(&lock);
  came += one;
  gex_HSL_Unlock(&lock);
  CHECK(gex_AM_ReplyShort0(token, 201, 0) == 0);
}
static void said(gex_Token_t token) {
  (void)token;
  gex_HSL_Lock(&lock);
  told++;
  gex_HSL_Unlock(&lock);
}
static gex_AM_Entry_t table[] = {
    {200, (gex_AM_Fn_t)say, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "say"},
    {201, (gex_AM_Fn_t)said, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "said"},
};

static void *work(void *number) {
  uint64_t *own = there + 64 * (size_t)(uintptr_t)number, back;
  uint64_t i;
  /* All begin together. */
  gasnet_hsl_lock(&lock);
  working++;
  gasnett_cond_broadcast(&changed);
  while (working < THREADS) gasnett_cond_wait(&changed, &lock.lock);
  gasnet_hsl_unlock(&lock);
  for (i = 0; i < ROUNDS; i++) {
    gex_RMA_PutBlockingVal(tm, next, own, i, 8, 0);
    CHECK(gex_RMA_GetNBI(tm, &back, next, own, 8, 0) == 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK(back == i);
    CHECK(gex_AM_RequestShort1(tm, next, 200, 0, 1) == 0);
  }
  return NULL;
}

int main(int argc, char **argv) {
  gex_Client_t client;
  pthread_t threads[THREADS];
  void *owner;
  uintptr_t i;
  CHECK(gex_Client_Init(&client, &ep, &tm, "threads", &argc, &argv, 0) == GASNET_OK);
  CHECK(gex_System_QueryMaxThreads() >= THREADS);
  me = gex_System_QueryJobRank();
  next = (me + 1) % gex_System_QueryJobSize();
  CHECK(gex_EP_RegisterHandlers(ep, table, 2) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, 4 * (size_t)GASNET_PAGESIZE) == GASNET_OK);
  CHECK(gex_Segment_QueryBound(tm, next, &owner, NULL, NULL) == 0);
  there = (uint64_t *)owner;
  for (i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
  for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  GASNET_BLOCKUNTIL(told == THREADS * ROUNDS && came == THREADS * ROUNDS);
  DONE("threads");
  return 0;
}
