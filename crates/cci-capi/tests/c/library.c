/* cci_init, cci_finalize, cci_get_devices, cci_strerror, and endpoints at addresses. With an argument: what the devices of
 * CCI_CONFIG are, for the test that has written the file. */
#include "check.h"

static void show(void)
{
    uint32_t caps;
    int status = cci_init(CCI_ABI_VERSION, 0, &caps);
    printf("init: %d\n", status);
    if (status != CCI_SUCCESS)
        return;
    cci_device_t *const *devices;
    OK(cci_get_devices(&devices));
    for (cci_device_t *const *device = devices; *device != NULL; device++) {
        cci_endpoint_t *endpoint;
        char *uri = NULL;
        printf("%s %s up=%u max=%u:", (*device)->name, (*device)->transport, (*device)->up, (*device)->max_send_size);
        for (const char *const *argument = (*device)->conf_argv; *argument != NULL; argument++)
            printf(" %s", *argument);
        OK(cci_create_endpoint(*device, 0, &endpoint, NULL));
        CHECK(endpoint->device == *device);
        OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
        printf(" at %s\n", uri);
        free(uri);
        OK(cci_destroy_endpoint(endpoint));
    }
    cci_endpoint_t *endpoint;
    OK(cci_create_endpoint(NULL, 0, &endpoint, NULL));
    printf("default: %s\n", endpoint->device->name);
    OK(cci_finalize());
}

static void statuses(void)
{
    const int all[] = {CCI_SUCCESS, CCI_ERROR, CCI_ERR_DISCONNECTED, CCI_ERR_RNR, CCI_ERR_DEVICE_DEAD, CCI_ERR_RMA_HANDLE,
                       CCI_ERR_RMA_OP, CCI_ERR_NOT_IMPLEMENTED, CCI_ERR_NOT_FOUND, CCI_EINVAL, CCI_ETIMEDOUT, CCI_ENOMEM,
                       CCI_ENODEV, CCI_ENETDOWN, CCI_EBUSY, CCI_ERANGE, CCI_EAGAIN, CCI_ENOBUFS, CCI_EMSGSIZE, CCI_ENOMSG,
                       CCI_EADDRNOTAVAIL, CCI_ECONNREFUSED};
    const unsigned count = sizeof all / sizeof *all;
    for (unsigned one = 0; one < count; one++) {
        const char *text = cci_strerror(NULL, (enum cci_status)all[one]);
        CHECK(text != NULL && strcmp(text, "unknown status") != 0);
        for (unsigned other = 0; other < one; other++)
            CHECK(strcmp(text, cci_strerror(NULL, (enum cci_status)all[other])) != 0);
    }
    CHECK(strcmp(cci_strerror(NULL, (enum cci_status)12345), "unknown status") == 0);
    CHECK(strcmp(cci_strerror(NULL, (enum cci_status)-1), "unknown status") == 0);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        show();
        return 0;
    }
    uint32_t caps = 77;
    cci_device_t *const *devices = NULL;
    cci_endpoint_t *endpoint = NULL, *other = NULL;
    statuses();

    /* Before cci_init. */
    GIVES(CCI_ERROR, cci_finalize());
    GIVES(CCI_ENODEV, cci_get_devices(&devices));
    GIVES(CCI_ENODEV, cci_create_endpoint(NULL, 0, &endpoint, NULL));

    GIVES(CCI_EINVAL, cci_init(CCI_ABI_VERSION, 0, NULL));
    GIVES(CCI_EINVAL, cci_init(CCI_ABI_VERSION + 1, 0, &caps));
    GIVES(CCI_EINVAL, cci_init(CCI_ABI_VERSION, 1, &caps));
    CHECK(caps == 77);
    start_library();
    start_library();
    OK(cci_finalize());

    GIVES(CCI_EINVAL, cci_get_devices(NULL));
    OK(cci_get_devices(&devices));
    CHECK(devices[0] != NULL && devices[1] == NULL);
    CHECK(strcmp(devices[0]->name, "sm") == 0 && strcmp(devices[0]->transport, "sm") == 0);
    CHECK(devices[0]->up == 1 && devices[0]->max_send_size == 65536 && devices[0]->rate > 0);
    CHECK(devices[0]->info[0] != '\0' && devices[0]->conf_argv[0] == NULL);
    CHECK(devices[0]->pci.domain == UINT32_MAX && devices[0]->pci.func == UINT32_MAX);

    /* Devices and places for results that are none. */
    GIVES(CCI_EINVAL, cci_create_endpoint(devices[0], 0, NULL, NULL));
    GIVES(CCI_EINVAL, cci_create_endpoint((cci_device_t *)&caps, 0, &endpoint, NULL));
    GIVES(CCI_EINVAL, cci_destroy_endpoint(NULL));
    GIVES(CCI_EINVAL, cci_destroy_endpoint((cci_endpoint_t *)&caps));

    /* At an address, which is the end of the URI. */
    const char *wrong[] = {"", "/", "1", "1/", "/1", "1/2/3", "a/b", "01/2", "+1/2", "-1/2", "1/4294967296", " 1/2"};
    for (unsigned at = 0; at < sizeof wrong / sizeof *wrong; at++)
        GIVES(CCI_EINVAL, cci_create_endpoint_at(NULL, wrong[at], 0, &endpoint, NULL));
    GIVES(CCI_EINVAL, cci_create_endpoint_at(NULL, NULL, 0, &endpoint, NULL));
    char *uri = NULL;
    OK(cci_create_endpoint_at(devices[0], "77/88", 0, &endpoint, NULL));
    OK(cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri));
    CHECK(strncmp(uri, "sm:///", 6) == 0 && strcmp(uri + strlen(uri) - 6, "/77/88") == 0);
    GIVES(CCI_EBUSY, cci_create_endpoint_at(NULL, "77/88", 0, &other, NULL));
    CHECK(access(uri + 5, F_OK) == 0);
    OK(cci_destroy_endpoint(endpoint));
    CHECK(access(uri + 5, F_OK) != 0);
    GIVES(CCI_EINVAL, cci_destroy_endpoint(endpoint));
    GIVES(CCI_EINVAL, cci_get_opt(endpoint, CCI_OPT_ENDPT_RMA_ALIGN, &caps));
    OK(cci_create_endpoint_at(NULL, "77/88", 0, &endpoint, NULL));

    GIVES(CCI_ERR_NOT_IMPLEMENTED, cci_arm_os_handle(endpoint, 0));
    GIVES(CCI_EINVAL, cci_arm_os_handle(NULL, 0));

    /* The last finalize destroys what is left. */
    OK(cci_finalize());
    GIVES(CCI_EINVAL, cci_destroy_endpoint(endpoint));
    CHECK(access(uri + 5, F_OK) != 0);
    free(uri);
    GIVES(CCI_ERROR, cci_finalize());
    start_library();
    OK(cci_finalize());
    puts("library: done");
    return 0;
}
