/* What GASNet's conduit for Aries asks of the NIC for each operation, written anew from its public description: which posts, of how many
   bytes, with which events. Two ranks do each operation some times, with marks around, as gasworks-operations does it with ours;
   the comparison in the book has both. Of the conduit's memory there is only what one operation at a time needs. */
#include <gasworks_ugni.h>
#include <unistd.h>

#include "net.h"

enum {
    PAGE = 4096,
    LARGEST = 4 << 20,
    ZONE = LARGEST + PAGE,
    TIMES = 8,
    MARKS = 3,
    ASKEW = 3,
    SLOT = 8192,
    ARGUMENTS = 8,
    /* The defaults of its settings: up to so many bytes go by FMA, in the message of a Long, at once into a descriptor's own memory, and
       over a bounce buffer. */
    BY_FMA = 1023,
    PACKED = 3072,
    IMMEDIATE = 128,
    BOUNCED = 4096,
    LONG_HEADER = 16
};

/* Of its region for messages: its requests, and where requests of the peer's come; replies; words that tell of messages. */
enum { REQUESTS = 0, COMING = SLOT, REPLIES = 2 * SLOT, ANSWERS = 3 * SLOT, BOUNCE = 4 * SLOT, WORDS = 5 * SLOT, INBOX = WORDS + 64, REGION = 6 * SLOT };

static _Alignas(PAGE) unsigned char region[REGION], segment[2 * ZONE];
static struct {
    uint64_t region, segment;
    gni_mem_handle_t messages, memory;
} own, peers[MOST_RANKS];
static int other;

/* What it copies, and where it is not in the segment. */
static uint64_t copies;
static unsigned char *outside;
static gni_mem_handle_t registered;
static int is_registered;

enum kind { SHORT, MEDIUM, LONG, PUT, GET, ADD, FETCH_ADD, BARRIER };
struct operation {
    enum kind kind;
    uint64_t length;
    int inside, aligned;
};

static void copy(void *to, const void *from, uint64_t length)
{
    memcpy(to, from, length);
    copies++;
}

static gni_post_descriptor_t descriptor(gni_post_type_t type, uint16_t events)
{
    gni_post_descriptor_t post;
    memset(&post, 0, sizeof post);
    post.type = type;
    post.cq_mode = events;
    post.dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    return post;
}

static void hand_over(gni_post_descriptor_t *post)
{
    int engine = post->type == GNI_POST_RDMA_PUT || post->type == GNI_POST_RDMA_GET;
    WORKS(engine ? GNI_PostRdma(net.ends[other], post) : GNI_PostFma(net.ends[other], post));
}

/* Takes the events of so many posts of its own. */
static void reap(int count)
{
    while (count-- > 0) {
        gni_cq_entry_t event;
        gni_post_descriptor_t *done;
        WORKS(net_event(net.events, &event));
        WORKS(GNI_GetCompleted(net.events, event, &done));
    }
}

/* Takes so many events of the peer's, of which one tells of a message: its word is read, and cleared. */
static void arrive(int count)
{
    volatile uint64_t *word = (volatile uint64_t *)(region + WORDS);
    while (count-- > 0) {
        gni_cq_entry_t event;
        WORKS(net_event(net.arrivals, &event));
    }
    while (*word == 0)
        sched_yield();
    *word = 0;
}

/* A message: one put with a flag, which is its word, and an event. */
static void send(gni_post_descriptor_t *post, uint64_t here, uint64_t there, uint64_t length)
{
    *post = descriptor(GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    post->local_addr = own.region + here;
    post->local_mem_hndl = own.messages;
    post->remote_addr = peers[other].region + there;
    post->remote_mem_hndl = peers[other].messages;
    post->length = length;
    post->sync_flag_addr = peers[other].region + WORDS;
    post->sync_flag_value = 1;
    hand_over(post);
}

/* Memory outside the segment is registered the first time. */
static gni_mem_handle_t handle_of_outside(void)
{
    if (!is_registered++)
        WORKS(GNI_MemRegister(net.nic, (uint64_t)outside, ZONE, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &registered));
    return registered;
}

/* Where the bytes of a put are taken from: where they are, or the bounce buffer. */
static void source(gni_post_descriptor_t *post, int inside, uint64_t length)
{
    post->length = length;
    post->local_addr = inside ? own.segment + ZONE : (uint64_t)outside;
    if (inside)
        post->local_mem_hndl = own.memory;
    else if (length > BOUNCED)
        post->local_mem_hndl = handle_of_outside();
    else if (length > BY_FMA) {
        copy(region + BOUNCE, outside, length);
        post->local_addr = own.region + BOUNCE;
        post->local_mem_hndl = own.messages;
    }
}

/* A payload that goes by itself: by the block transfer engine it has the event that frees its source, and none that says it is there. */
static void send_payload(gni_post_descriptor_t *post, uint64_t length)
{
    *post = descriptor(GNI_POST_RDMA_PUT, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    source(post, 0, length);
    post->remote_addr = peers[other].segment;
    post->remote_mem_hndl = peers[other].memory;
    hand_over(post);
}

static void ask(const struct operation *it)
{
    gni_post_descriptor_t payload, message;
    uint64_t header = ARGUMENTS + (it->kind == LONG ? LONG_HEADER : 0);
    int is_apart = it->kind == LONG && it->length > PACKED;
    if (is_apart)
        send_payload(&payload, it->length);
    else if (it->kind != SHORT) {
        copy(region + REQUESTS + header, outside, it->length);
        header += it->length;
    }
    send(&message, REQUESTS, COMING, header);
    arrive(1);
    reap(1 + is_apart);
}

static void answer(const struct operation *it)
{
    gni_post_descriptor_t message;
    int is_apart = it->kind == LONG && it->length > PACKED;
    arrive(1 + is_apart);
    if (it->kind == LONG && !is_apart)
        copy(segment, region + COMING + ARGUMENTS + LONG_HEADER, it->length);
    send(&message, REPLIES, ANSWERS, ARGUMENTS);
    reap(1);
}

static void put(const struct operation *it)
{
    gni_post_descriptor_t post =
        descriptor(it->length <= BY_FMA ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    source(&post, it->inside, it->length);
    post.remote_addr = peers[other].segment + (it->aligned ? 0 : ASKEW);
    post.remote_mem_hndl = peers[other].memory;
    hand_over(&post);
    reap(1);
}

/* Bytes that do not begin and end at multiples of 4 are fetched with those around them, and copied out. */
static void get(const struct operation *it)
{
    uint64_t before = it->aligned ? 0 : ASKEW, whole = (before + it->length + 3) & ~UINT64_C(3);
    int is_direct = it->aligned && (it->inside || it->length > BOUNCED);
    gni_post_descriptor_t post =
        descriptor(it->length <= BY_FMA ? GNI_POST_FMA_GET : GNI_POST_RDMA_GET, GNI_CQMODE_GLOBAL_EVENT);
    unsigned char *to = it->inside ? segment + ZONE : outside;
    post.length = whole;
    post.local_addr = is_direct ? (uint64_t)to : own.region + BOUNCE;
    post.local_mem_hndl = !is_direct ? own.messages : it->inside ? own.memory : handle_of_outside();
    post.remote_addr = peers[other].segment;
    post.remote_mem_hndl = peers[other].memory;
    hand_over(&post);
    reap(1);
    if (!is_direct)
        copy(to, region + BOUNCE + before, it->length);
}

static void add(int fetches)
{
    gni_post_descriptor_t post = descriptor(GNI_POST_AMO, GNI_CQMODE_GLOBAL_EVENT);
    uint64_t was;
    post.amo_cmd = fetches ? GNI_FMA_ATOMIC2_FIADD : GNI_FMA_ATOMIC2_IADD;
    post.first_operand = 1;
    post.length = 8;
    post.local_addr = own.region + BOUNCE;
    post.local_mem_hndl = own.messages;
    post.remote_addr = peers[other].segment;
    post.remote_mem_hndl = peers[other].memory;
    hand_over(&post);
    reap(1);
    if (fetches)
        copy(&was, region + BOUNCE, sizeof was);
}

/* One step, which is all of it for two ranks: a word into the peer's inbox. */
static void meet(uint64_t number)
{
    volatile uint64_t *inbox = (volatile uint64_t *)(region + INBOX);
    gni_post_descriptor_t post = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    uint64_t word = number;
    post.local_addr = (uint64_t)&word;
    post.length = 8;
    post.remote_addr = peers[other].region + INBOX + 8 * (number % 2);
    post.remote_mem_hndl = peers[other].messages;
    hand_over(&post);
    while (inbox[number % 2] != number)
        GNI_CqTestEvent(net.arrivals), sched_yield();
    reap(1);
}

static void once(const struct operation *it)
{
    static uint64_t meetings;
    int talks = it->kind <= LONG;
    if (it->kind == BARRIER)
        meet(++meetings);
    else if (job.rank != 0) {
        if (talks)
            answer(it);
    } else if (talks)
        ask(it);
    else if (it->kind == PUT)
        put(it);
    else if (it->kind == GET)
        get(it);
    else
        add(it->kind == FETCH_ADD);
}

static uint64_t rest(uint64_t mark)
{
    job_barrier();
    gasworks_ugni_mark(mark);
    job_barrier();
    return copies;
}

static void name(const struct operation *it, char *text)
{
    static const char *const names[] = {"short", "medium", "long", "put", "get", "add 8", "fetch-and-add 8", "barrier"};
    text += sprintf(text, "%s", names[it->kind]);
    if (it->kind >= MEDIUM && it->kind <= GET)
        text += sprintf(text, " %d", (int)it->length);
    if (it->kind == PUT || it->kind == GET)
        sprintf(text, " %s %s", it->inside ? "inside" : "outside", it->aligned ? "aligned" : "unaligned");
}

/* Once, some times, twice as often, with marks before, behind the first and behind the last. */
static void run(const struct operation *it)
{
    static uint64_t mark;
    uint64_t first = mark, counted[4];
    char text[64];
    outside = aligned_alloc(PAGE, ZONE);
    CHECK(outside != NULL);
    memset(outside, 7, ZONE);
    is_registered = 0;
    for (int round = 0; round < 3; round++) {
        int times = round == 0 ? 1 : round * TIMES;
        counted[round] = rest(mark);
        for (int i = 0; i < times; i++) {
            once(it);
            if (i == 0)
                gasworks_ugni_mark(mark + 1);
        }
        gasworks_ugni_mark(mark + 2);
        mark += MARKS;
    }
    counted[3] = rest(mark++);
    name(it, text);
    printf("operation\t%d\t%s\t%d\t%d\t%d\t0\n", job.rank, text, (int)first, TIMES,
           (int)(counted[3] + counted[1] - 2 * counted[2]));
    fflush(stdout);
    if (is_registered)
        WORKS(GNI_MemDeregister(net.nic, &registered));
    free(outside);
}

int main(void)
{
    static const uint64_t mediums[] = {8, 512, 4032}, longs[] = {64, 4 << 10, 64 << 10, 1 << 20},
                          transfers[] = {8, 128, 1 << 10, 4 << 10, 8 << 10, 64 << 10, 1 << 20, LARGEST};
    job_begin();
    CHECK(job.size == 2);
    other = 1 - job.rank;
    net_begin(GNI_CDM_MODE_DUAL_EVENTS | GNI_CDM_MODE_MDD_SHARED, ENTRIES);
    WORKS(GNI_MemRegister(net.nic, (uint64_t)region, sizeof region, net.arrivals,
                          GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH | GNI_MEM_READWRITE, (uint32_t)-1, &own.messages));
    WORKS(GNI_MemRegister(net.nic, (uint64_t)segment, sizeof segment, net.arrivals,
                          GNI_MEM_RELAXED_PI_ORDERING | GNI_MEM_READWRITE, (uint32_t)-1, &own.memory));
    own.region = (uint64_t)region;
    own.segment = (uint64_t)segment;
    job_gather(&own, peers, sizeof own);
    printf("process\t%d\t%d\n", job.rank, (int)getpid());
    fflush(stdout);
    struct operation it = {.kind = SHORT};
    run(&it);
    it.kind = MEDIUM;
    for (size_t i = 0; i < sizeof mediums / sizeof *mediums; i++)
        it.length = mediums[i], run(&it);
    it.kind = LONG;
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++)
        it.length = longs[i], run(&it);
    for (int kind = PUT; kind <= GET; kind++)
        for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++)
            for (int place = 0; place < 4; place++) {
                it = (struct operation){(enum kind)kind, transfers[i], place < 2, place % 2 == 0};
                /* Longer ones that are not aligned it fetches in three parts: what that takes its description does not say. */
                if (kind == PUT || it.aligned || it.length < BOUNCED)
                    run(&it);
            }
    for (int kind = ADD; kind <= BARRIER; kind++) {
        it = (struct operation){.kind = (enum kind)kind};
        run(&it);
    }
    WORKS(GNI_MemDeregister(net.nic, &own.messages));
    WORKS(GNI_MemDeregister(net.nic, &own.memory));
    net_end();
    return 0;
}
