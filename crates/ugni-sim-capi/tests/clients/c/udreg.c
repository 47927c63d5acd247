/* What a client does with UDREG, and what it may not do. */
#include <udreg_pub.h>

#include "check.h"

static char memory[4096];
static int registered, deregistered, destroyed;
static void *answer = memory;
static uint64_t last_length;
static udreg_cache_handle_t cache;

static void *reg(void *address, uint64_t length, void *context)
{
    CHECK(context == &registered);
    CHECK((char *)address >= memory && (char *)address + length <= memory + sizeof memory);
    last_length = length;
    registered++;
    return answer;
}

static uint32_t dereg(void *data, void *context)
{
    CHECK(context == &deregistered && data != NULL);
    deregistered++;
    return 1; /* which changes nothing */
}

static void destroy(void *context)
{
    CHECK(context == &destroyed);
    destroyed++;
}

/* Makes room in its own cache, if there is anything in it. */
static void *reg_and_evict(void *address, uint64_t length, void *context)
{
    if (registered > 0)
        OK(UDREG_Evict(cache));
    return reg(address, length, context);
}

/* Has its own cache destroyed, before there is anything in it. */
static void *reg_and_destroy(void *address, uint64_t length, void *context)
{
    OK(UDREG_CacheDestroy(cache));
    return reg(address, length, context);
}

static udreg_cache_attr_t attributes(const char *name, unsigned entries, unsigned modes)
{
    udreg_cache_attr_t attr;
    memset(&attr, 0, sizeof attr);
    strcpy(attr.cache_name, name);
    attr.max_entries = entries;
    attr.modes = modes;
    attr.reg_context = &registered;
    attr.dreg_context = &deregistered;
    attr.destructor_context = &destroyed;
    attr.device_reg_func = reg;
    attr.device_dereg_func = dereg;
    attr.destructor_callback = destroy;
    registered = deregistered = destroyed = 0;
    answer = memory;
    return attr;
}

static udreg_cache_handle_t make(unsigned entries, unsigned modes)
{
    udreg_cache_attr_t attr = attributes("a cache", entries, modes);
    OK(UDREG_CacheCreate(&attr));
    OK(UDREG_CacheAccess("a cache", &cache));
    return cache;
}

static void end(void)
{
    OK(UDREG_CacheRelease(cache));
    OK(UDREG_CacheDestroy(cache));
    CHECK(destroyed == 1 && registered == deregistered);
}

static uint64_t stat(udreg_stat_t which)
{
    uint64_t value = 77;
    OK(UDREG_GetStat(cache, which, &value));
    return value;
}

static void creation(void)
{
    udreg_cache_attr_t attr = attributes("twice", 2, 0), other;
    udreg_cache_handle_t same;
    GIVES(UDREG_CacheCreate(NULL), UDREG_RC_INVALID_PARAM);
    other = attr, other.cache_name[0] = 0;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, memset(other.cache_name, 'x', sizeof other.cache_name);
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, other.max_entries = 0;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, other.modes = 16;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, other.device_reg_func = NULL;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, other.device_dereg_func = NULL;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_INVALID_PARAM);
    other = attr, other.max_entries = 65537;
    GIVES(UDREG_CacheCreate(&other), UDREG_RC_NO_SPACE);
    GIVES(UDREG_CacheAccess("twice", &cache), UDREG_RC_NO_MATCH);
    attr.destructor_callback = NULL;
    OK(UDREG_CacheCreate(&attr));
    GIVES(UDREG_CacheCreate(&attr), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_CacheAccess(NULL, &cache), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_CacheAccess("twice", NULL), UDREG_RC_INVALID_PARAM);
    OK(UDREG_CacheAccess("twice", &cache));
    OK(UDREG_CacheAccess("twice", &same));
    CHECK(same == cache);
    OK(UDREG_CacheRelease(cache));
    OK(UDREG_CacheRelease(cache));
    GIVES(UDREG_CacheRelease(cache), UDREG_RC_INVALID_PARAM);
    OK(UDREG_CacheDestroy(cache));
    GIVES(UDREG_CacheDestroy(cache), UDREG_RC_INVALID_PARAM);
    OK(UDREG_CacheCreate(&attr));
    OK(UDREG_CacheAccess("twice", &same));
    CHECK(same != cache);
    OK(UDREG_CacheDestroy(same));
    CHECK(destroyed == 0);
}

static void foreigners(void)
{
    udreg_entry_t *entry, strange = {memory};
    uint64_t value;
    udreg_cache_handle_t none[3] = {NULL, (udreg_cache_handle_t)memory, NULL};
    make(2, 0);
    none[2] = cache;
    OK(UDREG_Register(cache, memory, 8, &entry));
    CHECK(entry->device_data == memory);
    GIVES(UDREG_Unregister(cache, NULL), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_Unregister(cache, &strange), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_DecrRefcount(cache, (udreg_entry_t *)1), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_Register(cache, memory, 8, NULL), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_Register(cache, memory, 0, &entry), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_Register(cache, memory, UINT64_MAX, &entry), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_GetStat(cache, UDREG_STAT_CACHE_HIT, NULL), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_GetStat(cache, (udreg_stat_t)3, &value), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_ResetStat(cache, (udreg_stat_t)3), UDREG_RC_INVALID_PARAM);
    OK(UDREG_CacheRelease(cache));
    for (int i = 0; i < 3; i++) {
        GIVES(UDREG_Register(none[i], memory, 8, &entry), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_Unregister(none[i], entry), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_DecrRefcount(none[i], entry), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_Evict(none[i]), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_GetStat(none[i], UDREG_STAT_CACHE_HIT, &value), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_ResetStat(none[i], UDREG_STAT_CACHE_HIT), UDREG_RC_INVALID_PARAM);
        GIVES(UDREG_CacheRelease(none[i]), UDREG_RC_INVALID_PARAM);
    }
    GIVES(UDREG_CacheDestroy(none[0]), UDREG_RC_INVALID_PARAM);
    GIVES(UDREG_CacheDestroy(none[1]), UDREG_RC_INVALID_PARAM);
    OK(UDREG_CacheDestroy(cache)); /* with a registration that is used */
    CHECK(destroyed == 1 && registered == 1 && deregistered == 1);
}

static void failures(void)
{
    udreg_entry_t *entry;
    make(1, UDREG_CC_MODE_USE_LAZY_DEREG);
    answer = NULL;
    GIVES(UDREG_Register(cache, memory, 8, &entry), UDREG_RC_NO_SPACE);
    answer = UDREG_DEVICE_REG_FAILED;
    GIVES(UDREG_Register(cache, memory, 8, &entry), UDREG_RC_INVALID_PARAM);
    answer = memory;
    CHECK(registered == 2);
    registered = 0;
    OK(UDREG_Register(cache, memory, 8, &entry));
    CHECK(stat(UDREG_STAT_CACHE_MISS) == 3);
    end();
}

static void at_once(void)
{
    udreg_entry_t *entry, *again;
    make(2, 0);
    OK(UDREG_Register(cache, memory, 64, &entry));
    OK(UDREG_Register(cache, memory + 8, 16, &again));
    CHECK(entry == again && registered == 1 && last_length == 64);
    OK(UDREG_Unregister(cache, entry));
    CHECK(deregistered == 0);
    OK(UDREG_Unregister(cache, entry));
    CHECK(deregistered == 1);
    GIVES(UDREG_Unregister(cache, entry), UDREG_RC_INVALID_PARAM);
    /* A use that is only taken back leaves the registration, in any mode. */
    OK(UDREG_Register(cache, memory, 64, &entry));
    OK(UDREG_DecrRefcount(cache, entry));
    CHECK(deregistered == 1);
    GIVES(UDREG_DecrRefcount(cache, entry), UDREG_RC_INVALID_PARAM);
    OK(UDREG_Register(cache, memory, 64, &again));
    CHECK(entry == again && registered == 2);
    end();
}

static void when_room_is_needed(void)
{
    udreg_entry_t *entries[3];
    make(3, UDREG_CC_MODE_USE_LAZY_DEREG | UDREG_CC_MODE_USE_KERNEL_CACHE | UDREG_CC_MODE_USE_LARGE_PAGES);
    for (int i = 0; i < 3; i++)
        OK(UDREG_Register(cache, memory + 100 * i, 10, &entries[i]));
    GIVES(UDREG_Register(cache, memory + 2000, 10, &entries[0]), UDREG_RC_NO_SPACE);
    GIVES(UDREG_Evict(cache), UDREG_RC_NO_MATCH);
    OK(UDREG_Unregister(cache, entries[1]));
    OK(UDREG_Unregister(cache, entries[0]));
    /* Full, although two are idle: it is the client who makes room. */
    GIVES(UDREG_Register(cache, memory + 2000, 10, &entries[0]), UDREG_RC_NO_SPACE);
    /* 1 was used again after 0. */
    OK(UDREG_Register(cache, memory + 100, 10, &entries[1]));
    OK(UDREG_Unregister(cache, entries[1]));
    entries[0]->device_data = memory + 7; /* some replace it */
    OK(UDREG_Evict(cache));
    CHECK(deregistered == 1);
    OK(UDREG_Register(cache, memory + 100, 10, &entries[1]));
    CHECK(registered == 3);
    GIVES(UDREG_Evict(cache), UDREG_RC_NO_MATCH);
    OK(UDREG_Register(cache, memory, 10, &entries[0]));
    CHECK(registered == 4 && entries[0]->device_data == memory);
    CHECK(stat(UDREG_STAT_CACHE_HIT) == 2 && stat(UDREG_STAT_CACHE_MISS) == 6 && stat(UDREG_STAT_CACHE_EVICTED) == 1);
    OK(UDREG_ResetStat(cache, UDREG_STAT_CACHE_MISS));
    CHECK(stat(UDREG_STAT_CACHE_HIT) == 2 && stat(UDREG_STAT_CACHE_MISS) == 0);
    end();
}

static void with_each_that_is_left(void)
{
    udreg_entry_t *first, *second;
    make(2, UDREG_CC_MODE_USE_LAZY_DEREG | UDREG_CC_MODE_USE_EVICT_W_UNREG);
    OK(UDREG_Register(cache, memory, 10, &first));
    OK(UDREG_Unregister(cache, first));
    CHECK(deregistered == 0);
    OK(UDREG_Register(cache, memory + 100, 10, &second));
    OK(UDREG_Unregister(cache, second));
    CHECK(deregistered == 1 && stat(UDREG_STAT_CACHE_EVICTED) == 1);
    OK(UDREG_Register(cache, memory + 100, 10, &second));
    CHECK(registered == 2);
    end();
}

static void functions_that_call_back(void)
{
    udreg_entry_t *entry;
    udreg_cache_attr_t attr = attributes("a cache", 2, UDREG_CC_MODE_USE_LAZY_DEREG);
    attr.device_reg_func = reg_and_evict;
    OK(UDREG_CacheCreate(&attr));
    OK(UDREG_CacheAccess("a cache", &cache));
    for (int i = 0; i < 5; i++) {
        OK(UDREG_Register(cache, memory + 100 * i, 10, &entry));
        OK(UDREG_Unregister(cache, entry));
        CHECK(registered == i + 1 && deregistered == i);
    }
    end();
    attr = attributes("a cache", 2, 0);
    attr.device_reg_func = reg_and_destroy;
    OK(UDREG_CacheCreate(&attr));
    OK(UDREG_CacheAccess("a cache", &cache));
    GIVES(UDREG_Register(cache, memory, 10, &entry), UDREG_RC_INVALID_PARAM);
    CHECK(destroyed == 1 && registered == 1 && deregistered == 1);
}

int main(void)
{
    creation();
    foreigners();
    failures();
    at_once();
    when_room_is_needed();
    with_each_that_is_left();
    functions_that_call_back();
    puts("all is well");
    return 0;
}
