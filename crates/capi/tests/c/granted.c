/* What programs take for granted where gasnetex.h is all that they include: the system's headers, and things of GASNet-1. */
#include <gasnetex.h>
#if !_INCLUDED_GASNETEX_H || !HAVE_MMAP
#error what programs look for is not defined
#endif

static int says(char *text, const char *format, ...) {
  va_list arguments;
  int len;
  va_start(arguments, format);
  len = vsnprintf(text, 64, format, arguments);
  va_end(arguments);
  return len;
}

/* Something of each header: how many are not as they should be. */
static int wrong_of_the_system(void) {
  char text[64], *end;
  ssize_t most = INT_MAX;
  ptrdiff_t between = &text[1] - text;
  uint64_t word = 1;
  int wrong = 0;
  errno = 0;
  wrong += strtoul("99999999999999999999", &end, 10) != ULONG_MAX || errno != ERANGE || *end != 0;
  says(text, "%" PRIu64 " %" PRIuSZ, word, (size_t)between << 32);
  wrong += strcmp(text, "1 4294967296") != 0 || getpid() <= 0 || time(NULL) <= 0 || most <= 0 || MAXPATHLEN <= 0;
  wrong += MIN(word, 2) != 1 || MAX(word, 2) != 2;
#ifndef GASNET_SEQ
  wrong += !pthread_equal(pthread_self(), pthread_self()) || sched_yield() != 0;
#endif
  return wrong;
}

/* Halves are numbers without a sign, also where a message's arguments, which have one, are what they come from. */
static int wrong_words(uint64_t word) {
  gex_AM_Arg_t high = (gex_AM_Arg_t)GASNETI_HIWORD(word), low = (gex_AM_Arg_t)GASNETI_LOWORD(word);
  return GASNETI_MAKEWORD(high, low) != word || GASNETI_HIWORD(word) != word / 0x100000000u ||
         GASNETI_LOWORD(word) != word % 0x100000000u;
}

static void take(gex_Token_t token) { (void)token; }
static gasnet_handlerentry_t table[] = {{200, (gex_AM_Fn_t)take}};
static gasnet_seginfo_t segment = {table, sizeof table};
static gasnet_nodeinfo_t node = {1, 2, 3};

static int wrong_of_the_older(gasnet_threadinfo_t info) {
  GASNET_POST_THREADINFO(info);
  return table[0].index != 200 || segment.addr != table || segment.size != sizeof table || node.host != 1 ||
         node.supernode != 2 || node.offset != 3;
}

#include "check.h"

int main(int argc, char **argv) {
  GASNET_BEGIN_FUNCTION();
  gex_Client_t client;
  gex_EP_t ep;
  gex_TM_t tm;
  CHECK(gex_Client_Init(&client, &ep, &tm, "granted", &argc, &argv, 0) == GASNET_OK);
  CHECK(wrong_of_the_system() == 0);
  CHECK(!wrong_words(0) && !wrong_words(0x8000000080000001u) && !wrong_words(0x00000001ffffffffu));
  CHECK(!wrong_of_the_older(GASNET_GET_THREADINFO()));
  CHECK(strstr(GASNET_CONFIG_STRING, ",SEGMENT=FAST,PTR=64bit,") != NULL && sizeof(void *) == 8);
  CHECK(strstr(GASNET_CONFIG_STRING,
               "debug,notrace,nostats,nodebugmalloc,nosrclines,timers_native,membars_native,atomics_native,"
               "atomic32_native,atomic64_native,") != NULL);
  DONE("granted");
  gasnet_exit(0);
}
