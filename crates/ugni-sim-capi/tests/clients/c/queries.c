/* What the library says of the device, the job and events, and what it lets nobody do. */
#include "net.h"

static uint64_t used(gni_job_res_t resource, uint64_t *limit)
{
    gni_job_res_desc_t amounts;
    WORKS(GNI_GetJobResInfo(0, net_tag(), resource, &amounts));
    if (limit)
        *limit = amounts.limit;
    return amounts.used;
}

static void resources(void)
{
    gni_dev_res_desc_t device;
    gni_job_res_desc_t of_job;
    gni_mem_handle_t handle;
    gni_cq_handle_t queue;
    uint64_t limit;
    CHECK(used(GNI_JOB_RES_MDD, &limit) == 1 && limit == 4096);
    CHECK(used(GNI_JOB_RES_CQ, &limit) == 2 && limit == 1024);
    CHECK(used(GNI_JOB_RES_FMA, &limit) == 0 && limit == (net.chip == GNI_DEVICE_ARIES ? 123 : 30));
    WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, 8, NULL, 0, (uint32_t)-1, &handle));
    WORKS(GNI_CqCreate(net.nic, 4, 0, GNI_CQ_NOBLOCK, NULL, NULL, &queue));
    CHECK(used(GNI_JOB_RES_MDD, NULL) == 2 && used(GNI_JOB_RES_MRT, NULL) == 2 && used(GNI_JOB_RES_CQ, NULL) == 3);
    WORKS(GNI_GetDevResInfo(0, GNI_DEV_RES_CQ, &device));
    CHECK(device.total == 1024 && device.available == 1021);
    WORKS(GNI_CqDestroy(queue));
    WORKS(GNI_MemDeregister(net.nic, &handle));
    CHECK(used(GNI_JOB_RES_MDD, NULL) == 1);
    /* Those that share a descriptor have one. */
    gni_mem_handle_t shared[3];
    for (int at = 0; at < 3; at++)
        WORKS(GNI_MemRegister(net.nic, (uint64_t)net.memory, 8, NULL, GNI_MEM_MDD_SHARED, (uint32_t)-1, &shared[at]));
    CHECK(used(GNI_JOB_RES_MDD, NULL) == 2 && used(GNI_JOB_RES_MRT, NULL) == 4);
    for (int at = 0; at < 3; at++)
        WORKS(GNI_MemDeregister(net.nic, &shared[at]));
    CHECK(used(GNI_JOB_RES_MDD, NULL) == 1 && used(GNI_JOB_RES_MRT, NULL) == 1);
    /* Another job uses nothing. */
    WORKS(GNI_GetJobResInfo(0, net_tag() + 1, GNI_JOB_RES_CQ, &of_job));
    CHECK(of_job.used == 0 && of_job.limit == 1024);

    GIVES(GNI_RC_INVALID_PARAM, GNI_GetDevResInfo(1, GNI_DEV_RES_CQ, &device));
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetDevResInfo(0, GNI_DEV_RES_FIRST, &device));
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetDevResInfo(0, GNI_DEV_RES_LAST, &device));
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetDevResInfo(0, GNI_DEV_RES_CQ, NULL));
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_GetDevResInfo(0, GNI_DEV_RES_DLA, &device));
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetJobResInfo(0, 0, GNI_JOB_RES_CQ, &of_job));
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetJobResInfo(0, net_tag(), GNI_JOB_RES_LAST, &of_job));
    GIVES(GNI_RC_ERROR_RESOURCE, GNI_GetJobResInfo(0, net_tag(), GNI_JOB_RES_GART, &of_job));
    CHECK(strcmp(gni_job_res_to_str(GNI_JOB_RES_FMA), "FMA") == 0 && !gni_dev_res_valid(GNI_DEV_RES_LAST));
}

/* What is for whoever runs the machine; here there is nobody. */
static void privileged(void)
{
    gni_job_limits_t limits;
    gni_ntt_descriptor_t table;
    uint32_t base = 9;
    memset(&limits, 0, sizeof limits);
    memset(&table, 0, sizeof table);
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_SetJobResInfo(0, net_tag(), GNI_JOB_RES_CQ, 9));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SetJobResInfo(0, net_tag(), GNI_JOB_RES_LAST, 9));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_SuspendJob(0, 1, net_tag(), 2, 3));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SuspendJob(1, 1, net_tag(), 2, 3));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_ResumeJob(0, 1, net_tag(), 2));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ResumeJob(0, 1, 0, 2));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_ConfigureNTT(0, &table, &base));
    GIVES(GNI_RC_NO_MATCH, GNI_ConfigureNTT(7, &table, &base));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ConfigureNTT(0, NULL, &base));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_ConfigureJob(0, 1, net_tag(), 2, &limits));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ConfigureJob(0, 1, net_tag(), 2, NULL));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_ConfigureNTTandJob(0, 1, net_tag(), 2, &limits, &table, &base));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ConfigureNTTandJob(0, 1, net_tag(), 2, &limits, NULL, &base));
    CHECK(base == 9);
    WORKS(GNI_GetNttGran(0, &base));
    CHECK(base == 1);

    gni_bi_desc_t injection;
    WORKS(GNI_GetBIConfig(0, &injection));
    CHECK(injection.current_bw == GNI_BI_INJECT_BW_MAX && injection.cle_seqnum == injection.hss_seqnum);
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_SetBIConfig(0, 100, 50, GNI_BI_FLAG_APPLY_NOW));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SetBIConfig(0, 50, 101, GNI_BI_FLAG_APPLY_NOW));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_SetBIConfig(0, 992, 0, GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SetBIConfig(0, 1, 1, 0x10));
    GIVES(GNI_RC_INVALID_PARAM,
          GNI_SetBIConfig(0, 1, 1, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE));
    WORKS(GNI_BISyncWait(0, 1));
    GIVES(GNI_RC_INVALID_PARAM, GNI_BISyncWait(9, 1));
}

/* A tag that the driver is to find: all who have the cookie find the same one. */
static void tags(uint32_t cookie)
{
    gni_cdm_handle_t domain;
    gni_nic_handle_t nic;
    uint8_t tag = 0, all[MOST_RANKS];
    GIVES(GNI_RC_NO_MATCH, GNI_GetPtag(0, cookie, &tag));
    WORKS(GNI_CdmCreate(100u + (uint32_t)job.rank, GNI_FIND_ALLOC_PTAG, cookie, 0, &domain));
    if (net.chip == GNI_DEVICE_ARIES) {
        WORKS(GNI_CdmAttach(domain, 0, NULL, &nic));
        WORKS(GNI_GetPtag(0, cookie, &tag));
        CHECK(tag >= GNI_PTAG_USER_START && tag <= GNI_PTAG_USER_END && tag != net_tag());
    } else {
        GIVES(GNI_RC_INVALID_PARAM, GNI_CdmAttach(domain, 0, NULL, &nic));
    }
    WORKS(GNI_CdmDestroy(domain));
    GIVES(GNI_RC_NO_MATCH, GNI_GetPtag(0, cookie, &tag));
    job_gather(&tag, all, sizeof tag);
    for (int rank = 0; rank < job.size; rank++)
        CHECK(all[rank] == tag);
}

static void statistics(int peer)
{
    uint32_t value = 9;
    WORKS(GNI_ResetNicStat(net.nic, GNI_STAT_FMA_LAUNCH_COUNT));
    gni_post_descriptor_t put = net_post(GNI_POST_FMA_PUT, peer, 0, 64, 8);
    gni_post_descriptor_t engine = net_post(GNI_POST_RDMA_PUT, peer, 0, 64, 8);
    net_run(peer, &put);
    net_run(peer, &engine);
    WORKS(GNI_GetNicStat(net.nic, GNI_STAT_FMA_LAUNCH_COUNT, &value));
    CHECK(value == 1 && strcmp(gni_statistic_str[GNI_STAT_FMA_LAUNCH_COUNT], "GNI_STAT_FMA_LAUNCH_COUNT") == 0);
    GIVES(GNI_RC_INVALID_PARAM, GNI_GetNicStat(net.nic, GNI_NUM_STATS, &value));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ResetNicStat(net.nic, GNI_NUM_STATS));
}

/* The parts of an event here, and of one from afar, one after the other. */
static void events(int peer)
{
    gni_post_descriptor_t post = net_post(GNI_POST_CQWRITE, peer, 0, 0, 0), *found;
    gni_cq_entry_t here, there, none = 0;
    post.cqwrite_value = 0xabcd12345678;
    WORKS(GNI_PostCqWrite(net.ends[peer], &post));
    WORKS(net_event(net.events, &here));
    WORKS(GNI_GetCompleted(net.events, here, &found));
    WORKS(net_event(net.arrivals, &there));
    CHECK(GNI_CQ_GET_INFO(here) == 0 && GNI_CQ_GET_TRANS_TYPE(here) == 0 && GNI_CQ_GET_BLOCK_ID(there) == 0);
    CHECK(GNI_CQ_GET_UNSUCCESSFUL_CNT(here) == 0 && GNI_CQ_GET_MARKER_ID(here) == 0 &&
          GNI_CQ_GET_FAILED_ENQUEUE_CNT(here) == 0);

    gni_cq_entry_t before = here;
    uint64_t tid = GNI_CQ_GET_TID(here);
    GNI_CQ_SET_INST_ID(&here, 0x123456);
    CHECK(GNI_CQ_GET_INST_ID(here) == 0x123456 && GNI_CQ_GET_TID(here) == tid);
    GNI_CQ_SET_TID(&here, 4711);
    CHECK(GNI_CQ_GET_TID(here) == 4711 && GNI_CQ_GET_INST_ID(here) == 0x123456);
    GNI_CQ_SET_TYPE(&here, GNI_CQ_EVENT_TYPE_DMAPP);
    CHECK(GNI_CQ_GET_TYPE(here) == GNI_CQ_EVENT_TYPE_DMAPP && GNI_CQ_GET_TID(here) == 4711);
    GNI_CQ_SET_MSG_ID(&here, 5);
    CHECK(GNI_CQ_GET_TID(here) == 4711 && GNI_CQ_GET_MSG_ID(here) == 0);
    GNI_CQ_SET_TYPE(&here, GNI_CQ_EVENT_TYPE_SMSG);
    GNI_CQ_SET_MSG_ID(&here, 0x87654321);
    CHECK(GNI_CQ_GET_TYPE(here) == GNI_CQ_EVENT_TYPE_SMSG && GNI_CQ_GET_MSG_ID(here) == 0x87654321);
    CHECK(GNI_CQ_GET_SOURCE(here) == GNI_CQ_GET_SOURCE(before) && GNI_CQ_STATUS_OK(here));

    GNI_CQ_SET_REM_INST_ID(&there, 0x87654321);
    CHECK(GNI_CQ_GET_REM_INST_ID(there) == 0x87654321 && GNI_CQ_GET_DATA(there) == 0xabcd87654321);
    GNI_CQ_SET_INST_ID(&there, 7);
    GNI_CQ_SET_TYPE(&there, GNI_CQ_EVENT_TYPE_SMSG);
    CHECK(GNI_CQ_GET_DATA(there) == 0xabcd00000007);

    /* One that failed, and forgets it. */
    post = net_post(GNI_POST_FMA_PUT, peer, 0, BYTES + 4096, 8);
    WORKS(GNI_PostFma(net.ends[peer], &post));
    GIVES(GNI_RC_TRANSACTION_ERROR, net_event(net.events, &here));
    GIVES(GNI_RC_TRANSACTION_ERROR, GNI_GetCompleted(net.events, here, &found));
    CHECK(!GNI_CQ_STATUS_OK(here));
    tid = GNI_CQ_GET_TID(here);
    GNI_CQ_CLR_STATUS(&here);
    CHECK(GNI_CQ_STATUS_OK(here) && GNI_CQ_GET_TID(here) == tid && here != 0);

    /* What is no event stays none. */
    GNI_CQ_SET_TID(NULL, 1);
    GNI_CQ_CLR_STATUS(NULL);
    GNI_CQ_SET_INST_ID(&none, 1);
    CHECK(none == 0);
}

/* Errors, apart from the events that tell of them. */
static void errors(int peer)
{
    gni_err_handle_t some, none;
    gni_error_mask_t mask = 0;
    gni_error_event_t events[4];
    uint32_t count = 9;
    GIVES(GNI_RC_NO_MATCH, GNI_SubscribeErrors(net.nic, 5, 0xff, 0, &some));
    GIVES(GNI_RC_INVALID_PARAM, GNI_SubscribeErrors(NULL, 0, 0xff, 0, &some));
    WORKS(GNI_SubscribeErrors(net.nic, 0, 0xff, 0, &some));
    WORKS(GNI_SubscribeErrors(net.nic, 0, GNI_ERRMASK_CORRECTABLE_MEMORY, 2, &none));
    WORKS(GNI_SetErrorMask(none, GNI_ERRMASK_CRITICAL, &mask));
    CHECK(mask == GNI_ERRMASK_CORRECTABLE_MEMORY);
    WORKS(GNI_GetErrorMask(none, &mask));
    CHECK(mask == GNI_ERRMASK_CRITICAL);
    WORKS(GNI_SetErrorPtag(some, net_tag()));
    GIVES(GNI_RC_PERMISSION_ERROR, GNI_SetErrorPtag(some, 0));
    GIVES(GNI_RC_NOT_DONE, GNI_GetErrorEvent(some, &events[0]));
    for (int i = 0; i < 3; i++) {
        gni_cq_entry_t event;
        gni_post_descriptor_t post = net_post(GNI_POST_FMA_PUT, peer, 0, BYTES + 4096, 8), *found;
        WORKS(GNI_PostFma(net.ends[peer], &post));
        GIVES(GNI_RC_TRANSACTION_ERROR, net_event(net.events, &event));
        GIVES(GNI_RC_TRANSACTION_ERROR, GNI_GetCompleted(net.events, event, &found));
    }
    WORKS(GNI_GetErrorEvent(some, &events[0]));
    CHECK(events[0].error_category == GNI_ERRMASK_TRANSACTION && events[0].ptag == net_tag());
    CHECK(events[0].serial_number == 1 && events[0].error_code != 0 && events[0].timestamp != 0);
    GIVES(GNI_RC_INVALID_PARAM, GNI_WaitErrorEvents(some, events, 0, 1, &count));
    GIVES(GNI_RC_INVALID_PARAM, GNI_WaitErrorEvents(some, NULL, 4, 1, &count));
    GIVES(GNI_RC_TIMEOUT, GNI_WaitErrorEvents(some, events, 4, 1, &count));
    CHECK(count == 2 && events[1].serial_number == 3 && events[1].timestamp >= events[0].timestamp);
    GIVES(GNI_RC_NOT_DONE, GNI_GetErrorEvent(none, &events[0]));
    WORKS(GNI_ReleaseErrors(some));
    GIVES(GNI_RC_INVALID_PARAM, GNI_ReleaseErrors(some));
    /* The other ends with its domain. */
}

int main(void)
{
    job_begin();
    net_begin(0, ENTRIES);
    int peer = (job.rank + 1) % job.size;
    resources();
    privileged();
    uint32_t count = GNI_PTAG_USER_END - GNI_PTAG_USER_START + 1;
    tags(net_cookie() ^ 0x5a5a0000u);
    /* One from which the job's own tag would follow. */
    tags((net_cookie() ^ 0x5a5a0000u) / count * count + net_tag() - GNI_PTAG_USER_START);
    statistics(peer);
    events(peer);
    errors(peer);
    net_end();
    return 0;
}
