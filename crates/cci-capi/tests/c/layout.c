/* The structures of the header lie in memory as the library has them; and the header alone is a program. */
#include <cci.h>
#include <stddef.h>
#include <stdio.h>

#define SAME(name, a, b) typedef char name[(a) == (b) ? 1 : -1]
#define AT(type, member, offset) SAME(at_##type##_##member, offsetof(struct type, member), offset)
#define SIZE(type, size) SAME(size_of_##type, sizeof(struct type), size)

SIZE(cci_device, 72);
AT(cci_device, name, 0);
AT(cci_device, transport, 8);
AT(cci_device, up, 16);
AT(cci_device, info, 24);
AT(cci_device, conf_argv, 32);
AT(cci_device, max_send_size, 40);
AT(cci_device, rate, 48);
AT(cci_device, pci, 56);
SIZE(cci_endpoint, 8);
AT(cci_endpoint, device, 0);
SIZE(cci_connection, 32);
AT(cci_connection, max_send_size, 0);
AT(cci_connection, endpoint, 8);
AT(cci_connection, attribute, 16);
AT(cci_connection, context, 24);
SIZE(cci_event_send, 24);
AT(cci_event_send, type, 0);
AT(cci_event_send, status, 4);
AT(cci_event_send, connection, 8);
AT(cci_event_send, context, 16);
SIZE(cci_event_recv, 24);
AT(cci_event_recv, len, 4);
AT(cci_event_recv, ptr, 8);
AT(cci_event_recv, connection, 16);
SIZE(cci_event_connect, 24);
AT(cci_event_connect, status, 4);
AT(cci_event_connect, context, 8);
AT(cci_event_connect, connection, 16);
SIZE(cci_event_connect_request, 24);
AT(cci_event_connect_request, data_len, 4);
AT(cci_event_connect_request, data_ptr, 8);
AT(cci_event_connect_request, attribute, 16);
SIZE(cci_event_accept, 24);
AT(cci_event_accept, status, 4);
AT(cci_event_accept, context, 8);
AT(cci_event_accept, connection, 16);
AT(cci_event_keepalive_timedout, connection, 8);
AT(cci_event_endpoint_device_failed, endpoint, 8);
SAME(size_of_cci_event, sizeof(cci_event_t), 24);
SIZE(cci_rma_handle, 32);
SIZE(cci_alignment, 24);
AT(cci_alignment, rma_read_length, 20);
SAME(status_is_an_int, sizeof(cci_status_t), 4);
SAME(type_is_an_int, sizeof(cci_event_type_t), 4);
SAME(attribute_is_an_int, sizeof(cci_conn_attribute_t), 4);
SAME(option_is_an_int, sizeof(cci_opt_name_t), 4);
SAME(os_handle_is_an_int, sizeof(cci_os_handle_t), sizeof(int));

SAME(abi, CCI_ABI_VERSION, 2);
SAME(last_status, CCI_ERR_NOT_FOUND, 8);
SAME(refused, CCI_ECONNREFUSED, ECONNREFUSED);
SAME(last_attribute, CCI_CONN_ATTR_UU_MC_RX, 4);
SAME(last_event, CCI_EVENT_ENDPOINT_DEVICE_FAILED, 7);
SAME(last_option, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, 7);
SAME(flags, CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY | CCI_FLAG_SILENT | CCI_FLAG_READ | CCI_FLAG_WRITE | CCI_FLAG_FENCE,
     1 + 2 + 8 + 16 + 32 + 64);

int main(void)
{
    uint32_t caps;
    int type;
    if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS || cci_finalize() != CCI_SUCCESS)
        return 1;
    for (type = CCI_EVENT_NONE; type <= CCI_EVENT_ENDPOINT_DEVICE_FAILED; type++)
        if (cci_event_type_str((cci_event_type_t)type)[0] != 'C')
            return 1;
    if (cci_event_type_str((cci_event_type_t)8)[0] != 'u')
        return 1;
    puts("layout: done");
    return 0;
}
