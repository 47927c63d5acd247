/* A rank writes over what another rank's queues are counted by: the byte and the number of bytes that it is called with, from the
   beginning of the queues of rank 0. All ranks wait for each other after that. */
#include <gasnetex.h>

#include "check.h"

static volatile int got;

static void ask(gex_Token_t token) { gex_AM_ReplyShort0(token, 201, 0); }
static void answer(gex_Token_t token) {
  (void)token;
  got++;
}

static gex_AM_Entry_t handlers[] = {
    {200, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
    {201, (gex_AM_Fn_t)answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "answer"},
};

static void talk(gex_TM_t tm) {
  gex_Rank_t next = (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
  for (int i = 0; i < 10; i++) {
    int wanted = got + 1;
    gex_AM_RequestShort0(tm, next, 200, 0);
    GASNET_BLOCKUNTIL(got >= wanted);
  }
  gex_Coll_BarrierBlocking(tm, 0);
}

/* The memory of all begins with a page in which a few lines of each lie; queues follow. */
static void damage(int byte, size_t bytes) {
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  while (fgets(line, sizeof line, maps)) {
    if (strstr(line, "memfd:gasworks job") && strstr(line, " rw-s 00000000 ")) {
      memset((char *)strtoul(line, NULL, 16) + 65536, byte, bytes);
      break;
    }
  }
  fclose(maps);
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  CHECK(gex_Client_Init(&client, &ep, &tm, "damaged", &argc, &argv, 0) == GASNET_OK);
  CHECK(gex_EP_RegisterHandlers(ep, handlers, 2) == GASNET_OK);
  gex_Coll_BarrierBlocking(tm, 0);
  talk(tm);
  if (gex_TM_QueryRank(tm) == 1) damage(atoi(argv[1]), (size_t)atol(argv[2]));
  gex_Coll_BarrierBlocking(tm, 0);
  talk(tm);
  return 0;
}
