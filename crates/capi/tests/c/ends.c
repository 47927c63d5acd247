/* One way for a job to end, or one thing that is wrong, by the name that it is called with. */
#include <gasnetex.h>

#include "check.h"

static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me;

static void end(gex_Token_t token) {
  (void)token;
  gasnet_exit(7);
}
static void twice(gex_Token_t token) {
  gex_AM_ReplyShort0(token, 202, 0);
  gex_AM_ReplyShort0(token, 202, 0);
}
static void poll(gex_Token_t token) {
  (void)token;
  gasnet_AMPoll();
}
static void nothing(gex_Token_t token) { (void)token; }
static gex_AM_Entry_t table[] = {
    {200, (gex_AM_Fn_t)end, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "end"},
    {201, (gex_AM_Fn_t)twice, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "twice"},
    {202, (gex_AM_Fn_t)nothing, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "nothing"},
    {203, (gex_AM_Fn_t)poll, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "poll"},
};

static int is(const char *way, const char *name) { return strcmp(way, name) == 0; }

/* Nobody waits for what will not come. */
static void serve(void) {
  for (;;) gasnet_AMPoll();
}

int main(int argc, char **argv) {
  gex_Client_t client;
  const char *way = argc > 1 ? argv[1] : "";
  int byte = 0;
  if (is(way, "before-init")) gasnet_AMPoll();
  CHECK(gex_Client_Init(&client, &ep, &tm, "ends", &argc, &argv, 0) == GASNET_OK);
  me = gex_System_QueryJobRank();
  if (is(way, "exit-before-attach")) {
    if (me == 0) gasnet_exit(5);
    serve();
  }
  if (is(way, "init-twice")) gex_Client_Init(&client, &ep, &tm, "ends", &argc, &argv, 0);
  CHECK(gex_EP_RegisterHandlers(ep, table, 4) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE) == GASNET_OK);
  if (is(way, "return")) return me == 0 ? 3 : 0;
  if (is(way, "exit")) exit(me == 0 ? 4 : 0);
  if (is(way, "all-well")) gasnet_exit(0);
  if (me == 0) {
    if (is(way, "in-a-handler")) gex_AM_RequestShort0(tm, gex_System_QueryJobSize() - 1, 200, 0);
    if (is(way, "reply-twice")) gex_AM_RequestShort0(tm, gex_System_QueryJobSize() - 1, 201, 0);
    if (is(way, "poll-in-a-handler")) gex_AM_RequestShort0(tm, gex_System_QueryJobSize() - 1, 203, 0);
    if (is(way, "no-such-rank")) gex_RMA_PutBlocking(tm, 1000, &byte, &byte, 4, 0);
    if (is(way, "no-such-team")) gex_RMA_PutBlocking(NULL, 0, &byte, &byte, 4, 0);
    if (is(way, "outside")) gex_RMA_PutBlocking(tm, 0, (char *)gex_Segment_QueryAddr(segment) + 4093, &byte, 4, 0);
    if (is(way, "not-in-the-segment")) gex_RMA_GetBlocking(tm, &byte, 0, &byte, 4, 0);
    if (is(way, "no-such-handler")) gex_AM_RequestShort0(tm, 0, 210, 0), serve();
    if (is(way, "wrong-count")) gex_AM_RequestShort1(tm, 0, 203, 0, 1), serve();
    if (is(way, "too-long")) gex_AM_RequestMedium0(tm, 0, 203, &byte, (size_t)1 << 30, GEX_EVENT_NOW, 0);
    if (is(way, "no-event")) gex_Event_Wait(GEX_EVENT_NO_OP);
    if (is(way, "no-such-event")) gex_Event_Wait((gex_Event_t)(uintptr_t)0x123456789abcdefu);
    if (is(way, "committed-for-nothing")) gex_AM_CommitRequestMedium0(GEX_AM_SRCDESC_NO_OP, 203, 0);
  }
  serve();
}
