/* A peer that is silent, or that has gone, is told of once. */
#include "check.h"

int main(void)
{
    start_both();
    cci_connection_t *accepted, *connection = connect_both(CCI_CONN_ATTR_RO, &accepted);
    uint32_t soon = 50000, left = 1;
    OK(cci_set_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &soon));
    /* While the server looks, it gives signs of life. */
    double end = now() + 0.3;
    while (now() < end)
        look_at_both();
    CHECK(client.first == client.behind);
    /* It stops. */
    double began = now();
    while (client.first == client.behind) {
        look(&client);
        CHECK(now() < began + LIMIT_SECONDS);
    }
    cci_event_t *event = next_of(&client, CCI_EVENT_KEEPALIVE_TIMEDOUT);
    CHECK(event->keepalive.connection == connection);
    OK(cci_return_event(event));
    OK(cci_get_opt(connection, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &left));
    CHECK(left == 0);
    end = now() + 0.2;
    while (now() < end)
        look(&client);
    CHECK(client.first == client.behind);
    /* The connection is as good as before. */
    OK(cci_send(connection, "still", 5, NULL, 0));
    message_comes(&server, accepted, "still", 5);
    is_over(&client, connection, NULL, CCI_SUCCESS);
    /* A peer that closes the connection is told of at once, however long the time is. */
    const uint32_t long_time = 4000000000u;
    OK(cci_set_opt(accepted, CCI_OPT_CONN_KEEPALIVE_TIMEOUT, &long_time));
    OK(cci_disconnect(connection));
    event = next_of(&server, CCI_EVENT_KEEPALIVE_TIMEDOUT);
    CHECK(event->keepalive.connection == accepted);
    OK(cci_return_event(event));
    GIVES(CCI_ERR_DISCONNECTED, cci_send(accepted, "x", 1, NULL, 0));
    OK(cci_disconnect(accepted));
    end_both();
    puts("keepalive: done");
    return 0;
}
