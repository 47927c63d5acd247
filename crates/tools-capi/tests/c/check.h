/* Comparing, for the programs of these tests. A failure names its line and ends the program. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                          \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

#define CHECK_TEXT(got, wanted)                                                                                        \
  do {                                                                                                                 \
    const char *const got_ = (got);                                                                                    \
    if (!got_ || strcmp(got_, (wanted))) {                                                                             \
      fprintf(stderr, "%s:%d: '%s', not '%s'\n", __FILE__, __LINE__, got_ ? got_ : "(null)", (wanted));                \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)
#endif
