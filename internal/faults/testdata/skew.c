// A clock that is wrong: preloaded into redis-server, it adds KEYFUSE_FAULT_SKEW_MS
// to the time of day. Monotonic clocks stay as they are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long long skew_ms(void) {
  const char *text = getenv("KEYFUSE_FAULT_SKEW_MS");
  return text ? atoll(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *to) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, to);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    long long ns = to->tv_sec * 1000000000LL + to->tv_nsec + skew_ms() * 1000000LL;
    to->tv_sec = ns / 1000000000LL;
    to->tv_nsec = ns % 1000000000LL;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *to) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
