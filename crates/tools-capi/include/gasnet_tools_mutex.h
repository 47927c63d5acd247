/* What a mutex is. Included by gasnet_tools_lock.h; and by gasnetex.h, whose handler-safe locks hold one, where there are threads. */
#ifndef GASWORKS_TOOLS_MUTEX_H
#define GASWORKS_TOOLS_MUTEX_H 1

#include <pthread.h>

#include "gasnet_portable_platform.h"
#include "gasnet_tools_compiler.h"

#ifndef GASNETT_USE_TRUE_MUTEXES
#define GASNETT_USE_TRUE_MUTEXES 1
#endif
/* Who holds a lock exclusively; known in debug builds only. The owner is written before the mark, so that a thread which
 * sees its own name there wrote it itself. */
#if GASNET_DEBUG
typedef struct {
  int marked;
#if GASNETT_USE_TRUE_MUTEXES
  pthread_t thread;
#endif
} gasworks_tools_owner_t;
#if GASNETT_USE_TRUE_MUTEXES
#define GASWORKS_TOOLS_NO_OWNER {0, 0}
#else
#define GASWORKS_TOOLS_NO_OWNER {0}
#endif

GASNETT_INLINE(gasworks_tools_own) void gasworks_tools_own(gasworks_tools_owner_t *owner) {
#if GASNETT_USE_TRUE_MUTEXES
  __atomic_store_n(&owner->thread, pthread_self(), __ATOMIC_RELAXED);
#endif
  __atomic_store_n(&owner->marked, 1, __ATOMIC_RELEASE);
}

GASNETT_INLINE(gasworks_tools_disown) void gasworks_tools_disown(gasworks_tools_owner_t *owner) {
  __atomic_store_n(&owner->marked, 0, __ATOMIC_RELEASE);
}

GASNETT_INLINE(gasworks_tools_is_owner) int gasworks_tools_is_owner(gasworks_tools_owner_t const *owner) {
  int mine = __atomic_load_n(&owner->marked, __ATOMIC_ACQUIRE);
#if GASNETT_USE_TRUE_MUTEXES
  mine = mine && pthread_equal(__atomic_load_n(&owner->thread, __ATOMIC_RELAXED), pthread_self());
#endif
  return mine;
}
#else
#define gasworks_tools_own(owner) ((void)0)
#define gasworks_tools_disown(owner) ((void)0)
#endif

typedef struct {
#if GASNETT_USE_TRUE_MUTEXES
  pthread_mutex_t lock;
#else
  char unused;
#endif
#if GASNET_DEBUG
  gasworks_tools_owner_t owner;
#endif
} gasnett_mutex_t;

#if GASNETT_USE_TRUE_MUTEXES
#define GASWORKS_TOOLS_MUTEX_FREE PTHREAD_MUTEX_INITIALIZER
#else
#define GASWORKS_TOOLS_MUTEX_FREE 0
#endif
#if GASNET_DEBUG
#define GASNETT_MUTEX_INITIALIZER {GASWORKS_TOOLS_MUTEX_FREE, GASWORKS_TOOLS_NO_OWNER}
#else
#define GASNETT_MUTEX_INITIALIZER {GASWORKS_TOOLS_MUTEX_FREE}
#endif

#endif
