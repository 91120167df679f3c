// A command with several modes, which the variable WISH selects. It prints one fact a line.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>

extern char **environ;

static char block[1 << 20];

static long long now(clockid_t clock) {
  struct timespec at;
  if (clock_gettime(clock, &at) != 0) return -errno;
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void said(const char *what, long result) {
  printf("%s %ld %d\n", what, result, result < 0 ? errno : 0);
}

static int arguments(int count, char **values) {
  for (int i = 0; i <= count; i++) printf("%s\n", values[i] ? values[i] : "(end)");
  return 0;
}

static int environment(void) {
  for (char **at = environ; *at; at++) puts(*at);
  printf("missing: %s\n", getenv("MISSING") ? "there" : "none");
  return 0;
}

static int clocks(void) {
  struct timespec step;
  printf("realtime %lld\n", now(CLOCK_REALTIME) / 1000000);
  long long last = now(CLOCK_MONOTONIC);
  int backwards = 0;
  for (int i = 0; i < 10000; i++) {
    long long next = now(CLOCK_MONOTONIC);
    if (next < last) backwards++;
    last = next;
  }
  printf("backwards %d\n", backwards);
  printf("resolution %d %ld %d %ld\n", clock_getres(CLOCK_REALTIME, &step), step.tv_nsec, clock_getres(CLOCK_MONOTONIC, &step), step.tv_nsec);
  __wasi_timestamp_t at;
  printf("processor %d\n", __wasi_clock_time_get(2, 0, &at));
  printf("unknown %d %d\n", __wasi_clock_time_get(9, 0, &at), __wasi_clock_res_get(9, &at));
  return 0;
}

static int randomness(void) {
  unsigned char first[256], second[256];
  printf("%d %d\n", getentropy(first, 256), getentropy(second, 256));
  printf("same %d\n", memcmp(first, second, 256) == 0);
  memset(block, 0, sizeof block);
  int seen[256] = {0}, missing = 0;
  printf("large %d\n", __wasi_random_get((uint8_t *)block, sizeof block));
  for (size_t i = 0; i < sizeof block; i++) seen[(unsigned char)block[i]]++;
  for (int i = 0; i < 256; i++) missing += seen[i] == 0;
  printf("missing %d\n", missing);
  return 0;
}

static int input(size_t piece) {
  uint32_t sum = 0;
  long total = 0, reads = 0, count;
  while ((count = read(0, block, piece)) > 0) {
    for (long i = 0; i < count; i++) sum = sum * 31 + (unsigned char)block[i];
    total += count;
    reads++;
  }
  printf("%ld bytes, %ld reads, sum %u, at the end %ld %ld\n", total, reads, sum, count, (long)read(0, block, piece));
  return 0;
}

static int scattered(void) {
  char a[3] = {0}, b[5] = {0};
  struct iovec into[] = {{a, 2}, {block, 0}, {b, 4}};
  printf("%ld %s %s\n", (long)readv(0, into, 3), a, b);
  fflush(stdout);
  struct iovec from[] = {{"one ", 4}, {"", 0}, {"two ", 4}, {"three\n", 6}};
  long written = writev(1, from, 4);
  printf("%ld\n", written);
  return 0;
}

static int interleaved(void) {
  for (int i = 0; i < 5; i++) {
    char line[16];
    int length = snprintf(line, sizeof line, "%d\n", i);
    write(i % 2 ? 2 : 1, line, length);
  }
  return 0;
}

static int single_bytes(void) {
  for (int i = 0; i < 2000000; i++) write(1, "x", 1);
  return 0;
}

static int sleeping(void) {
  long long before = now(CLOCK_MONOTONIC);
  struct timespec wait = {0, 30000000};
  said("nanosleep", nanosleep(&wait, NULL));
  printf("slept %d\n", now(CLOCK_MONOTONIC) - before >= 30000000);
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  long long wanted = now(CLOCK_MONOTONIC) + 20000000;
  until.tv_sec = wanted / 1000000000;
  until.tv_nsec = wanted % 1000000000;
  printf("until %d\n", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
  printf("reached %d\n", now(CLOCK_MONOTONIC) >= wanted);
  said("past", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){0, 1}, NULL));
  return 0;
}

static int polling(void) {
  struct pollfd both[] = {{0, POLLIN, 0}, {1, POLLOUT, 0}};
  printf("ready %d %d %d\n", poll(both, 2, 1000), both[0].revents == POLLIN, both[1].revents == POLLOUT);
  struct pollfd none[] = {{7, POLLIN, 0}};
  int count = poll(none, 1, 0);
  printf("none %d %d\n", count, (none[0].revents & POLLNVAL) != 0);
  __wasi_event_t events[4];
  __wasi_size_t found;
  __wasi_subscription_t one = {.userdata = 5, .u = {.tag = 0, .u = {.clock = {.id = 9, .timeout = 1}}}};
  printf("unknown clock %d\n", __wasi_poll_oneoff(&one, events, 1, &found));
  printf("nothing %d\n", __wasi_poll_oneoff(&one, events, 0, &found));
  one.u.u.clock.id = 1;
  printf("clock %d %lu %llu\n", __wasi_poll_oneoff(&one, events, 1, &found), (unsigned long)found, (unsigned long long)events[0].userdata);
  return 0;
}

static int files(void) {
  struct stat facts;
  char text[16];
  said("open", open("/etc/passwd", O_RDONLY));
  said("open for writing", open("new", O_CREAT | O_WRONLY, 0600));
  said("open ..", open("../../etc/passwd", O_RDONLY));
  said("fopen", fopen("/etc/passwd", "r") ? 0 : -1);
  said("mkdir", mkdir("/tmp/new", 0700));
  said("stat", stat("/", &facts));
  said("lstat", lstat(".", &facts));
  said("access", access("/etc", R_OK));
  said("opendir", opendir("/") ? 0 : -1);
  said("rename", rename("/a", "/b"));
  said("unlink", unlink("/a"));
  said("rmdir", rmdir("/tmp"));
  said("link", link("/a", "/b"));
  said("symlink", symlink("/a", "/b"));
  said("readlink", readlink("/a", text, sizeof text));
  said("truncate", truncate("/a", 0));
  return 0;
}

static int descriptors(void) {
  struct stat facts;
  __wasi_prestat_t prestat;
  __wasi_fd_t made;
  __wasi_size_t count;
  char text[4];
  said("read 3", read(3, text, 4));
  said("write 3", write(3, "x", 1));
  said("write 0", write(0, "x", 1));
  said("read 1", read(1, text, 4));
  said("close 3", close(3));
  said("close -1", close(-1));
  said("fstat 3", fstat(3, &facts));
  said("fstat 0", fstat(0, &facts));
  said("lseek 0", lseek(0, 0, SEEK_SET));
  said("pread 0", pread(0, text, 1, 0));
  said("ftruncate 1", ftruncate(1, 0));
  said("fsync 1", fsync(1));
  said("terminal", isatty(1));
  said("accept 3", accept(3, NULL, NULL));
  said("recv 3", recv(3, text, 1, 0));
  said("send 1", send(1, "x", 1, 0));
  printf("prestat %d %d\n", __wasi_fd_prestat_get(3, &prestat), __wasi_fd_prestat_get(0, &prestat));
  printf("path_open %d %d\n", __wasi_path_open(3, 0, "etc", 0, 2, 2, 0, &made), __wasi_path_open(0, 0, "etc", 0, 2, 2, 0, &made));
  printf("readdir %d %d\n", __wasi_fd_readdir(3, (uint8_t *)block, 100, 0, &count), __wasi_fd_readdir(0, (uint8_t *)block, 100, 0, &count));
  printf("symlink %d\n", __wasi_path_symlink("a", 3, "b"));
  fflush(stdout);
  said("close 2", close(2));
  said("write 2 when closed", write(2, "x", 1));
  return 0;
}

int main(int count, char **values) {
  const char *wish = getenv("WISH");
  if (!wish) return 99;
  if (!strcmp(wish, "arguments")) return arguments(count, values);
  if (!strcmp(wish, "environment")) return environment();
  if (!strcmp(wish, "clocks")) return clocks();
  if (!strcmp(wish, "random")) return randomness();
  if (!strncmp(wish, "input ", 6)) return input(atoi(wish + 6));
  if (!strcmp(wish, "scattered")) return scattered();
  if (!strcmp(wish, "interleaved")) return interleaved();
  if (!strcmp(wish, "single bytes")) return single_bytes();
  if (!strcmp(wish, "sleep")) return sleeping();
  if (!strcmp(wish, "poll")) return polling();
  if (!strcmp(wish, "yield")) return sched_yield();
  if (!strcmp(wish, "files")) return files();
  if (!strcmp(wish, "descriptors")) return descriptors();
  if (!strncmp(wish, "return ", 7)) return atoi(wish + 7);
  if (!strncmp(wish, "exit ", 5)) {
    fputs("written before the exit", stdout);
    exit(atoi(wish + 5));
  }
  if (!strncmp(wish, "_exit ", 6)) {
    fputs("not flushed", stdout);
    _Exit(atoi(wish + 6));
  }
  if (!strcmp(wish, "abort")) abort();
  return 98;
}
