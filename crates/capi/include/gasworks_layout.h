/* What the library shows to the inline functions. The offsets are the library's own, and asserted on both sides. */
#ifndef GASWORKS_LAYOUT_H
#define GASWORKS_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* Objects that were compiled with another version of this file do not work with the library; they do not link. */
#define GASWORKS_INTERFACE 2

/* A rank's segment, as it is reached from here. One that is all zero is closed: what is more than a copy is the library's. */
struct gasworks_row {
  unsigned char *mapped; /* its first byte, mapped here */
  intptr_t delta;        /* how far that is from where the segment's own process has it */
  uint64_t words;        /* at so many offsets, from the first on, up to 8 bytes may be used */
  uint64_t open;         /* so many bytes load and store reach; it only grows */
};

/* All objects begin alike, so that what a handle leads to can be told. */
#define GASWORKS_KIND_client 0x6777636cu
#define GASWORKS_KIND_segment 0x67777367u
#define GASWORKS_KIND_ep 0x67776570u
#define GASWORKS_KIND_tm 0x6777746du
#define GASWORKS_KIND_pair 0x67777072u
#define GASWORKS_KIND_ad 0x67776164u

struct gasworks_client {
  const void *cdata;
  uint32_t kind;
  uint32_t flags;
  const char *name;
};

struct gasworks_segment {
  const void *cdata;
  uint32_t kind;
  uint32_t flags;
  struct gasworks_client *client;
  void *address;
  uintptr_t size;
};

struct gasworks_ep {
  const void *cdata;
  uint32_t kind;
  uint32_t flags;
  struct gasworks_client *client;
  struct gasworks_segment *segment;
  uint16_t index;
  struct gasworks_tm *pairs; /* with the endpoint of each number elsewhere, and one that stands for all that cannot be */
};

/* A team, or a pair of endpoints: the row of a member is found at its rank times the pitch. */
struct gasworks_tm {
  const void *cdata;
  uint32_t kind;
  uint32_t flags;
  struct gasworks_client *client;
  struct gasworks_ep *ep;
  const char *rows;
  intptr_t pitch;
  uint32_t rank;
  uint32_t size;
};

/* An atomic domain: rows as a team has them, of the team's ranks and of the job's. They are closed where no processor may do what others do. */
struct gasworks_ad {
  const void *cdata;
  uint32_t kind;
  uint32_t flags;
  struct gasworks_tm *team;
  uint32_t of;
  uint32_t operations;
  const char *rows;
  intptr_t pitch;
  const char *job_rows;
  intptr_t job_pitch;
};

#if defined(__cplusplus) && __cplusplus >= 201103L
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
GASWORKS_ASSERT_LAYOUT(gasworks_row, mapped, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_row, delta, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_row, words, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_row, open, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_client, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_client, kind, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_client, flags, 12);
GASWORKS_ASSERT_LAYOUT(gasworks_client, name, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, kind, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, flags, 12);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, client, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, address, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_segment, size, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, kind, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, flags, 12);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, client, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, segment, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, index, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_ep, pairs, 40);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, kind, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, flags, 12);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, client, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, ep, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, rows, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, pitch, 40);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, rank, 48);
GASWORKS_ASSERT_LAYOUT(gasworks_tm, size, 52);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, cdata, 0);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, kind, 8);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, flags, 12);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, team, 16);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, of, 24);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, operations, 28);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, rows, 32);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, pitch, 40);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, job_rows, 48);
GASWORKS_ASSERT_LAYOUT(gasworks_ad, job_pitch, 56);

#endif
