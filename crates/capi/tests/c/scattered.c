/* Scattered put and get in the forms in which runtimes call them: vectors, indexed blocks and strided arrays, blocking, with an event and its leaf
 * and implicit, of GASNet-EX and of GASNet-1; nothing in all ways; and handlers that run where a put has arrived. */
#include <gasnet.h>
#include <gasnetex.h>
#include <string.h>

#include "check.h"

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, size, next;

enum { ROOM = 1 << 20, ROWS = 40, COLUMNS = 30, ARRIVED = 200, ASKED = 201, ROUNDS = 3 };

/* This rank's part of the next one's memory, which nobody else touches. */
static double *there;
static double here[ROWS * COLUMNS], back[ROWS * COLUMNS];
static volatile int arrived, asked;

static double value(int round, size_t at) { return round * 1e6 + me * 1e4 + (double)at; }

static void fill(int round) {
  size_t at;
  for (at = 0; at < ROWS * COLUMNS; at++) {
    here[at] = value(round, at);
    back[at] = -1;
  }
}

static void on_arrived(gex_Token_t token, void *bytes, size_t len) {
  gex_Token_Info_t info;
  CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
  CHECK(info.gex_srcrank == (me + size - 1) % size);
  CHECK(len == 127 && memcmp(bytes, "abc", 4) == 0);
  arrived = arrived + 1;
}

static void on_asked(gex_Token_t token, void *bytes, size_t len) {
  (void)token;
  (void)bytes;
  CHECK(len == 0);
  asked = asked + 1;
}

/* The three ways in which a transfer ends. */
static void finish(int form, gex_Event_t event, int put) {
  if (form == 1) gex_Event_Wait(event);
  if (form == 2) gex_NBI_Wait(put ? GEX_EC_PUT : GEX_EC_GET, 0);
}

static void vectors(int form) {
  gex_Memvec_t from[3], to[2];
  gex_Event_t event = GEX_EVENT_INVALID;
  size_t at;
  fill(form);
  from[0].gex_addr = here + 10;
  from[0].gex_len = 80;
  from[1].gex_addr = here;
  from[1].gex_len = 0;
  from[2].gex_addr = here + 100;
  from[2].gex_len = 8000;
  to[0].gex_addr = there + 7;
  to[0].gex_len = 8040;
  to[1].gex_addr = there + 2000;
  to[1].gex_len = 40;
  switch (form) {
    case 0: CHECK(gex_VIS_VectorPutBlocking(tm, next, 2, to, 3, from, 0) == 0); break;
    case 1: event = gex_VIS_VectorPutNB(tm, next, 2, to, 3, from, GEX_FLAG_ENABLE_LEAF_LC); break;
    default: CHECK(gex_VIS_VectorPutNBI(tm, next, 2, to, 3, from, 0) == 0);
  }
  if (form == 1) gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
  finish(form, event, 1);
  from[0].gex_addr = back + 10;
  from[2].gex_addr = back + 100;
  switch (form) {
    case 0: CHECK(gex_VIS_VectorGetBlocking(tm, 3, from, next, 2, to, 0) == 0); break;
    case 1: event = gex_VIS_VectorGetNB(tm, 3, from, next, 2, to, 0); break;
    default: CHECK(gex_VIS_VectorGetNBI(tm, 3, from, next, 2, to, 0) == 0);
  }
  finish(form, event, 0);
  for (at = 0; at < ROWS * COLUMNS; at++)
    CHECK(back[at] == ((at >= 10 && at < 20) || (at >= 100 && at < 1100) ? value(form, at) : -1));
  CHECK(gex_RMA_GetBlocking(tm, back, next, there + 2000, 40, 0) == 0);
  for (at = 0; at < 5; at++) CHECK(back[at] == value(form, 1095 + at));
}

static void blocks(int form) {
  void *from[60], *to[20];
  gex_Event_t event = GEX_EVENT_INVALID;
  size_t at;
  fill(form);
  for (at = 0; at < 60; at++) from[at] = here + 7 * at;
  for (at = 0; at < 20; at++) to[at] = there + 11 * (19 - at);
  switch (form) {
    case 0: CHECK(gex_VIS_IndexedPutBlocking(tm, next, 20, to, 24, 60, from, 8, 0) == 0); break;
    case 1: event = gex_VIS_IndexedPutNB(tm, next, 20, to, 24, 60, from, 8, 0); break;
    default: CHECK(gex_VIS_IndexedPutNBI(tm, next, 20, to, 24, 60, from, 8, 0) == 0);
  }
  finish(form, event, 1);
  for (at = 0; at < 60; at++) from[at] = back + at;
  switch (form) {
    case 0: CHECK(gex_VIS_IndexedGetBlocking(tm, 60, from, 8, next, 20, to, 24, 0) == 0); break;
    case 1: event = gex_VIS_IndexedGetNB(tm, 60, from, 8, next, 20, to, 24, 0); break;
    default: CHECK(gex_VIS_IndexedGetNBI(tm, 60, from, 8, next, 20, to, 24, 0) == 0);
  }
  finish(form, event, 0);
  for (at = 0; at < 60; at++) CHECK(back[at] == value(form, 7 * at));
}

/* A table, transposed and upside down there. */
static void arrays(int form) {
  const ptrdiff_t near[] = {8, COLUMNS * 8}, far[] = {ROWS * 8, -8};
  const size_t count[] = {COLUMNS, ROWS};
  double *first = there + ROWS - 1;
  gex_Event_t event = GEX_EVENT_INVALID;
  size_t row, column;
  fill(form);
  switch (form) {
    case 0: CHECK(gex_VIS_StridedPutBlocking(tm, next, first, far, here, near, 8, count, 2, 0) == 0); break;
    case 1: event = gex_VIS_StridedPutNB(tm, next, first, far, here, near, 8, count, 2, 0); break;
    default: CHECK(gex_VIS_StridedPutNBI(tm, next, first, far, here, near, 8, count, 2, 0) == 0);
  }
  finish(form, event, 1);
  CHECK(gex_RMA_GetBlocking(tm, back, next, there, sizeof(back), 0) == 0);
  for (row = 0; row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++)
      CHECK(back[column * ROWS + ROWS - 1 - row] == value(form, row * COLUMNS + column));
  memset(back, 0, sizeof(back));
  switch (form) {
    case 0: CHECK(gex_VIS_StridedGetBlocking(tm, back, near, next, first, far, 8, count, 2, 0) == 0); break;
    case 1: event = gex_VIS_StridedGetNB(tm, back, near, next, first, far, 8, count, 2, 0); break;
    default: CHECK(gex_VIS_StridedGetNBI(tm, back, near, next, first, far, 8, count, 2, 0) == 0);
  }
  finish(form, event, 0);
  CHECK(memcmp(back, here, sizeof(here)) == 0);
}

/* The older forms: the first count is of bytes. */
static void legacy(void) {
  const size_t near[] = {COLUMNS * 8, 4 * COLUMNS * 8}, far[] = {COLUMNS * 16, COLUMNS * 80}, count[] = {80, 4, 10};
  gasnet_memvec_t from, to;
  void *one = here + 3, *two = there + 3, *three = back + 3;
  size_t at;
  fill(9);
  gasnet_puts_bulk(next, there, far, here, near, count, 2);
  gasnet_gets_bulk(back, near, next, there, far, count, 2);
  for (at = 0; at < ROWS * COLUMNS; at++) CHECK(back[at] == (at % COLUMNS < 10 ? value(9, at) : -1));
  fill(10);
  gasnet_wait_syncnb(gasnet_puts_nb_bulk(next, there, far, here, near, count, 2));
  gasnet_wait_syncnb(gasnet_gets_nb_bulk(back, near, next, there, far, count, 2));
  for (at = 0; at < ROWS * COLUMNS; at++) CHECK(back[at] == (at % COLUMNS < 10 ? value(10, at) : -1));
  fill(11);
  gasnet_puts_nbi_bulk(next, there, far, here, near, count, 2);
  gasnet_wait_syncnbi_puts();
  gasnet_gets_nbi_bulk(back, near, next, there, far, count, 2);
  gasnet_wait_syncnbi_gets();
  for (at = 0; at < ROWS * COLUMNS; at++) CHECK(back[at] == (at % COLUMNS < 10 ? value(11, at) : -1));
  from.addr = here + 3;
  to.addr = there + 3;
  from.len = to.len = 16;
  gasnet_putv_bulk(next, 1, &to, 1, &from);
  gasnet_puti_bulk(next, 1, &two, 16, 1, &one, 16);
  from.addr = back + 3;
  back[3] = back[4] = 0;
  gasnet_getv_bulk(1, &from, next, 1, &to);
  CHECK(back[3] == here[3] && back[4] == here[4]);
  back[3] = back[4] = 0;
  gasnet_geti_bulk(1, &three, 16, next, 1, &two, 16);
  CHECK(back[3] == here[3] && back[4] == here[4]);
  here[3] = 77;
  from.addr = here + 3;
  gasnet_wait_syncnb(gasnet_putv_nb_bulk(next, 1, &to, 1, &from));
  gasnet_wait_syncnb(gasnet_geti_nb_bulk(1, &three, 16, next, 1, &two, 16));
  CHECK(back[3] == 77);
  here[3] = 78;
  gasnet_wait_syncnb(gasnet_puti_nb_bulk(next, 1, &two, 16, 1, &one, 16));
  from.addr = back + 3;
  gasnet_wait_syncnb(gasnet_getv_nb_bulk(1, &from, next, 1, &to));
  CHECK(back[3] == 78);
  here[3] = 79;
  from.addr = here + 3;
  gasnet_putv_nbi_bulk(next, 1, &to, 1, &from);
  gasnet_wait_syncnbi_puts();
  gasnet_geti_nbi_bulk(1, &three, 16, next, 1, &two, 16);
  gasnet_wait_syncnbi_gets();
  CHECK(back[3] == 79);
  here[3] = 80;
  gasnet_puti_nbi_bulk(next, 1, &two, 16, 1, &one, 16);
  gasnet_wait_syncnbi_all();
  from.addr = back + 3;
  gasnet_getv_nbi_bulk(1, &from, next, 1, &to);
  gasnet_wait_syncnbi_all();
  CHECK(back[3] == 80);
}

/* Without levels there is one element, whatever the arrays are; and a count of 0 is nothing, wherever it would be. */
static void nothing(void) {
  const ptrdiff_t wild[] = {PTRDIFF_MIN, PTRDIFF_MAX};
  const size_t none[] = {5, 0};
  void *places[1] = {NULL};
  double one = 5, other = 0;
  CHECK(gex_VIS_StridedPutBlocking(tm, next, there, NULL, &one, NULL, 8, NULL, 0, 0) == 0);
  CHECK(gex_VIS_StridedGetBlocking(tm, &other, NULL, next, there, NULL, 8, NULL, 0, GEX_FLAG_IMMEDIATE) == 0);
  CHECK(other == 5);
  CHECK(gex_VIS_StridedPutBlocking(tm, next, there, wild, &one, wild, 8, none, 2, 0) == 0);
  CHECK(gex_VIS_StridedPutNB(tm, next, NULL, wild, NULL, wild, 0, none, 1, 0) == GEX_EVENT_INVALID);
  CHECK(gex_VIS_VectorPutNB(tm, next, 0, NULL, 0, NULL, 0) == GEX_EVENT_INVALID);
  CHECK(gex_VIS_IndexedGetNBI(tm, 1, places, 0, next, 0, NULL, 100, 0) == 0);
  CHECK(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC) == GEX_EVENT_INVALID);
}

static void completions(void) {
  char bytes[127] = "abc";
  const ptrdiff_t stride[] = {16};
  const size_t count[] = {100};
  gex_Event_t event;
  int i;
  for (i = 0; i < ROUNDS; i++) {
    gex_VIS_SetPeerCompletionHandler(ARRIVED, bytes, sizeof(bytes), 0);
    event = gex_VIS_StridedPutNB(tm, next, there, stride, here, stride, 8, count, 1, 0);
    gex_Event_Wait(event);
    /* Of the next put alone, and not of one that was taken back. */
    CHECK(gex_VIS_StridedPutBlocking(tm, next, there, stride, here, stride, 8, count, 1, 0) == 0);
    gex_VIS_SetPeerCompletionHandler(ARRIVED, bytes, 3, 0);
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    CHECK(gex_VIS_StridedPutNBI(tm, next, there, stride, here, stride, 8, count, 1, 0) == 0);
    gex_VIS_SetPeerCompletionHandler(ASKED, NULL, 0, 0);
    CHECK(gex_VIS_StridedGetBlocking(tm, back, stride, next, there, stride, 8, count, 1, 0) == 0);
    CHECK(gex_VIS_StridedPutNBI(tm, next, there, stride, here, stride, 8, count, 1, 0) == 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
  }
  GASNET_BLOCKUNTIL(arrived == ROUNDS && asked == ROUNDS);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(arrived == ROUNDS && asked == ROUNDS);
}

int main(int argc, char **argv) {
  gex_AM_Entry_t handlers[2];
  void *address;
  int form;
  memset(handlers, 0, sizeof(handlers));
  handlers[0].gex_index = ARRIVED;
  handlers[0].gex_fnptr = (gex_AM_Fn_t)on_arrived;
  handlers[0].gex_flags = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY;
  handlers[1].gex_index = ASKED;
  handlers[1].gex_fnptr = (gex_AM_Fn_t)on_asked;
  handlers[1].gex_flags = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST;
  CHECK(gex_Client_Init(&client, &ep, &tm, "scattered", &argc, &argv, 0) == GASNET_OK);
  CHECK(gex_EP_RegisterHandlers(ep, handlers, 2) == GASNET_OK);
  CHECK(gex_Segment_Attach(&segment, tm, ROOM) == GASNET_OK);
  me = gex_TM_QueryRank(tm);
  size = gex_TM_QuerySize(tm);
  next = (me + 1) % size;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, next, &address, NULL, NULL, 0));
  there = (double *)address;
  for (form = 0; form < 3; form++) {
    vectors(form);
    blocks(form);
    arrays(form);
  }
  legacy();
  nothing();
  completions();
  DONE("scattered");
  gasnet_exit(0);
  return 0;
}
