/* What the library shows to the inline functions. The offsets are the library's own, and asserted on both sides. */
#ifndef GASWORKS_LAYOUT_H
#define GASWORKS_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* Objects that were compiled with another version of this file do not work with the library; they do not link. */
#define GASWORKS_INTERFACE 1

/* A rank's segment, as it is reached from here. */
struct gasworks_near {
  unsigned char *mapped; /* its first byte, mapped here */
  uint64_t base;         /* the address of that byte in its own process */
  uint64_t open;         /* so many bytes load and store reach; it only grows */
  uint64_t rest[2];
};

struct gasworks_client {
  const void *cdata;
  const char *name;
  uint32_t flags;
};

struct gasworks_segment {
  const void *cdata;
  struct gasworks_client *client;
  void *address;
  uintptr_t size;
  uint32_t flags;
};

struct gasworks_ep {
  const void *cdata;
  struct gasworks_client *client;
  struct gasworks_segment *segment;
  uint32_t flags;
  uint16_t index;
};

/* The lowest bit of a team's handle says that it is a pair, and no address. */
struct gasworks_tm {
  const void *cdata;
  struct gasworks_client *client;
  struct gasworks_ep *ep;
  const struct gasworks_near *near;
  uint32_t rank;
  uint32_t size;
  uint32_t flags;
};

#if defined(__cplusplus)
#define GASWORKS_ASSERT_LAYOUT(type, field, at) \
  static_assert(offsetof(struct type, field) == (at), "the layout of " #type " is not the library's")
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define GASWORKS_ASSERT_LAYOUT(type, field, at) \
  _Static_assert(offsetof(struct type, field) == (at), "the layout of " #type " is not the library's")
#else
#define GASWORKS_ASSERT_LAYOUT(type, field, at) \
  extern char gasworks_layout_##type##_##field[offsetof(struct type, field) == (at) ? 1 : -1]
#endif

/* A test of the library reads these lines. */
GASWORKS_ASSERT_LAYOUT(gasworks_near, mapped, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_near, base, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_near, open, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_near, rest, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_client, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_client, name, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_client, flags, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, client, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, address, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, size, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, flags, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, client, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, segment, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, flags, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, index, 28);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, client, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, ep, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, near, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, rank, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, size, 36);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, flags, 40);

#endif
