/* CCI, the Common Communication Interface: connected endpoints of processes on one host.
 *
 * Programs that were written for CCI compile against this file and link with libcci. Names, numbers, members and
 * signatures are CCI's (CCI_ABI_VERSION 2).
 *
 * Unless a comment says otherwise:
 * - a function returns CCI_SUCCESS or another cci_status, as an int;
 * - a pointer that must not be NULL and is NULL gives CCI_EINVAL, and so does an object that was destroyed;
 * - any thread may call any function, also for the same endpoint;
 * - objects are the library's. They are read, and never written or freed.
 */
#ifndef CCI_H
#define CCI_H

#include <errno.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCI_DECLSPEC

/* The version of this interface, for cci_init. */
#define CCI_ABI_VERSION 2

/* ---- Status ---- */

typedef enum cci_status {
    CCI_SUCCESS = 0,
    /* An error that no other number names. */
    CCI_ERROR = 1,
    /* The connection is closed: by cci_disconnect, by the peer, or because the peer has ended. */
    CCI_ERR_DISCONNECTED = 2,
    /* The peer has no room for the message. This transport does not return it: the sender waits for room. */
    CCI_ERR_RNR = 3,
    /* The device does not work any more. */
    CCI_ERR_DEVICE_DEAD = 4,
    /* The target of a transfer does not know the handle. */
    CCI_ERR_RMA_HANDLE = 5,
    /* The memory that a handle names does not admit the transfer. */
    CCI_ERR_RMA_OP = 6,
    /* The transport does not have this function. */
    CCI_ERR_NOT_IMPLEMENTED = 7,
    /* There is no such thing: no device, no configuration file. */
    CCI_ERR_NOT_FOUND = 8,

    /* As in errno.h. */
    CCI_EINVAL = EINVAL,
    CCI_ETIMEDOUT = ETIMEDOUT,
    CCI_ENOMEM = ENOMEM,
    CCI_ENODEV = ENODEV,
    CCI_ENETDOWN = ENETDOWN,
    CCI_EBUSY = EBUSY,
    CCI_ERANGE = ERANGE,
    CCI_EAGAIN = EAGAIN,
    CCI_ENOBUFS = ENOBUFS,
    CCI_EMSGSIZE = EMSGSIZE,
    CCI_ENOMSG = ENOMSG,
    CCI_EADDRNOTAVAIL = EADDRNOTAVAIL,
    CCI_ECONNREFUSED = ECONNREFUSED
} cci_status_t;

/* ---- Start and end ---- */

/* Makes the library ready and reads the file that CCI_CONFIG names. Each call wants a cci_finalize of its own.
 * flags must be 0. *caps is set to 0: there are no capabilities to choose from.
 * CCI_ERR_NOT_FOUND: the file is not there, or has no device of this transport. CCI_ERROR: the file has an error,
 * which is written to the standard error stream with file and line. */
CCI_DECLSPEC int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps);

/* Undoes one cci_init; the last one destroys what endpoints are left. CCI_ERROR: there was no cci_init. */
CCI_DECLSPEC int cci_finalize(void);

/* ---- Devices ---- */

/* A device: a section of the configuration file. */
typedef const struct cci_device {
    /* Its name there. */
    const char *name;
    /* "sm". */
    const char *transport;
    /* 1: it can be used. */
    unsigned up;
    /* A text for people. */
    const char *info;
    /* What else the section says, as "key=value", with NULL at the end. */
    const char *const *conf_argv;
    /* The longest message, in bytes. */
    uint32_t max_send_size;
    /* Bits per second; of memory, a rough value. */
    uint64_t rate;
    /* All of it (uint32_t) -1: the device has no place on a bus. */
    struct {
        uint32_t domain, bus, dev, func;
    } pci;
} cci_device_t;

/* Gives the devices, those of the highest priority first, with NULL at the end. They are valid until the last
 * cci_finalize. */
CCI_DECLSPEC int cci_get_devices(cci_device_t *const **devices);

/* ---- Endpoints ---- */

/* No flag is defined. */
typedef enum cci_endpoint_flags { bogus_must_have_something_here } cci_endpoint_flags_t;

typedef const struct cci_endpoint {
    cci_device_t *device;
} cci_endpoint_t;

/* A descriptor for poll(2), select(2) or epoll(7). The program neither reads nor closes it. */
typedef int cci_os_handle_t;

/* Makes an endpoint of a device, or of the default device for NULL. Where fd is not NULL, *fd becomes readable when
 * there may be an event, after cci_get_event has returned CCI_EAGAIN. An endpoint without fd is polled. */
CCI_DECLSPEC int cci_create_endpoint(cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd);

/* The same at a known address: service is "pid/id", the end of the endpoint's URI.
 * CCI_EBUSY: another endpoint has the address. */
CCI_DECLSPEC int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags, cci_endpoint_t **endpoint,
                                        cci_os_handle_t *fd);

/* Closes all connections and removes the endpoint, its events and its handles. */
CCI_DECLSPEC int cci_destroy_endpoint(cci_endpoint_t *endpoint);

/* Describes a status. endpoint may be NULL. */
CCI_DECLSPEC const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status);

/* ---- Connections ---- */

typedef enum cci_conn_attribute {
    /* Reliable, in order: messages arrive, and complete, in the order in which they were sent. */
    CCI_CONN_ATTR_RO = 0,
    /* Reliable, in any order. */
    CCI_CONN_ATTR_RU = 1,
    /* Unreliable, in any order: a message completes when it was handed over. No transfers. */
    CCI_CONN_ATTR_UU = 2,
    /* Multicast, which this transport does not have: cci_connect returns CCI_EINVAL. */
    CCI_CONN_ATTR_UU_MC_TX = 3,
    CCI_CONN_ATTR_UU_MC_RX = 4
} cci_conn_attribute_t;

typedef const struct cci_connection {
    /* The longest message, in bytes. */
    uint32_t max_send_size;
    cci_endpoint_t *endpoint;
    cci_conn_attribute_t attribute;
    /* What was given to cci_connect or cci_accept. */
    void *context;
} cci_connection_t;

union cci_event;

/* Accepts the client of a CCI_EVENT_CONNECT_REQUEST. CCI_EVENT_ACCEPT follows, with the context. The request is
 * still to be returned. CCI_EINVAL: the event is no request, or was answered before. */
CCI_DECLSPEC int cci_accept(const union cci_event *conn_req, const void *context);

/* Turns it away: the client gets a CCI_EVENT_CONNECT with CCI_ECONNREFUSED. */
CCI_DECLSPEC int cci_reject(const union cci_event *conn_req);

/* Asks the endpoint at an address for a connection, with up to 1,024 bytes of data. CCI_EVENT_CONNECT follows, with the
 * context; its status is CCI_ETIMEDOUT when no answer came in time. timeout NULL: for ever. flags are not used. */
CCI_DECLSPEC int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr, uint32_t data_len,
                             cci_conn_attribute_t attribute, const void *context, int flags,
                             const struct timeval *timeout);

/* Closes a connection. No event follows. */
CCI_DECLSPEC int cci_disconnect(cci_connection_t *connection);

/* ---- Events ---- */

typedef enum cci_event_type {
    CCI_EVENT_NONE = 0,
    /* A message or a transfer is complete, or has failed. */
    CCI_EVENT_SEND = 1,
    /* A message has come. */
    CCI_EVENT_RECV = 2,
    /* What became of a cci_connect. */
    CCI_EVENT_CONNECT = 3,
    /* A client wants a connection. */
    CCI_EVENT_CONNECT_REQUEST = 4,
    /* What became of a cci_accept. */
    CCI_EVENT_ACCEPT = 5,
    /* Nothing was heard of a peer for the connection's keepalive time, which is 0 from now on. Where there is such a
     * time, the event also comes when the peer closes the connection or ends. */
    CCI_EVENT_KEEPALIVE_TIMEDOUT = 6,
    /* A device has failed. Memory does not. */
    CCI_EVENT_ENDPOINT_DEVICE_FAILED = 7
} cci_event_type_t;

typedef struct cci_event_send {
    cci_event_type_t type;
    cci_status_t status;
    cci_connection_t *connection;
    void *context;
} cci_event_send_t;

typedef struct cci_event_recv {
    cci_event_type_t type;
    uint32_t len;
    /* Aligned to 8; NULL where len is 0. Valid until the event is returned. */
    void *ptr;
    cci_connection_t *connection;
} cci_event_recv_t;

typedef struct cci_event_connect {
    cci_event_type_t type;
    cci_status_t status;
    void *context;
    /* NULL unless status is CCI_SUCCESS. */
    cci_connection_t *connection;
} cci_event_connect_t;

typedef struct cci_event_connect_request {
    cci_event_type_t type;
    uint32_t data_len;
    /* Aligned to 8; NULL where data_len is 0. Valid until the event is returned. */
    void *data_ptr;
    cci_conn_attribute_t attribute;
} cci_event_connect_request_t;

typedef struct cci_event_accept {
    cci_event_type_t type;
    cci_status_t status;
    void *context;
    /* NULL unless status is CCI_SUCCESS. */
    cci_connection_t *connection;
} cci_event_accept_t;

typedef struct cci_event_keepalive_timedout {
    cci_event_type_t type;
    cci_connection_t *connection;
} cci_event_keepalive_timedout_t;

typedef struct cci_event_endpoint_device_failed {
    cci_event_type_t type;
    cci_endpoint_t *endpoint;
} cci_event_endpoint_device_failed_t;

/* An event; type says which member holds. */
typedef const union cci_event {
    cci_event_type_t type;
    cci_event_send_t send;
    cci_event_recv_t recv;
    cci_event_connect_t connect;
    cci_event_connect_request_t request;
    cci_event_accept_t accept;
    cci_event_keepalive_timedout_t keepalive;
    cci_event_endpoint_device_failed_t dev_failed;
} cci_event_t;

/* The name of a type. */
static inline const char *cci_event_type_str(cci_event_type_t type)
{
    switch (type) {
    case CCI_EVENT_NONE:
        return "CCI_EVENT_NONE";
    case CCI_EVENT_SEND:
        return "CCI_EVENT_SEND";
    case CCI_EVENT_RECV:
        return "CCI_EVENT_RECV";
    case CCI_EVENT_CONNECT:
        return "CCI_EVENT_CONNECT";
    case CCI_EVENT_CONNECT_REQUEST:
        return "CCI_EVENT_CONNECT_REQUEST";
    case CCI_EVENT_ACCEPT:
        return "CCI_EVENT_ACCEPT";
    case CCI_EVENT_KEEPALIVE_TIMEDOUT:
        return "CCI_EVENT_KEEPALIVE_TIMEDOUT";
    case CCI_EVENT_ENDPOINT_DEVICE_FAILED:
        return "CCI_EVENT_ENDPOINT_DEVICE_FAILED";
    default:
        return "unknown event";
    }
}

/* Reserved for other systems: CCI_ERR_NOT_IMPLEMENTED. */
CCI_DECLSPEC int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags);

/* Takes the next event. CCI_EAGAIN: there is none. CCI_ENOBUFS: the program has to return events first. */
CCI_DECLSPEC int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event);

/* Gives an event back, in any order. CCI_EINVAL: it was returned before, or is a request that was neither accepted nor
 * rejected. */
CCI_DECLSPEC int cci_return_event(cci_event_t *event);

/* ---- Options ---- */

/* What an option is of: an endpoint (CCI_OPT_ENDPT_...) or a connection (CCI_OPT_CONN_...). */
typedef const void cci_opt_handle_t;

/* Times are uint32_t in microseconds, 0 for none; counts are uint32_t. */
typedef enum cci_opt_name {
    /* How long a reliable message may take, of connections that are made from now on. */
    CCI_OPT_ENDPT_SEND_TIMEOUT = 0,
    /* How many messages the program may hold. */
    CCI_OPT_ENDPT_RECV_BUF_COUNT = 1,
    /* How many messages and transfers may be under way. */
    CCI_OPT_ENDPT_SEND_BUF_COUNT = 2,
    /* After how long without a sign of life CCI_EVENT_KEEPALIVE_TIMEDOUT comes, of connections that are made from now on. */
    CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT = 3,
    /* Get only: the address, a char * that the program frees. */
    CCI_OPT_ENDPT_URI = 4,
    /* Get only: a cci_alignment_t. */
    CCI_OPT_ENDPT_RMA_ALIGN = 5,
    /* The same times of a connection. */
    CCI_OPT_CONN_SEND_TIMEOUT = 6,
    CCI_OPT_CONN_KEEPALIVE_TIMEOUT = 7
} cci_opt_name_t;

/* To what addresses and lengths of transfers have to be aligned; 0: to nothing. */
typedef struct cci_alignment {
    uint32_t rma_write_local_addr;
    uint32_t rma_write_remote_addr;
    uint32_t rma_write_length;
    uint32_t rma_read_local_addr;
    uint32_t rma_read_remote_addr;
    uint32_t rma_read_length;
} cci_alignment_t;

CCI_DECLSPEC int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val);
CCI_DECLSPEC int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val);

/* ---- Messages ---- */

/* The call returns when the operation is over, with its status; no event follows. */
#define CCI_FLAG_BLOCKING (1 << 0)
/* The program leaves the bytes as they are until completion. They are copied all the same. */
#define CCI_FLAG_NO_COPY (1 << 1)
/* No event follows success. On a reliable ordered connection a later completion implies it. */
#define CCI_FLAG_SILENT (1 << 3)
/* Of transfers and of registered memory. */
#define CCI_FLAG_READ (1 << 4)
#define CCI_FLAG_WRITE (1 << 5)
/* The transfer begins when all transfers of the connection that were begun before are complete. */
#define CCI_FLAG_FENCE (1 << 6)

/* Sends a message; flags are BLOCKING, NO_COPY and SILENT. NO_COPY together with SILENT is for reliable ordered
 * connections. CCI_EVENT_SEND follows: when the peer has the message, or when it was handed over on an unreliable
 * connection. CCI_EMSGSIZE: it is longer than the connection's max_send_size. CCI_ENOBUFS: too much is under way;
 * take events and try again. */
CCI_DECLSPEC int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len, const void *context,
                          int flags);

/* The same of several parts, one after the other. */
CCI_DECLSPEC int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt, const void *context,
                           int flags);

/* ---- Transfers ---- */

/* What names registered memory. A peer uses a copy of the bytes, which it gets in a message. */
typedef const struct cci_rma_handle {
    uint64_t stuff[4];
} cci_rma_handle_t;

/* Registers memory. flags say what peers may do: CCI_FLAG_READ, CCI_FLAG_WRITE, both, or 0 for nothing. */
CCI_DECLSPEC int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
                                  cci_rma_handle_t **rma_handle);

CCI_DECLSPEC int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle);

/* Reads or writes a peer's registered memory: flags has either CCI_FLAG_READ or CCI_FLAG_WRITE, and may have BLOCKING,
 * NO_COPY, SILENT and FENCE. Where msg_len is not 0 the peer gets the message when the data are there. */
CCI_DECLSPEC int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
                         cci_rma_handle_t *local_handle, uint64_t local_offset, cci_rma_handle_t *remote_handle,
                         uint64_t remote_offset, uint64_t data_len, const void *context, int flags);

#ifdef __cplusplus
}
#endif

#endif
