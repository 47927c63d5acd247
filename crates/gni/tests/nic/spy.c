/* Stands between a client and libugni, and writes down in SPY.PID what is asked for: the modes of a domain, the flags of registrations and how
   many bytes of them there are, and the ways of posts. */
#include <dlfcn.h>
#include <gni_pub.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Registrations that are there: more end the program. */
enum { MOST = 65536 };
static struct {
    gni_mem_handle_t handle;
    unsigned long bytes;
} registered[MOST];
static unsigned long count, bytes;

static void note(const char *what, unsigned long value) {
    static FILE *file;
    if (file == NULL) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%ld", getenv("SPY"), (long)getpid());
        file = fopen(path, "w");
        if (file == NULL) abort();
        setvbuf(file, NULL, _IOLBF, 0);
    }
    fprintf(file, "%s %lu\n", what, value);
}

static void *genuine(const char *name) {
    static void *library;
    if (library == NULL) library = dlopen("libugni.so.0", RTLD_NOW);
    void *found = library == NULL ? NULL : dlsym(library, name);
    if (found == NULL) abort();
    return found;
}

gni_return_t GNI_CdmCreate(uint32_t instance, uint8_t tag, uint32_t cookie, uint32_t modes, gni_cdm_handle_t *domain) {
    note("modes", modes);
    gni_return_t (*call)(uint32_t, uint8_t, uint32_t, uint32_t, gni_cdm_handle_t *) = genuine("GNI_CdmCreate");
    return call(instance, tag, cookie, modes, domain);
}

gni_return_t GNI_MemRegister(gni_nic_handle_t nic, uint64_t address, uint64_t length, gni_cq_handle_t queue, uint32_t flags, uint32_t index,
                             gni_mem_handle_t *handle) {
    gni_return_t (*call)(gni_nic_handle_t, uint64_t, uint64_t, gni_cq_handle_t, uint32_t, uint32_t, gni_mem_handle_t *) =
        genuine("GNI_MemRegister");
    gni_return_t code = call(nic, address, length, queue, flags, index, handle);
    if (code != GNI_RC_SUCCESS) return code;
    if (count == MOST) abort();
    registered[count].handle = *handle;
    registered[count++].bytes = length;
    bytes += length;
    note("flags", flags);
    note("bytes", bytes);
    return code;
}

gni_return_t GNI_MemDeregister(gni_nic_handle_t nic, gni_mem_handle_t *handle) {
    for (unsigned long at = 0; at < count; at++)
        if (registered[at].handle.qword1 == handle->qword1 && registered[at].handle.qword2 == handle->qword2) {
            bytes -= registered[at].bytes;
            registered[at] = registered[--count];
            break;
        }
    gni_return_t (*call)(gni_nic_handle_t, gni_mem_handle_t *) = genuine("GNI_MemDeregister");
    return call(nic, handle);
}

static gni_return_t post(const char *name, gni_ep_handle_t endpoint, gni_post_descriptor_t *descriptor) {
    note(name, descriptor->dlvr_mode);
    gni_return_t (*call)(gni_ep_handle_t, gni_post_descriptor_t *) = genuine(name);
    return call(endpoint, descriptor);
}

gni_return_t GNI_PostFma(gni_ep_handle_t endpoint, gni_post_descriptor_t *descriptor) {
    return post("GNI_PostFma", endpoint, descriptor);
}

gni_return_t GNI_PostRdma(gni_ep_handle_t endpoint, gni_post_descriptor_t *descriptor) {
    return post("GNI_PostRdma", endpoint, descriptor);
}
