/* Names of functions where programs have them: statements, expressions, arguments of one another, and pointers. Compiled only. */
#include <gasnet.h>
#include <gasnetex.h>

typedef int (*put_function)(gex_TM_t, gex_Rank_t, void *, const void *, size_t, gex_Flags_t);
static put_function functions[] = {gex_RMA_PutBlocking, &gex_RMA_PutBlocking};

static int same(int x) { return x; }
#define POLLS_UNTIL(event) \
  while (gex_Event_Test(event) != GASNET_OK) gasnet_AMPoll()

int uses(gex_TM_t tm, char *place);
int uses(gex_TM_t tm, char *place) {
  gex_HSL_t lock = GEX_HSL_INITIALIZER;
  gex_Event_t event = GEX_EVENT_INVALID;
  gex_AM_SrcDesc_t source;
  const char *name = gex_Client_QueryName(gex_TM_QueryClient(tm));
  if (functions[0](tm, 0, place, place, 1, 0) || functions[1] == gex_RMA_PutBlocking) return 0;
  if (place)
    gex_Event_Wait(event);
  else
    gasnet_AMPoll();
  place ? gex_Event_Wait(event) : gex_NBI_Wait(GEX_EC_ALL, 0);
  gex_RMA_PutBlocking(tm, 0, place, place, (size_t)gex_RMA_PutBlocking(tm, 0, place, place, 4, 0), 0);
  gex_Event_Wait(gex_RMA_PutNB(tm, gex_TM_QueryRank(tm),
                               place, place, 4, GEX_EVENT_NOW, 0));
  (gex_RMA_PutBlocking)(tm, 0, place, place, 1, 0);
  for (; gex_Event_Test(event) != GASNET_OK; gasnet_AMPoll()) {
  }
  POLLS_UNTIL(event);
  same(gex_AM_RequestShort(tm, 0, 200, 0, (gex_AM_Arg_t)gex_TM_QuerySize(tm), gasnet_AMPoll()));
  GASNET_BLOCKUNTIL(same(gasnet_AMPoll()) == 0);
  gasnet_put(0, place, place, 1), gasnet_get(place, 0, place, 1);
  gasnet_AMRequestShort2(0, 200, gasnet_AMPoll(), 1);
  gasnet_AMRequestShort(0, 200);
  gex_AM_RequestMedium3(tm, 0, 200, place, 1, GEX_EVENT_NOW, 0, 1, 2, 3);
  source = gex_AM_PrepareRequestMedium(tm, 0, NULL, 0, gex_AM_LUBRequestMedium(), NULL, 0, 0);
  gex_AM_CommitRequestMedium(source, 200, 0);
  same(gex_AM_CommitRequestMedium_v2(source, 200, 0, 0));
  gex_HSL_Lock(&lock), gex_HSL_Unlock(&lock);
  same(gex_HSL_Trylock(&lock)) ? gex_HSL_Unlock(&lock) : (void)name;
  gex_HSL_Trylock(&lock);
  gasnet_hsl_unlock(&lock);
  gasnet_wait_syncnb(gasnet_put_nb(0, place, place, 1));
  return gex_RMA_GetBlocking(tm, place, 0, place, sizeof(int), 0) ? (gasnet_exit(1), 1) : gasnet_try_syncnbi_all();
}
