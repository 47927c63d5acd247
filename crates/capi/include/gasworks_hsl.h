/* Handler-safe locks. In SEQ one thread does everything, and there is nothing to lock. Elsewhere a lock is a mutex of the tools, so that
 * a thread waits for a condition with its member lock. */
#ifndef GASWORKS_HSL_H
#define GASWORKS_HSL_H

#if defined(GASNET_SEQ)
#ifdef GASNET_DEBUG
#include <pthread.h>
#endif
typedef struct {
  uintptr_t lock; /* who has it, in debug builds */
} gex_HSL_t;
#define GEX_HSL_INITIALIZER \
  { 0 }
#else
#include <gasnet_tools_mutex.h>
typedef struct {
  gasnett_mutex_t lock;
} gex_HSL_t;
/* One that says when it is locked twice by one thread, or unlocked by another, if the C library has such a one. */
#if defined(__PTHREAD_MUTEX_INITIALIZER)
#define GASWORKS_HSL_FREE \
  {                       \
    { __PTHREAD_MUTEX_INITIALIZER(PTHREAD_MUTEX_ERRORCHECK_NP) } \
  }
#else
#define GASWORKS_HSL_FREE PTHREAD_MUTEX_INITIALIZER
#endif
#ifdef GASNET_DEBUG
#define GEX_HSL_INITIALIZER \
  {                         \
    { GASWORKS_HSL_FREE, GASWORKS_TOOLS_NO_OWNER } \
  }
#else
#define GEX_HSL_INITIALIZER \
  {                         \
    { GASWORKS_HSL_FREE }   \
  }
#endif
#endif

GASWORKS_BEGIN_C

#if defined(GASNET_SEQ) && !defined(GASNET_DEBUG)
#define gex_HSL_Init(lock) ((void)(lock))
#define gex_HSL_Destroy(lock) ((void)(lock))
#define gex_HSL_Lock(lock) ((void)(lock))
#define gex_HSL_Unlock(lock) ((void)(lock))
#define gex_HSL_Trylock(lock) gasworks_hsl_alone(lock)
GASWORKS_INLINE int gasworks_hsl_alone(gex_HSL_t *lock) {
  (void)lock;
  return GASNET_OK;
}
#else
/* The calls: the lock, if there can be one; what is wrong with a call, by the code that a mutex gives; and that this thread has one more lock, or one less. */
extern void *gasworks_hsl_check(const char *call, void *lock);
extern int gasworks_hsl_wrong(const char *call, int error, int is_taken);
extern void gasworks_hsl_taken(void);
extern void gasworks_hsl_left(void);

#ifdef GASNET_SEQ
GASWORKS_INLINE int gasworks_hsl_begin(gex_HSL_t *lock) {
  const uintptr_t own = (uintptr_t)pthread_self();
  if (lock->lock) return lock->lock == own ? EDEADLK : EBUSY;
  lock->lock = own;
  return 0;
}
GASWORKS_INLINE int gasworks_hsl_end(gex_HSL_t *lock) {
  if (lock->lock != (uintptr_t)pthread_self()) return EPERM;
  lock->lock = 0;
  return 0;
}
#define gasworks_hsl_try(given) gasworks_hsl_begin(given)
#define gasworks_hsl_is_taken(given) ((given)->lock != 0)
#define gasworks_hsl_over(given) ((given)->lock ? EBUSY : 0)
#else
GASWORKS_INLINE int gasworks_hsl_begin(gex_HSL_t *lock) {
  const int error = pthread_mutex_lock(&lock->lock.lock);
  if (!error) gasworks_tools_own(&lock->lock.owner);
  return error;
}
GASWORKS_INLINE int gasworks_hsl_end(gex_HSL_t *lock) {
#ifdef GASNET_DEBUG
  if (!gasworks_tools_is_owner(&lock->lock.owner)) return EPERM;
#endif
  gasworks_tools_disown(&lock->lock.owner);
  return pthread_mutex_unlock(&lock->lock.lock);
}
GASWORKS_INLINE int gasworks_hsl_try(gex_HSL_t *lock) {
  int error;
#ifdef GASNET_DEBUG
  if (gasworks_tools_is_owner(&lock->lock.owner)) return EDEADLK;
#endif
  error = pthread_mutex_trylock(&lock->lock.lock);
  if (!error) gasworks_tools_own(&lock->lock.owner);
  return error;
}
GASWORKS_INLINE int gasworks_hsl_is_taken(gex_HSL_t *given) {
  const int is_taken = pthread_mutex_trylock(&given->lock.lock) != 0;
  if (!is_taken) (void)pthread_mutex_unlock(&given->lock.lock);
  return is_taken;
}
#define gasworks_hsl_over(given) pthread_mutex_destroy(&(given)->lock.lock)
#endif

GASWORKS_INLINE void gasworks_hsl_init(gex_HSL_t *lock) {
  const gex_HSL_t unused = GEX_HSL_INITIALIZER;
  lock = (gex_HSL_t *)gasworks_hsl_check("gex_HSL_Init", lock);
  *lock = unused;
}
GASWORKS_INLINE void gasworks_hsl_destroy(gex_HSL_t *lock) {
  int error;
  lock = (gex_HSL_t *)gasworks_hsl_check("gex_HSL_Destroy", lock);
  error = gasworks_hsl_over(lock);
  if (error) (void)gasworks_hsl_wrong("gex_HSL_Destroy", error, 1);
}
GASWORKS_INLINE void gasworks_hsl_lock(gex_HSL_t *lock) {
  int error;
  lock = (gex_HSL_t *)gasworks_hsl_check("gex_HSL_Lock", lock);
  error = gasworks_hsl_begin(lock);
  if (error) (void)gasworks_hsl_wrong("gex_HSL_Lock", error, 1);
  gasworks_hsl_taken();
}
GASWORKS_INLINE int gasworks_hsl_trylock(gex_HSL_t *lock) {
  int error;
  lock = (gex_HSL_t *)gasworks_hsl_check("gex_HSL_Trylock", lock);
  error = gasworks_hsl_try(lock);
  if (error) return gasworks_hsl_wrong("gex_HSL_Trylock", error, 1);
  gasworks_hsl_taken();
  return GASNET_OK;
}
GASWORKS_INLINE void gasworks_hsl_unlock(gex_HSL_t *lock) {
  int error;
  lock = (gex_HSL_t *)gasworks_hsl_check("gex_HSL_Unlock", lock);
  error = gasworks_hsl_end(lock);
  if (error) (void)gasworks_hsl_wrong("gex_HSL_Unlock", error, gasworks_hsl_is_taken(lock));
  else gasworks_hsl_left();
}
#define gex_HSL_Init(lock) gasworks_hsl_init(lock)
#define gex_HSL_Destroy(lock) gasworks_hsl_destroy(lock)
#define gex_HSL_Lock(lock) gasworks_hsl_lock(lock)
#define gex_HSL_Unlock(lock) gasworks_hsl_unlock(lock)
#define gex_HSL_Trylock(lock) gasworks_hsl_trylock(lock)
#endif

GASWORKS_END_C

#endif
