/* Ranks that talk over Aries, and in the memory of a host. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#define GASNET_CONDUIT_ARIES 1
#define GASNET_CONDUIT_NAME ARIES
/* By what jobs are started, as launchers read it in a linked program. */
#define GASWORKS_SPAWNERS(spawner) spawner(SSH) spawner(PMI)

#include <gasworks_conduit.h>

#endif
