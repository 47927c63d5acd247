/* Reductions by the collective engine: over a tree of all ranks, with engines and clients as children, one after the other;
   and what is refused. */
#include "net.h"

#include <math.h>

enum { RESULT = 4096, RANKS_PER_ENGINE = 3 };

static gni_ce_handle_t engine;
static gni_cq_handle_t told;
static gni_ep_handle_t leaf;
/* Numbers for endpoints begin here: they name nobody, and may be those of other instances. */
static uint32_t bound;
/* The name of each rank's engine. */
static uint32_t numbers[MOST_RANKS];

static gni_ep_handle_t end_to(int rank, uint32_t number, uint32_t child, gni_ce_child_t kind)
{
    gni_ep_handle_t end;
    WORKS(GNI_EpCreate(net.nic, net.events, &end));
    WORKS(GNI_EpBind(end, places[rank].address, bound + (uint32_t)rank));
    WORKS(GNI_EpSetCeAttr(end, number, child, kind));
    return end;
}

static gni_ce_result_t *result(void)
{
    return (gni_ce_result_t *)(net.memory + RESULT);
}

static gni_post_descriptor_t contribution(gni_ce_cmd_type_t command, uint64_t id, uint64_t first, uint64_t second)
{
    gni_post_descriptor_t post = net_post(GNI_POST_CE, job.rank, RESULT, 0, 0);
    post.ce_cmd = command;
    post.ce_mode = GNI_CEMODE_TWO_OP;
    post.ce_red_id = id;
    post.first_operand = first;
    post.second_operand = second;
    return post;
}

/* Waits for the result without another look at the NIC. */
static gni_return_t await_result(void)
{
    gni_return_t code;
    while ((code = GNI_CeCheckResult(result(), sizeof *result())) == GNI_RC_NOT_DONE)
        sched_yield();
    return code;
}

static gni_return_t reduce(gni_ce_cmd_type_t command, uint64_t id, uint64_t first, uint64_t second)
{
    gni_post_descriptor_t post = contribution(command, id, first, second);
    WORKS(GNI_PostFma(leaf, &post));
    net_done(&post);
    return await_result();
}

static uint64_t of_double(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The first of every three ranks has an engine, to which all three contribute; its parent is that of the three before. */
static void make_tree(void)
{
    int first = job.rank / RANKS_PER_ENGINE * RANKS_PER_ENGINE;
    uint32_t number = 99;
    gni_ep_handle_t children[RANKS_PER_ENGINE + 1], parent = NULL;
    uint32_t count = 0;
    if (job.rank == first) {
        WORKS(GNI_CqCreate(net.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &told));
        WORKS(GNI_CeCreate(net.nic, &engine));
        WORKS(GNI_CeGetId(engine, &number));
    }
    job_gather(&number, numbers, sizeof number);
    if (job.rank == first) {
        for (int rank = first; rank < first + RANKS_PER_ENGINE && rank < job.size; rank++, count++)
            children[count] = end_to(rank, (uint32_t)-1, count, GNI_CE_CHILD_PE);
        int next = first + RANKS_PER_ENGINE, last = first - RANKS_PER_ENGINE;
        if (next < job.size)
            children[count++] = end_to(next, numbers[next], RANKS_PER_ENGINE, GNI_CE_CHILD_VCE);
        if (last >= 0)
            parent = end_to(last, numbers[last], RANKS_PER_ENGINE, GNI_CE_CHILD_VCE);
        WORKS(GNI_CeConfigure(engine, children, count, parent, told, GNI_CE_MODE_CQE_ONERR | GNI_CE_MODE_ROUND_ZERO));
        for (uint32_t child = 0; child < count; child++)
            WORKS(GNI_EpDestroy(children[child]));
        if (parent)
            WORKS(GNI_EpDestroy(parent));
    }
    leaf = end_to(first, numbers[first], (uint32_t)(job.rank - first), GNI_CE_CHILD_PE);
    job_barrier();
}

static void unmake_tree(void)
{
    WORKS(GNI_EpDestroy(leaf));
    job_barrier();
    if (engine) {
        WORKS(GNI_CeDestroy(engine));
        WORKS(GNI_CqDestroy(told));
    }
    engine = NULL;
    job_barrier();
}

static void reductions(void)
{
    uint64_t rank = (uint64_t)job.rank, size = (uint64_t)job.size, sum = size * (size - 1) / 2;
    gni_ce_result_t *got = result();
    /* The block is not cleared in between. */
    for (uint64_t round = 0; round < 50; round++) {
        WORKS(reduce(GNI_FMA_CE_IADD, 0, rank + round, rank << 40));
        CHECK(got->result1 == sum + size * round && got->result2 == sum << 40);
        CHECK(gni_ce_res_get_red_id(got) == 0 && gni_ce_res_status_ok(got) == 1);
    }
    WORKS(reduce(GNI_FMA_CE_IMAX_LIDX_S, 0xfffffffffff, rank % 2, rank));
    CHECK(got->result1 == 1 && got->result2 == 1);
    CHECK(gni_ce_res_get_red_id(got) == 0xfffffffffff && gni_ce_res_get_status(got) == 0);
    WORKS(reduce(GNI_FMA_CE_FPMIN_GIDX, 1, of_double(rank % 2 ? NAN : -1.5), rank));
    CHECK(got->result1 == of_double(-1.5) && got->result2 == (size - 1) / 2 * 2);
    WORKS(reduce(GNI_FMA_CE_FPADD, 2, of_double(0.5), of_double((double)rank)));
    CHECK(got->result1 == of_double(0.5 * (double)size) && got->result2 == of_double((double)sum));
    WORKS(reduce(GNI_FMA_CE_AND_S, 3, ~(UINT64_C(1) << rank), UINT64_MAX));
    CHECK(got->result1 == (0xffffffff & ~((UINT64_C(1) << size) - 1)) && got->result2 == 0xffffffff);

    /* An exception: the result is there. */
    GIVES(GNI_RC_TRANSACTION_ERROR, reduce(GNI_FMA_CE_FPADD, 4, of_double(rank ? 1e-30 : 1.0), 0));
    CHECK(got->result1 == of_double(1.0) && gni_ce_res_status_ok(got) == 1);
    CHECK(gni_ce_res_get_fpe(got) == GNI_CE_FPE_PRECISION);

    /* A failure: the last rank means another reduction. */
    uint64_t mine = job.rank == job.size - 1 ? 6 : 5;
    job_barrier();
    GIVES(GNI_RC_TRANSACTION_ERROR, reduce(GNI_FMA_CE_IADD, mine, 1, 1));
    CHECK(gni_ce_res_status_ok(got) == 0 && gni_ce_res_get_status(got) != 0 && gni_ce_res_get_red_id(got) == mine);
    if (engine) {
        gni_cq_entry_t event;
        char text[100];
        GIVES(GNI_RC_TRANSACTION_ERROR, net_event(told, &event));
        CHECK(GNI_CQ_GET_CE_ID(event) == numbers[job.rank]);
        CHECK(GNI_CQ_GET_REDUCTN_ID(event) == 5 || GNI_CQ_GET_REDUCTN_ID(event) == 6);
        WORKS(GNI_CqErrorStr(event, text, sizeof text));
        CHECK(strcmp(text, "the contributions to a reduction do not fit together") == 0);
        GIVES(GNI_RC_NOT_DONE, GNI_CqGetEvent(told, &event));
    }
    job_barrier();
    WORKS(reduce(GNI_FMA_CE_XOR, 7, 1, rank));
    CHECK(got->result1 == size % 2);
}

static void refused(void)
{
    uint32_t number;
    gni_ce_handle_t other, more[4];
    void *strangers[] = {NULL, (void *)8, (void *)-1, (void *)net.nic, (void *)net.ends[0]};
    gni_ep_handle_t many[33], client = end_to(job.rank, (uint32_t)-1, 0, GNI_CE_CHILD_PE);
    for (int i = 0; i < 33; i++)
        many[i] = client;
    WORKS(GNI_CeCreate(net.nic, &other));
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        void *any = strangers[i];
        GIVES(GNI_RC_INVALID_PARAM, GNI_CeGetId(any, &number));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CeDestroy(any));
        GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(any, &client, 1, NULL, NULL, 0));
        if (any != (void *)net.nic)
            GIVES(GNI_RC_INVALID_PARAM, GNI_CeCreate(any, more));
        if (any)
            GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, &client, 1, NULL, any, 0));
        if (any == (void *)net.ends[0])
            continue;
        GIVES(GNI_RC_INVALID_PARAM, GNI_EpSetCeAttr(any, 0, 0, GNI_CE_CHILD_PE));
        gni_ep_handle_t wrong = any;
        GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, &wrong, 1, NULL, NULL, 0));
        if (any)
            GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, &client, 1, wrong, NULL, 0));
    }
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeCreate(net.nic, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeGetId(other, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, NULL, 1, NULL, NULL, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, many, 33, NULL, NULL, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, many, UINT32_MAX, NULL, NULL, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, many, 2, NULL, NULL, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, many, 0, NULL, NULL, 0));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeConfigure(other, many, 1, NULL, NULL, GNI_CE_MODE_CQE_ONERR));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpSetCeAttr(client, 0, 32, GNI_CE_CHILD_PE));
    GIVES(GNI_RC_INVALID_PARAM, GNI_EpSetCeAttr(client, 0, 0, (gni_ce_child_t)3));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CeCheckResult(NULL, sizeof(gni_ce_result_t)));
    CHECK(gni_ce_res_get_status(NULL) == 0 && gni_ce_res_status_ok(NULL) == 0);
    CHECK(gni_ce_res_get_fpe(NULL) == 0 && gni_ce_res_get_red_id(NULL) == 0);

    /* As many as are left. */
    int left = 0;
    while (GNI_CeCreate(net.nic, &more[left]) == GNI_RC_SUCCESS)
        CHECK(++left < 4);
    CHECK(left == (engine ? 2 : 3));
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_CeCreate(net.nic, &more[left]));
    while (left > 0)
        WORKS(GNI_CeDestroy(more[--left]));
    WORKS(GNI_CeDestroy(other));
    REFUSES(GNI_RC_INVALID_PARAM, GNI_CeDestroy(other));

    gni_post_descriptor_t post = contribution(GNI_FMA_CE_IADD, 1, 1, 1);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(net.ends[0], &post));
    post.local_addr += 16;
    REFUSES(GNI_RC_ALIGNMENT_ERROR, GNI_PostFma(leaf, &post));
    post = contribution(GNI_FMA_CE_IADD, 1, 1, 1);
    post.local_addr += 1 << 20;
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(leaf, &post));
    post = contribution((gni_ce_cmd_type_t)0x1f, 1, 1, 1);
    GIVES(GNI_RC_INVALID_PARAM, GNI_PostFma(leaf, &post));
    WORKS(GNI_EpIdle(leaf));
    WORKS(GNI_EpDestroy(client));
}

/* There is nothing of all that. */
static void on_gemini(void)
{
    gni_ce_handle_t none;
    gni_post_descriptor_t post = contribution(GNI_FMA_CE_IADD, 1, 1, 1);
    GIVES(GNI_RC_ILLEGAL_OP, GNI_CeCreate(net.nic, &none));
    GIVES(GNI_RC_ILLEGAL_OP, GNI_EpSetCeAttr(net.ends[0], 0, 0, GNI_CE_CHILD_PE));
    GIVES(GNI_RC_ILLEGAL_OP, GNI_PostFma(net.ends[0], &post));
    GIVES(GNI_RC_ILLEGAL_OP, GNI_CeCheckResult(result(), sizeof *result()));
}

/* The last rank's client goes with its endpoints while others wait for it, at one engine; the others have a failure. */
static void one_goes(void)
{
    gni_post_descriptor_t post = contribution(GNI_FMA_CE_IADD, 9, 1, 1);
    if (job.rank < job.size - 1) {
        WORKS(GNI_PostFma(leaf, &post));
        net_done(&post);
        GIVES(GNI_RC_NOT_DONE, GNI_CeCheckResult(result(), sizeof *result()));
    }
    job_barrier();
    if (job.rank == job.size - 1) {
        WORKS(GNI_MemDeregister(net.nic, &places[job.rank].handle));
        WORKS(GNI_CdmDestroy(net.domain));
    } else {
        GIVES(GNI_RC_TRANSACTION_ERROR, await_result());
        CHECK(gni_ce_res_status_ok(result()) == 0 && gni_ce_res_get_red_id(result()) == 9);
    }
    job_barrier();
}

int main(void)
{
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    if (net.chip == GNI_DEVICE_GEMINI) {
        on_gemini();
        net_end();
        return 0;
    }
    make_tree();
    reductions();
    refused();
    for (bound = 1; bound <= 1001; bound += 1000) {
        job_barrier();
        unmake_tree();
        make_tree();
        reductions();
    }
    job_barrier();
    one_goes();
    if (job.rank < job.size - 1) {
        WORKS(GNI_EpDestroy(leaf));
        if (engine) {
            WORKS(GNI_CeDestroy(engine));
            WORKS(GNI_CqDestroy(told));
        }
        WORKS(GNI_MemDeregister(net.nic, &places[job.rank].handle));
        WORKS(GNI_CdmDestroy(net.domain));
    }
    job_end();
    return 0;
}
