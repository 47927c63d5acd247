/* What a C program does with the engine. Ends with 0, or tells the line that went wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gasworks_sock.h"

_Static_assert(sizeof(gasworks_sock_set_t) == 4, "set");
_Static_assert(sizeof(gasworks_sock_t) == 16 && offsetof(gasworks_sock_t, set) == 8, "sock");
_Static_assert(sizeof(gasworks_sock_event_t) == 32 && offsetof(gasworks_sock_event_t, error) == 24, "event");
_Static_assert(offsetof(gasworks_sock_event_t, num_bytes) == 8, "event");
_Static_assert(offsetof(gasworks_sock_event_t, user_ptr) == 16, "event");
_Static_assert(sizeof(gasworks_sock_ifaddr_t) == 20 && sizeof(struct iovec) == 16, "others");

static void fail(int line, const char *what, int got)
{
    char text[512] = "";
    gasworks_sock_get_error_string(text, sizeof text);
    fprintf(stderr, "program.c:%d: %s: got %d; last error: %s\n", line, what, got, text);
    exit(1);
}

#define CHECK(condition)                           \
    do {                                           \
        if (!(condition))                          \
            fail(__LINE__, #condition, 0);         \
    } while (0)
#define OK(call)                                   \
    do {                                           \
        int e_ = (call);                           \
        if (e_ != GASWORKS_SOCK_SUCCESS)           \
            fail(__LINE__, #call, e_);             \
    } while (0)
#define REFUSED(call, class)                       \
    do {                                           \
        int e_ = (call);                           \
        if (GASWORKS_SOCK_ERROR_CLASS(e_) != class) \
            fail(__LINE__, #call, e_);             \
    } while (0)

static gasworks_sock_event_t next(gasworks_sock_set_t set)
{
    gasworks_sock_event_t event;
    OK(gasworks_sock_wait(set, 20000, &event));
    return event;
}

static gasworks_sock_event_t expect(gasworks_sock_set_t set, int op, void *user, int class)
{
    gasworks_sock_event_t event = next(set);
    CHECK(event.op_type == (gasworks_sock_op_t)op);
    CHECK(event.user_ptr == user);
    CHECK(GASWORKS_SOCK_ERROR_CLASS(event.error) == class);
    return event;
}

static int progressed;
static int progress(gasworks_sock_size_t bytes, void *user_ptr)
{
    CHECK(*(char *)user_ptr == 's');
    progressed += (int)bytes;
    return 0;
}

static void *wake(void *set)
{
    OK(gasworks_sock_wakeup(*(gasworks_sock_set_t *)set));
    return NULL;
}

int main(void)
{
    char names[] = "lcsap", description[GASWORKS_SOCK_HOST_DESCRIPTION_MAX], text[64], got[16];
    void *const listener_user = &names[0], *const client_user = &names[1], *const server_user = &names[2];
    gasworks_sock_set_t set, none = {77};
    gasworks_sock_t listener, client, server, other;
    gasworks_sock_event_t event;
    gasworks_sock_size_t n;
    int port = 0, pair[2];
    void *user;
    pthread_t thread;

    /* Classes. */
    REFUSED(gasworks_sock_create_set(&set), GASWORKS_SOCK_ERR_INIT);
    REFUSED(gasworks_sock_finalize(), GASWORKS_SOCK_ERR_INIT);
    OK(gasworks_sock_init());
    OK(gasworks_sock_init());
    OK(gasworks_sock_finalize());
    REFUSED(gasworks_sock_create_set(NULL), GASWORKS_SOCK_ERR_BAD_BUF);
    REFUSED(gasworks_sock_wakeup(none), GASWORKS_SOCK_ERR_BAD_SET);
    OK(gasworks_sock_get_error_class_string(GASWORKS_SOCK_ERR_BAD_SET, text, sizeof text));
    CHECK(strcmp(text, "the set is destroyed") == 0);
    OK(gasworks_sock_get_error_class_string(GASWORKS_SOCK_ERR_CONN_CLOSED | 32 << 8, text, 5));
    CHECK(strcmp(text, "the ") == 0);
    OK(gasworks_sock_get_error_string(text, sizeof text));
    CHECK(strstr(text, "there is no set 77") != NULL);

    /* Hosts. */
    OK(gasworks_sock_get_host_description(0, description, sizeof description));
    CHECK(strncmp(description, "v1 host=", 8) == 0);
    REFUSED(gasworks_sock_get_host_description(0, description, 4), GASWORKS_SOCK_ERR_BAD_HOST);
    REFUSED(gasworks_sock_hostname_to_host_description("a b", description, sizeof description),
            GASWORKS_SOCK_ERR_BAD_HOSTNAME);
    OK(gasworks_sock_hostname_to_host_description("127.0.0.1", description, sizeof description));
    CHECK(strcmp(description, "v1 host=127.0.0.1") == 0);

    /* Connecting. */
    OK(gasworks_sock_create_set(&set));
    CHECK(gasworks_sock_get_sock_set_id(set) > 0);
    OK(gasworks_sock_listen(set, listener_user, &port, &listener));
    CHECK(port > 0);
    REFUSED(gasworks_sock_destroy_set(set), GASWORKS_SOCK_ERR_BUSY_SET);
    REFUSED(gasworks_sock_accept(listener, set, NULL, &other), GASWORKS_SOCK_ERR_NO_NEW_SOCK);
    REFUSED(gasworks_sock_post_connect(set, NULL, "nonsense", port, &other), GASWORKS_SOCK_ERR_BAD_HOST);
    REFUSED(gasworks_sock_post_connect(set, NULL, description, 70000, &other), GASWORKS_SOCK_ERR_BAD_PORT);
    OK(gasworks_sock_post_connect(set, NULL, description, port, &client));
    OK(gasworks_sock_set_user_ptr(client, client_user));
    for (int i = 0; i < 2; i++) {
        event = next(set);
        CHECK(event.error == GASWORKS_SOCK_SUCCESS);
        CHECK(event.op_type == GASWORKS_SOCK_OP_ACCEPT ? event.user_ptr == listener_user
                                                       : event.op_type == GASWORKS_SOCK_OP_CONNECT);
    }
    OK(gasworks_sock_accept(listener, set, server_user, &server));
    CHECK(gasworks_sock_get_sock_id(server) != gasworks_sock_get_sock_id(client));

    /* Posted operations, with a minimum and a maximum. */
    OK(gasworks_sock_post_read(server, got, 4, sizeof got, NULL));
    REFUSED(gasworks_sock_post_read(server, got, 1, 1, NULL), GASWORKS_SOCK_ERR_INPROGRESS);
    REFUSED(gasworks_sock_post_read(server, NULL, 1, 1, NULL), GASWORKS_SOCK_ERR_BAD_BUF);
    REFUSED(gasworks_sock_post_write(client, "x", 2, 1, NULL), GASWORKS_SOCK_ERR_BAD_LEN);
    OK(gasworks_sock_post_write(client, "ping", 4, 4, NULL));
    for (int i = 0; i < 2; i++) {
        event = next(set);
        CHECK(event.error == GASWORKS_SOCK_SUCCESS && event.num_bytes == 4);
    }
    CHECK(memcmp(got, "ping", 4) == 0);

    /* Vectored, with progress told in parts. */
    char a[3], b[5];
    struct iovec in[2] = {{a, sizeof a}, {b, sizeof b}}, out[2] = {{"abc", 3}, {"defgh", 5}};
    OK(gasworks_sock_post_readv(server, in, 2, progress));
    OK(gasworks_sock_write(client, "ab", 2, &n));
    CHECK(n == 2);
    REFUSED(gasworks_sock_wait(set, 20, &event), GASWORKS_SOCK_ERR_TIMEOUT);
    CHECK(progressed == 2);
    OK(gasworks_sock_write(client, "cdefgh", 6, &n));
    event = expect(set, GASWORKS_SOCK_OP_READ, server_user, GASWORKS_SOCK_SUCCESS);
    CHECK(event.num_bytes == 8 && memcmp(a, "abc", 3) == 0 && memcmp(b, "defgh", 5) == 0);
    OK(gasworks_sock_post_writev(client, out, 2, NULL));
    event = expect(set, GASWORKS_SOCK_OP_WRITE, client_user, GASWORKS_SOCK_SUCCESS);
    CHECK(event.num_bytes == 8);
    OK(gasworks_sock_read(server, got, 3, &n));
    CHECK(n == 3 && memcmp(got, "abc", 3) == 0);
    OK(gasworks_sock_readv(server, in, 2, &n));
    CHECK(n == 5 && memcmp(a, "def", 3) == 0);
    OK(gasworks_sock_writev(client, out, 2, &n));
    CHECK(n == 8);
    OK(gasworks_sock_read(server, got, sizeof got, &n));
    CHECK(n == 8);
    OK(gasworks_sock_read(server, got, sizeof got, &n));
    CHECK(n == 0);
    REFUSED(gasworks_sock_readv(server, in, 0, &n), GASWORKS_SOCK_ERR_BAD_LEN);

    /* A wake-up from another thread. */
    CHECK(pthread_create(&thread, NULL, wake, &set) == 0);
    expect(set, GASWORKS_SOCK_OP_WAKEUP, NULL, GASWORKS_SOCK_SUCCESS);
    CHECK(pthread_join(thread, NULL) == 0);

    /* A native descriptor. */
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    REFUSED(gasworks_sock_native_to_sock(set, 9999, NULL, &other), GASWORKS_SOCK_ERR_BAD_NATIVE_FD);
    OK(gasworks_sock_native_to_sock(set, pair[0], &names[3], &other));
    CHECK(write(pair[1], "n", 1) == 1);
    OK(gasworks_sock_post_read(other, got, 1, 1, NULL));
    expect(set, GASWORKS_SOCK_OP_READ, &names[3], GASWORKS_SOCK_SUCCESS);
    CHECK(close(pair[1]) == 0);
    OK(gasworks_sock_post_read(other, got, 1, 1, NULL));
    expect(set, GASWORKS_SOCK_OP_READ, &names[3], GASWORKS_SOCK_ERR_CONN_CLOSED);
    OK(gasworks_sock_post_close(other));
    expect(set, GASWORKS_SOCK_OP_CLOSE, &names[3], GASWORKS_SOCK_SUCCESS);

    /* Closing: what is posted ends first; a handle out of date is refused. */
    OK(gasworks_sock_post_read(server, got, 1, 1, NULL));
    OK(gasworks_sock_post_close(server));
    REFUSED(gasworks_sock_post_close(server), GASWORKS_SOCK_ERR_BAD_SOCK);
    expect(set, GASWORKS_SOCK_OP_READ, server_user, GASWORKS_SOCK_ERR_SOCK_CLOSED);
    expect(set, GASWORKS_SOCK_OP_CLOSE, server_user, GASWORKS_SOCK_SUCCESS);
    REFUSED(gasworks_sock_post_close(server), GASWORKS_SOCK_ERR_BAD_SOCK);
    REFUSED(gasworks_sock_read(server, got, 1, &n), GASWORKS_SOCK_ERR_BAD_SOCK);
    OK(gasworks_sock_post_read(client, got, 1, 1, NULL));
    expect(set, GASWORKS_SOCK_OP_READ, client_user, GASWORKS_SOCK_ERR_CONN_CLOSED);

    /* A connect to an address where nobody listens any more. */
    gasworks_sock_ifaddr_t loopback = {4, {127, 0, 0, 1}};
    OK(gasworks_sock_post_connect_ifaddr(set, &names[4], &loopback, port, &other));
    event = next(set);
    CHECK(event.error == GASWORKS_SOCK_SUCCESS);
    event = next(set);
    CHECK(event.error == GASWORKS_SOCK_SUCCESS);
    OK(gasworks_sock_post_close(listener));
    event = expect(set, GASWORKS_SOCK_OP_CLOSE, listener_user, GASWORKS_SOCK_SUCCESS);
    CHECK(event.num_bytes == 1); /* nobody had accepted the connection */
    OK(gasworks_sock_post_connect_ifaddr(set, &names[4], &loopback, port, &other));
    event = expect(set, GASWORKS_SOCK_OP_CONNECT, &names[4], GASWORKS_SOCK_ERR_CONN_FAILED);
    CHECK(GASWORKS_SOCK_ERROR_OS(event.error) != 0);

    /* What is left is closed one by one. */
    int open = 0;
    while (gasworks_sock_close_open_sockets(set, &user) == GASWORKS_SOCK_SUCCESS) {
        CHECK(user == client_user || user == &names[4]);
        open++;
    }
    CHECK(open == 3);
    for (int i = 0; i < open; i++) {
        event = next(set);
        CHECK(event.op_type == GASWORKS_SOCK_OP_CLOSE);
    }
    OK(gasworks_sock_destroy_set(set));
    REFUSED(gasworks_sock_wait(set, 0, &event), GASWORKS_SOCK_ERR_BAD_SET);
    OK(gasworks_sock_finalize());
    REFUSED(gasworks_sock_wait(set, 0, &event), GASWORKS_SOCK_ERR_INIT);
    puts("all is well");
    return 0;
}
