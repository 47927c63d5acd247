/* A program of GASNet-1: its handlers say nothing of what they take, and the tools came with the header. */
#include <gasnet.h>
#if !_INCLUDED_GASNET_H || !_INCLUDED_GASNETEX_H || !_INCLUDED_GASNET_TOOLS_H
#error what was included is not said
#endif

#include "check.h"

static gasnet_node_t me, size, next;
static gasnet_seginfo_t *segments;
static int answers;

enum { ASK = 150, ANSWER = 151, TAKE = 152, PLACE = 153 };

static void ask(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b) {
  gasnet_node_t source;
  CHECK(gasnet_AMGetMsgSource(token, &source) == GASNET_OK && source < size);
  CHECK(gasnet_AMReplyShort1(token, ANSWER, a + b) == GASNET_OK);
}
static void answer(gasnet_token_t token, gasnet_handlerarg_t sum) {
  (void)token;
  CHECK(sum == 42);
  answers++;
}
static void take(gasnet_token_t token, void *buffer, size_t len, gasnet_handlerarg_t first) {
  CHECK(len == 100 && *(unsigned char *)buffer == first);
  CHECK(gasnet_AMReplyShort1(token, ANSWER, 42) == GASNET_OK);
}

#define LAST (8 * (uintptr_t)GASNET_PAGESIZE - 1)
static volatile uintptr_t there;
static void place(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low) {
  (void)token;
  there = (uintptr_t)(uint32_t)high << 32 | (uint32_t)low;
}

static gasnet_handlerentry_t table[] = {{ASK, (void (*)())ask},
                                        {ANSWER, (void (*)())answer},
                                        {TAKE, (void (*)())take},
                                        {0, (void (*)())take},
                                        {PLACE, (void (*)())place}};

/* Of the segments of others nobody has asked the library yet. */
static void mapped(const gasnet_nodeinfo_t *nodes) {
  uintptr_t mine = (uintptr_t)segments[me].addr;
  CHECK(gasnet_AMRequestShort2((me + size - 1) % size, PLACE, (gasnet_handlerarg_t)(mine >> 32),
                               (gasnet_handlerarg_t)mine) == GASNET_OK);
  GASNET_BLOCKUNTIL(there);
  if (nodes[next].supernode == nodes[me].supernode) ((unsigned char *)there)[nodes[next].offset + LAST] = 2;
}

static void messages(void) {
  unsigned char bytes[100];
  memset(bytes, 9, sizeof bytes);
  CHECK(gasnet_AMRequestShort2(next, ASK, 40, 2) == GASNET_OK);
  CHECK(gasnet_AMRequestShort(next, ASK, 40, 2) == GASNET_OK);
  CHECK(gasnet_AMRequestMedium1(next, TAKE, bytes, 100, 9) == GASNET_OK);
  CHECK(gasnet_AMRequestLong1(next, table[3].index, bytes, 100, segments[next].addr, 9) == GASNET_OK);
  CHECK(gasnet_AMRequestLongAsync(next, TAKE, bytes, 100, segments[next].addr, 9) == GASNET_OK);
  GASNET_BLOCKUNTIL(answers == 5);
  CHECK(gasnet_AMMaxArgs() == 16 && gasnet_AMMaxMedium() >= 512 && gasnet_AMMaxLongReply() >= 512);
  CHECK(gasnet_AMMaxLongRequest() <= INT_MAX && gasnet_AMMaxLongReply() <= INT_MAX);
}

static void memory(void) {
  unsigned char *there = (unsigned char *)segments[next].addr + 4096, here[64], back[64];
  gasnet_handle_t handles[3];
  gasnet_valget_handle_t value;
  int i;
  for (i = 0; i < 64; i++) here[i] = (unsigned char)(i + me);
  gasnet_put(next, there, here, 64);
  gasnet_get_bulk(back, next, there, 64);
  CHECK(memcmp(here, back, 64) == 0);
  handles[0] = gasnet_put_nb(next, there + 64, here, 64);
  handles[1] = gasnet_put_nb_bulk(next, there + 128, here, 64);
  handles[2] = gasnet_memset_nb(next, there + 192, 7, 64);
  gasnet_wait_syncnb_all(handles, 3);
  CHECK(handles[0] == GASNET_INVALID_HANDLE && gasnet_try_syncnb_all(handles, 3) == GASNET_OK);
  gasnet_put_nbi(next, there + 256, here, 64);
  gasnet_memset_nbi(next, there + 320, 8, 5000);
  gasnet_wait_syncnbi_puts();
  gasnet_get_nbi(back, next, there + 320 + 4936, 64);
  gasnet_wait_syncnbi_all();
  CHECK(back[0] == 8 && back[63] == 8);
  gasnet_put_val(next, there, 0x1234, 2);
  value = gasnet_get_nb_val(next, there, 2);
  CHECK(gasnet_wait_syncnb_valget(value) == 0x1234 && gasnet_get_val(next, there, 1) == 0x34);
  gasnet_begin_nbi_accessregion();
  gasnet_put_nbi_bulk(next, there, here, 64);
  gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
  gasnet_memset(next, there, 1, 3);
  CHECK(gasnet_get_val(next, there, 4) == (0x010101u | (gasnet_register_value_t)here[3] << 24));
}

static void tools(gasnett_tick_t then) {
  gasnett_atomic64_t count = gasnett_atomic64_init(40);
  gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
  gasnett_mutex_lock(&mutex);
  CHECK(gasnett_atomic64_add(&count, 2, GASNETT_ATOMIC_REL) == 42);
  gasnett_mutex_unlock(&mutex);
  CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - then) > 0);
}

int main(int argc, char **argv) {
  gasnett_tick_t then = gasnett_ticks_now();
  gasnet_nodeinfo_t *nodes;
  gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
  CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
  /* Handlers look at these, and others may ask while this rank still attaches. */
  me = gasnet_mynode();
  size = gasnet_nodes();
  next = (me + 1) % size;
  nodes = (gasnet_nodeinfo_t *)malloc(size * sizeof *nodes);
  CHECK(gasnet_getNodeInfo(nodes, (int)size) == GASNET_OK && nodes[next].host == nodes[me].host);
  CHECK(gasnet_attach(table, 5, 8 * (uintptr_t)GASNET_PAGESIZE, 0) == GASNET_OK);
  segments = (gasnet_seginfo_t *)malloc(size * sizeof *segments);
  CHECK(gasnet_getSegmentInfo(segments, (int)me + 1) == GASNET_OK);
  mapped(nodes);
  CHECK(gasnet_getSegmentInfo(segments, (int)size) == GASNET_OK && there == (uintptr_t)segments[next].addr);
  CHECK(segments[next].size == 8 * (uintptr_t)GASNET_PAGESIZE && nodes[me].offset == 0 && table[3].index == 255);
  /* Over a network the rows have each rank alone. */
  if (nodes[next].supernode == nodes[me].supernode) *((unsigned char *)segments[next].addr + nodes[next].offset) = 1;
  messages();
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
  if (nodes[next].supernode == nodes[me].supernode) CHECK(((unsigned char *)segments[me].addr)[LAST] == 2);
  memory();
  gasnet_hsl_lock(&lock);
  gasnet_hsl_unlock(&lock);
  tools(then);
  DONE("legacy");
  gasnet_exit(0);
}
