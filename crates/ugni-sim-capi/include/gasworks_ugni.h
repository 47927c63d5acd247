/*
 * What the software NIC has beside the genuine libraries' functions.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef GASWORKS_UGNI_H
#define GASWORKS_UGNI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Marks a place in the program with a number of its choice. Where GASWORKS_UGNI_WITNESS is set, what has been counted so far is
 * written down for it; where GASWORKS_UGNI_TRACE is set, the clock knows when the process came there.
 */
void gasworks_ugni_mark(uint64_t number);

#ifdef __cplusplus
}
#endif

#endif /* GASWORKS_UGNI_H */
