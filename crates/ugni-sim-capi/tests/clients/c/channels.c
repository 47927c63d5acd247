/* Completion channels: one waits at a descriptor for whichever queue has an event. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "net.h"

enum { ROUNDS = 50 };

static int readable(int fd, int patience)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    int ready;
    while ((ready = poll(&at, 1, patience)) < 0)
        CHECK(errno == EINTR);
    return ready > 0 && (at.revents & POLLIN);
}

static void refused(gni_comp_chan_handle_t channel, gni_cq_handle_t queue)
{
    gni_comp_chan_handle_t other;
    gni_cq_handle_t found, both[2] = {net.arrivals, queue};
    int fd;
    GIVES(GNI_RC_INVALID_PARAM, GNI_CompChanCreate(NULL, &other));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CompChanCreate(net.nic, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CompChanFd((gni_comp_chan_handle_t)(void *)net.nic, &fd));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CompChanGetEvent(NULL, &found));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqAttachCompChan(NULL, channel));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqAttachCompChan(net.events, NULL));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqArmCompChan(both, 0));
    /* The second is attached to none: so the first is not armed either. */
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqArmCompChan(both, 2));
    WORKS(GNI_CompChanCreate(net.nic, &other));
    WORKS(GNI_CqAttachCompChan(queue, other));
    WORKS(GNI_CompChanDestroy(other));
    REFUSES(GNI_RC_INVALID_PARAM, GNI_CompChanDestroy(other));
    GIVES(GNI_RC_INVALID_PARAM, GNI_CqArmCompChan(&queue, 1));
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    int peer = (job.rank + 1) % job.size, fd = -1;
    gni_comp_chan_handle_t channel;
    gni_cq_handle_t queue, found, both[2] = {net.arrivals, net.events};
    gni_cq_entry_t event;
    WORKS(GNI_CqCreate(net.nic, 4, 0, GNI_CQ_BLOCKING, NULL, NULL, &queue));
    WORKS(GNI_CompChanCreate(net.nic, &channel));
    WORKS(GNI_CqAttachCompChan(net.arrivals, channel));
    refused(channel, queue);
    WORKS(GNI_CqAttachCompChan(net.events, channel));
    WORKS(GNI_CompChanFd(channel, &fd));
    int flags = fcntl(fd, F_GETFL);
    CHECK(flags >= 0 && !(flags & O_NONBLOCK) && !readable(fd, 0));
    job_barrier();
    for (int round = 0; round < ROUNDS; round++) {
        /* Whether the library waits is what the descriptor says. */
        CHECK(fcntl(fd, F_SETFL, round % 2 ? flags | O_NONBLOCK : flags) == 0);
        if (round % 2)
            GIVES(GNI_RC_NOT_DONE, GNI_CompChanGetEvent(channel, &found));
        WORKS(GNI_CqArmCompChan(both, 2));
        gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, 0, 8), *done = NULL;
        post.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        WORKS(GNI_PostFma(net.ends[peer], &post));
        int told[2] = {0};
        while (!told[0] || !told[1]) {
            if (round % 2)
                CHECK(readable(fd, 60000));
            WORKS(GNI_CompChanGetEvent(channel, &found));
            CHECK(found == both[0] || found == both[1]);
            CHECK(!told[found == both[1]]++);
        }
        WORKS(GNI_CqGetEvent(net.arrivals, &event));
        WORKS(GNI_CqGetEvent(net.events, &event));
        WORKS(GNI_GetCompleted(net.events, event, &done));
        CHECK(done == &post && !readable(fd, 0));
        /* Nobody is a round ahead, whose event would be told of in this one. */
        job_barrier();
    }
    WORKS(GNI_CqDestroy(queue));
    net_end();
    REFUSES(GNI_RC_INVALID_PARAM, GNI_CompChanDestroy(channel));
    return 0;
}
