/*
 * The event-driven socket engine of Gasworks, for C.
 *
 * The interface is that of MPIDU_Sock: the names are those with "gasworks_sock_" in front. Every function gives
 * GASWORKS_SOCK_SUCCESS or an error code, from which GASWORKS_SOCK_ERROR_CLASS makes a class to decide by and
 * GASWORKS_SOCK_ERROR_OS the system's own number, or 0. gasworks_sock_get_error_string says in words what went wrong in
 * this thread's last call that failed.
 *
 * Any thread may call any function at any time between the first init and the last finalize. A set may be waited for by
 * several threads; each event is delivered to one of them. A handle that is out of date is refused, never followed.
 *
 * A program that adopts pipes should ignore SIGPIPE; sockets never raise it.
 */
#ifndef GASWORKS_SOCK_H
#define GASWORKS_SOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of socks. */
typedef struct gasworks_sock_set {
    int32_t number; /* 0: none */
} gasworks_sock_set_t;

/* A connection, a listener, or an adopted descriptor, until its close event is delivered. */
typedef struct gasworks_sock {
    uint64_t number;
    gasworks_sock_set_t set;
    int32_t reserved;
} gasworks_sock_t;

typedef size_t gasworks_sock_size_t;

/* The most elements of an iovec array. */
#define GASWORKS_SOCK_IOV_LIMIT 1024
/* Room for any host description. */
#define GASWORKS_SOCK_HOST_DESCRIPTION_MAX 4097
/* The time-out of a wait without end. */
#define GASWORKS_SOCK_INFINITE_TIME (-1)

/* Error classes. */
#define GASWORKS_SOCK_SUCCESS 0
#define GASWORKS_SOCK_FAIL 1
#define GASWORKS_SOCK_ERR_INIT 2
#define GASWORKS_SOCK_ERR_NOMEM 3
#define GASWORKS_SOCK_ERR_BAD_SET 4
#define GASWORKS_SOCK_ERR_BUSY_SET 5
#define GASWORKS_SOCK_ERR_BAD_SOCK 6
#define GASWORKS_SOCK_ERR_BAD_HOST 7
#define GASWORKS_SOCK_ERR_BAD_HOSTNAME 8
#define GASWORKS_SOCK_ERR_BAD_PORT 9
#define GASWORKS_SOCK_ERR_BAD_BUF 10
#define GASWORKS_SOCK_ERR_BAD_LEN 11
#define GASWORKS_SOCK_ERR_BAD_NATIVE_FD 12
#define GASWORKS_SOCK_ERR_SOCK_CLOSED 13
#define GASWORKS_SOCK_ERR_CONN_CLOSED 14
#define GASWORKS_SOCK_ERR_CONN_FAILED 15
#define GASWORKS_SOCK_ERR_INPROGRESS 16
#define GASWORKS_SOCK_ERR_TIMEOUT 17
#define GASWORKS_SOCK_ERR_INTR 18
#define GASWORKS_SOCK_ERR_NO_NEW_SOCK 19

#define GASWORKS_SOCK_ERROR_CLASS(error) ((error) & 0xff)
#define GASWORKS_SOCK_ERROR_OS(error) ((error) >> 8)

/* What an event is the end of. */
typedef enum gasworks_sock_op {
    GASWORKS_SOCK_OP_READ = 0,
    GASWORKS_SOCK_OP_WRITE = 1,
    GASWORKS_SOCK_OP_ACCEPT = 2,
    GASWORKS_SOCK_OP_CONNECT = 3,
    GASWORKS_SOCK_OP_CLOSE = 4,
    GASWORKS_SOCK_OP_WAKEUP = 5
} gasworks_sock_op_t;

typedef struct gasworks_sock_event {
    gasworks_sock_op_t op_type;
    gasworks_sock_size_t num_bytes;
    void *user_ptr;
    int error;
} gasworks_sock_event_t;

/*
 * Called by a thread that waits, after each part of a posted operation that does not complete it, with the bytes of that
 * part. All calls have returned before the operation's event is delivered. It may post and close; it must not wait for
 * the same set. What it returns is ignored.
 */
typedef int (*gasworks_sock_progress_update_func_t)(gasworks_sock_size_t num_bytes, void *user_ptr);

/* An address of a host, without a port: 4 bytes for IPv4, 16 for IPv6, in network order. */
typedef struct gasworks_sock_ifaddr {
    uint32_t len;
    uint8_t ifaddr[16];
} gasworks_sock_ifaddr_t;

/* Counted: the last finalize destroys the sets that are left. */
int gasworks_sock_init(void);
int gasworks_sock_finalize(void);

/* A line of text by which other processes can connect to this host. The rank is not used. */
int gasworks_sock_get_host_description(int rank, char *host_description, int len);
int gasworks_sock_hostname_to_host_description(const char *hostname, char *host_description, int len);

int gasworks_sock_create_set(gasworks_sock_set_t *set);
/* GASWORKS_SOCK_ERR_BUSY_SET while the set has socks. */
int gasworks_sock_destroy_set(gasworks_sock_set_t set);
/* Posts the close of one open sock and gives its user pointer; GASWORKS_SOCK_ERR_NO_NEW_SOCK if none is open. */
int gasworks_sock_close_open_sockets(gasworks_sock_set_t set, void **user_ptr);

int gasworks_sock_set_user_ptr(gasworks_sock_t sock, void *user_ptr);
/* Takes the descriptor over; it is closed with the sock. */
int gasworks_sock_native_to_sock(gasworks_sock_set_t set, int fd, void *user_ptr, gasworks_sock_t *sock);
/* Listens on all interfaces, on *port or, if that is 0, on a port that it chooses and gives. */
int gasworks_sock_listen(gasworks_sock_set_t set, void *user_ptr, int *port, gasworks_sock_t *listener);
int gasworks_sock_accept(gasworks_sock_t listener, gasworks_sock_set_t set, void *user_ptr, gasworks_sock_t *accepted);
int gasworks_sock_post_connect(gasworks_sock_set_t set, void *user_ptr, const char *host_description, int port,
                               gasworks_sock_t *connected);
int gasworks_sock_post_connect_ifaddr(gasworks_sock_set_t set, void *user_ptr, const gasworks_sock_ifaddr_t *ifaddr,
                                      int port, gasworks_sock_t *connected);

/*
 * Posted operations use the caller's memory until their event is delivered; an iovec array itself only until the call
 * returns. They complete with at least minbr (minbw) and at most maxbr (maxbw) bytes, vectored ones with all.
 */
int gasworks_sock_post_read(gasworks_sock_t sock, void *buf, gasworks_sock_size_t minbr, gasworks_sock_size_t maxbr,
                            gasworks_sock_progress_update_func_t fn);
int gasworks_sock_post_readv(gasworks_sock_t sock, const struct iovec *iov, int iov_n,
                             gasworks_sock_progress_update_func_t fn);
int gasworks_sock_post_write(gasworks_sock_t sock, const void *buf, gasworks_sock_size_t minbw,
                             gasworks_sock_size_t maxbw, gasworks_sock_progress_update_func_t fn);
int gasworks_sock_post_writev(gasworks_sock_t sock, const struct iovec *iov, int iov_n,
                              gasworks_sock_progress_update_func_t fn);
int gasworks_sock_post_close(gasworks_sock_t sock);

/* GASWORKS_SOCK_ERR_TIMEOUT if nothing came within so many milliseconds. Signals do not shorten it. */
int gasworks_sock_wait(gasworks_sock_set_t set, int millisecond_timeout, gasworks_sock_event_t *event);
int gasworks_sock_wakeup(gasworks_sock_set_t set);

/* What can be transferred now; *num is 0 if nothing can. */
int gasworks_sock_read(gasworks_sock_t sock, void *buf, gasworks_sock_size_t len, gasworks_sock_size_t *num_read);
int gasworks_sock_readv(gasworks_sock_t sock, const struct iovec *iov, int iov_n, gasworks_sock_size_t *num_read);
int gasworks_sock_write(gasworks_sock_t sock, const void *buf, gasworks_sock_size_t len,
                        gasworks_sock_size_t *num_written);
int gasworks_sock_writev(gasworks_sock_t sock, const struct iovec *iov, int iov_n, gasworks_sock_size_t *num_written);

/* Numbers for messages; -1 for a handle that never was one. */
int gasworks_sock_get_sock_id(gasworks_sock_t sock);
int gasworks_sock_get_sock_set_id(gasworks_sock_set_t set);

/* Text for an error code, and for this thread's last failure; cut off where it does not fit. */
int gasworks_sock_get_error_class_string(int error, char *error_string, size_t length);
int gasworks_sock_get_error_string(char *error_string, size_t length);

#ifdef __cplusplus
}
#endif

#endif
