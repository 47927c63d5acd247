/* A neighbour that is killed at any moment, be it in the midst of what it does to the whole node: the other has an error, soon, and
 * goes on with whoever comes after it. */
#include "killer.h"
#include "net.h"

enum { ROUNDS = 12, COOKIE_OF_ITS_OWN = 2 };

static gni_msgq_handle_t queue;
static int received;

static int receive(uint32_t id, uint32_t address, void *message, uint8_t tag, void *data)
{
    (void)address, (void)message, (void)data;
    CHECK(id < 2 && tag == 7);
    received++;
    return 1;
}

static void begin(uint32_t instance, uint32_t cookie)
{
    gni_msgq_attr_t mine = {.max_msg_sz = 64, .smsg_q_sz = 4, .rcv_pool_sz = 64, .num_msgq_eps = 2,
                            .nloc_insts = 2, .rcv_cq_sz = 64};
    WORKS(GNI_CdmCreate(instance, COOKIE_OF_ITS_OWN, cookie, 0, &net.domain));
    WORKS(GNI_CdmAttach(net.domain, 0, &net.address, &net.nic));
    WORKS(GNI_CqCreate(net.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &net.events));
    WORKS(GNI_MsgqInit(net.nic, receive, NULL, net.events, &mine, &queue));
}

/* Takes its messages, and has a connection of the node's made and ended all the time. */
static pid_t start(void)
{
    int pipes[2];
    char ready;
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        gni_msgq_ep_attr_t told;
        uint32_t size;
        begin(1, (uint32_t)getppid());
        CHECK(write(pipes[1], "", 1) == 1);
        for (;;) {
            gni_return_t code = GNI_MsgqProgress(queue, 0);
            CHECK(code == GNI_RC_SUCCESS || code == GNI_RC_NOT_DONE);
            if (GNI_MsgqGetConnAttrs(queue, net.address + 1, &told, &size) == GNI_RC_SUCCESS)
                GNI_MsgqConnRelease(queue, net.address + 1);
        }
    }
    close(pipes[1]);
    CHECK(read(pipes[0], &ready, 1) == 1);
    close(pipes[0]);
    return child;
}

/* Sends to an instance until that gives anything but patience. */
static gni_return_t send(int to)
{
    static const char text[] = "a message";
    double begun = now();
    for (;;) {
        gni_cq_entry_t event;
        gni_return_t code = GNI_MsgqSend(queue, net.ends[to], (void *)text, sizeof text, NULL, 0, 1, 7);
        while (GNI_CqGetEvent(net.events, &event) != GNI_RC_NOT_DONE)
            CHECK(GNI_CQ_GET_TYPE(event) == GNI_CQ_EVENT_TYPE_MSGQ);
        if (code != GNI_RC_NOT_DONE)
            return code;
        GNI_MsgqProgress(queue, 0);
        CHECK(now() - begun < 60);
    }
}

int main(void)
{
    gni_msgq_ep_attr_t told;
    uint32_t size;
    gni_return_t code;
    job.size = 2;
    pid_t child = start();
    begin(0, (uint32_t)getpid());
    for (int to = 0; to < 2; to++) {
        WORKS(GNI_EpCreate(net.nic, NULL, &net.ends[to]));
        WORKS(GNI_EpBind(net.ends[to], net.address, (uint32_t)to));
    }
    for (int round = 0; round < ROUNDS; round++) {
        WORKS(GNI_MsgqGetConnAttrs(queue, net.address, &told, &size));
        WORKS(GNI_MsgqConnect(queue, net.address, &told));
        for (int turn = 0; turn < 20; turn++)
            WORKS(send(turn % 2));
        pid_t killer = killer_begin(child, (useconds_t)round * 700);
        double begun = now();
        while ((code = send(1)) == GNI_RC_SUCCESS)
            CHECK(now() - begun < 60);
        CHECK(code == GNI_RC_INVALID_STATE);
        killer_end(killer, child);
        GIVES(GNI_RC_INVALID_STATE, send(1));
        GIVES(GNI_RC_INVALID_STATE, GNI_MsgqGetConnAttrs(queue, net.address, &told, &size));
        /* With itself it goes on. */
        int before = received;
        WORKS(send(0));
        while (received == before) {
            GNI_MsgqProgress(queue, 0);
            CHECK(now() - begun < 60);
        }
        while ((code = GNI_MsgqConnRelease(queue, net.address)) == GNI_RC_NOT_DONE) {
            gni_cq_entry_t event;
            GNI_CqGetEvent(net.events, &event);
            CHECK(now() - begun < 60);
        }
        CHECK(code == GNI_RC_SUCCESS);
        /* What the dead one has begun may be ended by this one. */
        code = GNI_MsgqConnRelease(queue, net.address + 1);
        CHECK(code == GNI_RC_SUCCESS || code == GNI_RC_NO_MATCH);
        child = start();
    }
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    WORKS(GNI_CdmDestroy(net.domain));
    puts("all is well");
    return 0;
}
