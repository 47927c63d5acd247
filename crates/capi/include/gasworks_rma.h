/* Put, get and events. To a rank whose segment is mapped a put is a look at a table and a copy, here and without a call. */
#ifndef GASWORKS_RMA_H
#define GASWORKS_RMA_H

GASWORKS_BEGIN_C

/* What is more than a copy. */
extern int gasworks_put(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len, gex_Flags_t flags);
extern gex_Event_t gasworks_put_nb(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len,
                                   gex_Event_t *lc_opt, gex_Flags_t flags);
extern int gasworks_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len,
                            gex_Event_t *lc_opt, gex_Flags_t flags);
extern int gasworks_get(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len, gex_Flags_t flags);
extern gex_Event_t gasworks_get_nb(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len,
                                   gex_Flags_t flags);
extern int gasworks_get_nbi(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len, gex_Flags_t flags);

extern int gasworks_event_test(gex_Event_t event);
extern void gasworks_event_wait(gex_Event_t event);
extern int gasworks_event_test_array(gex_Event_t *events, size_t count, int all);
extern void gasworks_event_wait_array(gex_Event_t *events, size_t count, int all);
extern gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category);
extern int gasworks_nbi_test(gex_EC_t categories, gex_Flags_t flags);
extern void gasworks_nbi_wait(gex_EC_t categories, gex_Flags_t flags);
extern void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
extern gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags);

/* Whether a copy is all there is to it, and where the bytes of a rank's segment are mapped here. As in GASNet the rank and the place are
   believed, but in debug builds and with GASWORKS_CHECKED; room without access lies behind each segment. Plain loads, so that compilers take
   out of loops what stays: a row that another thread opens meanwhile is closed to this one a little longer. */
GASWORKS_INLINE int gasworks_row_open(const struct gasworks_row *row, const void *there, size_t len,
                                      unsigned char **here) {
#ifdef GASWORKS_CHECKED
  /* Of no bytes it never is, so that one subtraction serves both comparisons. */
  if (len - 1 >= row->open) return 0;
  if ((uint64_t)(uintptr_t)there + (uint64_t)row->delta - (uint64_t)(uintptr_t)row->mapped > row->open - len) return 0;
#else
  (void)len;
  if (!GASWORKS_LIKELY(row->open)) return 0;
#endif
  *here = (unsigned char *)((uintptr_t)there + (uintptr_t)row->delta);
  return 1;
}
GASWORKS_INLINE int gasworks_open(gex_TM_t tm, gex_Rank_t rank, const void *there, size_t len, unsigned char **here) {
#ifdef GASNET_DEBUG
  /* The library looks at everything. */
  if (1) return 0;
#endif
  if (!GASWORKS_LIKELY(tm)) return 0;
#ifdef GASWORKS_CHECKED
  if (rank >= tm->size) return 0;
#endif
  return gasworks_row_open((const struct gasworks_row *)(const void *)(tm->rows + (intptr_t)rank * tm->pitch), there,
                           len, here);
}

GASWORKS_INLINE int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len,
                                        gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open))
    return gasworks_put(tm, rank, dest, source, len, flags);
  memcpy(open, source, len);
  return 0;
}

GASWORKS_INLINE gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len,
                                          gex_Event_t *lc_opt, gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open))
    return gasworks_put_nb(tm, rank, dest, source, len, lc_opt, flags);
  memcpy(open, source, len);
  if ((uintptr_t)lc_opt > (uintptr_t)GEX_EVENT_GROUP) *lc_opt = GEX_EVENT_INVALID;
  return GEX_EVENT_INVALID;
}

GASWORKS_INLINE int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, size_t len,
                                   gex_Event_t *lc_opt, gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open))
    return gasworks_put_nbi(tm, rank, dest, source, len, lc_opt, flags);
  memcpy(open, source, len);
  return 0;
}

GASWORKS_INLINE int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len,
                                        gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, source, len, &open))
    return gasworks_get(tm, dest, rank, source, len, flags);
  memcpy(dest, open, len);
  return 0;
}

GASWORKS_INLINE gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len,
                                          gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, source, len, &open))
    return gasworks_get_nb(tm, dest, rank, source, len, flags);
  memcpy(dest, open, len);
  return GEX_EVENT_INVALID;
}

GASWORKS_INLINE int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source, size_t len,
                                   gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, source, len, &open))
    return gasworks_get_nbi(tm, dest, rank, source, len, flags);
  memcpy(dest, open, len);
  return 0;
}

/* The bytes of a value that lie in its low-order end. */
#ifdef GASNET_DEBUG
extern void gasworks_check_value(size_t len);
#endif
GASWORKS_INLINE const void *gasworks_low_bytes(const gex_RMA_Value_t *value, size_t len) {
#ifdef GASNET_DEBUG
  gasworks_check_value(len);
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return (const unsigned char *)value + (sizeof *value - len);
#else
  (void)len;
  return value;
#endif
}

/* A value of bytes where they lie, and the other way round: of lengths that the compiler knows, in registers. Where a value is put
   into memory, a load of all of it waits for a store of less: that is done only where more is to be done than a copy. */
GASWORKS_INLINE gex_RMA_Value_t gasworks_value_at(const unsigned char *at, size_t len) {
  gex_RMA_Value_t value = 0;
  if (len == 1) return *at;
  if (len == 2) {
    uint16_t two;
    memcpy(&two, at, 2);
    return two;
  }
  if (len == 4) {
    uint32_t four;
    memcpy(&four, at, 4);
    return four;
  }
  memcpy((void *)gasworks_low_bytes(&value, len), at, len);
  return value;
}
GASWORKS_INLINE void gasworks_value_to(unsigned char *at, gex_RMA_Value_t value, size_t len) {
  memcpy(at, gasworks_low_bytes(&value, len), len);
}

GASWORKS_INLINE int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t len,
                                           gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open)) {
    gex_RMA_Value_t kept = value;
    return gasworks_put(tm, rank, dest, gasworks_low_bytes(&kept, len), len, flags);
  }
  gasworks_value_to(open, value, len);
  return 0;
}

GASWORKS_INLINE gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                                             size_t len, gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open)) {
    gex_RMA_Value_t kept = value;
    return gasworks_put_nb(tm, rank, dest, gasworks_low_bytes(&kept, len), len, GEX_EVENT_NOW, flags);
  }
  gasworks_value_to(open, value, len);
  return GEX_EVENT_INVALID;
}

GASWORKS_INLINE int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t len,
                                      gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, dest, len, &open)) {
    gex_RMA_Value_t kept = value;
    return gasworks_put_nbi(tm, rank, dest, gasworks_low_bytes(&kept, len), len, GEX_EVENT_NOW, flags);
  }
  gasworks_value_to(open, value, len);
  return 0;
}

GASWORKS_INLINE gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *source, size_t len,
                                                       gex_Flags_t flags) {
  unsigned char *open = NULL;
  if (!gasworks_open(tm, rank, source, len, &open)) {
    gex_RMA_Value_t value = 0;
    (void)gasworks_get(tm, (void *)gasworks_low_bytes(&value, len), rank, source, len, flags & ~GEX_FLAG_IMMEDIATE);
    return value;
  }
  return gasworks_value_at(open, len);
}

GASWORKS_INLINE int gex_Event_Test(gex_Event_t event) {
  return event == GEX_EVENT_INVALID ? GASNET_OK : gasworks_event_test(event);
}
GASWORKS_INLINE void gex_Event_Wait(gex_Event_t event) {
  if (event != GEX_EVENT_INVALID) gasworks_event_wait(event);
}
GASWORKS_INLINE int gex_Event_TestSome(gex_Event_t *events, size_t count, gex_Flags_t flags) {
  (void)flags;
  return gasworks_event_test_array(events, count, 0);
}
GASWORKS_INLINE int gex_Event_TestAll(gex_Event_t *events, size_t count, gex_Flags_t flags) {
  (void)flags;
  return gasworks_event_test_array(events, count, 1);
}
GASWORKS_INLINE void gex_Event_WaitSome(gex_Event_t *events, size_t count, gex_Flags_t flags) {
  (void)flags;
  gasworks_event_wait_array(events, count, 0);
}
GASWORKS_INLINE void gex_Event_WaitAll(gex_Event_t *events, size_t count, gex_Flags_t flags) {
  (void)flags;
  gasworks_event_wait_array(events, count, 1);
}
GASWORKS_INLINE int gex_NBI_Test(gex_EC_t categories, gex_Flags_t flags) {
  return gasworks_nbi_test(categories, flags);
}
#define gex_NBI_Wait(categories, flags) gasworks_nbi_wait(categories, flags)

GASWORKS_END_C

#endif
