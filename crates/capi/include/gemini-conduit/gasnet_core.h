/* Ranks that talk over Gemini, and in the memory of a host. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#define GASNET_CONDUIT_GEMINI 1
#define GASNET_CONDUIT_NAME GEMINI
/* By what jobs are started, as launchers read it in a linked program. */
#define GASWORKS_SPAWNERS(spawner) spawner(SSH) spawner(PMI)

#include <gasworks_conduit.h>

#endif
