/* All ranks on one host, in its memory. */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H

#define GASNET_CONDUIT_SMP 1
#define GASNET_CONDUIT_NAME SMP
#define GASNET_CONDUIT_NAME_STR "SMP"
#define GASNET_CORE_NAME SMP
#define GASNET_CORE_NAME_STR "SMP"
#define GASNET_EXTENDED_NAME SMP
#define GASNET_EXTENDED_NAME_STR "SMP"
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"

/* By what jobs are started, as launchers read it in a linked program. */
#define GASWORKS_SPAWNERS(spawner) spawner(FORK) spawner(SSH) spawner(PMI)

#define GASNET_MAXEPS 1
/* A thread of the library may run handlers where several threads may at all. */
#ifdef GASNET_PAR
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 1
#else
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0
#endif

#define GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REP_MEDIUM 1
#undef GASNET_NATIVE_NP_ALLOC_REQ_LONG
#undef GASNET_NATIVE_NP_ALLOC_REP_LONG

#endif
