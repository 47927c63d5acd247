/*
 * UDREG as it might be at some site: what the software NIC offers, with other orders, sizes and values.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef UDREG_PUB_H
#define UDREG_PUB_H

#include <stdint.h>

typedef enum udreg_return {
    UDREG_RC_NO_MATCH = 4,
    UDREG_RC_NO_SPACE,
    UDREG_RC_SUCCESS,
    UDREG_RC_ERROR_NO_DEVICE,
    UDREG_RC_INVALID_PARAM,
} udreg_return_t;

#define UDREG_MAX_CACHENAME_LEN 22
#define UDREG_CC_MODE_USE_KERNEL_CACHE 0x10
#define UDREG_CC_MODE_USE_LAZY_DEREG 0x400
#define UDREG_DEVICE_REG_FAILED ((void *)-3)

typedef struct udreg_cache_attr {
    uint16_t version;
    uint16_t modes;
    void (*destructor_callback)(void *context);
    void *destructor_context;
    uint32_t (*device_dereg_func)(void *device_data, void *context);
    void *dreg_context;
    char cache_name[UDREG_MAX_CACHENAME_LEN + 1];
    void *(*device_reg_func)(void *address, uint64_t length, void *context);
    int64_t debug_rank;
    uint64_t max_entries;
    void *reg_context;
    short debug_mode;
} udreg_cache_attr_t;

typedef struct site_cache *udreg_cache_handle_t;

typedef struct udreg_entry {
    uint64_t address;
    void *within;
    void *device_data;
    uint32_t users;
} udreg_entry_t;

udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr);
udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *handle);
udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle);
udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle);
udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void *address, uint64_t length, udreg_entry_t **entry);
udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t *entry);
udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t *entry);
udreg_return_t UDREG_Evict(udreg_cache_handle_t handle);

#endif /* UDREG_PUB_H */
