/* The environment, numbers as text, and the texts for traces. With an argument it prints settings, or dies of a bad one. */
#include <gasnet_tools.h>

#include "check.h"

static void numbers(void) {
  char text[32];
  CHECK(gasnett_parse_int("64K", 1) == 64 << 10);
  CHECK(gasnett_parse_int("2", 1 << 20) == 2 << 20);
  CHECK(gasnett_parse_int("-5", 0) == -5 && gasnett_parse_int("0x10", 0) == 16);
  CHECK(gasnett_parse_int("1.5 GB", 1) == INT64_C(3) << 29);
  CHECK(gasnett_parse_int("3T", 1) == INT64_C(3) << 40 && gasnett_parse_int("1P", 1) == INT64_C(1) << 50);
  CHECK_TEXT(gasnett_format_number(16 << 20, text, sizeof(text), 1), "16 MB");
  CHECK_TEXT(gasnett_format_number(16 << 20, text, sizeof(text), 0), "16777216");
  CHECK_TEXT(gasnett_format_number(123456, text, 4, 0), "123");
}

static void variables(void) {
  gasnett_setenv("GASNET_T", "x");
  CHECK_TEXT(gasnett_getenv("GASNET_T"), "x");
  CHECK_TEXT(gasnett_getenv_withdefault("GASNET_T", "y"), "x");
  gasnett_unsetenv("GASNET_T");
  CHECK(gasnett_getenv("GASNET_T") == NULL);
  CHECK_TEXT(gasnett_getenv_withdefault("GASNET_T", "y"), "y");
  CHECK(gasnett_getenv_withdefault("GASNET_T", NULL) == NULL);
  CHECK(gasnett_getenv_int_withdefault("GASNET_T", 9, 1) == 9);
  CHECK(gasnett_getenv_yesno_withdefault("GASNET_T", 1) == 1 && gasnett_getenv_yesno_withdefault("GASNET_T", 0) == 0);
  CHECK(gasnett_getenv_dbl_withdefault("GASNET_T", 0.5) == 0.5);
  gasnett_setenv("GASNET_T", "2");
  CHECK(gasnett_getenv_int_withdefault("GASNET_T", 9, 1024) == 2048);
  CHECK(gasnett_getenv_int_withdefault("GASNET_T", 9, 0) == 2);
  CHECK(gasnett_getenv_dbl_withdefault("GASNET_T", 0.5) == 2.0);
  gasnett_setenv("GASNET_T", "no");
  CHECK(gasnett_getenv_yesno_withdefault("GASNET_T", 1) == 0);
  CHECK(!gasnett_verboseenv());
}

static void formats(void) {
  struct {
    void *address;
    size_t length;
  } const pieces[2] = {{(void *)0x1000, 8}, {(void *)0x2000, 40}};
  void *const addresses[2] = {(void *)0x10, (void *)0x20};
  const ptrdiff_t strides[2] = {-8, 64};
  const size_t count[2] = {3, 4};
  gasneti_memveclist_stats_t ranges;
  gasneti_addrlist_stats_t range;
  char text[1024];
  CHECK(gasnett_format_memveclist_bufsz(2) < sizeof(text) && gasnett_format_addrlist_bufsz(2) < sizeof(text));
  CHECK(gasnett_format_strides_bufsz(2) < sizeof(text) && gasnett_format_putvgetv_bufsz(2, 2) < sizeof(text));
  CHECK(gasnett_format_putigeti_bufsz(2, 2) < sizeof(text) && gasnett_format_putsgets_bufsz(2) < sizeof(text));
  ranges = gasnett_format_memveclist(text, 2, pieces);
  CHECK_TEXT(text, "2 entries, 48 bytes in [0x1000..0x2028): [(0x1000,8), (0x2000,40)]");
  CHECK(ranges.minsz == 8 && ranges.maxsz == 40 && ranges.totalsz == 48);
  CHECK(ranges.minaddr == pieces[0].address && ranges.maxaddr == (char *)pieces[1].address + 39);
  range = gasnett_format_addrlist(text, 2, addresses, 4);
  CHECK_TEXT(text, "2 entries of 4, 8 bytes in [0x10..0x24): [0x10, 0x20]");
  CHECK(range.minaddr == addresses[0] && range.maxaddr == (char *)addresses[1] + 3);
  gasnett_format_strides(text, 2, strides);
  CHECK_TEXT(text, "[-8, 64]");
  CHECK(gasnett_format_putvgetv(text, NULL, 3, 1, pieces, 0, NULL) == 8);
  CHECK_TEXT(text, "team 0x0, rank 3\ndst: 1 entries, 8 bytes in [0x1000..0x1008): [(0x1000,8)]\n"
                   "src: 0 entries, 0 bytes in [0x0..0x0): []");
  CHECK(gasnett_format_putigeti(text, NULL, 3, 1, addresses, 8, 2, addresses, 4) == 8);
  CHECK_TEXT(text, "team 0x0, rank 3\ndst: 1 entries of 8, 8 bytes in [0x10..0x18): [0x10]\n"
                   "src: 2 entries of 4, 8 bytes in [0x10..0x24): [0x10, 0x20]");
  CHECK(gasnett_format_putsgets(text, NULL, NULL, 3, addresses[0], strides, addresses[1], strides, 8, count, 2) == 96);
  CHECK_TEXT(text, "team 0x0, rank 3, 2 levels of 8 bytes, count [3, 4]\ndst: 0x10 strides [-8, 64]\n"
                   "src: 0x20 strides [-8, 64]");
}

/* Each gives its length without a buffer, and with one writes so much and no more. */
#define CHECK_SET(FORMAT, set, wanted)                                                                                 \
  do {                                                                                                                 \
    char text_[64];                                                                                                    \
    memset(text_, '?', sizeof(text_));                                                                                 \
    CHECK(FORMAT(NULL, set) == sizeof(wanted));                                                                        \
    CHECK(FORMAT(text_, set) == sizeof(wanted) && text_[sizeof(wanted)] == '?');                                       \
    CHECK_TEXT(text_, wanted);                                                                                         \
  } while (0)

static void sets(void) {
  CHECK_SET(gasnett_format_op, (1 << 18) | 1, "GEX_OP_AND|GEX_OP_FADD");
  CHECK_SET(gasnett_format_dt, 1 << 3, "GEX_DT_U64");
  CHECK_SET(gasnett_format_ti, 0x11, "GEX_TI_SRCRANK|GEX_TI_EP");
}

static int display(const char *what) {
  if (!strcmp(what, "display")) {
    (void)gasnett_getenv_int_withdefault("GASNET_A", 64 << 10, 1);
    (void)gasnett_getenv_yesno_withdefault("GASNET_B", 0);
    (void)gasnett_getenv_withdefault("GASNET_C", "text");
    gasnett_envstr_display("GASNET_D", NULL, 0);
    gasnett_envint_display("GASNET_E", 12, 1, 0);
    gasnett_envdbl_display("GASNET_F", 0.25, 0);
  } else if (!strcmp(what, "int")) {
    (void)gasnett_getenv_int_withdefault("GASNET_A", 1, 1);
  } else if (!strcmp(what, "yesno")) {
    (void)gasnett_getenv_yesno_withdefault("GASNET_A", 1);
  } else if (!strcmp(what, "dbl")) {
    (void)gasnett_getenv_dbl_withdefault("GASNET_A", 1);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return display(argv[1]);
  numbers();
  variables();
  formats();
  sets();
  return 0;
}
