/*
 * One way for a job to end, or one thing that is wrong, by the name that it is called with. The line with a name is where what is wrong
 * stands, unless another says "at" it. With a second word nothing comes of what is wrong, and all goes on as if it had not been.
 */
#include <gasnet.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size;
static const char *way = "";
static int acted, answered;
/* Of a barrier to which only the rank comes that does what is wrong, until that is done. */
static gex_Event_t pending;
static gex_Token_t kept;
static gex_HSL_t lock = GEX_HSL_INITIALIZER, other = GEX_HSL_INITIALIZER;
static char bytes[64];
/* So that compilers do not see it first. */
static volatile size_t one = 1, nine = 9;
static unsigned char *own;

static int is(const char *name) { return strcmp(way, name) == 0; }
static gex_Event_t *odd(gex_Event_t *event) { return (gex_Event_t *)(void *)((char *)event + one); }

static void end(gex_Token_t token) {
  (void)token;
  gasnet_exit(7);
}
static void answer(gex_Token_t token) { gex_AM_ReplyShort0(token, 202, 0); }
static void nothing(gex_Token_t token) {
  if (is("reply-to-reply")) gex_AM_ReplyShort0(token, 202, 0);
  if (is("prepare-reply-to-reply")) gex_AM_PrepareReplyMedium(token, NULL, 1, 1, NULL, 0, 0);
  answered = 1;
}

/* What is wrong in a handler. */
static void act(gex_Token_t token) {
  gex_Event_t both[2] = {GEX_EVENT_INVALID, pending};
  gex_Token_Info_t info;
  if (is("handler-replies-twice")) gex_AM_ReplyShort0(token, 202, 0);
  if (is("handler-replies-twice")) gex_AM_ReplyShort0(token, 202, 0); /* at handler-replies-twice */
  if (is("handler-polls")) gasnet_AMPoll();
  if (is("handler-sends")) gex_AM_RequestShort0(tm, me, 203, 0);
  if (is("handler-puts")) gex_RMA_PutBlocking(tm, me, own, own, 4, 0);
  if (is("handler-gets")) gex_RMA_GetNBI(tm, bytes, me, own, 4, 0);
  if (is("handler-waits")) gex_Event_Wait(pending);
  if (is("handler-tests")) gex_Event_Test(pending);
  if (is("handler-tests-all")) gex_Event_TestAll(both, 2, 0);
  if (is("handler-waits-for-handle")) gasnet_wait_syncnb(pending);
  if (is("handler-waits-for-all")) gex_NBI_Wait(GEX_EC_ALL, 0);
  if (is("handler-begins-barrier")) gex_Coll_BarrierNB(tm, 0);
  if (is("handler-blocks")) GASNET_BLOCKUNTIL(acted);
  if (is("handler-prepares-request")) gex_AM_PrepareRequestMedium(tm, me, NULL, 1, 1, NULL, 0, 0);
  if (is("handler-replies-by-group")) gex_AM_ReplyMedium0(token, 204, bytes, 4, GEX_EVENT_GROUP, 0);
  if (is("handler-replies-deferred")) gex_AM_ReplyLong0(token, 204, bytes, 4, own, GEX_EVENT_DEFER, 0);
  if (is("handler-replies-to-nobody")) gex_AM_ReplyShort0((gex_Token_t)0, 202, 0);
  if (is("handler-replies-to-another")) gex_AM_ReplyShort0((gex_Token_t)(void *)&info, 202, 0);
  if (is("handler-asks-nowhere")) gex_Token_Info(token, NULL, GEX_TI_ALL);
  if (is("handler-replies-outside")) gex_AM_ReplyLong0(token, 204, bytes, 4, bytes, GEX_EVENT_NOW, 0);
  if (is("handler-prepares-by-group")) gex_AM_PrepareReplyMedium(token, bytes, 1, 1, GEX_EVENT_GROUP, 0, 0);
  if (is("handler-leaves-prepared")) gex_AM_PrepareReplyMedium(token, NULL, 1, 1, NULL, 0, 0);
  if (is("handler-keeps-lock") || is("handler-replies-locked")) gex_HSL_Lock(&lock);
  if (is("handler-replies-locked")) gex_AM_ReplyShort0(token, 202, 0); /* at handler-replies-locked */
  if (is("token-kept")) kept = token;
  acted = 1;
}
static void take(gex_Token_t token, void *buffer, size_t len) {
  (void)token;
  (void)buffer;
  (void)len;
}
#define SHORT(index, function, way, count) \
  {index, (gex_AM_Fn_t)function, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_##way, count, NULL, #function}
static gex_AM_Entry_t table[] = {
    SHORT(200, end, REQUEST, 0),
    SHORT(201, answer, REQUEST, 0),
    SHORT(202, nothing, REPLY, 0),
    SHORT(203, act, REQUEST, 0),
    {204, (gex_AM_Fn_t)take, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 0, NULL, "take"},
};

/* How a program hears that it is to end, and may choose with which code. */
static void quits(int signal) {
  static const char said[] = "handler of SIGQUIT\n";
  (void)signal;
  CHECK(write(2, said, sizeof said - 1) == sizeof said - 1);
  if (!strstr(way, "-not-chosen")) gasnet_exit(21);
}

static void ends_otherwise(void) {
  int ends[2];
  if (strstr(way, "told-to-end")) raise(SIGTERM);
  if (strstr(way, "broken-pipe")) {
    CHECK(pipe(ends) == 0 && dup2(ends[1], 1) == 1 && close(ends[0]) == 0 && close(ends[1]) == 0);
    /* Some of it is still to be written at the end. */
    printf("to nobody\n");
    CHECK(write(1, way, 1) == -1);
  }
}

/* The job, its segment, handlers and objects. */
static void objects(void) {
  gex_AM_Entry_t twice[] = {SHORT(210, act, REQUEST, 0), SHORT(210, end, REQUEST, 0)};
  gex_AM_Entry_t low = SHORT(127, act, REQUEST, 0), none = SHORT(211, NULL, REQUEST, 0), many = SHORT(212, act, REQUEST, 17);
  void *team = tm, *place = &low;
  if (is("init-twice")) gex_Client_Init(&client, &ep, &tm, "ends", NULL, NULL, 0);
  if (is("attach-twice")) gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE);
  if (is("attach-odd-size")) gex_Segment_Attach(&segment, tm, 100);
  if (is("attach-no-team")) gex_Segment_Attach(&segment, gex_TM_Pair(ep, 0), GASNET_PAGESIZE);
  if (is("register-twice")) gex_EP_RegisterHandlers(ep, twice, 2);
  if (is("register-again")) gex_EP_RegisterHandlers(ep, table, 1);
  if (is("register-low")) gex_EP_RegisterHandlers(ep, &low, 1);
  if (is("register-nothing")) gex_EP_RegisterHandlers(ep, &none, 1);
  if (is("register-too-many")) gex_EP_RegisterHandlers(ep, &many, 1);
  if (is("register-no-table")) gex_EP_RegisterHandlers(ep, NULL, 3);
  if (is("register-no-endpoint")) gex_EP_RegisterHandlers((gex_EP_t)team, table, 1);
  if (is("no-client")) gex_Client_QueryName((gex_Client_t)0);
  if (is("team-as-segment")) gex_Segment_QuerySize((gex_Segment_t)team);
  if (is("something-as-team")) gex_TM_QueryRank((gex_TM_t)place);
  if (is("odd-endpoint")) gex_EP_SetCData((gex_EP_t)(void *)((char *)team + 2), NULL);
  if (is("pair-of-nothing")) gex_TM_Pair((gex_EP_t)0, 0);
  if (is("pair-too-high")) gex_RMA_PutBlocking(gex_TM_Pair(ep, 5), 0, own, bytes, 4, 0);
  if (is("no-way-of-waiting")) gasnet_set_waitmode(7);
  if (is("no-name")) gasnet_getenv(NULL);
  if (is("info-nowhere")) gasnet_getSegmentInfo(NULL, 3);
}

static void messages(void) {
  gex_Event_t freed = GEX_EVENT_INVALID;
  if (is("no-such-handler")) gex_AM_RequestShort0(tm, 1, 210, 0);
  if (is("wrong-count")) gex_AM_RequestShort(tm, 1, 203, 0, 1);
  if (is("wrong-count-here")) gex_AM_RequestShort(tm, 0, 203, 0, 1);
  if (is("too-long")) gex_AM_RequestMedium0(tm, 0, 204, bytes, (size_t)1 << 30, GEX_EVENT_NOW, 0);
  if (is("nothing-to-send")) gex_AM_RequestMedium0(tm, 0, 204, NULL, 4, GEX_EVENT_NOW, 0);
  if (is("long-outside")) gex_AM_RequestLong(tm, 1, 204, bytes, 4, bytes, GEX_EVENT_NOW, 0);
  if (is("request-deferred")) gex_AM_RequestMedium0(tm, 0, 204, bytes, 4, GEX_EVENT_DEFER, 0);
  if (is("long-deferred")) gex_AM_RequestLong0(tm, 0, 204, bytes, 4, own, GEX_EVENT_DEFER, 0);
  if (is("request-no-option")) gex_AM_RequestMedium(tm, 0, 204, bytes, 4, NULL, 0);
  if (is("request-odd-option")) gex_AM_RequestMedium0(tm, 0, 204, bytes, 4, odd(&freed), 0);
  if (is("request-to-nobody")) gex_AM_RequestShort(tm, size, 203, 0);
  if (is("limit-too-many")) gex_AM_MaxRequestMedium(tm, 0, GEX_EVENT_NOW, 0, 17);
  if (is("limit-of-nobody")) gex_AM_MaxReplyLong(tm, size, GEX_EVENT_NOW, 0, 1);
  if (is("reply-to-reply") || is("prepare-reply-to-reply")) gex_AM_RequestShort0(tm, 1, 201, 0);
  if (is("token-kept")) {
    gex_AM_RequestShort0(tm, 0, 203, 0);
    GASNET_BLOCKUNTIL(kept);
    gex_AM_ReplyShort0(kept, 202, 0); /* at token-kept */
  }
}

static void negotiated(void) {
  gex_AM_SrcDesc_t source = GEX_AM_SRCDESC_NO_OP;
  gex_Event_t freed;
  if (is("committed-for-nothing")) gex_AM_CommitRequestMedium0(GEX_AM_SRCDESC_NO_OP, 204, 0);
  if (is("cancel-for-nothing")) gex_AM_CancelRequestLong(GEX_AM_SRCDESC_NO_OP, 0);
  if (is("address-of-nothing")) gex_AM_SrcDescAddr(GEX_AM_SRCDESC_NO_OP);
  if (is("prepare-option")) gex_AM_CancelRequestMedium(gex_AM_PrepareRequestMedium(tm, 0, NULL, 4, 4, &freed, 0, 0), 0);
  if (is("prepare-no-option")) gex_AM_PrepareRequestMedium(tm, 0, bytes, 4, 4, NULL, 0, 0);
  if (is("prepare-deferred")) gex_AM_PrepareRequestMedium(tm, 0, bytes, 4, 4, GEX_EVENT_DEFER, 0, 0);
  if (is("prepare-least-over-most")) gex_AM_PrepareRequestMedium(tm, 0, NULL, 8, 4, NULL, 0, 0);
  if (is("prepare-too-many")) gex_AM_PrepareRequestMedium(tm, 0, NULL, 4, 4, NULL, 0, 17);
  if (is("prepare-too-much")) gex_AM_PrepareRequestMedium(tm, 0, NULL, (size_t)1 << 30, (size_t)1 << 30, NULL, 0, 0);
  if (is("prepare-outside")) gex_AM_PrepareRequestLong(tm, 1, NULL, 4, 4, bytes, NULL, 0, 0);
  if (is("commit-unprepared")) gex_AM_CommitRequestMedium((gex_AM_SrcDesc_t)(void *)bytes, 204, 0);
  if (!strstr(way, "prepared-")) return;
  source = gex_AM_PrepareRequestMedium(tm, 0, NULL, 4, 8, NULL, 0, 0);
  if (is("prepared-twice")) gex_AM_PrepareRequestLong(tm, 0, NULL, 4, 8, own, NULL, 0, 0);
  if (is("prepared-and-sends")) gex_AM_RequestShort0(tm, 0, 201, 0);
  if (is("prepared-and-polls")) gasnet_AMPoll();
  if (is("prepared-and-puts")) gex_RMA_PutBlockingVal(tm, 0, own, 1, 1, 0);
  if (is("prepared-too-short")) gex_AM_CommitRequestMedium(source, 204, 9);
  if (is("prepared-other-count")) gex_AM_CommitRequestMedium(source, 204, 4, 1);
  if (is("prepared-other-kind")) gex_AM_CommitRequestLong(source, 204, 4, own);
  if (is("prepared-for-no-reply")) gex_AM_CommitReplyMedium_v2(source, 204, 4, 0);
  gex_AM_CancelRequestMedium(source, 0);
  if (is("prepared-and-cancelled")) gex_AM_CommitRequestMedium(source, 204, 4);
}

static void memory(void) {
  gex_Event_t freed = GEX_EVENT_INVALID;
  void *object = client, *there;
  CHECK(gex_Segment_QueryBound(tm, 1, &there, NULL, NULL) == 0);
  if (is("no-such-rank")) gex_RMA_PutBlocking(tm, 1000, own, bytes, 4, 0);
  if (is("no-such-node")) gasnet_put(1000, own, bytes, 4);
  if (is("after-inner-call")) gasnet_put(1000, own, bytes, gex_TM_QuerySize(tm));
  if (is("after-inner-wait")) gasnet_put(1000, own, bytes, (gex_Event_Wait(freed), (size_t)4));
  if (is("unplaced-call")) (gex_RMA_PutBlocking)(tm, 1000, own, bytes, 4, 0);
  if (is("no-such-team")) gex_RMA_PutBlocking(NULL, 0, own, bytes, 4, 0);
  if (is("client-as-team")) gex_RMA_PutNBI((gex_TM_t)object, 0, own, bytes, 4, GEX_EVENT_NOW, 0);
  if (is("outside")) gex_RMA_PutBlocking(tm, 0, own + GASNET_PAGESIZE - 3, bytes, 4, 0);
  if (is("outside-nothing")) gex_RMA_PutBlockingVal(tm, 1, there, 1, 1, 0);
  if (is("not-in-the-segment")) gex_RMA_GetBlocking(tm, bytes, 0, bytes, 4, 0);
  if (is("put-from-nowhere")) gex_RMA_PutNB(tm, 0, own, NULL, 4, GEX_EVENT_NOW, 0);
  if (is("get-to-nowhere")) gex_RMA_GetNB(tm, NULL, 0, own, 4, 0);
  if (is("put-no-option")) gex_RMA_PutNB(tm, 0, own, own, 4, NULL, 0);
  if (is("put-by-group")) gex_RMA_PutNB(tm, 0, own, own, 4, GEX_EVENT_GROUP, 0);
  if (is("put-odd-option")) gex_RMA_PutNB(tm, 0, own, own, 4, odd(&freed), 0);
  if (is("implicit-put-event")) gex_RMA_PutNBI(tm, 0, own, own, 4, &freed, 0);
  if (is("value-too-long")) gex_RMA_PutBlockingVal(tm, 0, own, 1, nine, 0);
  if (is("value-of-nothing")) gex_RMA_GetBlockingVal(tm, 0, own, 0, 0);
}

static void events(void) {
  gex_Event_t none[2] = {GEX_EVENT_NO_OP, GEX_EVENT_INVALID};
  if (is("no-event")) gex_Event_Wait(GEX_EVENT_NO_OP);
  if (is("no-event-tested")) gex_Event_Test(GEX_EVENT_NO_OP);
  if (is("no-event-in-array")) gex_Event_TestSome(none, 2, 0);
  if (is("no-event-of-node")) gasnet_try_syncnb(GEX_EVENT_NO_OP);
  if (is("leaf-of-no-event")) gex_Event_QueryLeaf(GEX_EVENT_NO_OP, GEX_EC_LC);
  if (is("no-such-event")) gex_Event_Wait((gex_Event_t)(uintptr_t)0x123456789abcdefu);
  if (is("no-such-barrier")) gex_Event_Wait((gex_Event_t)(uintptr_t)-3);
  if (is("no-such-barrier-tested")) gex_Event_Test((gex_Event_t)(uintptr_t)(((uintptr_t)1 << 63) | 99));
  if (is("events-nowhere")) gex_Event_WaitAll(NULL, 3, 0);
  if (is("odd-events")) gex_Event_WaitAll(odd(none), 1, 0);
  if (is("region-not-begun")) gex_NBI_EndAccessRegion(0);
  if (is("region-nested") || is("region-and-waits")) gex_NBI_BeginAccessRegion(0);
  if (is("region-nested")) gex_NBI_BeginAccessRegion(0); /* at region-nested */
  if (is("region-and-waits")) gex_NBI_Wait(GEX_EC_PUT, 0); /* at region-and-waits */
}

static void *locks_it(void *it) {
  gex_HSL_Lock(&lock);
  return it;
}

static void locks(void) {
  pthread_t thread;
  if (!strstr(way, "lock")) return;
  if (is("unlock-free")) gex_HSL_Unlock(&lock);
  if (is("unlock-free-and-poll")) (void)(gex_HSL_Lock(&other), gex_HSL_Unlock(&lock));
  if (is("unlock-free-and-poll")) gasnet_AMPoll();
  if (is("lock-nowhere")) gex_HSL_Lock((gex_HSL_t *)0);
  if (is("lock-odd")) gex_HSL_Trylock((gex_HSL_t *)(void *)((char *)&lock + 1));
  if (is("unlock-others")) {
    CHECK(pthread_create(&thread, NULL, locks_it, NULL) == 0 && pthread_join(thread, NULL) == 0);
    gex_HSL_Unlock(&lock); /* at unlock-others */
  }
  CHECK(gex_HSL_Trylock(&lock) == GASNET_OK);
  gex_HSL_Lock(&other);
  gex_HSL_Unlock(&other);
  if (is("lock-twice")) gex_HSL_Lock(&lock);
  if (is("lock-tried-twice")) gex_HSL_Trylock(&lock);
  if (is("lock-destroyed")) gex_HSL_Destroy(&lock);
  if (is("lock-and-poll")) gasnet_AMPoll();
  if (is("lock-and-block")) GASNET_BLOCKUNTIL(acted);
  if (is("lock-and-send")) gex_AM_RequestShort0(tm, 0, 201, 0);
  if (is("lock-and-prepare")) gex_AM_PrepareRequestMedium(tm, 0, NULL, 4, 4, NULL, 0, 0);
  if (is("lock-and-put")) gex_RMA_PutBlocking(tm, 0, own, own, 4, 0);
  if (is("lock-and-get")) gasnet_get(bytes, 0, own, 4);
  if (is("lock-and-test")) gex_Event_Test(pending);
  if (is("lock-and-wait")) gex_Event_WaitSome(&pending, 1, 0);
  if (is("lock-and-wait-for-all")) gasnet_wait_syncnbi_puts();
  if (is("lock-and-meet")) gex_Coll_BarrierBlocking(tm, 0);
  gex_HSL_Unlock(&lock);
}

static void barriers(void) {
  int id;
  if (is("barrier-not-begun")) gasnet_barrier_wait(1, 0);
  if (is("barrier-tried")) gasnet_barrier_try(1, 0);
  if (is("barrier-no-result")) gasnet_barrier_result(&id);
  if (is("barrier-no-team")) gex_Coll_BarrierNB(gex_TM_Pair(ep, 0), 0);
  if (is("barrier-twice")) gasnet_barrier_notify(1, 0);
  if (is("barrier-twice")) gasnet_barrier_notify(1, 0); /* at barrier-twice */
}

#define TO_ALL(type, len, count, op) gex_Coll_ReduceToAllNB(tm, words, words, type, len, count, op, NULL, NULL, 0)
#define TO_ONE(type, len, op) gex_Coll_ReduceToOneNB(tm, 0, words, words, type, len, 1, op, NULL, NULL, 0)

static void no_sum(void *results, size_t result_count, const void *left, size_t left_count, const void *right,
                   size_t elem_size, int flags, int arg) {
  (void)results, (void)result_count, (void)left, (void)left_count, (void)right, (void)elem_size, (void)flags, (void)arg;
}

static void collectives(void) {
  gasnet_coll_fn_entry_t functions[1];
  const int local = GASNET_COLL_LOCAL | GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC;
  const gasnet_image_t images[3] = {1, 2, 1};
  int64_t words[4] = {0, 0, 0, 0};
  if (is("collective-no-team")) gex_Coll_BroadcastNB(gex_TM_Pair(ep, 0), 0, words, words, 8, 0);
  if (is("collective-no-root")) gex_Coll_BroadcastNB(tm, size, words, words, 8, 0);
  if (is("collective-nowhere")) gex_Coll_BroadcastNB(tm, 0, NULL, words, 8, 0);
  if (is("collective-overlap")) gex_Coll_BroadcastNB(tm, 0, words, words + 1, 16, 0);
  if (is("collective-own-elsewhere")) gasworks_coll_all_gather_nb(tm, words, words + 1, 8, 0);
  if (is("collective-no-type")) TO_ALL(3, 8, 1, GEX_OP_ADD);
  if (is("collective-no-operation")) TO_ALL(GEX_DT_FLT, 4, 1, GEX_OP_AND);
  if (is("collective-no-function")) TO_ONE(GEX_DT_USER, 8, GEX_OP_USER);
  if (is("collective-other-size")) TO_ALL(GEX_DT_I32, 8, 1, GEX_OP_ADD);
  if (is("collective-user-type")) TO_ALL(GEX_DT_USER, 8, 1, GEX_OP_ADD);
  if (is("collective-too-much")) TO_ALL(GEX_DT_I64, 8, SIZE_MAX / 4, GEX_OP_ADD);
  if (is("images-two")) gasnet_coll_init(images, 0, NULL, 0, 0);
  if (is("images-no-table")) gasnet_coll_init(NULL, 0, NULL, 3, 0);
  if (is("images-no-function")) gasnet_coll_reduce(tm, 0, words, words, 0, 0, 8, 1, 2, 0, local);
  functions[0].fnptr = no_sum;
  functions[0].flags = 0;
  if (is("images-too-much")) gasnet_coll_init(NULL, 0, functions, 1, 0);
  if (is("images-too-much")) gasnet_coll_reduce(tm, 0, words, words, 0, 0, SIZE_MAX, 2, 0, 0, local); /* at images-too-much */
  if (is("images-offset")) gasnet_coll_reduce(tm, 0, words, words, 0, 8, 8, 1, 0, 0, local);
  if (is("images-no-list")) gasnet_coll_broadcastM(tm, NULL, 0, words, 8, local);
  if (is("images-neither")) gasnet_coll_broadcastM(tm, NULL, 0, words, 8, local & ~GASNET_COLL_LOCAL);
  if (is("images-no-scan")) gasnet_coll_scan(tm, words, 0, 0, words, 0, 0, 8, 1, 0, 0, local);
}

/* Teams: pairs, of which the first rank makes the first two; what it does to them alone is wrong. */
static gex_TM_t pair_of_ranks = GEX_TM_INVALID;

static void make_teams(void) {
  if (strncmp(way, "team-", 5) == 0) gex_TM_Split(&pair_of_ranks, tm, (int)(me / 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}

static void teams(void) {
  gex_EP_Location_t members[2] = {{0, 0}, {1, 0}};
  gex_TM_t made, gone = pair_of_ranks;
  gex_AD_t ad = GEX_AD_INVALID;
  void *text = bytes;
  if (is("team-none-split")) gex_TM_Split(&made, GEX_TM_INVALID, 0, 0, NULL, 0, 0);
  if (is("team-pair-split")) gex_TM_Split(&made, gex_TM_Pair(ep, 0), 0, 0, NULL, 0, 0);
  if (is("team-several")) gex_TM_Create(&made, 2, tm, members, 2, NULL, 0, 0);
  if (is("team-of-nobody")) gex_TM_Create(&made, 1, tm, members, 0, NULL, 0, 0);
  members[1].gex_ep_index = 3;
  if (is("team-of-third-endpoints")) gex_TM_Create(&made, 1, tm, members, 2, NULL, 0, 0);
  members[0].gex_rank = 2;
  if (is("team-of-strangers")) gex_TM_Create(&made, 1, pair_of_ranks, members, 1, NULL, 0, GEX_FLAG_RANK_IS_JOBRANK);
  if (is("team-everyone-destroyed")) gex_TM_Destroy(tm, NULL, 0);
  if (is("team-something-destroyed")) gex_TM_Destroy((gex_TM_t)text, NULL, 0);
  if (is("team-destroyed-in-use")) gex_Coll_BarrierNB(pair_of_ranks, 0);
  if (is("team-destroyed-in-use")) gex_TM_Destroy(pair_of_ranks, NULL, GEX_FLAG_GLOBALLY_QUIESCED); /* at team-destroyed-in-use */
  if (is("team-destroyed") || is("team-destroyed-asked")) gex_TM_Destroy(gone, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
  if (is("team-destroyed")) gex_Coll_BarrierNB(gone, 0); /* at team-destroyed */
  if (is("team-destroyed-asked")) gex_TM_QueryRank(gone); /* at team-destroyed-asked */
  if (is("team-gone-under-domain")) gex_AD_Create(&ad, gone, GEX_DT_I64, GEX_OP_ADD, 0);
  if (is("team-gone-under-domain")) gex_TM_Destroy(gone, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
  if (is("team-gone-under-domain")) gex_AD_OpNB_I64(ad, NULL, 0, own, GEX_OP_ADD, 1, 0, 0); /* at team-gone-under-domain */
  if (is("team-message-to-nobody")) gex_AM_RequestShort0(pair_of_ranks, 2, 202, 0);
  if (is("team-put-to-nobody")) gex_RMA_PutBlocking(pair_of_ranks, 2, own, bytes, 4, 0);
  if (is("team-root-is-nobody")) gex_Coll_BroadcastNB(pair_of_ranks, 2, bytes, bytes, 4, 0);
  if (is("team-translates-nobody")) gex_TM_TranslateRankToJobrank(pair_of_ranks, 2);
}

static void endpoints(void) {
  gex_EP_t second, third;
  gex_Segment_t given, library;
  void *text = bytes;
  if (is("message-by-pair")) gex_AM_RequestShort0(gex_TM_Pair(ep, 5), 0, 202, 0);
  if (is("pair-past-all")) gex_RMA_PutBlocking(gex_TM_Pair(ep, 64), 0, own, bytes, 4, 0);
  if (is("segment-attached-destroyed")) gex_Segment_Destroy(segment, 0);
  if (is("segment-something-destroyed")) gex_Segment_Destroy((gex_Segment_t)text, 0);
  if (is("kind-destroyed")) gex_MK_Destroy(GEX_MK_HOST, 0);
  if (is("kind-of-nothing")) gex_MK_QueryClass(GEX_MK_INVALID);
  if (is("segment-no-client")) gex_Segment_Create(&given, (gex_Client_t)0, NULL, 4096, GEX_MK_HOST, 0);
  if (is("segment-no-kind")) gex_Segment_Create(&given, client, NULL, 4096, GEX_MK_INVALID, 0);
  if (is("segment-no-bytes")) gex_Segment_Create(&given, client, bytes, 0, GEX_MK_HOST, 0);
  if (is("endpoint-no-place")) gex_EP_Create(NULL, client, GEX_EP_CAPABILITY_RMA, 0);
  if (is("endpoint-for-messages")) gex_EP_Create(&second, client, GEX_EP_CAPABILITY_ALL, 0);
  if (strncmp(way, "bound-", 6) != 0) return;
  CHECK(gex_EP_Create(&second, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_EP_Create(&third, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
  CHECK(gex_Segment_Create(&given, client, NULL, 4096, GEX_MK_HOST, 0) == GASNET_OK);
  CHECK(gex_Segment_Create(&library, client, NULL, 4096, GEX_MK_HOST, 0) == GASNET_OK);
  if (is("bound-first")) gex_EP_BindSegment(ep, given, 0);
  CHECK(gex_EP_BindSegment(second, given, 0) == GASNET_OK);
  if (is("bound-again")) gex_EP_BindSegment(second, library, 0);
  if (is("bound-twice")) gex_EP_BindSegment(third, given, 0);
  if (is("bound-something")) gex_EP_BindSegment(third, (gex_Segment_t)text, 0);
  if (is("bound-destroyed")) gex_Segment_Destroy(given, 0);
  if (is("bound-unpublished")) gex_RMA_PutBlocking(gex_TM_Pair(ep, 1), 0, own, bytes, 4, 0);
}

#define MAKE(of, ops) gex_AD_Create(&ad, tm, of, ops, 0)
#define ADD_8(domain, place, rank, at, op, flags) gex_AD_OpNB_I64(domain, place, rank, at, op, 1, 0, flags)

static void atomics(void) {
  gex_Rank_t other = size - 1;
  gex_AD_t ad, real;
  int64_t was;
  if (!strstr(way, "atomic-")) return;
  if (is("atomic-made-nowhere")) gex_AD_Create((gex_AD_t *)0, tm, GEX_DT_I64, GEX_OP_ADD, 0);
  if (is("atomic-no-team")) gex_AD_Create(&ad, GEX_TM_INVALID, GEX_DT_I64, GEX_OP_ADD, 0);
  if (is("atomic-pair")) gex_AD_Create(&ad, gex_TM_Pair(ep, 0), GEX_DT_I64, GEX_OP_ADD, 0);
  if (is("atomic-no-type")) MAKE(GEX_DT_I64 | GEX_DT_DBL, GEX_OP_ADD);
  if (is("atomic-bits-of-numbers")) MAKE(GEX_DT_DBL, GEX_OP_ADD | GEX_OP_AND);
  if (is("atomic-user-operation")) MAKE(GEX_DT_I64, GEX_OP_USER);
  gex_AD_Create(&real, tm, GEX_DT_DBL, GEX_OP_SET | GEX_OP_GET, 0);
  MAKE(GEX_DT_I64, GEX_OP_FADD | GEX_OP_ADD | GEX_OP_GET);
  if (is("atomic-no-domain")) ADD_8(GEX_AD_INVALID, &was, 0, own, GEX_OP_FADD, 0);
  if (is("atomic-domain-of-nothing")) gex_AD_QueryDT(GEX_AD_INVALID);
  if (is("atomic-destroyed-nothing")) gex_AD_Destroy(GEX_AD_INVALID);
  if (is("atomic-team-as-domain")) ADD_8((gex_AD_t)(void *)tm, &was, 0, own, GEX_OP_FADD, 0);
  if (is("atomic-no-rank")) ADD_8(ad, &was, size, own, GEX_OP_FADD, 0);
  if (is("atomic-no-job-rank")) ADD_8(ad, &was, size, own, GEX_OP_FADD, GEX_FLAG_RANK_IS_JOBRANK);
  if (is("atomic-odd")) ADD_8(ad, &was, 0, own + 4, GEX_OP_FADD, 0);
  if (is("atomic-outside")) gex_AD_OpNBI_I64(ad, NULL, 0, own + GASNET_PAGESIZE, GEX_OP_ADD, 1, 0, 0);
  if (is("atomic-other-operation")) ADD_8(ad, &was, 0, own, GEX_OP_FSUB, 0);
  if (is("atomic-two-operations")) ADD_8(ad, &was, 0, own, GEX_OP_FADD | GEX_OP_ADD, 0);
  if (is("atomic-operation-of-integers")) gex_AD_OpNB_DBL(real, NULL, 0, own, GEX_OP_AND, 1, 0, 0);
  if (is("atomic-other-type")) gex_AD_OpNB_DBL(ad, NULL, 0, own, GEX_OP_ADD, 1, 0, 0);
  if (is("atomic-no-result")) ADD_8(ad, NULL, 0, own, GEX_OP_FADD, 0);
  if (is("atomic-not-mine")) ADD_8(ad, &was, other, own, GEX_OP_GET, GEX_FLAG_AD_MY_RANK);
  gex_AD_Destroy(ad);
  if (is("atomic-destroyed")) ADD_8(ad, &was, 0, own, GEX_OP_FADD, 0);
  if (is("atomic-destroyed-twice")) gex_AD_Destroy(ad);
}

/* Of scattered transfers. */
static void scattered(void) {
  const ptrdiff_t far[] = {GASNET_PAGESIZE}, near[] = {1};
  const size_t two[] = {2};
  gex_Memvec_t from, to;
  void *there, *nowhere[1] = {NULL};
  CHECK(gex_Segment_QueryBound(tm, 1, &there, NULL, NULL) == 0);
  from.gex_addr = bytes;
  from.gex_len = 4;
  to.gex_addr = there;
  to.gex_len = 3;
  if (is("scattered-no-rank")) gex_VIS_StridedPutBlocking(tm, size, there, near, bytes, near, 1, two, 1, 0);
  if (is("scattered-outside")) gex_VIS_StridedPutBlocking(tm, 1, there, far, bytes, near, 1, two, 1, 0);
  if (is("scattered-unequal")) gex_VIS_VectorPutNB(tm, 1, 1, &to, 1, &from, 0);
  if (is("scattered-nowhere")) gex_VIS_IndexedGetNBI(tm, 1, nowhere, 4, 1, 1, &there, 4, 0);
  if (is("scattered-no-list")) gex_VIS_VectorGetBlocking(tm, 1, NULL, 1, 1, &to, 0);
  if (is("scattered-completion")) gex_VIS_SetPeerCompletionHandler(201, bytes, 128, 0);
}

/* Nobody waits for what will not come. */
static void serve(void) {
  /* at no-such-handler, wrong-count, handler-keeps-lock, handler-leaves-prepared */ for (;; usleep(500)) gasnet_AMPoll();
}

/* Who does what is wrong; whether it has an event then that pends. */
static gex_Rank_t doer(void) { return strncmp(way, "handler-", 8) == 0 ? size - 1 : 0; }
static int is_pending(void) { return doer() != 0 || strncmp(way, "lock-and-", 9) == 0; }

/* The others come to that barrier once what is wrong was done. */
static void join(void) {
  unsigned char *told = own + GASNET_PAGESIZE - 1;
  gex_Rank_t rank;
  void *there;
  if (me == doer()) {
    if (me != 0) GASNET_BLOCKUNTIL(acted);
    for (rank = 0; rank < size; rank++) {
      CHECK(gex_Segment_QueryBound(tm, rank, &there, NULL, NULL) == 0);
      if (rank != me) gex_RMA_PutBlockingVal(tm, rank, (char *)there + GASNET_PAGESIZE - 1, 99, 1, 0);
    }
  } else {
    GASNET_BLOCKUNTIL(*(volatile unsigned char *)told == 99);
    *told = (unsigned char)(me + 1);
    pending = gex_Coll_BarrierNB(tm, 0);
  }
  gex_Event_Wait(pending);
}

/* The others' memory is none the worse for what the first rank did, and everything works. */
static void intact(void) {
  gex_Rank_t next = (me + 1) % size;
  void *there;
  size_t i;
  if (is_pending()) join();
  gex_Coll_BarrierBlocking(tm, 0);
  for (i = 0; i < GASNET_PAGESIZE; i++) CHECK(me == 0 || own[i] == (unsigned char)(me + 1));
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(gex_Segment_QueryBound(tm, next, &there, NULL, NULL) == 0);
  gex_RMA_PutBlockingVal(tm, next, there, 77, 1, 0);
  answered = 0;
  gex_AM_RequestShort0(tm, next, 201, 0);
  GASNET_BLOCKUNTIL(answered);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(own[0] == 77);
  gasnet_exit(0);
}

int main(int argc, char **argv) {
  if (argc > 1) way = argv[1];
  if (is("before-init")) gasnet_AMPoll();
  if (is("exit-before-init")) gasnet_exit(9);
  if (is("put-before-init")) gasnet_put(0, bytes, bytes, 4);
  if (is("init-no-place")) gex_Client_Init(&client, &ep, NULL, "ends", &argc, &argv, 0);
  CHECK(gex_Client_Init(&client, &ep, &tm, "ends", &argc, &argv, 0) == GASNET_OK);
  me = gex_System_QueryJobRank();
  size = gex_System_QueryJobSize();
  if (is("exit-before-attach")) {
    if (me == 0) gasnet_exit(5);
    serve();
  }
  CHECK(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, is("outside-nothing") && me == 1 ? 0 : GASNET_PAGESIZE) == GASNET_OK);
  if (is("return")) return me == 0 ? 3 : 0;
  if (is("exit")) exit(me == 0 ? 4 : 0);
  if (is("all-well")) gasnet_exit(0);
  own = (unsigned char *)gex_Segment_QueryAddr(segment);
  memset(own, (int)me + 1, gex_Segment_QuerySize(segment));
  if (is("exit-by-all") || (me == 0 && strstr(way, "-chosen"))) signal(SIGQUIT, quits);
  make_teams();
  gex_Coll_BarrierBlocking(tm, 0);
  if (me == doer() && is_pending()) pending = gex_Coll_BarrierNB(tm, 0);
  if (is("exit-by-all")) gasnet_exit(6);
  if (me == 0) {
    ends_otherwise();
    if (is("in-a-handler")) gex_AM_RequestShort0(tm, size - 1, 200, 0);
    if (doer() != 0) gex_AM_RequestShort0(tm, doer(), 203, 0);
    objects();
    messages();
    negotiated();
    memory();
    events();
    locks();
    barriers();
    collectives();
    teams();
    endpoints();
    atomics();
    scattered();
  }
  if (argc > 2) intact();
  serve();
}
