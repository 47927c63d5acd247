/* The measurements over UCX: active messages, put, get and atomics of UCP between two processes. Memory that is put to
 * is allocated by UCX, so that both processes may map it. UCP has no barrier. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { MESSAGE = 1, MEETING = 2, MOST_PENDING = 64, MOST_NAME = 4096 };

static int rank;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_rkey_h key;
static uint64_t far_base;
static unsigned char *near_base;
static unsigned char *out, *in;

/* What the handlers count. Of a payload the first word is looked at where it arrives; that of the message with the number
 * `whole` is copied out. */
static uint64_t arrived, meetings, whole;
static int pending;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK)
        peer_die(what, ucs_status_string(status));
}

static void finish(ucs_status_ptr_t request, const char *what)
{
    if (request == NULL)
        return;
    if (UCS_PTR_IS_ERR(request))
        peer_die(what, ucs_status_string(UCS_PTR_STATUS(request)));
    while (ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(worker);
    check(ucp_request_check_status(request), what);
    ucp_request_free(request);
}

static void received(void *request, ucs_status_t status, size_t length, void *user)
{
    (void)length, (void)user;
    check(status, "receiving an active message");
    arrived++;
    ucp_request_free(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_length;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.recv_am = received};
        ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker, data, in, length, &how);
        if (request == NULL)
            arrived++;
        else if (UCS_PTR_IS_ERR(request))
            check(UCS_PTR_STATUS(request), "receiving an active message");
        return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_INPROGRESS;
    }
    arrived++;
    memcpy(in, data, arrived == whole || length < 8 ? length : 8);
    return UCS_OK;
}

static ucs_status_t on_meeting(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    (void)arg, (void)header, (void)header_length, (void)data, (void)length, (void)param;
    meetings++;
    return UCS_OK;
}

static void sent(void *request, ucs_status_t status, void *user)
{
    (void)user;
    check(status, "sending an active message");
    pending--;
    ucp_request_free(request);
}

static void send_message(unsigned id, const void *bytes, size_t length)
{
    static const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = sent};
    ucs_status_ptr_t request = ucp_am_send_nbx(endpoint, id, NULL, 0, bytes, length, &how);
    if (UCS_PTR_IS_ERR(request))
        check(UCS_PTR_STATUS(request), "sending an active message");
    pending += request != NULL;
    while (pending >= MOST_PENDING)
        ucp_worker_progress(worker);
}

static void wait_for(const uint64_t *count, uint64_t wanted_count)
{
    while (*(const volatile uint64_t *)count < wanted_count || pending > 0)
        ucp_worker_progress(worker);
}

static void meet(void)
{
    static uint64_t met;
    send_message(MEETING, NULL, 0);
    wait_for(&meetings, ++met);
}

static double am_latency(size_t bytes, unsigned iterations)
{
    peer_fill(out, bytes, iterations);
    uint64_t before = arrived;
    whole = before + iterations;
    meet();
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        if (rank == 0) {
            peer_stamp(out, bytes, i);
            send_message(MESSAGE, out, bytes);
            wait_for(&arrived, before + i + 1);
            peer_check_stamp(in, bytes, i, "a message that came back");
        } else {
            wait_for(&arrived, before + i + 1);
            peer_stamp(out, bytes, i);
            send_message(MESSAGE, out, bytes);
        }
    }
    double took = peer_now() - begun;
    if (rank == 0 && memcmp(in, out, bytes) != 0)
        peer_die("a message that came back", "its bytes are others");
    return took;
}

static double flood(size_t bytes, unsigned iterations)
{
    peer_fill(out, bytes, iterations);
    uint64_t before = arrived;
    whole = before + iterations;
    meet();
    double begun = peer_now();
    if (rank == 0) {
        for (unsigned i = 0; i < iterations; i++)
            send_message(MESSAGE, out, bytes);
        wait_for(&arrived, before + 1);
    } else {
        wait_for(&arrived, before + iterations);
        send_message(MESSAGE, out, 1);
        wait_for(&arrived, before + iterations);
    }
    double took = peer_now() - begun;
    if (rank == 1 && memcmp(in, out, bytes) != 0)
        peer_die("the last message of a flood", "its bytes are others");
    return took;
}

/* The other rank turns the engine until the end, which is a meeting. */
static double put_latency(size_t bytes, unsigned iterations)
{
    const ucp_request_param_t how = {0};
    peer_fill(out, bytes, iterations);
    double begun = peer_now();
    for (unsigned i = 0; rank == 0 && i < iterations; i++) {
        peer_stamp(out, bytes, i);
        finish(ucp_put_nbx(endpoint, out, bytes, far_base, key, &how), "a put");
        finish(ucp_ep_flush_nbx(endpoint, &how), "the flush after a put");
    }
    double took = peer_now() - begun;
    meet();
    peer_stamp(out, bytes, iterations - 1);
    if (rank == 1 && memcmp(near_base, out, bytes) != 0)
        peer_die("a put", "the bytes in the memory are others");
    return took;
}

static double get_latency(size_t bytes, unsigned iterations)
{
    const ucp_request_param_t how = {0};
    if (rank == 1)
        peer_fill(near_base, bytes, iterations);
    memset(in, 0, bytes);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; rank == 0 && i < iterations; i++)
        finish(ucp_get_nbx(endpoint, in, bytes, far_base, key, &how), "a get");
    double took = peer_now() - begun;
    meet();
    if (rank == 0)
        peer_check(in, bytes, iterations, "a get");
    return took;
}

static double atomic(size_t bytes, unsigned iterations)
{
    uint64_t three = 3, before = 0, sum;
    const ucp_request_param_t how = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype = ucp_dt_make_contig(8),
        .reply_buffer = &before,
    };
    (void)bytes;
    memset(near_base, 0, 8);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; rank == 0 && i < iterations; i++) {
        finish(ucp_atomic_op_nbx(endpoint, UCP_ATOMIC_OP_ADD, &three, 1, far_base, key, &how), "a fetch-and-add");
        if (before != 3 * (uint64_t)i)
            peer_die("a fetch-and-add", "it fetched another value");
    }
    double took = peer_now() - begun;
    meet();
    memcpy(&sum, near_base, 8);
    if (rank == 1 && sum != 3 * (uint64_t)iterations)
        peer_die("a fetch-and-add", "the sum is another");
    return took;
}

static const struct bench benches[] = {
    {"am-latency", LARGEST, am_latency},   {"am-rate", 64, flood},
    {"am-bandwidth", LARGEST, flood},      {"put-latency", LARGEST, put_latency},
    {"get-latency", LARGEST, get_latency}, {"atomic", 8, atomic},
    {NULL, 0, NULL},
};

/* Sends a block of at most MOST_NAME bytes to the other process and receives its. */
static size_t swap_block(const void *mine, size_t length, unsigned char *theirs)
{
    unsigned char padded[MOST_NAME] = {0};
    size_t far_length;
    if (length > sizeof padded)
        peer_die("exchanging addresses", "an address is too long");
    memcpy(padded, mine, length);
    peer_swap(&length, &far_length, sizeof length);
    peer_swap(padded, theirs, sizeof padded);
    return far_length;
}

static void handle(unsigned id, ucp_am_recv_callback_t callback)
{
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id = id,
        .cb = callback,
    };
    check(ucp_worker_set_am_recv_handler(worker, &handler), "setting a handler");
}

static void connect_both(ucp_context_h context)
{
    unsigned char theirs[MOST_NAME];
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(worker, &address, &length), "asking for the address");
    swap_block(address, length, theirs);
    ucp_worker_release_address(worker, address);
    const ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                .address = (const ucp_address_t *)theirs};
    check(ucp_ep_create(worker, &to, &endpoint), "connecting");

    const ucp_mem_map_params_t how = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = LARGEST,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucp_mem_attr_t got = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    ucp_mem_h memory;
    void *packed;
    check(ucp_mem_map(context, &how, &memory), "allocating memory to put to");
    check(ucp_mem_query(memory, &got), "asking where the memory is");
    near_base = got.address;
    uint64_t base = (uintptr_t)near_base;
    memset(near_base, 1, LARGEST);
    check(ucp_rkey_pack(context, memory, &packed, &length), "packing a key");
    swap_block(packed, length, theirs);
    ucp_rkey_buffer_release(packed);
    peer_swap(&base, &far_base, sizeof base);
    check(ucp_ep_rkey_unpack(endpoint, theirs, &key), "unpacking a key");
}

int main(void)
{
    char version[64];
    rank = peer_fork();
    peer_pin(rank);
    ucp_config_t *config;
    ucp_context_h context;
    check(ucp_config_read(NULL, NULL, &config), "reading settings");
    const ucp_params_t wanted_features = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64,
    };
    check(ucp_init(&wanted_features, config, &context), "opening UCX");
    ucp_config_release(config);
    const ucp_worker_params_t alone = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                       .thread_mode = UCS_THREAD_MODE_SINGLE};
    check(ucp_worker_create(context, &alone, &worker), "making a worker");
    handle(MESSAGE, on_message);
    handle(MEETING, on_meeting);
    out = aligned_alloc(4096, LARGEST);
    in = aligned_alloc(4096, LARGEST);
    if (out == NULL || in == NULL)
        peer_die("allocating buffers", "no memory");
    memset(out, 1, LARGEST);
    memset(in, 1, LARGEST);
    connect_both(context);
    meet();
    snprintf(version, sizeof version, "UCX %s", ucp_get_version_string());
    const struct peer peer = {"ucx", version, rank, 2, meet, benches};
    peer_serve(&peer);
    meet();
    /* Both processes hold what the other has mapped until both are here; the end of the process gives it back. */
    const ucp_request_param_t plain = {0};
    finish(ucp_ep_close_nbx(endpoint, &plain), "closing the connection");
    return 0;
}
