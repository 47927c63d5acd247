/* A second thread communicates, while the first waits for its end. */
#include <gasnetex.h>
#include <pthread.h>

#include "check.h"

static void *polls(void *it) {
  gasnet_AMPoll(); /* here */
  return it;
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  pthread_t thread;
  CHECK(gex_Client_Init(&client, &ep, &tm, "second", &argc, &argv, 0) == GASNET_OK);
  gex_Coll_BarrierBlocking(tm, 0);
  CHECK(pthread_create(&thread, NULL, polls, NULL) == 0 && pthread_join(thread, NULL) == 0);
  gex_Coll_BarrierBlocking(tm, 0);
  return 0;
}
