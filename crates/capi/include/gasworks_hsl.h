/* Handler-safe locks. In SEQ one thread does everything, and there is nothing to lock. */
#ifndef GASWORKS_HSL_H
#define GASWORKS_HSL_H

GASWORKS_BEGIN_C

#if defined(GASNET_SEQ) && !defined(GASNET_DEBUG)
typedef struct {
  char nothing;
} gex_HSL_t;
#define GEX_HSL_INITIALIZER \
  { 0 }
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
typedef struct {
  uint64_t state[2];
} gex_HSL_t;
#define GEX_HSL_INITIALIZER \
  {                         \
    { 0, 0 }                \
  }
extern void gasworks_hsl_init(gex_HSL_t *lock);
extern void gasworks_hsl_destroy(gex_HSL_t *lock);
extern void gasworks_hsl_lock(gex_HSL_t *lock);
extern void gasworks_hsl_unlock(gex_HSL_t *lock);
extern int gasworks_hsl_trylock(gex_HSL_t *lock);
#define gex_HSL_Init(lock) gasworks_hsl_init(lock)
#define gex_HSL_Destroy(lock) gasworks_hsl_destroy(lock)
#define gex_HSL_Lock(lock) gasworks_hsl_lock(lock)
#define gex_HSL_Unlock(lock) gasworks_hsl_unlock(lock)
#define gex_HSL_Trylock(lock) gasworks_hsl_trylock(lock)
#endif

GASWORKS_END_C

#endif
