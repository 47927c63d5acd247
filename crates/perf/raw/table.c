/* All measurements by number, as `Measurement` of src/call.rs counts them. */
#include "raw.h"

#define ALL(X) \
    X(raw_line, raw_line_names) \
    X(raw_trip, raw_trip_names) \
    X(raw_message, raw_message_names) \
    X(raw_stream, raw_stream_names) \
    X(raw_unread, raw_block_names) \
    X(raw_checked, raw_block_names) \
    X(raw_barrier, raw_barrier_names) \
    X(raw_warm, raw_copy_names) \
    X(raw_cold, raw_copy_names) \
    X(raw_atomic, raw_atomic_names) \
    X(raw_wake, raw_wake_names) \
    X(raw_share, raw_share_names)

#define DECLARE(function, names) \
    measurement function; \
    extern const char *const names[];
ALL(DECLARE)

#define ENTRY(function, names) {function, names},
static const struct {
    measurement *run;
    const char *const *names;
} table[] = {ALL(ENTRY)};

uint64_t raw_run(uint32_t which, const struct call *c) { return table[which].run(c); }

/* The name of a variant; null after the last one. */
const char *raw_name(uint32_t which, uint32_t variant) { return table[which].names[variant]; }
