/*
 * What a site's header of UDREG says, as numbers: read by `udreg::Layout`, whose fields these are, in this order.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <stddef.h>
#include <stdint.h>
#include <udreg_pub.h>

struct field {
    uint64_t offset, size;
};

#define OF(name) { offsetof(udreg_cache_attr_t, name), sizeof(((udreg_cache_attr_t *)0)->name) }

const struct {
    uint64_t size;
    struct field cache_name, max_entries, modes, debug_mode, debug_rank, reg_context, dreg_context, destructor_context,
        device_reg_func, device_dereg_func, destructor_callback, device_data;
    uint64_t kernel_cache, lazy_deregistration;
    uint64_t success, invalid_param, no_space, no_match, no_device, failed;
} gasworks_udreg_site_layout = {
    sizeof(udreg_cache_attr_t),
    OF(cache_name),
    OF(max_entries),
    OF(modes),
    OF(debug_mode),
    OF(debug_rank),
    OF(reg_context),
    OF(dreg_context),
    OF(destructor_context),
    OF(device_reg_func),
    OF(device_dereg_func),
    OF(destructor_callback),
    { offsetof(udreg_entry_t, device_data), sizeof(((udreg_entry_t *)0)->device_data) },
    UDREG_CC_MODE_USE_KERNEL_CACHE,
    UDREG_CC_MODE_USE_LAZY_DEREG,
    (uint32_t)UDREG_RC_SUCCESS,
    (uint32_t)UDREG_RC_INVALID_PARAM,
    (uint32_t)UDREG_RC_NO_SPACE,
    (uint32_t)UDREG_RC_NO_MATCH,
    (uint32_t)UDREG_RC_ERROR_NO_DEVICE,
    (uint64_t)(uintptr_t)UDREG_DEVICE_REG_FAILED,
};

/* What the library takes for granted: it hands these over as they are, and writes the name where it stands. */
_Static_assert(sizeof(udreg_return_t) == sizeof(uint32_t), "udreg_return_t is no number of 32 bits");
_Static_assert(sizeof(udreg_cache_handle_t) == sizeof(void *), "udreg_cache_handle_t is not as large as a pointer");
_Static_assert(sizeof(((udreg_cache_attr_t *)0)->max_entries) >= sizeof(uint32_t), "max_entries has less than 32 bits");
_Static_assert(sizeof(((udreg_cache_attr_t *)0)->cache_name) > sizeof(void *) &&
                   sizeof(((udreg_cache_attr_t *)0)->cache_name[0]) == 1,
               "cache_name is no array of characters");

/* Never called, as what follows: that the structure takes these functions is for the compiler to say. */
void gasworks_udreg_site_functions(udreg_cache_attr_t *attr, void *(*reg)(void *, uint64_t, void *),
                                   uint32_t (*dereg)(void *, void *))
{
    attr->device_reg_func = reg;
    attr->device_dereg_func = dereg;
}

/* Never called: that the functions take what the library hands them is for the compiler to say. */
int gasworks_udreg_site_calls(udreg_cache_handle_t cache, udreg_entry_t *entry, udreg_cache_attr_t *attr, char *name, void *at)
{
    return sizeof(UDREG_CacheCreate(attr)) + sizeof(UDREG_CacheAccess(name, &cache)) + sizeof(UDREG_CacheRelease(cache)) +
           sizeof(UDREG_CacheDestroy(cache)) + sizeof(UDREG_Register(cache, at, (uint64_t)1, &entry)) +
           sizeof(UDREG_DecrRefcount(cache, entry)) + sizeof(UDREG_Evict(cache));
}
