/*
 * What a process asks ALPS, as Gasworks plays it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef ALPS_LIBALPSLLI_H
#define ALPS_LIBALPSLLI_H

#include <alps/alps.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Requests. The answers are a uint64_t, the number of the application; and an alpsAppLLIGni_t. */
#define ALPS_APP_LLI_ALPS_REQ_APID 1
#define ALPS_APP_LLI_ALPS_REQ_GNI 2

/* What becomes of one: it is answered, nobody can be asked, or there is no such request. */
#define ALPS_APP_LLI_ALPS_STAT_OK 0
#define ALPS_APP_LLI_ALPS_STAT_ERROR 1
#define ALPS_APP_LLI_ALPS_STAT_UNKNOWN 2

/*
 * A conversation, of one thread at a time: lock, put_request, get_response, get_response_bytes (in parts, if one likes), unlock.
 * All return ALPS_APP_LLI_ALPS_STAT_OK, or -1: the thread has not locked or has already, nothing was asked, a pointer is
 * null, or fewer bytes are left. A request takes no data.
 *
 * The first request of a process that has not initialised PMI is answered to it alone under gasrun on one host, and is collective over
 * the ranks of its job elsewhere. It leaves what PMI_Init leaves in the environment, so no other thread may use the environment
 * meanwhile.
 */
int alps_app_lli_lock(void);
int alps_app_lli_unlock(void);
int alps_app_lli_put_request(int request, void *data, size_t len);
int alps_app_lli_get_response(int *status, size_t *count);
int alps_app_lli_get_response_bytes(void *to, size_t len);

#ifdef __cplusplus
}
#endif

#endif /* ALPS_LIBALPSLLI_H */
