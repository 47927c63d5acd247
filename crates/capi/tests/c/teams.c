/* Teams in the forms in which runtimes make and use them: asked for their scratch, split and created, with members that get none; ranks
 * translated; messages, puts, gets, barriers and collectives on them, several at once; teams of teams; destroyed, again and again. */
#include <gasnetex.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size;
static unsigned char *own;

enum { PING = 200, PONG, FILLED, LANDED };
static volatile int pings, pongs;

static void pong(gex_Token_t token, gex_AM_Arg_t arg) {
  (void)token;
  CHECK(arg == 11);
  pongs = pongs + 1;
}
static void ping(gex_Token_t token, gex_AM_Arg_t arg) {
  pings = pings + 1;
  gex_AM_ReplyShort1(token, PONG, 0, arg + 1);
}
static void filled(gex_Token_t token, void *at, size_t len, gex_AM_Arg_t arg) {
  (void)token;
  CHECK(len == 100 && ((unsigned char *)at)[99] == (unsigned char)arg);
  pings = pings + 1;
}

/* A put, a get and messages to each member of a team, and what comes of them. */
static void talks(gex_TM_t team) {
  gex_Rank_t i, count = gex_TM_QuerySize(team), mine = gex_TM_QueryRank(team);
  unsigned char bytes[100];
  int before = pings, answers = pongs;
  gex_Coll_BarrierBlocking(team, 0);
  for (i = 0; i < count; i++) {
    void *there, *local;
    uintptr_t len;
    uint64_t word = 1000 * (uint64_t)mine + i;
    gex_AM_SrcDesc_t source;
    CHECK(gex_Segment_QueryBound(team, i, &there, &local, &len) == 0 && len == 65536);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, i, &there, &local, &len, 0));
    CHECK(gex_RMA_PutBlocking(team, i, (char *)there + 8 * mine, &word, 8, 0) == 0);
    CHECK(gex_RMA_GetBlockingVal(team, i, (char *)there + 8 * mine, 8, 0) == word);
    gex_Event_Wait(gex_RMA_PutNB(team, i, (char *)there + 4096 + 8 * mine, &word, 8, GEX_EVENT_NOW, 0));
    word = 0;
    gex_Event_Wait(gex_RMA_GetNB(team, &word, i, (char *)there + 4096 + 8 * mine, 8, 0));
    CHECK(word == 1000 * (uint64_t)mine + i);
    gex_AM_RequestShort1(team, i, PING, 0, 10);
    CHECK(gex_AM_MaxRequestMedium(team, i, GEX_EVENT_NOW, 0, 1) >= 512);
    memset(bytes, 5, 100);
    gex_AM_RequestMedium1(team, i, FILLED, bytes, 100, GEX_EVENT_NOW, 0, 5);
    source = gex_AM_PrepareRequestMedium(team, i, NULL, 100, 100, NULL, 0, 1);
    memset(gex_AM_SrcDescAddr(source), 6, 100);
    gex_AM_CommitRequestMedium1(source, FILLED, 100, 6);
    gex_AM_RequestLong1(team, i, FILLED, bytes, 100, (char *)there + 8192 + 128 * mine, GEX_EVENT_NOW, 0, 5);
  }
  CHECK(gex_AM_MaxRequestMedium(team, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 1) >= 512);
  GASNET_BLOCKUNTIL(pongs == answers + (int)count);
  GASNET_BLOCKUNTIL(pings == before + 4 * (int)count);
  gex_Coll_BarrierBlocking(team, 0);
}

/* Collectives and barriers, several under way. */
static void meets(gex_TM_t team) {
  gex_Rank_t count = gex_TM_QuerySize(team), mine = gex_TM_QueryRank(team), root;
  for (root = 0; root < count; root++) {
    uint32_t value = mine == root ? 77 + root : 0, bits = 0, all = 1u << mine, sum = 0, one = mine + 1;
    gex_Event_t events[5];
    events[0] = gex_Coll_BroadcastNB(team, root, &value, &value, sizeof(value), 0);
    events[1] = gex_Coll_BarrierNB(team, 0);
    events[2] = gex_Coll_ReduceToAllNB(team, &bits, &all, GEX_DT_U32, 4, 1, GEX_OP_OR, NULL, NULL, 0);
    events[3] = gex_Coll_BarrierNB(team, 0);
    events[4] = gex_Coll_ReduceToOneNB(team, root, &sum, &one, GEX_DT_U32, 4, 1, GEX_OP_ADD, NULL, NULL, 0);
    gex_Event_WaitAll(events, 5, 0);
    CHECK(value == 77 + root && bits == (1u << count) - 1 && sum == (mine == root ? count * (count + 1) / 2 : 0));
  }
}

static gex_TM_t split(gex_TM_t parent, int color, int key) {
  gex_TM_t team = GEX_TM_INVALID;
  size_t len = gex_TM_Split(&team, parent, color, key, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
  CHECK(len > 0 && len <= 4096 && team == GEX_TM_INVALID);
  gex_TM_Split(&team, parent, color, key, own + 32768, len, 0);
  CHECK(team != GEX_TM_INVALID && team != parent && gex_TM_QueryEP(team) == ep && gex_TM_QueryClient(team) == client);
  return team;
}

static void destroy(gex_TM_t team, const void *scratch, gex_Flags_t flags) {
  gex_Memvec_t memory = {NULL, 0};
  int has = gex_TM_Destroy(team, &memory, flags);
  CHECK(has == (scratch != NULL) && memory.gex_addr == scratch && (memory.gex_len > 0) == (scratch != NULL));
}

/* Who waits for a broadcast of somebody that waits for the second of two barriers has come to both. */
static void in_turn(gex_TM_t team) {
  gex_Rank_t root = gex_TM_QuerySize(team) - 1;
  uint32_t value = 7;
  gex_Event_t first, second;
  gex_Coll_BarrierBlocking(team, 0);
  first = gex_Coll_BarrierNB(team, 0);
  second = gex_Coll_BarrierNB(team, 0);
  if (gex_TM_QueryRank(team) == root) gex_Event_Wait(second);
  gex_Event_Wait(gex_Coll_BroadcastNB(team, root, &value, &value, sizeof(value), 0));
  gex_Event_Wait(first);
  if (gex_TM_QueryRank(team) != root) gex_Event_Wait(second);
}

/* Backwards: each is where the last was, and those are the job's ranks. */
static void backwards(void) {
  static int own_data;
  gex_TM_t team = split(tm, 7, -(int)me), twice;
  gex_Rank_t i;
  CHECK(gex_TM_QuerySize(team) == size && gex_TM_QueryRank(team) == size - 1 - me);
  for (i = 0; i < size; i++) {
    gex_EP_Location_t there = gex_TM_TranslateRankToEP(team, i, 0);
    CHECK(gex_TM_TranslateRankToJobrank(team, i) == size - 1 - i && gex_TM_TranslateJobrankToRank(team, size - 1 - i) == i);
    CHECK(there.gex_rank == size - 1 - i && there.gex_ep_index == 0);
  }
  CHECK(gex_TM_TranslateJobrankToRank(team, size) == GEX_RANK_INVALID);
  CHECK(gex_TM_QueryCData(team) == NULL);
  gex_TM_SetCData(team, &own_data);
  CHECK(gex_TM_QueryCData(team) == &own_data && gex_TM_QueryCData(tm) == NULL);
  talks(team);
  meets(team);
  /* The order of a split of it is its own order. */
  twice = split(team, 0, 0);
  CHECK(gex_TM_QueryRank(twice) == size - 1 - me);
  meets(twice);
  destroy(twice, own + 32768, 0);
  gex_Coll_BarrierBlocking(team, 0);
  destroy(team, own + 32768, GEX_FLAG_GLOBALLY_QUIESCED);
}

/* Two teams, or one where there is one rank, and barriers of all at once. */
static void halves(void) {
  gex_TM_t half = split(tm, (int)(me % 2), (int)me), quarter, none = GEX_TM_INVALID;
  gex_Event_t events[3];
  CHECK(gex_TM_QuerySize(half) == (size + 1 - me % 2) / 2 && gex_TM_QueryRank(half) == me / 2);
  events[0] = gex_Coll_BarrierNB(half, 0);
  events[1] = gex_Coll_BarrierNB(tm, 0);
  events[2] = gex_Coll_BarrierNB(half, 0);
  gex_Event_WaitAll(events, 3, 0);
  talks(half);
  meets(half);
  meets(tm);
  in_turn(half);
  in_turn(tm);
  quarter = split(half, (int)(me / 2 % 2), 0);
  meets(quarter);
  meets(half);
  destroy(quarter, own + 32768, 0);
  /* The first of a half gets none of its teams, by a null in both calls. */
  if (gex_TM_QueryRank(half) == 0) {
    CHECK(gex_TM_Split(NULL, half, 0, 0, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED) > 0);
    gex_TM_Split(NULL, half, 0, 0, NULL, 0, 0);
  } else {
    gex_TM_Split(&none, half, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_QuerySize(none) == gex_TM_QuerySize(half) - 1 && gex_TM_QueryRank(none) == gex_TM_QueryRank(half) - 1);
    talks(none);
    destroy(none, NULL, 0);
  }
  destroy(half, own + 32768, 0);
}

/* Lists of members: all odd ranks of the job, in an order that is no stride's, make one while the even ones make another; then some make none. */
static void lists(void) {
  gex_EP_Location_t members[64];
  gex_Addr_t scratch[1];
  gex_TM_t team = GEX_TM_INVALID;
  gex_Flags_t flags = GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK;
  size_t count = 0, len, i;
  gex_Rank_t rank;
  for (rank = me % 2; rank < size; rank += 2) {
    members[count].gex_rank = rank;
    members[count++].gex_ep_index = 0;
  }
  /* The first goes last. */
  for (i = 0; i + 1 < count; i++) {
    gex_EP_Location_t first = members[i];
    members[i] = members[i + 1];
    members[i + 1] = first;
  }
  len = gex_TM_Create(&team, 1, tm, members, count, NULL, 0, flags | GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
  CHECK(len > 0 && team == GEX_TM_INVALID);
  scratch[0] = own + 40000;
  gex_TM_Create(&team, 1, tm, members, count, scratch, len, flags);
  CHECK(gex_TM_QuerySize(team) == count && gex_TM_TranslateRankToJobrank(team, (gex_Rank_t)count - 1) == me % 2);
  CHECK(members[gex_TM_QueryRank(team)].gex_rank == me);
  talks(team);
  meets(team);
  destroy(team, own + 40000, 0);
  /* By their numbers in the old team, with one that makes none. */
  team = GEX_TM_INVALID;
  for (i = 0; i + 1 < size; i++) {
    members[i].gex_rank = (gex_Rank_t)(size - 1 - i);
    members[i].gex_ep_index = 0;
  }
  if (me == 0 || size == 1) {
    gex_TM_Create(NULL, 0, tm, NULL, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  } else {
    gex_TM_Create(&team, 1, tm, members, size - 1, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_QueryRank(team) == size - 1 - me);
    talks(team);
    destroy(team, NULL, 0);
  }
}

int main(int argc, char **argv) {
  gex_AM_Entry_t handlers[] = {
      {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL, "ping"},
      {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 1, NULL, "pong"},
      {FILLED, (gex_AM_Fn_t)filled, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDLONG, 1, NULL, "filled"},
  };
  gex_TM_t before = GEX_TM_INVALID;
  int again;
  CHECK(gex_Client_Init(&client, &ep, &tm, "teams", &argc, &argv, 0) == GASNET_OK);
  CHECK(gex_EP_RegisterHandlers(ep, handlers, 3) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  CHECK(size <= 64);
  /* Before there is a segment; it is used when there is one. */
  gex_TM_Split(&before, tm, 0, (int)((me + 2) % size), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  CHECK(before != GEX_TM_INVALID);
  CHECK(gex_Segment_Attach(&segment, tm, 65536) == GASNET_OK);
  own = (unsigned char *)gex_Segment_QueryAddr(segment);
  talks(before);
  destroy(before, NULL, 0);
  backwards();
  halves();
  lists();
  for (again = 0; again < 200; again++) {
    gex_TM_t team = split(tm, 0, (int)(me * 7 % 5));
    gex_Coll_BarrierBlocking(team, 0);
    destroy(team, own + 32768, again % 2 ? GEX_FLAG_GLOBALLY_QUIESCED : 0);
  }
  DONE("teams");
  gasnet_exit(0);
  return 0;
}
