/* Closes all descriptors that it has not opened itself, those of the library among them, and opens files that get their numbers. It is told
   so early, and nothing of the library's comes into its files. */
#include <fcntl.h>
#include <gasnetex.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  int fd, last = (int)sysconf(_SC_OPEN_MAX);
  CHECK(gex_Client_Init(&client, &ep, &tm, "closes", &argc, &argv, 0) == GASNET_OK);
  gex_Coll_BarrierBlocking(tm, 0);
  if (gex_System_QueryJobRank() == 1) {
    for (fd = 3; fd < last; fd++) close(fd);
    for (fd = 0; fd < 40 && strcmp(argv[1], "reuses") == 0; fd++) CHECK(open(argv[2], O_RDWR | O_CREAT, 0644) >= 0);
    if (argc > 3) gasnet_exit(0);
  }
  /* Longer than it takes to be told. */
  for (fd = 0; fd < 3000; fd++) {
    usleep(10000);
    gasnet_AMPoll();
  }
  return 0;
}
