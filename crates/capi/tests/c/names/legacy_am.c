/* The active messages of GASNet-1, each with 0 to 16 arguments, by their numbered names and by the one that counts. */
#include <gasnet.h>

/* A counted name that counted wrong would not compile. */
#define NAMES_AM(name, ...)                                                                                 \
  (name##0(__VA_ARGS__) + name##1(__VA_ARGS__, 1) + name##2(__VA_ARGS__, 1, 2) +                            \
   name##3(__VA_ARGS__, 1, 2, 3) + name##4(__VA_ARGS__, 1, 2, 3, 4) +                                       \
   name##5(__VA_ARGS__, 1, 2, 3, 4, 5) + name##6(__VA_ARGS__, 1, 2, 3, 4, 5, 6) +                           \
   name##7(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7) + name##8(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8) +               \
   name##9(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9) + name##10(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) + \
   name##11(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) +                                               \
   name##12(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) +                                           \
   name##13(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13) +                                       \
   name##14(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14) +                                   \
   name##15(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) +                               \
   name##16(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
#define NAMES_AM_COUNTED(name, ...)                                                                         \
  (name(__VA_ARGS__) + name(__VA_ARGS__, 1) + name(__VA_ARGS__, 1, 2) + name(__VA_ARGS__, 1, 2, 3) +        \
   name(__VA_ARGS__, 1, 2, 3, 4) + name(__VA_ARGS__, 1, 2, 3, 4, 5) +                                       \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6) + name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7) +                           \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8) + name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9) +               \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) +                                                       \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) +                                                   \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) +                                               \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13) +                                           \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14) +                                       \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) +                                   \
   name(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
#define NAMES_BOTH(name, ...) (NAMES_AM(name, __VA_ARGS__) + NAMES_AM_COUNTED(name, __VA_ARGS__))

int names_requests(gasnet_node_t node, gasnet_handler_t handler, void *source, size_t len, void *dest);
int names_requests(gasnet_node_t node, gasnet_handler_t handler, void *source, size_t len, void *dest) {
  return NAMES_BOTH(gasnet_AMRequestShort, node, handler) +
         NAMES_BOTH(gasnet_AMRequestMedium, node, handler, source, len) +
         NAMES_BOTH(gasnet_AMRequestLong, node, handler, source, len, dest) +
         NAMES_BOTH(gasnet_AMRequestLongAsync, node, handler, source, len, dest);
}

int names_replies(gasnet_token_t token, gasnet_handler_t handler, void *source, size_t len, void *dest);
int names_replies(gasnet_token_t token, gasnet_handler_t handler, void *source, size_t len, void *dest) {
  return NAMES_BOTH(gasnet_AMReplyShort, token, handler) +
         NAMES_BOTH(gasnet_AMReplyMedium, token, handler, source, len) +
         NAMES_BOTH(gasnet_AMReplyLong, token, handler, source, len, dest);
}
