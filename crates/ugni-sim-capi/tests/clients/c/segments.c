/* Memory in several pieces that are registered as one: what is put there finds its piece. */
#include "net.h"

enum { PIECE = 8192, APART = 3 * PIECE, PIECES = 3 };

static unsigned char area[PIECES * APART];

int main(void)
{
    gni_mem_handle_t handles[MOST_RANKS], mine, none;
    gni_mem_segment_t segments[PIECES];
    job_begin();
    net_begin(GNI_CDM_MODE_DUAL_EVENTS, ENTRIES);
    /* The last is the first. */
    for (int i = 0; i < PIECES; i++) {
        segments[i].address = (uint64_t)area + (uint64_t)(PIECES - 1 - i) * APART;
        segments[i].length = PIECE;
    }
    WORKS(GNI_MemRegisterSegments(net.nic, segments, PIECES, net.arrivals, GNI_MEM_READWRITE, (uint32_t)-1, &mine));
    job_gather(&mine, handles, sizeof mine);
    int next = (job.rank + 1) % job.size, last = (job.rank + job.size - 1) % job.size;

    /* Over the border of two pieces, and into each. */
    for (uint64_t at = 0; at < PIECES * PIECE; at += PIECE / 2) {
        uint64_t length = at + PIECE <= PIECES * PIECE ? PIECE : PIECE / 2;
        memset(net.memory, job.rank + 1, PIECE);
        memset(area, 0, sizeof area);
        job_barrier();
        gni_post_descriptor_t post = net_post(GNI_POST_RDMA_PUT, next, 0, 0, length);
        post.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        post.remote_addr = at;
        post.remote_mem_hndl = handles[next];
        net_run(next, &post);
        gni_cq_entry_t event;
        WORKS(net_event(net.arrivals, &event));
        job_barrier();
        for (uint64_t byte = 0; byte < PIECES * PIECE; byte++) {
            unsigned char found = area[(PIECES - 1 - byte / PIECE) * APART + byte % PIECE];
            CHECK(found == (byte >= at && byte < at + length ? last + 1 : 0));
        }
        for (int i = 0; i < PIECES; i++)
            for (int byte = PIECE; byte < APART; byte++)
                CHECK(area[i * APART + byte] == 0);
        job_barrier();
    }

    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, segments, 0, NULL, 0, (uint32_t)-1, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, NULL, 1, NULL, 0, (uint32_t)-1, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, segments, 1, NULL, 0, 5, &none));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, segments, 1, NULL, 0, (uint32_t)-1, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(NULL, segments, 1, NULL, 0, (uint32_t)-1, &none));
    segments[1].length = 0;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, segments, 2, NULL, 0, (uint32_t)-1, &none));
    segments[1].address = 8;
    segments[1].length = 8;
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemRegisterSegments(net.nic, segments, 2, NULL, 0, (uint32_t)-1, &none));
    segments[1].address = (uint64_t)"text that is only read";
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_MemRegisterSegments(net.nic, segments, 2, NULL, 0, (uint32_t)-1, &none));

    WORKS(GNI_MemDeregister(net.nic, &mine));
    GIVES(GNI_RC_INVALID_PARAM, GNI_MemDeregister(net.nic, &mine));
    net_end();
    return 0;
}
