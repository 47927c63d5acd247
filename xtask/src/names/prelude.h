/* What the uses of names are written with; they and the header that they are of stand around it. */
#ifdef __cplusplus
extern "C" {
#endif

/* Where results go, so that nothing is optimised away. */
volatile uintptr_t names_value;
void (*volatile names_function)(void);

/* Arguments. */
volatile int names_cell;
uint64_t names_word;
size_t names_len;
void *names_source, *names_dest;
gex_Client_t names_client;
gex_TM_t names_tm;
gex_Rank_t names_rank;
gex_Segment_t names_segment;
gex_Flags_t names_flags;
gex_Event_t names_event;
gex_Token_t names_token;
gex_AM_Index_t names_handler;
gex_AM_SrcDesc_t names_prepared;
gex_HSL_t names_lock;

void names_short(gex_Token_t token);
void names_short(gex_Token_t token) { names_value = (uintptr_t)token; }
void names_reduce(const void *operand, void *in_out, size_t count, const void *cdata);
void names_reduce(const void *operand, void *in_out, size_t count, const void *cdata) {
  names_value = (uintptr_t)operand + (uintptr_t)in_out + count + (uintptr_t)cdata;
}
void names_work(void *arg);
void names_work(void *arg) { names_value = (uintptr_t)arg; }

#ifdef NAMES_OF_TOOLS
char names_text[4096];
gex_Memvec_t names_parts[1];
void *names_addresses[1];
ptrdiff_t names_strides[1];
gasnett_mutex_t names_mutex;
gasnett_cond_t names_cond;
gasnett_rwlock_t names_rwlock;
GASNETT_THREADKEY_DEFINE(names_key);

void names_signal(int signal);
void names_signal(int signal) { names_value = (uintptr_t)signal; }
int names_trace(int fd);
int names_trace(int fd) { return fd; }
#endif

#define NAMES_TEXT_(x) #x
#define NAMES_TEXT(x) NAMES_TEXT_(x)

/* One type by two names. */
#define NAMES_SAME(one, other)            \
  {                                       \
    one *names_one = 0;                   \
    other *names_other = names_one;       \
    names_value = (uintptr_t)names_other; \
  }

/* An active message with 0 to 16 arguments, by its numbered names and by the one that counts; `v2` ends the names of a second
 * version. */
#define NAMES_AM_EACH(name, v2, counts, ...)                                        \
  name##0##v2(__VA_ARGS__);                                                         \
  name##1##v2(__VA_ARGS__, 1);                                                      \
  name##2##v2(__VA_ARGS__, 1, 2);                                                   \
  name##3##v2(__VA_ARGS__, 1, 2, 3);                                                \
  name##4##v2(__VA_ARGS__, 1, 2, 3, 4);                                             \
  name##5##v2(__VA_ARGS__, 1, 2, 3, 4, 5);                                          \
  name##6##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6);                                       \
  name##7##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7);                                    \
  name##8##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8);                                 \
  name##9##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9);                              \
  name##10##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);                         \
  name##11##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);                     \
  name##12##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);                 \
  name##13##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);             \
  name##14##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);         \
  name##15##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);     \
  name##16##v2(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16); \
  counts(__VA_ARGS__);                                                              \
  counts(__VA_ARGS__, 1);                                                           \
  counts(__VA_ARGS__, 1, 2);                                                        \
  counts(__VA_ARGS__, 1, 2, 3);                                                     \
  counts(__VA_ARGS__, 1, 2, 3, 4);                                                  \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5);                                               \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6);                                            \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7);                                         \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8);                                      \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9);                                   \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);                               \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);                           \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);                       \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);                   \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);               \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);           \
  counts(__VA_ARGS__, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
#define NAMES_AM(name, ...) NAMES_AM_EACH(name, , name, __VA_ARGS__)
#define NAMES_AM_V2(name, ...) NAMES_AM_EACH(name, _v2, name##_v2, __VA_ARGS__)

int main(void) { return 0; }
