/* Raises a signal, and ends with code 99 if its handler allocates: the program may have been at that, and waits for ever then. The words
   are the signal's number, and "heap" in its place for a heap that is damaged. */
#include <gasnetex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
#ifdef __cplusplus
}
#endif

/* Whether this thread is in a handler, as it were in the middle of an allocation. */
static __thread int forbidden;

static void use(void) {
  const char text[] = "ERROR: a handler allocates\n";
  if (!forbidden) return;
  forbidden = 0;
  if (write(2, text, sizeof text - 1) < 0) _exit(98);
  _exit(99);
}

void *malloc(size_t len) {
  use();
  return __libc_malloc(len);
}
void *calloc(size_t count, size_t len) {
  use();
  return __libc_calloc(count, len);
}
void *realloc(void *old, size_t len) {
  use();
  return __libc_realloc(old, len);
}
void *memalign(size_t align, size_t len) {
  use();
  return __libc_memalign(align, len);
}
void *aligned_alloc(size_t align, size_t len) {
  use();
  return __libc_memalign(align, len);
}
int posix_memalign(void **made, size_t align, size_t len) {
  use();
  *made = __libc_memalign(align, len);
  return *made ? 0 : 12;
}
void free(void *old) {
  use();
  __libc_free(old);
}

/* What a write into freed memory does: the list of free parts goes on at an address that no part can have. The allocator keeps such
   addresses mixed with where they stand, so that a value that does not regard that would be a possible one in one of sixteen places. */
static void damage(void) {
  void *volatile part[9];
  int i;
  for (i = 0; i < 9; i++) part[i] = malloc(40);
  for (i = 0; i < 9; i++) free(part[i]);
  *(volatile uintptr_t *)part[8] = ((uintptr_t)part[8] >> 12) ^ 0x4141414141414141;
  for (i = 0; i < 9; i++) part[i] = malloc(40);
}

/* Whoever is frozen is let go on. */
static void *go_on(void *unused) {
  for (;;) {
    usleep(20000);
    kill(getpid(), SIGCONT);
  }
  return unused;
}

int main(int argc, char **argv) {
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  pthread_t thread;
  int number = atoi(argv[1]);
  CHECK(gex_Client_Init(&client, &ep, &tm, "handlers", &argc, &argv, 0) == GASNET_OK);
  gex_Coll_BarrierBlocking(tm, 0);
  if (gex_System_QueryJobRank() == 1) {
    if (getenv("GASNET_FREEZE_ON_ERROR") || getenv("GASNET_FREEZE_SIGNAL"))
      CHECK(pthread_create(&thread, NULL, go_on, NULL) == 0);
    if (number == 0) damage();
    forbidden = 1;
    raise(number);
    /* The library ends the process from another thread, if at all. */
    if (argc > 2) pause();
    forbidden = 0;
  }
  gex_Coll_BarrierBlocking(tm, 0);
  DONE("handlers");
  return 0;
}
