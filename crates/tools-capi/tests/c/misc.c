/* The process, the machine, bytes, and ends with a message. An argument chooses an end. */
#include <gasnet_tools.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static volatile sig_atomic_t signals;
static void on_signal(int signal) { signals = signal; }

#ifdef OWN_BACKTRACE
static int own_backtrace(int fd) { return write(fd, "own backtrace\n", 14) != 14; }
gasnett_backtrace_type_t gasnett_backtrace_user = {"OWN", own_backtrace, 1};
#endif

static int assigned(int fd) {
  static const char text[] = "assigned backtrace\n";
  return write(fd, text, sizeof(text) - 1) < 0;
}

static void process(void) {
  struct rlimit limit, lowered;
  CHECK(gasnett_reghandler(SIGUSR1, on_signal) == SIG_DFL);
  CHECK(raise(SIGUSR1) == 0 && signals == SIGUSR1);
  CHECK(gasnett_reghandler(SIGUSR1, SIG_IGN) == on_signal);
  CHECK_TEXT(gasnett_signame_fromval(SIGTERM), "SIGTERM");
  CHECK(gasnett_signame_fromval(12345) != NULL);
  CHECK(!getrlimit(RLIMIT_CORE, &limit));
  lowered = limit;
  lowered.rlim_cur = 0;
  CHECK(!setrlimit(RLIMIT_CORE, &lowered));
  gasnett_setenv("GASNET_MAXIMIZE_RLIMIT_CORE", "no");
  CHECK(gasnett_maximize_rlimit(RLIMIT_CORE, "RLIMIT_CORE") && !getrlimit(RLIMIT_CORE, &limit) && limit.rlim_cur == 0);
  gasnett_unsetenv("GASNET_MAXIMIZE_RLIMIT_CORE");
  CHECK(gasnett_maximize_rlimit(RLIMIT_CORE, "RLIMIT_CORE") && !getrlimit(RLIMIT_CORE, &limit));
  CHECK(limit.rlim_cur == limit.rlim_max);
  (void)gasnett_maximize_rlimits();
  gasnett_sched_yield();
  gasnett_flush_streams();
}

static void machine(void) {
  char name[256];
  const int one = 1;
  char *memory;
  CHECK(!gethostname(name, sizeof(name)));
  CHECK_TEXT(gasnett_gethostname(), name);
  CHECK(strstr(gasnett_exe_name(), "misc"));
  CHECK(gasnett_cpu_count() == sysconf(_SC_NPROCESSORS_ONLN));
  CHECK(gasnett_getPhysMemSz(1) == (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
  CHECK(gasnett_isLittleEndian() == (*(const unsigned char *)&one == 1));
  CHECK(GASNETT_SET_AFFINITY_SUPPORT && gasnett_set_affinity(0) == 0);
  memory = (char *)gasnett_mmap(3 * GASNETT_PAGESIZE);
  CHECK(memory != MAP_FAILED && (uintptr_t)memory % GASNETT_PAGESIZE == 0);
  CHECK(gasnett_count0s(memory, 3 * GASNETT_PAGESIZE) == 3 * GASNETT_PAGESIZE);
  memory[3 * GASNETT_PAGESIZE - 1] = 1;
  CHECK(gasnett_count0s(memory, 3 * GASNETT_PAGESIZE) == 3 * GASNETT_PAGESIZE - 1);
}

static void bytes(void) {
  char from[37], to[38];
  int n;
  for (n = 0; n < 37; n++) from[n] = (char)(n % 4);
  to[37] = 9;
  CHECK(gasnett_count0s_copy(to, from, 37) == 10 && !memcmp(from, to, 37) && to[37] == 9);
  CHECK(gasnett_checksum(from, 37) == gasnett_checksum(to, 37) && gasnett_checksum(from, 36) != gasnett_checksum(to, 37));
  to[20]++;
  CHECK(gasnett_checksum(from, 37) != gasnett_checksum(to, 37));
  /* Each pattern of zero bytes, of neighbours 0x00, 0x01, 0x80 and 0xff, which tell a borrow or a carry. */
  for (n = 0; n < 1 << 16; n++) {
    static const unsigned char all[4] = {0, 1, 0x80, 0xff};
    unsigned char word[8];
    uint64_t whole;
    uint32_t half;
    int at, zeros = 0, zeros_in_half = 0;
    for (at = 0; at < 8; at++) {
      word[at] = all[(n >> (2 * at)) & 3];
      zeros += !word[at];
      zeros_in_half += at < 4 && !word[at];
    }
    memcpy(&whole, word, sizeof(whole));
    memcpy(&half, word, sizeof(half));
    CHECK(gasnett_count0s_uint64_t(whole) == zeros && gasnett_count0s_uint32_t(half) == zeros_in_half);
    CHECK(gasnett_count0s_uintptr_t((uintptr_t)whole) == (sizeof(uintptr_t) == 8 ? zeros : zeros_in_half));
  }
}

static void library(void) {
  void *table = &table;
  int count = 7;
  CHECK_TEXT(gasnett_release_version_str(), "2025.8.0");
  CHECK(gasnett_release_version() == 2025080000);
#if GASNET_DEBUG
  CHECK(strstr(gasnett_performance_warning_str(), "GASNET_DEBUG"));
#else
  CHECK_TEXT(gasnett_performance_warning_str(), "");
#endif
  gasnett_diagnostic_gethandlers(&table, &count);
  CHECK(table == NULL && count == 0);
  CHECK(gasnett_run_diagnostics(5, 2, NULL, (void *)0, 1L) == 0 && gasnett_run_diagnostics(5, 2, "TN") == 0);
}

static void *unfreeze(void *unused) {
  while (!gasnet_frozen) gasnett_nsleep(1000000);
  gasnet_frozen = 0;
  return unused;
}

static void *go_on(void *unused) {
  while (!gasnet_frozen) gasnett_nsleep(1000000);
  CHECK(!kill(getpid(), SIGCONT));
  return unused;
}

static void freeze(void *(*helper)(void *)) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, helper, NULL));
  gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
  CHECK(!gasnet_frozen && !pthread_join(thread, NULL));
  gasnett_freezeForDebuggerErr();
}

static int end(const char *how) {
  if (!strcmp(how, "fatal")) {
    printf("said before\n");
    gasnett_fatalerror("a number: %d", 42);
  } else if (!strcmp(how, "nopos")) {
    gasnett_fatalerror_nopos("no %s", "place");
  } else if (!strcmp(how, "kill")) {
    gasnett_killmyprocess(23);
  } else if (!strcmp(how, "close")) {
    printf("written\n");
    gasnett_close_streams();
    return printf("lost") < 0 ? 0 : 1;
  } else if (!strcmp(how, "print")) {
    gasnett_backtrace_init(how);
    CHECK_TEXT(gasnett_exe_name(), how);
    return gasnett_print_backtrace(STDERR_FILENO);
  } else if (!strcmp(how, "signal")) {
    gasnett_backtrace_init(NULL);
    return raise(SIGUSR2);
  } else if (!strcmp(how, "assigned")) {
    gasnett_print_backtrace_ifenabled = assigned;
    gasnett_fatalerror_nopos("%s", "end");
  } else if (!strcmp(how, "rate")) {
    return gasnett_ticks_to_ns(1000000) == 0;
  } else if (!strcmp(how, "assume")) {
    volatile int wrong = 1;
    gasnett_assume(wrong == 0);
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc > 1) return end(argv[1]);
  process();
  machine();
  bytes();
  library();
  freeze(unfreeze);
  freeze(go_on);
  return 0;
}
