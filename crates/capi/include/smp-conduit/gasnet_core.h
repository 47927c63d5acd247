/* All ranks on one host, in its memory. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#define GASNET_CONDUIT_SMP 1
#define GASNET_CONDUIT_NAME SMP
/* By what jobs are started, as launchers read it in a linked program. */
#define GASWORKS_SPAWNERS(spawner) spawner(FORK) spawner(SSH) spawner(PMI)

#include <gasworks_conduit.h>

#endif
