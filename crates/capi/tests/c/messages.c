/* Active messages: all categories, 0 to 16 arguments, replies, negotiated payload, tokens, handlers that take several kinds, locks. */
#include <gasnetex.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size, next;
static unsigned char *own, *there;
static int answers, sums, heard;
/* What a rank sends to itself is answered in the call. */
#define ANSWERED(times)                      \
  do {                                       \
    if (next == me) CHECK(answers == times); \
    GASNET_BLOCKUNTIL(answers == times);     \
  } while (0)
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static int guarded;

enum { COUNT0 = 130, COUNT16 = 131, COUNTED = 132, ECHO = 133, ECHOED = 134, STORE = 135, STORED = 136, BOTH = 137 };

static void counted(gex_Token_t token, gex_AM_Arg_t sum) {
  gex_Token_Info_t info;
  gex_TI_t known = gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK(known == GEX_TI_ALL && !info.gex_is_req && !info.gex_is_long && info.gex_srcrank == next);
  CHECK(info.gex_ep == ep && info.gex_entry->gex_index == COUNTED && info.gex_entry->gex_cdata == &answers);
  sums += sum;
  gex_HSL_Lock(&lock);
  guarded++;
  gex_HSL_Unlock(&lock);
  answers++;
}

static void count0(gex_Token_t token) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_IS_REQ) == (GEX_TI_SRCRANK | GEX_TI_IS_REQ));
  CHECK(info.gex_is_req && info.gex_srcrank < size);
  CHECK(gex_AM_ReplyShort(token, COUNTED, 0, 1) == 0);
}

static void count16(gex_Token_t token, gex_AM_Arg_t a0, gex_AM_Arg_t a1, gex_AM_Arg_t a2, gex_AM_Arg_t a3,
                    gex_AM_Arg_t a4, gex_AM_Arg_t a5, gex_AM_Arg_t a6, gex_AM_Arg_t a7, gex_AM_Arg_t a8,
                    gex_AM_Arg_t a9, gex_AM_Arg_t a10, gex_AM_Arg_t a11, gex_AM_Arg_t a12, gex_AM_Arg_t a13,
                    gex_AM_Arg_t a14, gex_AM_Arg_t a15) {
  CHECK(a0 == -1 && a1 == 1 && a2 == 2 && a3 == 3 && a4 == 4 && a5 == 5 && a6 == 6 && a7 == 7);
  CHECK(a8 == 8 && a9 == 9 && a10 == 10 && a11 == 11 && a12 == 12 && a13 == 13 && a14 == 14 && a15 == 15);
  CHECK(gex_AM_ReplyShort1(token, COUNTED, 0, 16) == 0);
}

static int good(const unsigned char *bytes, size_t len, int value) {
  size_t i;
  for (i = 0; i < len; i++)
    if (bytes[i] != (unsigned char)(value + i)) return 0;
  return 1;
}

static void echo(gex_Token_t token, void *buffer, size_t len, gex_AM_Arg_t value) {
  CHECK((uintptr_t)buffer % 16 == 0 && good((unsigned char *)buffer, len, value));
  CHECK(gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 2) >= len);
  CHECK(gex_AM_ReplyMedium(token, ECHOED, buffer, len, GEX_EVENT_NOW, 0, value, (gex_AM_Arg_t)len) == 0);
}

static void echoed(gex_Token_t token, void *buffer, size_t len, gex_AM_Arg_t value, gex_AM_Arg_t said) {
  (void)token;
  CHECK(len == (size_t)said && good((unsigned char *)buffer, len, value));
  answers++;
}

static void store(gex_Token_t token, void *place, size_t len, gex_AM_Arg_t value, gex_AM_Arg_t low, gex_AM_Arg_t high) {
  unsigned char *back = (unsigned char *)(((uintptr_t)(uint32_t)high << 32) | (uint32_t)low);
  CHECK((unsigned char *)place == own + 64 && good((unsigned char *)place, len, value));
  CHECK(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 1) >= len);
  CHECK(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 1) <= INT_MAX);
  CHECK(gex_AM_ReplyLong(token, STORED, place, len, back, GEX_EVENT_NOW, 0, value) == 0);
}

static void stored(gex_Token_t token, void *place, size_t len, gex_AM_Arg_t value) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_IS_LONG) == GEX_TI_IS_LONG && info.gex_is_long);
  CHECK((unsigned char *)place == own + 8192 && good((unsigned char *)place, len, value));
  answers++;
}

/* Of Mediums and Longs, requests and replies. */
static void both(gex_Token_t token, void *place, size_t len, gex_AM_Arg_t left) {
  gex_Token_Info_t info;
  (void)gex_Token_Info(token, &info, GEX_TI_ALL);
  CHECK(good((unsigned char *)place, len, 5));
  heard += 1 + info.gex_is_long;
  if (info.gex_is_req) {
    gex_AM_SrcDesc_t reply = gex_AM_PrepareReplyMedium(token, NULL, 10, 20, NULL, 0, 1);
    unsigned char *room = (unsigned char *)gex_AM_SrcDescAddr(reply);
    size_t i;
    CHECK(gex_AM_SrcDescSize(reply) >= 10 && gex_AM_SrcDescSize(reply) <= 20);
    for (i = 0; i < 10; i++) room[i] = (unsigned char)(5 + i);
    gex_AM_CommitReplyMedium(reply, BOTH, 10, left);
  } else {
    answers++;
  }
}

static gex_AM_Entry_t table[] = {
    {COUNT0, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "count0"},
    {COUNT16, (gex_AM_Fn_t)count16, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 16, NULL, "count16"},
    {COUNTED, (gex_AM_Fn_t)counted, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, (const void *)&answers, "counted"},
    {ECHO, (gex_AM_Fn_t)echo, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "echo"},
    {ECHOED, (gex_AM_Fn_t)echoed, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 2, NULL, "echoed"},
    {STORE, (gex_AM_Fn_t)store, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, "store"},
    {STORED, (gex_AM_Fn_t)stored, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 1, NULL, "stored"},
    {BOTH, (gex_AM_Fn_t)both, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 1, NULL, "both"},
    {0, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
};

static void shorts(void) {
  int i, before = guarded;
  for (i = 0; i < 100; i++) {
    answers = sums = 0;
    CHECK(gex_AM_RequestShort0(tm, next, COUNT0, 0) == 0);
    CHECK(gex_AM_RequestShort(tm, next, table[8].gex_index, 0) == 0);
    CHECK(gex_AM_RequestShort(tm, next, COUNT16, 0, -1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) == 0);
    ANSWERED(3);
    CHECK(sums == 18);
  }
  while (gex_AM_RequestShort0(tm, next, COUNT0, GEX_FLAG_IMMEDIATE) != 0) gasnet_AMPoll();
  ANSWERED(4);
  CHECK(guarded - before == 301);
}

static void payloads(void) {
  static const size_t lens[] = {0, 1, 63, 512, 4000};
  unsigned char *bytes = (unsigned char *)malloc(8192);
  uintptr_t back = (uintptr_t)(own + 8192);
  size_t i, j;
  for (i = 0; i < sizeof lens / sizeof *lens; i++) {
    int value = (int)i * 3;
    gex_Event_t freed = GEX_EVENT_NO_OP;
    gex_AM_SrcDesc_t source;
    for (j = 0; j < 8192; j++) bytes[j] = (unsigned char)(value + j);
    answers = 0;
    CHECK(gex_AM_RequestMedium(tm, next, ECHO, bytes, lens[i], GEX_EVENT_NOW, 0, value) == 0);
    CHECK(gex_AM_RequestMedium1(tm, next, ECHO, bytes, lens[i], GEX_EVENT_GROUP, 0, value) == 0);
    CHECK(gex_AM_RequestMedium1(tm, next, ECHO, bytes, lens[i], &freed, 0, value) == 0);
    gex_Event_Wait(freed);
    gex_NBI_Wait(GEX_EC_AM, 0);
    source = gex_AM_PrepareRequestMedium(tm, next, NULL, lens[i], lens[i], NULL, 0, 1);
    CHECK(gex_AM_SrcDescSize(source) == lens[i]);
    memcpy(gex_AM_SrcDescAddr(source), bytes, lens[i]);
    gex_AM_CommitRequestMedium1(source, ECHO, lens[i], value);
    source = gex_AM_PrepareRequestMedium(tm, next, bytes, 0, lens[i], GEX_EVENT_NOW, 0, 1);
    CHECK(gex_AM_SrcDescAddr(source) == bytes);
    CHECK(gex_AM_CommitRequestMedium1_v2(source, ECHO, lens[i], 0, value) == 0);
    source = gex_AM_PrepareRequestMedium(tm, next, NULL, 0, 100, NULL, 0, 3);
    CHECK(gex_AM_CancelRequestMedium(source, 0) == 0);
    ANSWERED(5);
    CHECK(gex_AM_RequestLong(tm, next, STORE, bytes, lens[i], there + 64, GEX_EVENT_NOW, 0, value,
                             (gex_AM_Arg_t)(uint32_t)back, (gex_AM_Arg_t)(uint32_t)(back >> 32)) == 0);
    ANSWERED(6);
    source = gex_AM_PrepareRequestLong(tm, next, NULL, lens[i], lens[i], there + 64, NULL, 0, 3);
    memcpy(gex_AM_SrcDescAddr(source), bytes, lens[i]);
    gex_AM_CommitRequestLong(source, STORE, lens[i], there + 64, value, (gex_AM_Arg_t)(uint32_t)back,
                             (gex_AM_Arg_t)(uint32_t)(back >> 32));
    ANSWERED(7);
    gex_Coll_BarrierBlocking(tm, 0);
  }
  for (j = 0; j < 8192; j++) bytes[j] = (unsigned char)(5 + j);
  answers = heard = 0;
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(gex_AM_RequestMedium1(tm, next, BOTH, bytes, 100, GEX_EVENT_NOW, 0, 0) == 0);
  CHECK(gex_AM_RequestLong1(tm, next, BOTH, bytes, 100, there + 1000, GEX_EVENT_NOW, 0, 0) == 0);
  ANSWERED(2);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(heard == 5);
  free(bytes);
}

/* A Long that is longer than a message, made in the library's memory before it is known where it lands. */
static void large(void) {
  const size_t most = 150000;
  gex_AM_SrcDesc_t source;
  unsigned char *room;
  size_t i;
  answers = heard = 0;
  gex_Coll_BarrierBlocking(tm, 0);
  source = gex_AM_PrepareRequestLong(tm, next, NULL, most, most, NULL, NULL, 0, 1);
  room = (unsigned char *)gex_AM_SrcDescAddr(source);
  CHECK(gex_AM_SrcDescSize(source) == most);
  for (i = 0; i < most; i++) room[i] = (unsigned char)(5 + i);
  gex_AM_CommitRequestLong1(source, BOTH, most, there + 65536, 0);
  ANSWERED(1);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(heard == 3);
}

static void limits(void) {
  CHECK(gex_AM_MaxArgs() == 16 && gex_AM_LUBRequestMedium() >= 512 && gex_AM_LUBReplyLong() >= 512);
  CHECK(gex_AM_MaxRequestMedium(tm, next, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBRequestMedium());
  CHECK(gex_AM_MaxReplyMedium(tm, GEX_RANK_INVALID, NULL, 0, 0) >= gex_AM_LUBReplyMedium());
  CHECK(gex_AM_MaxRequestLong(tm, next, GEX_EVENT_NOW, 0, 16) >= gex_AM_LUBRequestLong());
  /* Programs keep them in an int. */
  CHECK(gex_AM_MaxRequestLong(tm, next, GEX_EVENT_NOW, 0, 0) <= INT_MAX && gex_AM_LUBRequestLong() <= INT_MAX);
  CHECK(gex_AM_MaxReplyLong(tm, next, GEX_EVENT_NOW, 0, 0) <= INT_MAX && gex_AM_LUBReplyLong() <= INT_MAX);
}

static void wrong_tables(void) {
  gex_AM_Entry_t taken = {COUNT0, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "twice"};
  gex_AM_Entry_t low = {5, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "low"};
  gex_AM_Entry_t many = {200, (gex_AM_Fn_t)count0, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 17, NULL, "many"};
  gex_AM_Entry_t none = {200, (gex_AM_Fn_t)count0, GEX_FLAG_AM_REQUEST, 0, NULL, "none"};
  gex_AM_Entry_t nothing = {200, NULL, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "nothing"};
  gex_AM_Entry_t *wrong[] = {&taken, &low, &many, &none, &nothing};
  size_t i;
  gex_System_SetVerboseErrors(0);
  for (i = 0; i < sizeof wrong / sizeof *wrong; i++)
    CHECK(gex_EP_RegisterHandlers(ep, wrong[i], 1) == GASNET_ERR_BAD_ARG);
  gex_System_SetVerboseErrors(1);
}

int main(int argc, char **argv) {
  void *owner;
  int i;
  /* They may be asked before there is a job, and stay as they are. */
  const size_t bounds[4] = {gex_AM_LUBRequestMedium(), gex_AM_LUBReplyMedium(), gex_AM_LUBRequestLong(), gex_AM_LUBReplyLong()};
  CHECK(gex_Client_Init(&client, &ep, &tm, "messages", &argc, &argv, 0) == GASNET_OK);
  CHECK(bounds[0] >= 512 && bounds[0] == gex_AM_LUBRequestMedium() && bounds[1] == gex_AM_LUBReplyMedium());
  CHECK(bounds[2] >= 512 && bounds[2] == gex_AM_LUBRequestLong() && bounds[3] == gex_AM_LUBReplyLong());
  me = gex_System_QueryJobRank();
  size = gex_System_QueryJobSize();
  next = (me + 1) % size;
  CHECK(gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof *table) == GASNET_OK);
  CHECK(table[8].gex_index == 255);
  wrong_tables();
  CHECK(gex_Segment_Attach(&segment, tm, 64 * (size_t)GASNET_PAGESIZE) == GASNET_OK);
  own = (unsigned char *)gex_Segment_QueryAddr(segment);
  CHECK(gex_Segment_QueryBound(tm, next, &owner, NULL, NULL) == 0);
  there = (unsigned char *)owner;
  for (i = 0; i < 2; i++) {
    shorts();
    gex_Coll_BarrierBlocking(tm, 0);
    payloads();
    large();
    next = me;
    there = own;
  }
  limits();
  gex_HSL_Destroy(&lock);
  DONE("messages");
  return 0;
}
