/* What published programs rely on, beside what the specification says. */
#include <gasnetex.h>

#include "check.h"
#include <gasnet_coll.h>
#include <gasnet_tools.h>

/* Flags, types and operations are read by the preprocessor. */
#if GEX_FLAG_PEER_NEVER_SELF == GEX_FLAG_PEER_NEVER_NBRHD
#error "they differ"
#endif
#if !(GEX_FLAG_IMMEDIATE | GEX_FLAG_AM_MEDLONG) || !GEX_DT_I32 || !GEX_OP_ADD || !GEX_EP_CAPABILITY_ALL || !GEX_EC_GET || !GEX_TI_ALL
#error "each is something"
#endif

/* Configuration scripts look for this function, as if it gave a character. */
#ifdef __cplusplus
extern "C"
#endif
char gasnetc_AMPoll(void);

/* From another object, which knows no thread mode. */
#ifdef __cplusplus
extern "C"
#endif
int lite(void);

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  gex_Event_t handles[1] = {GASNET_COLL_INVALID_HANDLE};
  gasnet_coll_handle_t *same = handles;
  const gex_ProgressThreadInfo_t *info = (const gex_ProgressThreadInfo_t *)&tm;
  unsigned int count = 77;
  int deferred = argc > 1;
  CHECK(gex_Client_Init(&client, &ep, &tm, "published", &argc, &argv, deferred ? GEX_FLAG_DEFER_THREADS : 0) == GASNET_OK);
  /* Not every wrong call is one that is wanted here. */
  gex_System_SetVerboseErrors(0);
  CHECK(gex_System_QueryProgressThreads(client, &count, &info, 1) == GASNET_ERR_BAD_ARG);
  CHECK(gex_System_QueryProgressThreads(client, NULL, &info, 0) == GASNET_ERR_BAD_ARG && count == 77);
  if (deferred) {
    CHECK(gex_System_QueryProgressThreads(client, &count, &info, 0) == GASNET_OK && count == 0 && info == NULL);
  } else {
    CHECK(gex_System_QueryProgressThreads(client, &count, &info, 0) == GASNET_ERR_RESOURCE && count == 77);
  }
  CHECK(same[0] == GEX_EVENT_INVALID);
  CHECK(GASNETI_MAX_THREADS >= 1 && strlen(gasneti_gethostname()) > 0);
  CHECK(gasnetc_AMPoll() == 0 && lite() == 42);
  DONE("published");
  return 0;
}
