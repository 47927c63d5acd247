/* A program that uses another library made with Rust, too, which brings a standard library of its own. */
#include <gasnetex.h>

#include "check.h"

extern uint64_t other_sum(const uint64_t *numbers, size_t count);

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  static const uint64_t numbers[3] = {1, 2, 39};
  CHECK(gex_Client_Init(&client, &ep, &tm, "beside", &argc, &argv, 0) == GASNET_OK);
  CHECK(other_sum(numbers, 3) == 42);
  DONE("beside");
  gasnet_exit(0);
}
