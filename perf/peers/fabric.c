/* The measurements over libfabric's provider for shared memory, between two processes: tagged messages, reads, writes
 * and atomics. The provider makes progress only in calls, so the rank that is written to keeps asking its queue. It has
 * no barrier. */
#include "peer.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { TAG = 1, TAG_MEETING = 2, WINDOW = 32, MOST_NAME = 512 };

struct place {
    uint64_t address, key;
};

static int rank;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_cq *queue;
static fi_addr_t far;
static struct place there;
static void *local_key;
static size_t inline_most;
static unsigned char *out, *in, *window;

/* An operation that is not done. What completes is told apart by its context. */
struct operation {
    struct fi_context2 context; /* the provider's; first, so that a context is an operation */
    int done;
};

static struct operation sends[WINDOW], receives[WINDOW], transfer;

static void check(ssize_t code, const char *what)
{
    if (code < 0)
        peer_die(what, fi_strerror((int)-code));
}

static void progress(void)
{
    struct fi_cq_tagged_entry entries[16];
    ssize_t count = fi_cq_read(queue, entries, 16);
    if (count == -FI_EAGAIN)
        return;
    if (count == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        check(fi_cq_readerr(queue, &error, 0), "reading an error from the queue");
        peer_die("an operation failed", fi_strerror(error.err));
    }
    check(count, "reading the queue");
    for (ssize_t i = 0; i < count; i++)
        if (entries[i].op_context != NULL)
            ((struct operation *)entries[i].op_context)->done = 1;
}

static void finish(struct operation *operation)
{
    while (!operation->done)
        progress();
}

/* Starts an operation, turning the queue as long as the provider is busy. */
#define START(operation, call)                                                                                         \
    do {                                                                                                               \
        ssize_t code_;                                                                                                 \
        (operation)->done = 0;                                                                                         \
        while ((code_ = (call)) == -FI_EAGAIN)                                                                         \
            progress();                                                                                                \
        check(code_, #call);                                                                                           \
    } while (0)

static void start_receive(struct operation *operation, void *bytes, size_t length, uint64_t tag)
{
    START(operation, fi_trecv(endpoint, bytes, length, local_key, far, tag, 0, operation));
}

static void start_send(struct operation *operation, const void *bytes, size_t length, uint64_t tag)
{
    if (length <= inline_most) {
        START(operation, fi_tinject(endpoint, bytes, length, far, tag));
        operation->done = 1;
    } else {
        START(operation, fi_tsend(endpoint, bytes, length, local_key, far, tag, operation));
    }
}

static void meet(void)
{
    static struct operation send, receive;
    start_receive(&receive, NULL, 0, TAG_MEETING);
    start_send(&send, NULL, 0, TAG_MEETING);
    finish(&send);
    finish(&receive);
}

static double am_latency(size_t bytes, unsigned iterations)
{
    peer_fill(out, bytes, iterations);
    memset(in, 0, bytes);
    start_receive(&receives[0], in, bytes, TAG);
    meet();
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        peer_stamp(out, bytes, i);
        if (rank == 0)
            start_send(&sends[0], out, bytes, TAG);
        if (rank == 0)
            finish(&sends[0]);
        finish(&receives[0]);
        peer_check_stamp(in, bytes, i, "a message there or back");
        if (i + 1 < iterations)
            start_receive(&receives[0], in, bytes, TAG);
        if (rank == 1)
            start_send(&sends[0], out, bytes, TAG);
        if (rank == 1)
            finish(&sends[0]);
    }
    double took = peer_now() - begun;
    if (memcmp(in, out, bytes) != 0)
        peer_die("a message that came back", "its bytes are others");
    return took;
}

static double flood(size_t bytes, unsigned iterations)
{
    static struct operation end;
    unsigned wide = bytes * WINDOW <= 512 << 10 ? WINDOW : bytes <= 128 << 10 ? 8 : 2;
    for (unsigned w = 0; w < wide; w++)
        peer_fill(out + w * bytes, bytes, w);
    memset(in, 0, wide * bytes);
    for (unsigned w = 0; w < wide; w++) {
        sends[w].done = 1;
        if (rank == 1 && w < iterations)
            start_receive(&receives[w], in + w * bytes, bytes, TAG);
    }
    if (rank == 0)
        start_receive(&end, in, 1, TAG_MEETING);
    double begun = peer_now();
    for (unsigned i = 0; i < iterations; i++) {
        unsigned w = i % wide;
        if (rank == 0) {
            finish(&sends[w]);
            peer_stamp(out + w * bytes, bytes, i);
            start_send(&sends[w], out + w * bytes, bytes, TAG);
        } else {
            finish(&receives[w]);
            peer_check_stamp(in + w * bytes, bytes, i, "a message of a flood");
            if (i + wide < iterations)
                start_receive(&receives[w], in + w * bytes, bytes, TAG);
        }
    }
    if (rank == 1)
        start_send(&end, out, 1, TAG_MEETING);
    finish(&end);
    double took = peer_now() - begun;
    for (unsigned w = 0; rank == 0 && w < wide; w++)
        finish(&sends[w]);
    for (unsigned w = 0; rank == 1 && bytes > 8 && w < wide && w < iterations; w++)
        if (memcmp(in + w * bytes + 8, out + w * bytes + 8, bytes - 8) != 0)
            peer_die("a message of a flood", "its bytes are others");
    return took;
}

/* Runs `one` so often on rank 0, while rank 1 turns its queue until the end. */
static double one_sided(unsigned iterations, size_t bytes, void (*one)(size_t bytes, unsigned i))
{
    double begun = peer_now();
    for (unsigned i = 0; rank == 0 && i < iterations; i++)
        one(bytes, i);
    double took = peer_now() - begun;
    meet();
    return took;
}

static void put_one(size_t bytes, unsigned i)
{
    peer_stamp(out, bytes, i);
    START(&transfer, fi_write(endpoint, out, bytes, local_key, far, there.address, there.key, &transfer));
    finish(&transfer);
}

static double put_latency(size_t bytes, unsigned iterations)
{
    peer_fill(out, bytes, iterations);
    double took = one_sided(iterations, bytes, put_one);
    peer_stamp(out, bytes, iterations - 1);
    if (rank == 1 && memcmp(window, out, bytes) != 0)
        peer_die("a write", "the bytes in the memory are others");
    return took;
}

static void get_one(size_t bytes, unsigned i)
{
    (void)i;
    START(&transfer, fi_read(endpoint, in, bytes, local_key, far, there.address, there.key, &transfer));
    finish(&transfer);
}

static double get_latency(size_t bytes, unsigned iterations)
{
    peer_fill(window, bytes, iterations);
    memset(in, 0, bytes);
    meet();
    double took = one_sided(iterations, bytes, get_one);
    if (rank == 0)
        peer_check(in, bytes, iterations, "a read");
    return took;
}

static void atomic_one(size_t bytes, unsigned i)
{
    static uint64_t three = 3, before;
    (void)bytes;
    START(&transfer, fi_fetch_atomic(endpoint, &three, 1, local_key, &before, local_key, far, there.address, there.key,
                                     FI_UINT64, FI_SUM, &transfer));
    finish(&transfer);
    if (before != 3 * (uint64_t)i)
        peer_die("a fetch-and-add", "it fetched another value");
}

static double atomic(size_t bytes, unsigned iterations)
{
    uint64_t sum;
    memset(window, 0, 8);
    meet();
    double took = one_sided(iterations, bytes, atomic_one);
    memcpy(&sum, window, sizeof sum);
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

static unsigned char *buffer(size_t length)
{
    unsigned char *bytes = aligned_alloc(4096, length);
    if (bytes == NULL)
        peer_die("allocating a buffer", "no memory");
    memset(bytes, 1, length);
    return bytes;
}

static void open_fabric(void)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fid_av *addresses;
    if (hints == NULL)
        peer_die("asking for a fabric", "no memory");
    hints->fabric_attr->prov_name = strdup("shm");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_LOCAL;
    check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "looking for the provider shm");
    inline_most = info->tx_attr->inject_size;
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "opening the fabric");
    check(fi_domain(fabric, info, &domain, NULL), "opening the domain");
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    check(fi_av_open(domain, &table, &addresses, NULL), "opening a table of addresses");
    struct fi_cq_attr events = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 1024};
    check(fi_cq_open(domain, &events, &queue, NULL), "opening a queue");
    check(fi_endpoint(domain, info, &endpoint, NULL), "making an endpoint");
    check(fi_ep_bind(endpoint, &addresses->fid, 0), "binding the addresses");
    check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "binding the queue");
    check(fi_enable(endpoint), "enabling the endpoint");

    char mine[MOST_NAME] = {0}, theirs[MOST_NAME];
    size_t length = sizeof mine;
    check(fi_getname(&endpoint->fid, mine, &length), "asking for the name");
    peer_swap(mine, theirs, sizeof mine);
    if (fi_av_insert(addresses, theirs, 1, &far, 0, NULL) != 1)
        peer_die("taking in the other's name", "refused");

    struct fid_mr *region;
    const uint64_t rights =
        FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    window = buffer(LARGEST);
    out = buffer(2 * LARGEST);
    in = buffer(2 * LARGEST);
    check(fi_mr_reg(domain, window, LARGEST, rights, 0, (uint64_t)rank + 7, 0, &region, NULL), "registering memory");
    const int addressed = (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    const struct place here = {addressed ? (uintptr_t)window : 0, fi_mr_key(region)};
    local_key = fi_mr_desc(region);
    peer_swap(&here, &there, sizeof here);
    fi_freeinfo(info);
    fi_freeinfo(hints);
}

int main(void)
{
    char version[64];
    rank = peer_fork();
    peer_pin(rank);
    open_fabric();
    meet();
    uint32_t number = fi_version();
    snprintf(version, sizeof version, "libfabric %u.%u, shm", FI_MAJOR(number), FI_MINOR(number));
    const struct peer peer = {"libfabric", version, rank, 2, meet, benches};
    peer_serve(&peer);
    meet();
    /* The provider removes the names of its files when the endpoint is closed. */
    check(fi_close(&endpoint->fid), "closing the endpoint");
    return 0;
}
