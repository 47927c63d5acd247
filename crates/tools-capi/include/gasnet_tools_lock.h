/* Mutexes, condition variables, reader-writer locks and thread keys. Included by gasnet_tools.h.
 *
 * In a program with one thread the locks are nothing, unless the client defines GASNETT_USE_TRUE_MUTEXES to 1. With
 * GASNET_DEBUG a lock knows who holds it, and misuse ends the process with the place in the source. */
#ifndef GASWORKS_TOOLS_LOCK_H
#define GASWORKS_TOOLS_LOCK_H 1

#ifndef GASNETT_USE_TRUE_MUTEXES
#define GASNETT_USE_TRUE_MUTEXES GASNETT_THREAD_SAFE
#endif
#if GASNETT_THREAD_SAFE && !GASNETT_USE_TRUE_MUTEXES
#error "GASNETT_USE_TRUE_MUTEXES=0 with GASNETT_THREAD_SAFE: threads need locks"
#endif
#if GASNETT_USE_TRUE_MUTEXES && !defined(PTHREAD_RWLOCK_INITIALIZER)
#error "compile with -D_GNU_SOURCE=1: without it this C standard hides the reader-writer locks of pthread.h"
#endif

#if GASNET_DEBUG
#define GASWORKS_TOOLS_CHECK(condition, where, what)                                                                   \
  ((condition) ? (void)0 : gasworks_tools_fatal((where), "%s", (what)))
#else
#define GASWORKS_TOOLS_CHECK(condition, where, what) ((void)(where))
#endif
#define GASWORKS_TOOLS_HERE (__FILE__ ":" GASWORKS_PLATFORM_TEXT(__LINE__))

#include "gasnet_tools_mutex.h"

/* ---- mutexes ---- */

#if GASNETT_USE_TRUE_MUTEXES
#define GASWORKS_TOOLS_PTHREAD(call) (call)
#else
#define GASWORKS_TOOLS_PTHREAD(call) 0
#endif

GASNETT_INLINE(gasworks_tools_mutex_init) void gasworks_tools_mutex_init(gasnett_mutex_t *m, const char *where) {
  const int failed = GASWORKS_TOOLS_PTHREAD(pthread_mutex_init(&m->lock, NULL));
  (void)m, (void)failed;
  gasworks_tools_disown(&m->owner);
  GASWORKS_TOOLS_CHECK(!failed, where, "the mutex cannot be made");
}

GASNETT_INLINE(gasworks_tools_mutex_destroy) int gasworks_tools_mutex_destroy(gasnett_mutex_t *m) {
  (void)m;
  return GASWORKS_TOOLS_PTHREAD(pthread_mutex_destroy(&m->lock));
}

GASNETT_INLINE(gasworks_tools_mutex_lock) void gasworks_tools_mutex_lock(gasnett_mutex_t *m, const char *where) {
  int failed;
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&m->owner), where, "this thread holds the mutex already");
  failed = GASWORKS_TOOLS_PTHREAD(pthread_mutex_lock(&m->lock));
  (void)m, (void)failed;
  GASWORKS_TOOLS_CHECK(!failed, where, "the mutex cannot be locked");
  gasworks_tools_own(&m->owner);
}

GASNETT_INLINE(gasworks_tools_mutex_trylock) int gasworks_tools_mutex_trylock(gasnett_mutex_t *m, const char *where) {
  int failed;
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&m->owner), where, "this thread holds the mutex already");
  failed = GASWORKS_TOOLS_PTHREAD(pthread_mutex_trylock(&m->lock));
  (void)m;
  if (!failed) gasworks_tools_own(&m->owner);
  return failed;
}

GASNETT_INLINE(gasworks_tools_mutex_unlock) void gasworks_tools_mutex_unlock(gasnett_mutex_t *m, const char *where) {
  int failed;
  GASWORKS_TOOLS_CHECK(gasworks_tools_is_owner(&m->owner), where, "this thread does not hold the mutex");
  gasworks_tools_disown(&m->owner);
  failed = GASWORKS_TOOLS_PTHREAD(pthread_mutex_unlock(&m->lock));
  (void)m, (void)failed;
  GASWORKS_TOOLS_CHECK(!failed, where, "the mutex cannot be unlocked");
}

#define gasnett_mutex_init(m) gasworks_tools_mutex_init((m), GASWORKS_TOOLS_HERE)
#define gasnett_mutex_destroy_ignoreerr(m) gasworks_tools_mutex_destroy(m)
#define gasnett_mutex_lock(m) gasworks_tools_mutex_lock((m), GASWORKS_TOOLS_HERE)
#define gasnett_mutex_trylock(m) gasworks_tools_mutex_trylock((m), GASWORKS_TOOLS_HERE)
#define gasnett_mutex_unlock(m) gasworks_tools_mutex_unlock((m), GASWORKS_TOOLS_HERE)
#if GASNET_DEBUG
#define gasnett_mutex_destroy(m)                                                                                       \
  GASWORKS_TOOLS_CHECK(!gasworks_tools_mutex_destroy(m), GASWORKS_TOOLS_HERE, "the mutex is still in use")
#define gasnett_mutex_assertlocked(m)                                                                                  \
  GASWORKS_TOOLS_CHECK(gasworks_tools_is_owner(&(m)->owner), GASWORKS_TOOLS_HERE, "this thread does not hold the mutex")
#define gasnett_mutex_assertunlocked(m)                                                                                \
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&(m)->owner), GASWORKS_TOOLS_HERE, "this thread holds the mutex")
#else
#define gasnett_mutex_destroy(m) ((void)gasworks_tools_mutex_destroy(m))
#define gasnett_mutex_assertlocked(m) ((void)(m))
#define gasnett_mutex_assertunlocked(m) ((void)(m))
#endif

/* ---- condition variables ---- */

typedef struct {
#if GASNETT_USE_TRUE_MUTEXES
  pthread_cond_t cond;
#else
  char unused;
#endif
} gasnett_cond_t;

#if GASNETT_USE_TRUE_MUTEXES
#define GASNETT_COND_INITIALIZER {PTHREAD_COND_INITIALIZER}
#else
#define GASNETT_COND_INITIALIZER {0}
#endif

GASNETT_INLINE(gasworks_tools_cond_wait)
void gasworks_tools_cond_wait(gasnett_cond_t *c, gasnett_mutex_t *m, const char *where) {
  GASWORKS_TOOLS_CHECK(gasworks_tools_is_owner(&m->owner), where, "a wait without holding the mutex");
  gasworks_tools_disown(&m->owner);
#if GASNETT_USE_TRUE_MUTEXES
  {
    const int failed = pthread_cond_wait(&c->cond, &m->lock);
    (void)failed;
    GASWORKS_TOOLS_CHECK(!failed, where, "the condition cannot be waited for");
  }
#else
  (void)c, (void)m;
  gasworks_tools_fatal(where, "%s", "a wait for a condition that no other thread can signal");
#endif
  gasworks_tools_own(&m->owner);
}

GASNETT_INLINE(gasworks_tools_cond_done) void gasworks_tools_cond_done(int failed, const char *where) {
  (void)failed;
  GASWORKS_TOOLS_CHECK(!failed, where, "the condition variable is not in order");
}

#define GASWORKS_TOOLS_COND(c, call)                                                                                   \
  ((void)(c), gasworks_tools_cond_done(GASWORKS_TOOLS_PTHREAD(call), GASWORKS_TOOLS_HERE))
#define gasnett_cond_init(c) GASWORKS_TOOLS_COND(c, pthread_cond_init(&(c)->cond, NULL))
#define gasnett_cond_destroy(c) GASWORKS_TOOLS_COND(c, pthread_cond_destroy(&(c)->cond))
#define gasnett_cond_signal(c) GASWORKS_TOOLS_COND(c, pthread_cond_signal(&(c)->cond))
#define gasnett_cond_broadcast(c) GASWORKS_TOOLS_COND(c, pthread_cond_broadcast(&(c)->cond))
#define gasnett_cond_wait(c, m) gasworks_tools_cond_wait((c), (m), GASWORKS_TOOLS_HERE)

/* ---- reader-writer locks. Of readers only the number is known, so that the assertion for a reader may pass where
 * another thread is the one that reads. ---- */

typedef struct {
#if GASNETT_USE_TRUE_MUTEXES
  pthread_rwlock_t lock;
#else
  char unused;
#endif
#if GASNET_DEBUG
  int readers;
  gasworks_tools_owner_t owner;
#endif
} gasnett_rwlock_t;

#if GASNETT_USE_TRUE_MUTEXES
#define GASWORKS_TOOLS_RWLOCK_FREE PTHREAD_RWLOCK_INITIALIZER
#else
#define GASWORKS_TOOLS_RWLOCK_FREE 0
#endif
#if GASNET_DEBUG
#define GASNETT_RWLOCK_INITIALIZER {GASWORKS_TOOLS_RWLOCK_FREE, 0, GASWORKS_TOOLS_NO_OWNER}
#define gasworks_tools_count_reader(l, n) ((void)__atomic_add_fetch(&(l)->readers, (n), __ATOMIC_ACQ_REL))
#define gasworks_tools_has_readers(l) (__atomic_load_n(&(l)->readers, __ATOMIC_ACQUIRE) > 0)
#else
#define GASNETT_RWLOCK_INITIALIZER {GASWORKS_TOOLS_RWLOCK_FREE}
#define gasworks_tools_count_reader(l, n) ((void)(l))
#endif

GASNETT_INLINE(gasworks_tools_rwlock_init) void gasworks_tools_rwlock_init(gasnett_rwlock_t *l, const char *where) {
  const int failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_init(&l->lock, NULL));
  (void)l, (void)failed;
#if GASNET_DEBUG
  l->readers = 0;
#endif
  gasworks_tools_disown(&l->owner);
  GASWORKS_TOOLS_CHECK(!failed, where, "the lock cannot be made");
}

GASNETT_INLINE(gasworks_tools_rwlock_destroy)
void gasworks_tools_rwlock_destroy(gasnett_rwlock_t *l, const char *where) {
  GASWORKS_TOOLS_CHECK(!gasworks_tools_has_readers(l) && !gasworks_tools_is_owner(&l->owner), where,
                       "the lock is still in use");
  (void)l;
  (void)GASWORKS_TOOLS_PTHREAD(pthread_rwlock_destroy(&l->lock));
}

GASNETT_INLINE(gasworks_tools_rwlock_got)
int gasworks_tools_rwlock_got(gasnett_rwlock_t *l, int writes, int failed) {
  if (failed) return failed;
  if (writes) {
    gasworks_tools_own(&l->owner);
  } else {
    gasworks_tools_count_reader(l, 1);
  }
  return 0;
}

GASNETT_INLINE(gasworks_tools_rwlock_lock)
void gasworks_tools_rwlock_lock(gasnett_rwlock_t *l, int writes, const char *where) {
  int failed = 0;
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&l->owner), where, "this thread holds the lock for writing already");
  if (writes) {
    failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_wrlock(&l->lock));
  } else {
    failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_rdlock(&l->lock));
  }
  failed = gasworks_tools_rwlock_got(l, writes, failed);
  (void)failed;
  GASWORKS_TOOLS_CHECK(!failed, where, "the lock cannot be taken");
}

GASNETT_INLINE(gasworks_tools_rwlock_try)
int gasworks_tools_rwlock_try(gasnett_rwlock_t *l, int writes, const char *where) {
  int failed = 0;
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&l->owner), where, "this thread holds the lock for writing already");
  if (writes) {
    failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_trywrlock(&l->lock));
  } else {
    failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_tryrdlock(&l->lock));
  }
  return gasworks_tools_rwlock_got(l, writes, failed);
}

GASNETT_INLINE(gasworks_tools_rwlock_unlock) void gasworks_tools_rwlock_unlock(gasnett_rwlock_t *l, const char *where) {
  int failed;
#if GASNET_DEBUG
  if (gasworks_tools_is_owner(&l->owner)) {
    gasworks_tools_disown(&l->owner);
  } else {
    GASWORKS_TOOLS_CHECK(gasworks_tools_has_readers(l), where, "nobody holds the lock");
    gasworks_tools_count_reader(l, -1);
  }
#endif
  failed = GASWORKS_TOOLS_PTHREAD(pthread_rwlock_unlock(&l->lock));
  (void)l, (void)failed;
  GASWORKS_TOOLS_CHECK(!failed, where, "the lock cannot be given back");
}

#define gasnett_rwlock_init(l) gasworks_tools_rwlock_init((l), GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_destroy(l) gasworks_tools_rwlock_destroy((l), GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_rdlock(l) gasworks_tools_rwlock_lock((l), 0, GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_wrlock(l) gasworks_tools_rwlock_lock((l), 1, GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_tryrdlock(l) gasworks_tools_rwlock_try((l), 0, GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_trywrlock(l) gasworks_tools_rwlock_try((l), 1, GASWORKS_TOOLS_HERE)
#define gasnett_rwlock_unlock(l) gasworks_tools_rwlock_unlock((l), GASWORKS_TOOLS_HERE)
#if GASNET_DEBUG
#define gasnett_rwlock_assertrdlocked(l)                                                                               \
  GASWORKS_TOOLS_CHECK(gasworks_tools_has_readers(l), GASWORKS_TOOLS_HERE, "nobody holds the lock for reading")
#define gasnett_rwlock_assertwrlocked(l)                                                                               \
  GASWORKS_TOOLS_CHECK(gasworks_tools_is_owner(&(l)->owner), GASWORKS_TOOLS_HERE,                                      \
                       "this thread does not hold the lock for writing")
#define gasnett_rwlock_assertlocked(l)                                                                                 \
  GASWORKS_TOOLS_CHECK(gasworks_tools_has_readers(l) || gasworks_tools_is_owner(&(l)->owner), GASWORKS_TOOLS_HERE,     \
                       "this thread does not hold the lock")
#define gasnett_rwlock_assertunlocked(l)                                                                               \
  GASWORKS_TOOLS_CHECK(!gasworks_tools_is_owner(&(l)->owner), GASWORKS_TOOLS_HERE,                                     \
                       "this thread holds the lock for writing")
#else
#define gasnett_rwlock_assertrdlocked(l) ((void)(l))
#define gasnett_rwlock_assertwrlocked(l) ((void)(l))
#define gasnett_rwlock_assertlocked(l) ((void)(l))
#define gasnett_rwlock_assertunlocked(l) ((void)(l))
#endif

/* ---- a pointer for each thread, null until it is set. It is a structure, so that it is reached by these alone. ---- */

typedef struct {
  void *gasworks_pointer;
} gasworks_tools_threadkey_t;

#define GASNETT_THREADKEY_DECLARE(key) extern __thread gasworks_tools_threadkey_t key
#define GASNETT_THREADKEY_DEFINE(key) __thread gasworks_tools_threadkey_t key = {NULL}
/* There is nothing to be made at run time. It has the name of which clients take the address. */
GASNETT_INLINE(_gasneti_threadkey_init) void _gasneti_threadkey_init(gasworks_tools_threadkey_t *key) { (void)key; }
#define gasnett_threadkey_init(key) _gasneti_threadkey_init(&(key))
#define gasnett_threadkey_get(key) ((void *)(key).gasworks_pointer)
#define gasnett_threadkey_set(key, value) ((void)((key).gasworks_pointer = (void *)(value)))
#define gasnett_threadkey_get_noinit(key) gasnett_threadkey_get(key)
#define gasnett_threadkey_set_noinit(key, value) gasnett_threadkey_set(key, value)

#endif
