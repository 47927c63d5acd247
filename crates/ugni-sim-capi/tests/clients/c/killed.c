/* A peer that is killed at any moment: what is posted to it ends with an error, soon, and who comes after it is found. */
#include "killer.h"
#include "net.h"

enum { ROUNDS = 12, COOKIE_OF_ITS_OWN = 1 };

/* A process with a NIC whose memory is there for others, until it is killed. */
static pid_t start(struct place *place)
{
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct place mine;
        gni_cdm_handle_t domain;
        gni_nic_handle_t nic;
        memset(&mine, 0, sizeof mine);
        WORKS(GNI_CdmCreate(1, COOKIE_OF_ITS_OWN, (uint32_t)getppid(), 0, &domain));
        WORKS(GNI_CdmAttach(domain, 0, &mine.address, &nic));
        mine.memory = (uint64_t)net.memory;
        WORKS(GNI_MemRegister(nic, mine.memory, BYTES, NULL, 0, (uint32_t)-1, &mine.handle));
        CHECK(write(pipes[1], &mine, sizeof mine) == sizeof mine);
        for (;;)
            pause();
    }
    close(pipes[1]);
    CHECK(read(pipes[0], place, sizeof *place) == sizeof *place);
    close(pipes[0]);
    return child;
}

/* Posts one of several kinds, and gives how it ended. */
static gni_return_t run(int kind)
{
    gni_post_descriptor_t post, *found;
    gni_cq_entry_t event;
    switch (kind % 4) {
    case 0:
        post = net_post(GNI_POST_FMA_PUT, 1, 0, 0, 8);
        break;
    case 1:
        post = net_post(GNI_POST_RDMA_PUT, 1, 0, 0, BYTES);
        break;
    case 2:
        post = net_post(GNI_POST_RDMA_GET, 1, 0, 0, BYTES);
        break;
    default:
        post = net_post(GNI_POST_AMO, 1, 0, 0, 8);
        post.amo_cmd = GNI_FMA_ATOMIC_FADD;
    }
    WORKS(kind % 4 == 1 || kind % 4 == 2 ? GNI_PostRdma(net.ends[1], &post) : GNI_PostFma(net.ends[1], &post));
    gni_return_t code = net_event(net.events, &event);
    CHECK(GNI_GetCompleted(net.events, event, &found) == code && found == &post);
    if (code != GNI_RC_SUCCESS) {
        char text[100];
        CHECK(code == GNI_RC_TRANSACTION_ERROR);
        WORKS(GNI_CqErrorStr(event, text, sizeof text));
        CHECK(strcmp(text, "the target cannot be reached") == 0);
    }
    return code;
}

int main(void)
{
    job.size = 2;
    pid_t child = start(&places[1]);
    WORKS(GNI_CdmCreate(0, COOKIE_OF_ITS_OWN, (uint32_t)getpid(), 0, &net.domain));
    WORKS(GNI_CdmAttach(net.domain, 0, &net.address, &net.nic));
    WORKS(GNI_CqCreate(net.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &net.events));
    WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, BYTES, NULL, 0, (uint32_t)-1, &places[0].handle));
    places[0].memory = (uint64_t)net.memory;
    WORKS(GNI_EpCreate(net.nic, net.events, &net.ends[1]));
    WORKS(GNI_EpBind(net.ends[1], net.address, 1));
    for (int round = 0; round < ROUNDS; round++) {
        for (int turn = 0; turn < 20; turn++)
            WORKS(run(turn));
        pid_t killer = killer_begin(child, (useconds_t)round * 300);
        double begun = now();
        int turn = round;
        while (run(turn) == GNI_RC_SUCCESS) {
            CHECK(now() - begun < 60);
            turn++;
        }
        /* It stays so until another comes under that name. */
        CHECK(run(turn) == GNI_RC_TRANSACTION_ERROR);
        killer_end(killer, child);
        child = start(&places[1]);
    }
    WORKS(run(0));
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    WORKS(GNI_EpDestroy(net.ends[1]));
    WORKS(GNI_CqDestroy(net.events));
    WORKS(GNI_MemDeregister(net.nic, &places[0].handle));
    WORKS(GNI_CdmDestroy(net.domain));
    puts("all is well");
    return 0;
}
