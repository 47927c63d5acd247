/* Mutexes, condition variables and reader-writer locks, and keys of threads. An argument asks for one misuse, which a build
 * for debugging finds. */
#include <gasnet_tools.h>

#include "check.h"

GASNETT_THREADKEY_DECLARE(shared_key);
GASNETT_THREADKEY_DEFINE(shared_key);
static GASNETT_THREADKEY_DEFINE(own_key);

/* Clients take its address, so that nobody says that it is not used. */
static void (*const make_key)(gasworks_tools_threadkey_t *key) = _gasneti_threadkey_init;
#ifdef __cplusplus
static const void *const not_unused GASNETT_UNUSED = (void *)_gasneti_threadkey_init;
#endif

static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;

static void alone(void) {
  gasnett_mutex_t m;
  gasnett_cond_t c;
  gasnett_rwlock_t l;
  gasnett_mutex_init(&m);
  gasnett_mutex_assertunlocked(&m);
  gasnett_mutex_lock(&m);
  gasnett_mutex_assertlocked(&m);
  gasnett_mutex_unlock(&m);
  CHECK(gasnett_mutex_trylock(&m) == 0);
  gasnett_mutex_assertlocked(&m);
  gasnett_mutex_unlock(&m);
  gasnett_mutex_destroy(&m);
  gasnett_mutex_init(&m);
  CHECK(gasnett_mutex_destroy_ignoreerr(&m) == 0);
  gasnett_cond_init(&c);
  gasnett_cond_signal(&c);
  gasnett_cond_broadcast(&c);
  gasnett_cond_destroy(&c);
  gasnett_rwlock_init(&l);
  gasnett_rwlock_rdlock(&l);
  gasnett_rwlock_assertrdlocked(&l);
  gasnett_rwlock_assertlocked(&l);
  CHECK(gasnett_rwlock_tryrdlock(&l) == 0);
  gasnett_rwlock_unlock(&l);
  gasnett_rwlock_unlock(&l);
  gasnett_rwlock_assertunlocked(&l);
  gasnett_rwlock_wrlock(&l);
  gasnett_rwlock_assertwrlocked(&l);
  gasnett_rwlock_assertlocked(&l);
  gasnett_rwlock_unlock(&l);
  CHECK(gasnett_rwlock_trywrlock(&l) == 0);
  gasnett_rwlock_unlock(&l);
  gasnett_rwlock_destroy(&l);
}

#if GASNETT_USE_TRUE_MUTEXES
enum { THREADS = 4, ROUNDS = 5000 };
static int total, waiting, written[2];

static void *add(void *unused) {
  int n;
  for (n = 0; n < ROUNDS; n++) {
    gasnett_mutex_lock(&mutex);
    total++;
    gasnett_mutex_unlock(&mutex);
  }
  return unused;
}

static void *wait_for_it(void *unused) {
  gasnett_mutex_lock(&mutex);
  waiting++;
  gasnett_cond_broadcast(&cond);
  while (total != 0) gasnett_cond_wait(&cond, &mutex);
  gasnett_mutex_assertlocked(&mutex);
  waiting--;
  gasnett_mutex_unlock(&mutex);
  return unused;
}

static void *is_taken(void *unused) {
  CHECK(gasnett_mutex_trylock(&mutex) == EBUSY);
  gasnett_mutex_assertunlocked(&mutex);
  CHECK(gasnett_rwlock_tryrdlock(&rwlock) == EBUSY);
  CHECK(gasnett_rwlock_trywrlock(&rwlock) == EBUSY);
  return unused;
}

static void *read_or_write(void *unused) {
  int n;
  for (n = 0; n < ROUNDS; n++) {
    if (n % 4 == 0) {
      gasnett_rwlock_wrlock(&rwlock);
      written[0]++;
      gasnett_rwlock_assertwrlocked(&rwlock);
      written[1]++;
    } else {
      gasnett_rwlock_rdlock(&rwlock);
      CHECK(written[0] == written[1]);
    }
    gasnett_rwlock_unlock(&rwlock);
  }
  return unused;
}

static void *keys(void *mark) {
  int n;
  CHECK(gasnett_threadkey_get(shared_key) == NULL && gasnett_threadkey_get_noinit(own_key) == NULL);
  gasnett_threadkey_set(shared_key, mark);
  gasnett_threadkey_set_noinit(own_key, &n);
  make_key(&own_key);
  for (n = 0; n < 100; n++) gasnett_sched_yield();
  CHECK(gasnett_threadkey_get(shared_key) == mark && gasnett_threadkey_get(own_key) == &n);
  return NULL;
}

static pthread_t all[THREADS];
static void start(void *(*body)(void *)) {
  int n;
  for (n = 0; n < THREADS; n++) CHECK(!pthread_create(&all[n], NULL, body, (char *)written + n));
}
static void join(void) {
  int n;
  for (n = 0; n < THREADS; n++) CHECK(!pthread_join(all[n], NULL));
}

static void together(void) {
  start(add);
  join();
  CHECK(total == THREADS * ROUNDS);
  start(wait_for_it);
  gasnett_mutex_lock(&mutex);
  while (waiting != THREADS) gasnett_cond_wait(&cond, &mutex);
  total = 0;
  gasnett_cond_broadcast(&cond);
  gasnett_mutex_unlock(&mutex);
  join();
  CHECK(waiting == 0);
  gasnett_mutex_lock(&mutex);
  gasnett_rwlock_wrlock(&rwlock);
  start(is_taken);
  join();
  gasnett_rwlock_unlock(&rwlock);
  gasnett_mutex_unlock(&mutex);
  start(read_or_write);
  join();
  CHECK(written[0] == THREADS * (ROUNDS / 4));
  gasnett_threadkey_init(shared_key);
  start(keys);
  join();
}
#else
static void together(void) {
  /* They cost nothing: no memory but what a member of a structure has to have. */
#if !GASNET_DEBUG
  CHECK(sizeof(gasnett_mutex_t) == 1 && sizeof(gasnett_cond_t) == 1 && sizeof(gasnett_rwlock_t) == 1);
#endif
  gasnett_threadkey_init(shared_key);
  CHECK(gasnett_threadkey_get(own_key) == NULL);
  gasnett_threadkey_set(own_key, &mutex);
  make_key(&own_key);
  CHECK(gasnett_threadkey_get(own_key) == &mutex && gasnett_threadkey_get(shared_key) == NULL);
}
#endif

static void misuse(const char *what) {
  if (!strcmp(what, "twice")) {
    gasnett_mutex_lock(&mutex);
    gasnett_mutex_lock(&mutex);
  } else if (!strcmp(what, "unlock")) {
    gasnett_mutex_unlock(&mutex);
  } else if (!strcmp(what, "locked")) {
    gasnett_mutex_assertlocked(&mutex);
  } else if (!strcmp(what, "unlocked")) {
    gasnett_mutex_lock(&mutex);
    gasnett_mutex_assertunlocked(&mutex);
  } else if (!strcmp(what, "wait")) {
    gasnett_cond_wait(&cond, &mutex);
  } else if (!strcmp(what, "write")) {
    gasnett_rwlock_rdlock(&rwlock);
    gasnett_rwlock_assertwrlocked(&rwlock);
  } else if (!strcmp(what, "read")) {
    gasnett_rwlock_wrlock(&rwlock);
    gasnett_rwlock_assertrdlocked(&rwlock);
  } else if (!strcmp(what, "nobody")) {
    gasnett_rwlock_unlock(&rwlock);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) {
    misuse(argv[1]);
    return 0;
  }
  alone();
  together();
  return 0;
}
