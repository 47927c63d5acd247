/* Active messages by the number of their arguments: gex_AM_RequestShort3, and gex_AM_RequestShort, which counts them. */
#ifndef GASWORKS_AM_H
#define GASWORKS_AM_H

/* Parameters for so many arguments, and what gathers them. */
#define GASWORKS_PARAMETERS_0
#define GASWORKS_PARAMETERS_1 , gex_AM_Arg_t gasworks_a0
#define GASWORKS_PARAMETERS_2 GASWORKS_PARAMETERS_1 , gex_AM_Arg_t gasworks_a1
#define GASWORKS_PARAMETERS_3 GASWORKS_PARAMETERS_2 , gex_AM_Arg_t gasworks_a2
#define GASWORKS_PARAMETERS_4 GASWORKS_PARAMETERS_3 , gex_AM_Arg_t gasworks_a3
#define GASWORKS_PARAMETERS_5 GASWORKS_PARAMETERS_4 , gex_AM_Arg_t gasworks_a4
#define GASWORKS_PARAMETERS_6 GASWORKS_PARAMETERS_5 , gex_AM_Arg_t gasworks_a5
#define GASWORKS_PARAMETERS_7 GASWORKS_PARAMETERS_6 , gex_AM_Arg_t gasworks_a6
#define GASWORKS_PARAMETERS_8 GASWORKS_PARAMETERS_7 , gex_AM_Arg_t gasworks_a7
#define GASWORKS_PARAMETERS_9 GASWORKS_PARAMETERS_8 , gex_AM_Arg_t gasworks_a8
#define GASWORKS_PARAMETERS_10 GASWORKS_PARAMETERS_9 , gex_AM_Arg_t gasworks_a9
#define GASWORKS_PARAMETERS_11 GASWORKS_PARAMETERS_10 , gex_AM_Arg_t gasworks_a10
#define GASWORKS_PARAMETERS_12 GASWORKS_PARAMETERS_11 , gex_AM_Arg_t gasworks_a11
#define GASWORKS_PARAMETERS_13 GASWORKS_PARAMETERS_12 , gex_AM_Arg_t gasworks_a12
#define GASWORKS_PARAMETERS_14 GASWORKS_PARAMETERS_13 , gex_AM_Arg_t gasworks_a13
#define GASWORKS_PARAMETERS_15 GASWORKS_PARAMETERS_14 , gex_AM_Arg_t gasworks_a14
#define GASWORKS_PARAMETERS_16 GASWORKS_PARAMETERS_15 , gex_AM_Arg_t gasworks_a15
#define GASWORKS_GATHERED_0 0
#define GASWORKS_GATHERED_1 gasworks_a0
#define GASWORKS_GATHERED_2 GASWORKS_GATHERED_1, gasworks_a1
#define GASWORKS_GATHERED_3 GASWORKS_GATHERED_2, gasworks_a2
#define GASWORKS_GATHERED_4 GASWORKS_GATHERED_3, gasworks_a3
#define GASWORKS_GATHERED_5 GASWORKS_GATHERED_4, gasworks_a4
#define GASWORKS_GATHERED_6 GASWORKS_GATHERED_5, gasworks_a5
#define GASWORKS_GATHERED_7 GASWORKS_GATHERED_6, gasworks_a6
#define GASWORKS_GATHERED_8 GASWORKS_GATHERED_7, gasworks_a7
#define GASWORKS_GATHERED_9 GASWORKS_GATHERED_8, gasworks_a8
#define GASWORKS_GATHERED_10 GASWORKS_GATHERED_9, gasworks_a9
#define GASWORKS_GATHERED_11 GASWORKS_GATHERED_10, gasworks_a10
#define GASWORKS_GATHERED_12 GASWORKS_GATHERED_11, gasworks_a11
#define GASWORKS_GATHERED_13 GASWORKS_GATHERED_12, gasworks_a12
#define GASWORKS_GATHERED_14 GASWORKS_GATHERED_13, gasworks_a13
#define GASWORKS_GATHERED_15 GASWORKS_GATHERED_14, gasworks_a14
#define GASWORKS_GATHERED_16 GASWORKS_GATHERED_15, gasworks_a15
#define GASWORKS_EACH_COUNT(make) \
  make(0) make(1) make(2) make(3) make(4) make(5) make(6) make(7) make(8) \
  make(9) make(10) make(11) make(12) make(13) make(14) make(15) make(16)

/* How many arguments follow the first three to eight that every such call has. */
#define GASWORKS_COUNT_3_(f0, f1, f2, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_3(...) GASWORKS_COUNT_3_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define GASWORKS_COUNT_4_(f0, f1, f2, f3, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_4(...) GASWORKS_COUNT_4_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define GASWORKS_COUNT_5_(f0, f1, f2, f3, f4, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_5(...) GASWORKS_COUNT_5_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define GASWORKS_COUNT_6_(f0, f1, f2, f3, f4, f5, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_6(...) GASWORKS_COUNT_6_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define GASWORKS_COUNT_7_(f0, f1, f2, f3, f4, f5, f6, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_7(...) GASWORKS_COUNT_7_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define GASWORKS_COUNT_8_(f0, f1, f2, f3, f4, f5, f6, f7, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, n, ...) n
#define GASWORKS_COUNT_8(...) GASWORKS_COUNT_8_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )

GASWORKS_BEGIN_C

/* What they all come to. A return value other than 0 says that nothing was sent, for there was no room at once. */
extern int gasworks_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
                                  const gex_AM_Arg_t *args, unsigned int nargs);
extern int gasworks_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source,
                                   size_t len, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args,
                                   unsigned int nargs);
extern int gasworks_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *source, size_t len,
                                 void *dest, gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args,
                                 unsigned int nargs);
extern int gasworks_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags, const gex_AM_Arg_t *args,
                                unsigned int nargs);
extern int gasworks_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t len,
                                 gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args, unsigned int nargs);
extern int gasworks_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void *source, size_t len, void *dest,
                               gex_Event_t *lc_opt, gex_Flags_t flags, const gex_AM_Arg_t *args, unsigned int nargs);

/* Sends what was prepared: a request or a reply, a Medium or (with a destination) a Long. */
extern int gasworks_commit(gex_AM_SrcDesc_t source, unsigned int kind, gex_AM_Index_t handler, size_t len, void *dest,
                           gex_Flags_t flags, const gex_AM_Arg_t *args, unsigned int nargs);
#define GASWORKS_REQUEST_MEDIUM 0u
#define GASWORKS_REQUEST_LONG 1u
#define GASWORKS_REPLY_MEDIUM 2u
#define GASWORKS_REPLY_LONG 3u

GASWORKS_END_C

#define GASWORKS_MAKE_REQUEST_SHORT(n)                                                                             \
  GASWORKS_INLINE int gex_AM_RequestShort##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,                 \
                                             gex_Flags_t flags GASWORKS_PARAMETERS_##n) {                          \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_request_short(tm, rank, handler, flags, args, n);                                              \
  }
#define GASWORKS_MAKE_REQUEST_MEDIUM(n)                                                                            \
  GASWORKS_INLINE int gex_AM_RequestMedium##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,                \
                                              const void *source, size_t len, gex_Event_t *lc_opt,                 \
                                              gex_Flags_t flags GASWORKS_PARAMETERS_##n) {                         \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_request_medium(tm, rank, handler, source, len, lc_opt, flags, args, n);                        \
  }
#define GASWORKS_MAKE_REQUEST_LONG(n)                                                                              \
  GASWORKS_INLINE int gex_AM_RequestLong##n(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,                  \
                                            const void *source, size_t len, void *dest, gex_Event_t *lc_opt,       \
                                            gex_Flags_t flags GASWORKS_PARAMETERS_##n) {                           \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_request_long(tm, rank, handler, source, len, dest, lc_opt, flags, args, n);                    \
  }
#define GASWORKS_MAKE_REPLY_SHORT(n)                                                                               \
  GASWORKS_INLINE int gex_AM_ReplyShort##n(gex_Token_t token, gex_AM_Index_t handler,                              \
                                           gex_Flags_t flags GASWORKS_PARAMETERS_##n) {                            \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_reply_short(token, handler, flags, args, n);                                                   \
  }
#define GASWORKS_MAKE_REPLY_MEDIUM(n)                                                                              \
  GASWORKS_INLINE int gex_AM_ReplyMedium##n(gex_Token_t token, gex_AM_Index_t handler, const void *source,         \
                                            size_t len, gex_Event_t *lc_opt, gex_Flags_t flags                     \
                                                GASWORKS_PARAMETERS_##n) {                                         \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_reply_medium(token, handler, source, len, lc_opt, flags, args, n);                             \
  }
#define GASWORKS_MAKE_REPLY_LONG(n)                                                                                \
  GASWORKS_INLINE int gex_AM_ReplyLong##n(gex_Token_t token, gex_AM_Index_t handler, const void *source,           \
                                          size_t len, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags           \
                                              GASWORKS_PARAMETERS_##n) {                                           \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_reply_long(token, handler, source, len, dest, lc_opt, flags, args, n);                         \
  }
#define GASWORKS_MAKE_COMMIT_MEDIUM(way, kind, n)                                                                  \
  GASWORKS_INLINE int gex_AM_Commit##way##Medium##n##_v2(gex_AM_SrcDesc_t source, gex_AM_Index_t handler,          \
                                                         size_t len, gex_Flags_t flags GASWORKS_PARAMETERS_##n) {  \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_commit(source, kind, handler, len, NULL, flags, args, n);                                      \
  }                                                                                                                \
  GASWORKS_INLINE void gex_AM_Commit##way##Medium##n(gex_AM_SrcDesc_t source, gex_AM_Index_t handler,              \
                                                     size_t len GASWORKS_PARAMETERS_##n) {                         \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    (void)gasworks_commit(source, kind, handler, len, NULL, 0, args, n);                                           \
  }
#define GASWORKS_MAKE_COMMIT_LONG(way, kind, n)                                                                    \
  GASWORKS_INLINE int gex_AM_Commit##way##Long##n##_v2(gex_AM_SrcDesc_t source, gex_AM_Index_t handler,            \
                                                       size_t len, void *dest,                                     \
                                                       gex_Flags_t flags GASWORKS_PARAMETERS_##n) {                \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    return gasworks_commit(source, kind, handler, len, dest, flags, args, n);                                      \
  }                                                                                                                \
  GASWORKS_INLINE void gex_AM_Commit##way##Long##n(gex_AM_SrcDesc_t source, gex_AM_Index_t handler, size_t len,    \
                                                   void *dest GASWORKS_PARAMETERS_##n) {                           \
    const gex_AM_Arg_t args[] = {GASWORKS_GATHERED_##n};                                                           \
    (void)gasworks_commit(source, kind, handler, len, dest, 0, args, n);                                           \
  }
#define GASWORKS_MAKE_ALL(n)                                                                                       \
  GASWORKS_MAKE_REQUEST_SHORT(n)                                                                                   \
  GASWORKS_MAKE_REQUEST_MEDIUM(n)                                                                                  \
  GASWORKS_MAKE_REQUEST_LONG(n)                                                                                    \
  GASWORKS_MAKE_REPLY_SHORT(n)                                                                                     \
  GASWORKS_MAKE_REPLY_MEDIUM(n)                                                                                    \
  GASWORKS_MAKE_REPLY_LONG(n)                                                                                      \
  GASWORKS_MAKE_COMMIT_MEDIUM(Request, GASWORKS_REQUEST_MEDIUM, n)                                                 \
  GASWORKS_MAKE_COMMIT_LONG(Request, GASWORKS_REQUEST_LONG, n)                                                     \
  GASWORKS_MAKE_COMMIT_MEDIUM(Reply, GASWORKS_REPLY_MEDIUM, n)                                                     \
  GASWORKS_MAKE_COMMIT_LONG(Reply, GASWORKS_REPLY_LONG, n)
GASWORKS_EACH_COUNT(GASWORKS_MAKE_ALL)

/* The forms that count. */
#define GASWORKS_COUNTED(name, count, ...) GASWORKS_CAT(name, count)(__VA_ARGS__)
#define GASWORKS_COUNTED_V2(name, count, ...) GASWORKS_CAT(GASWORKS_CAT(name, count), _v2)(__VA_ARGS__)
#define gex_AM_RequestShort(...) GASWORKS_COUNTED(gex_AM_RequestShort, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_RequestMedium(...) GASWORKS_COUNTED(gex_AM_RequestMedium, GASWORKS_COUNT_7(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_RequestLong(...) GASWORKS_COUNTED(gex_AM_RequestLong, GASWORKS_COUNT_8(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_ReplyShort(...) GASWORKS_COUNTED(gex_AM_ReplyShort, GASWORKS_COUNT_3(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_ReplyMedium(...) GASWORKS_COUNTED(gex_AM_ReplyMedium, GASWORKS_COUNT_6(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_ReplyLong(...) GASWORKS_COUNTED(gex_AM_ReplyLong, GASWORKS_COUNT_7(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitRequestMedium(...) \
  GASWORKS_COUNTED(gex_AM_CommitRequestMedium, GASWORKS_COUNT_3(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitRequestMedium_v2(...) \
  GASWORKS_COUNTED_V2(gex_AM_CommitRequestMedium, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitRequestLong(...) \
  GASWORKS_COUNTED(gex_AM_CommitRequestLong, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...) \
  GASWORKS_COUNTED_V2(gex_AM_CommitRequestLong, GASWORKS_COUNT_5(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitReplyMedium(...) \
  GASWORKS_COUNTED(gex_AM_CommitReplyMedium, GASWORKS_COUNT_3(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...) \
  GASWORKS_COUNTED_V2(gex_AM_CommitReplyMedium, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitReplyLong(...) \
  GASWORKS_COUNTED(gex_AM_CommitReplyLong, GASWORKS_COUNT_4(__VA_ARGS__), __VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...) \
  GASWORKS_COUNTED_V2(gex_AM_CommitReplyLong, GASWORKS_COUNT_5(__VA_ARGS__), __VA_ARGS__)

#endif
