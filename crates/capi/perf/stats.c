/* What is left of many figures, and what is known of the machine: as stats.rs and machine.rs of gasperf have it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "session.h"

/* How far above the median a block is taken for disturbed, and blocks that stay whatever they look like. */
#define FAR 2.0
#define LEAST 9

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void sort(double *figures, size_t count) { qsort(figures, count, sizeof *figures, ascending); }

double quantile(const double *sorted, size_t count, double q) {
  double wanted = q * (double)count;
  size_t rank = (size_t)wanted;
  if (count == 0) return 0;
  if ((double)rank < wanted) rank++;
  return sorted[rank < 1 ? 0 : rank > count ? count - 1 : rank - 1];
}

static size_t honest(const double *blocks, const int *stolen, size_t count, double limit, size_t *kept) {
  size_t i, found = 0;
  for (i = 0; i < count; i++)
    if (!stolen[i] && !(blocks[i] > limit)) kept[found++] = i;
  return found;
}

/* Whether block a is less disturbed than block b. */
static int better(const double *blocks, const int *stolen, size_t a, size_t b) {
  return stolen[a] != stolen[b] ? stolen[a] < stolen[b] : blocks[a] < blocks[b];
}

size_t undisturbed(const double *blocks, const int *stolen, size_t count, size_t *kept) {
  size_t least = count < LEAST ? count : LEAST, found, i, j;
  double *figures = (double *)malloc((count + 1) * sizeof *figures);
  if (!figures) session_fail("no memory for %lu figures", (unsigned long)count);
  found = honest(blocks, stolen, count, 1e300, kept);
  for (i = 0; i < (found > 0 ? found : count); i++) figures[i] = blocks[found > 0 ? kept[i] : i];
  sort(figures, i);
  found = honest(blocks, stolen, count, FAR * quantile(figures, i, 0.5), kept);
  free(figures);
  if (found >= least) return found;
  /* So little is undisturbed that the least disturbed must do: those that fewer than nine others are better than. */
  for (found = i = 0; i < count; i++) {
    size_t ahead = 0;
    for (j = 0; j < count; j++)
      ahead += (size_t)(better(blocks, stolen, j, i) || (j < i && !better(blocks, stolen, i, j)));
    if (ahead < least) kept[found++] = i;
  }
  return found;
}

const char *machine(void) {
  static char name[512];
  char line[512], model[256] = "unknown processor";
  unsigned int processors = 0;
  struct utsname system;
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    processors += strncmp(line, "processor", 9) == 0;
    if (strncmp(line, "model name", 10) == 0) (void)sscanf(line, "%*[^:]: %255[^\n\"\\]", model);
  }
  if (file) fclose(file);
  if (uname(&system) != 0) strcpy(system.release, "of an unknown release");
  (void)snprintf(name, sizeof name, "%s, %u processors, Linux %.200s", model, processors, system.release);
  return name;
}

unsigned long machine_stolen(void) {
  unsigned long stolen = 0;
  FILE *file = fopen("/proc/stat", "r");
  if (!file) return 0;
  if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %lu", &stolen) != 1) stolen = 0;
  fclose(file);
  return stolen;
}
