/* A client that meets faults and does what the interface asks of it: it tries again, or gives up what is lost. */
#include <udreg_pub.h>

#include "net.h"

/* A transaction that is lost is posted again; one whose event is lost is known by the overrun. */
static void transactions(int peer)
{
    int lost = 0, refused = 0;
    for (uint64_t round = 1; round <= 500; round++) {
        *(uint64_t *)net.memory = round;
        for (;;) {
            gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8), *found;
            gni_cq_entry_t event;
            gni_return_t code = GNI_PostFma(net.ends[peer], &post);
            if (code == GNI_RC_ERROR_RESOURCE) {
                refused++;
                continue;
            }
            CHECK(code == GNI_RC_SUCCESS);
            code = net_event(net.events, &event);
            CHECK(GNI_GetCompleted(net.events, event, &found) == code && found == &post);
            if (code == GNI_RC_SUCCESS)
                break;
            uint32_t recoverable = 0;
            CHECK(code == GNI_RC_TRANSACTION_ERROR);
            WORKS(GNI_CqErrorRecoverable(event, &recoverable));
            CHECK(recoverable);
            lost++;
        }
    }
    CHECK(lost > 5 && refused > 20);
}

static gni_mem_handle_t handle;

static void *register_it(void *address, uint64_t length, void *context)
{
    (void)context;
    gni_return_t code =
        GNI_MemRegister(net.nic, (uint64_t)address, length, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle);
    if (code == GNI_RC_ERROR_RESOURCE)
        return NULL;
    return code == GNI_RC_SUCCESS ? (void *)&handle : UDREG_DEVICE_REG_FAILED;
}

static uint32_t deregister_it(void *data, void *context)
{
    (void)context;
    return GNI_MemDeregister(net.nic, data);
}

/* The second registration of this process fails, the first being that of net.h; then UDREG itself does. */
static void registrations(void)
{
    udreg_cache_attr_t attributes;
    udreg_cache_handle_t cache;
    udreg_entry_t *entry;
    memset(&attributes, 0, sizeof attributes);
    strcpy(attributes.cache_name, "faults");
    attributes.max_entries = 8;
    attributes.modes = UDREG_CC_MODE_USE_LAZY_DEREG;
    attributes.device_reg_func = register_it;
    attributes.device_dereg_func = deregister_it;
    CHECK(UDREG_CacheCreate(&attributes) == UDREG_RC_SUCCESS);
    CHECK(UDREG_CacheAccess(attributes.cache_name, &cache) == UDREG_RC_SUCCESS);
    CHECK(UDREG_Register(cache, net.memory, 4096, &entry) == UDREG_RC_NO_SPACE);
    CHECK(UDREG_Register(cache, net.memory, 4096, &entry) == UDREG_RC_NO_SPACE);
    CHECK(UDREG_Evict(cache) == UDREG_RC_NO_MATCH);
    CHECK(UDREG_Register(cache, net.memory, 4096, &entry) == UDREG_RC_SUCCESS);
    CHECK(UDREG_DecrRefcount(cache, entry) == UDREG_RC_SUCCESS);
    CHECK(UDREG_Evict(cache) == UDREG_RC_NO_MATCH);
    CHECK(UDREG_Evict(cache) == UDREG_RC_SUCCESS);
    CHECK(UDREG_CacheRelease(cache) == UDREG_RC_SUCCESS);
    CHECK(UDREG_CacheDestroy(cache) == UDREG_RC_SUCCESS);
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    registrations();
    transactions((job.rank + 1) % job.size);
    net_end();
    return 0;
}
