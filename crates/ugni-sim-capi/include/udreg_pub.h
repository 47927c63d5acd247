/*
 * UDREG, the cache of registrations that clients of uGNI use, as Gasworks' software NIC offers it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The genuine header was never public. The names are those that programs use; order, sizes and values are ours.
 */
#ifndef UDREG_PUB_H
#define UDREG_PUB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns. */
typedef enum udreg_return {
    UDREG_RC_SUCCESS = 0,
    UDREG_RC_INVALID_PARAM = 1,
    UDREG_RC_NO_SPACE = 2,
    UDREG_RC_NO_MATCH = 3,
    UDREG_RC_ERROR_NO_DEVICE = 4,
} udreg_return_t;

/* Bytes of the name of a cache, without the zero at its end. */
#define UDREG_MAX_CACHENAME_LEN 63

/*
 * Modes of a cache. LAZY_DEREG: a registration that is unregistered stays until it is thrown out. EVICT_W_UNREG: where it stays and
 * the cache is full, the one that has waited longest is thrown out. The others change nothing here: a registration of the
 * software NIC is of addresses, whatever is mapped there.
 */
#define UDREG_CC_MODE_USE_LAZY_DEREG 1
#define UDREG_CC_MODE_USE_EVICT_W_UNREG 2
#define UDREG_CC_MODE_USE_LARGE_PAGES 4
#define UDREG_CC_MODE_USE_KERNEL_CACHE 8

/* Statistics of a cache. */
typedef enum udreg_stat {
    UDREG_STAT_CACHE_HIT = 0,
    UDREG_STAT_CACHE_MISS = 1,
    UDREG_STAT_CACHE_EVICTED = 2,
} udreg_stat_t;

/* What a function that registers returns if it could not, for another reason than lack of room: null is for that. */
#define UDREG_DEVICE_REG_FAILED ((void *)-1)

/*
 * How a cache is to be. Its name is its own in the process. The functions are called without any lock held, so they may use
 * UDREG. That a registration could not be ended changes nothing: it has left the cache.
 */
typedef struct udreg_cache_attr {
    char cache_name[UDREG_MAX_CACHENAME_LEN + 1];
    unsigned int max_entries;
    unsigned int modes;
    int debug_mode;
    int debug_rank;
    void *reg_context;
    void *dreg_context;
    void *destructor_context;
    void *(*device_reg_func)(void *address, uint64_t length, void *context);
    uint32_t (*device_dereg_func)(void *device_data, void *context);
    void (*destructor_callback)(void *context);
} udreg_cache_attr_t;

/* An open cache. */
typedef struct udreg_cache *udreg_cache_handle_t;

/* A registration that is used: what the function that registers has returned. */
typedef struct udreg_entry {
    void *device_data;
} udreg_entry_t;

/*
 * What is null, was never given, is not used or was destroyed: UDREG_RC_INVALID_PARAM. A cache is opened by CacheAccess as often as
 * one likes, and can be used until it is released as often. CacheDestroy ends all of its registrations, used or not.
 */
udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr);
udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *handle);
udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle);
udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle);
/*
 * One more use of a registration that covers the bytes, made if there is none. UDREG_RC_NO_SPACE: the cache is full, used or
 * not (UDREG_Evict makes room), or the function that registers had none. UDREG_RC_INVALID_PARAM: that function failed.
 */
udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void *address, uint64_t length, udreg_entry_t **entry);
/* One use less. What nobody uses then goes if the mode is not to be lazy; after DecrRefcount it stays in any mode. */
udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t *entry);
udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t *entry);
/* Throws out the registration that has waited longest for a use. UDREG_RC_NO_MATCH: all are used. */
udreg_return_t UDREG_Evict(udreg_cache_handle_t handle);
udreg_return_t UDREG_GetStat(udreg_cache_handle_t handle, udreg_stat_t stat, uint64_t *value);
udreg_return_t UDREG_ResetStat(udreg_cache_handle_t handle, udreg_stat_t stat);

#ifdef __cplusplus
}
#endif

#endif /* UDREG_PUB_H */
