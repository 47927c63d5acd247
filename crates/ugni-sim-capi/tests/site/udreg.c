/*
 * A library with that header, for one cache in a process: it checks what it is handed, and asks the software NIC's, at SITE_UDREG.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <udreg_pub.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The software NIC's. */
struct software_attr {
    char cache_name[64];
    unsigned int max_entries, modes;
    int debug_mode, debug_rank;
    void *reg_context, *dreg_context, *destructor_context;
    void *(*device_reg_func)(void *, uint64_t, void *);
    uint32_t (*device_dereg_func)(void *, void *);
    void (*destructor_callback)(void *);
};

struct software_entry {
    void *device_data;
};

static udreg_cache_attr_t client;
/* It was told that there is no room, and has made none. */
static int is_full;

static void *software(const char *name)
{
    static void *library;
    void *function;
    const char *path = getenv("SITE_UDREG");

    if (!library && path)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "site's udreg: there is no %s in SITE_UDREG\n", name);
        abort();
    }
    return function;
}

static udreg_return_t code(uint32_t number)
{
    static const udreg_return_t codes[] = { UDREG_RC_SUCCESS, UDREG_RC_INVALID_PARAM, UDREG_RC_NO_SPACE, UDREG_RC_NO_MATCH,
        UDREG_RC_ERROR_NO_DEVICE };

    return number < 5 ? codes[number] : UDREG_RC_INVALID_PARAM;
}

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "site's udreg: the client's %s is wrong\n", what);
        abort();
    }
}

static void *reg(void *address, uint64_t length, void *context)
{
    void *data = client.device_reg_func(address, length, context);

    require(data != (void *)-1, "word for a failure");
    return data == UDREG_DEVICE_REG_FAILED ? (void *)-1 : data;
}

udreg_return_t UDREG_CacheCreate(udreg_cache_attr_t *attr)
{
    struct software_attr theirs = { .modes = 8 | 1, .device_reg_func = reg };
    uint32_t (*create)(struct software_attr *) = (uint32_t (*)(struct software_attr *))software("UDREG_CacheCreate");

    client = *attr;
    require(attr->modes == (UDREG_CC_MODE_USE_KERNEL_CACHE | UDREG_CC_MODE_USE_LAZY_DEREG), "modes");
    require(attr->version == 0 && attr->debug_mode == 0 && attr->debug_rank == 0, "rest");
    require(!attr->destructor_callback && !attr->destructor_context, "destructor");
    require(strcmp(attr->cache_name, "gasworks") == 0, "name");
    strcpy(theirs.cache_name, attr->cache_name);
    theirs.max_entries = (unsigned int)attr->max_entries;
    theirs.reg_context = attr->reg_context;
    theirs.dreg_context = attr->dreg_context;
    theirs.device_dereg_func = attr->device_dereg_func;
    return code(create(&theirs));
}

udreg_return_t UDREG_CacheAccess(char *name, udreg_cache_handle_t *handle)
{
    return code(((uint32_t(*)(char *, udreg_cache_handle_t *))software("UDREG_CacheAccess"))(name, handle));
}

udreg_return_t UDREG_CacheRelease(udreg_cache_handle_t handle)
{
    return code(((uint32_t(*)(udreg_cache_handle_t))software("UDREG_CacheRelease"))(handle));
}

udreg_return_t UDREG_CacheDestroy(udreg_cache_handle_t handle)
{
    return code(((uint32_t(*)(udreg_cache_handle_t))software("UDREG_CacheDestroy"))(handle));
}

udreg_return_t UDREG_Register(udreg_cache_handle_t handle, void *address, uint64_t length, udreg_entry_t **entry)
{
    uint32_t (*find)(udreg_cache_handle_t, void *, uint64_t, struct software_entry **) =
        (uint32_t (*)(udreg_cache_handle_t, void *, uint64_t, struct software_entry **))software("UDREG_Register");
    struct software_entry *theirs = NULL;
    udreg_return_t found;

    require(!is_full, "way out of a full cache");
    found = code(find(handle, address, length, &theirs));
    is_full = found == UDREG_RC_NO_SPACE;
    if (found == UDREG_RC_SUCCESS) {
        *entry = calloc(1, sizeof **entry);
        (*entry)->within = theirs;
        (*entry)->device_data = theirs->device_data;
    }
    return found;
}

static udreg_return_t leave(const char *how, udreg_cache_handle_t handle, udreg_entry_t *entry)
{
    uint32_t (*left)(udreg_cache_handle_t, void *) = (uint32_t (*)(udreg_cache_handle_t, void *))software(how);
    void *within = entry->within;

    free(entry);
    return code(left(handle, within));
}

udreg_return_t UDREG_Unregister(udreg_cache_handle_t handle, udreg_entry_t *entry)
{
    return leave("UDREG_Unregister", handle, entry);
}

udreg_return_t UDREG_DecrRefcount(udreg_cache_handle_t handle, udreg_entry_t *entry)
{
    return leave("UDREG_DecrRefcount", handle, entry);
}

udreg_return_t UDREG_Evict(udreg_cache_handle_t handle)
{
    is_full = 0;
    return code(((uint32_t(*)(udreg_cache_handle_t))software("UDREG_Evict"))(handle));
}
