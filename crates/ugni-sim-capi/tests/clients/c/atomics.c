/* Every command of the atomic units, against what it should compute; and that those of several ranks exclude each other. */
#include "net.h"

/* What a command does to a word of 8 bytes, where the model knows it. */
struct command {
    gni_fma_cmd_type_t command;
    int fetches, of_both_chips;
    uint64_t (*apply)(uint64_t old, uint64_t first, uint64_t second);
};

static uint64_t add(uint64_t old, uint64_t first, uint64_t second) { (void)second; return old + first; }
static uint64_t and(uint64_t old, uint64_t first, uint64_t second) { (void)second; return old & first; }
static uint64_t or(uint64_t old, uint64_t first, uint64_t second) { (void)second; return old | first; }
static uint64_t xor(uint64_t old, uint64_t first, uint64_t second) { (void)second; return old ^ first; }
static uint64_t mask(uint64_t old, uint64_t first, uint64_t second) { return (old & first) ^ second; }
static uint64_t swap_if(uint64_t old, uint64_t first, uint64_t second) { return old == first ? second : old; }
static uint64_t swap(uint64_t old, uint64_t first, uint64_t second) { (void)old; (void)second; return first; }
static uint64_t least(uint64_t old, uint64_t first, uint64_t second)
{
    (void)second;
    return (int64_t)old < (int64_t)first ? old : first;
}
static uint64_t most(uint64_t old, uint64_t first, uint64_t second)
{
    (void)second;
    return (int64_t)old > (int64_t)first ? old : first;
}

static const struct command commands[] = {
    {GNI_FMA_ATOMIC_ADD, 0, 1, add},        {GNI_FMA_ATOMIC_FADD, 1, 1, add},
    {GNI_FMA_ATOMIC_AND, 0, 1, and},        {GNI_FMA_ATOMIC_FAND, 1, 1, and},
    {GNI_FMA_ATOMIC_OR, 0, 1, or},          {GNI_FMA_ATOMIC_FOR, 1, 1, or},
    {GNI_FMA_ATOMIC_XOR, 0, 1, xor},        {GNI_FMA_ATOMIC_FXOR, 1, 1, xor},
    {GNI_FMA_ATOMIC_AX, 0, 1, mask},        {GNI_FMA_ATOMIC_FAX, 1, 1, mask},
    {GNI_FMA_ATOMIC_CSWAP, 1, 1, swap_if},  {GNI_FMA_ATOMIC2_FSWAP, 1, 0, swap},
    {GNI_FMA_ATOMIC2_IMIN, 0, 0, least},    {GNI_FMA_ATOMIC2_IMAX, 0, 0, most},
    {GNI_FMA_ATOMIC2_FIMIN, 1, 0, least},   {GNI_FMA_ATOMIC2_FIMAX, 1, 0, most},
};

static const uint64_t samples[] = {0, 1, 7, 0x123456789abcdef0, (uint64_t)1 << 63, UINT64_MAX};
enum { SAMPLES = sizeof samples / sizeof *samples, AREA = 1 << 14 };

static void each_command(int peer)
{
    /* A word of the neighbour's that is this rank's to change. */
    uint64_t there = AREA;
    volatile uint64_t *result = (uint64_t *)net.memory;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const struct command *command = &commands[i];
        gni_post_descriptor_t post = net_post(GNI_POST_AMO, peer, 0, there, 8);
        post.amo_cmd = command->command;
        if (net.chip == GNI_DEVICE_GEMINI && !command->of_both_chips) {
            GIVES(GNI_RC_ILLEGAL_OP, GNI_PostFma(net.ends[peer], &post));
            continue;
        }
        for (int round = 0; round < SAMPLES * SAMPLES * SAMPLES; round++) {
            uint64_t old = samples[round % SAMPLES];
            uint64_t first = samples[round / SAMPLES % SAMPLES], second = samples[round / SAMPLES / SAMPLES];
            uint64_t *mine = (uint64_t *)(net.memory + 64);
            *mine = old;
            gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, peer, 64, there, 8);
            net_run(peer, &put);
            *result = 0x5555;
            post.first_operand = first;
            post.second_operand = second;
            net_run(peer, &post);
            CHECK(*result == (command->fetches ? old : 0x5555));
            gni_post_descriptor_t get = net_post(GNI_POST_FMA_GET, peer, 128, there, 8);
            net_run(peer, &get);
            CHECK(*(uint64_t *)(net.memory + 128) == command->apply(old, first, second));
        }
    }
}

/* One word is changed, whatever length is said. */
static void one_word(int peer)
{
    uint64_t *mine = (uint64_t *)(net.memory + 64);
    for (int half = 0; half < 1 + (net.chip == GNI_DEVICE_ARIES); half++) {
        mine[0] = mine[1] = 0x2222222211111111;
        gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, peer, 64, AREA, 16);
        net_run(peer, &put);
        memset(net.memory, 0x55, 16);
        gni_post_descriptor_t post = net_post(GNI_POST_AMO, peer, 0, AREA, half ? 8 : 16);
        post.amo_cmd = half ? GNI_FMA_ATOMIC2_FIADD_S : GNI_FMA_ATOMIC_FADD;
        post.first_operand = 1;
        net_run(peer, &post);
        volatile uint32_t *words = (uint32_t *)net.memory;
        CHECK(words[0] == 0x11111111 && words[1] == (half ? 0x55555555 : 0x22222222) && words[2] == 0x55555555);
        gni_post_descriptor_t get = net_post(GNI_POST_FMA_GET, peer, 128, AREA, 16);
        net_run(peer, &get);
        volatile uint64_t *found = (uint64_t *)(net.memory + 128);
        CHECK(found[0] == 0x2222222211111112 && found[1] == 0x2222222211111111);
    }
}

/* All ranks add to words of the first. */
static void together(void)
{
    enum { EACH = 300 };
    volatile uint64_t *sum = (uint64_t *)(net.memory + 2 * AREA);
    *sum = 0;
    job_barrier();
    uint64_t seen = 0;
    for (uint64_t round = 0; round < EACH; round++) {
        gni_post_descriptor_t post = net_post(GNI_POST_AMO, 0, 0, 2 * AREA, 8);
        post.amo_cmd = GNI_FMA_ATOMIC_FADD;
        post.first_operand = 1;
        net_run(0, &post);
        uint64_t old = *(volatile uint64_t *)net.memory;
        CHECK(round == 0 || old > seen);
        seen = old;
    }
    job_barrier();
    if (job.rank == 0)
        CHECK(*sum == (uint64_t)job.size * EACH);
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    each_command((job.rank + 1) % job.size);
    one_word((job.rank + 1) % job.size);
    together();
    net_end();
    return 0;
}
