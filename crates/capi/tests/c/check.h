/* What the programs of this folder have in common: a check that says where it failed, and ends the job. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                                         \
  do {                                                                                                      \
    if (!(cond)) {                                                                                          \
      fprintf(stderr, "ERROR: rank %d: %s:%d: %s\n", (int)gex_System_QueryJobRank(), __FILE__, __LINE__, #cond); \
      gasnet_exit(2);                                                                                       \
    }                                                                                                       \
  } while (0)

/* Of each program the first rank says at its end that it has come there. */
#define DONE(name)                                                  \
  do {                                                              \
    gex_Coll_BarrierBlocking(gasworks_tm0(), 0);                    \
    if (gex_System_QueryJobRank() == 0) printf("%s: done\n", name); \
  } while (0)

#endif
