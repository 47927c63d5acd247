/* Ends the program, and tells the line, where something is not as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

/* A call that is to return a code. */
#define GIVES(call, code)                                                                           \
    do {                                                                                            \
        int got_ = (int)(call);                                                                     \
        if (got_ != (int)(code)) {                                                                  \
            fprintf(stderr, "%s:%d: %s: got %d, not %s\n", __FILE__, __LINE__, #call, got_, #code); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

#define OK(call) GIVES(call, 0)
