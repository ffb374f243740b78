/*
 * The two ends of a bench in C, because a load generator in Node would be slower than the proxy it
 * loads. echo.ts and load.ts are the same two programs for a machine without a compiler, with the
 * same words on stdin and stdout.
 *
 *   peers echo                          answers every datagram; prints "listening PORT"
 *   peers load PORT FLOWS WINDOW BYTES  prints "ready", then for each line "MS" on stdin loads
 *                                       127.0.0.1:PORT for MS milliseconds and prints "TRIPS LOST"
 *
 * Closed loop: each of FLOWS connected sockets keeps WINDOW datagrams in flight. A slice ends only
 * when everything came back that will, so the processor time the proxy spent in it belongs to the
 * trips counted in it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, ROOM = 2048, EVENTS = 256, SOCKET_BUFFER = 4 << 20 };
/*
 * Flows start, and restart after a loss, this many datagrams per check: one burst cannot overflow a
 * receive buffer.
 */
enum { BURST = 64, CHECK_MS = 2 };
/* Far above the longest queue the loads can build: what is not back by now is lost. */
enum { OVERDUE_MS = 250 };
static const int64_t MS = 1000000;

struct batch {
  struct mmsghdr messages[BATCH];
  struct iovec parts[BATCH];
  struct sockaddr_in names[BATCH];
  char bytes[BATCH][ROOM];
};

struct flow {
  int fd;
  int in_flight;
  int64_t last_sent;
};

static struct batch inbox, outbox;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static int open_socket(int flags) {
  int size = SOCKET_BUFFER, fd = socket(AF_INET, SOCK_DGRAM | flags, 0);
  if (fd < 0) fail("socket");
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  return fd;
}

static void prepare(struct batch *batch, int bytes, int named) {
  memset(batch->messages, 0, sizeof batch->messages);
  for (int i = 0; i < BATCH; i++) {
    batch->parts[i] = (struct iovec){.iov_base = batch->bytes[i], .iov_len = bytes};
    batch->messages[i].msg_hdr.msg_iov = &batch->parts[i];
    batch->messages[i].msg_hdr.msg_iovlen = 1;
    if (!named) continue;
    batch->messages[i].msg_hdr.msg_name = &batch->names[i];
    batch->messages[i].msg_hdr.msg_namelen = sizeof batch->names[i];
  }
}

static void echo(void) {
  int fd = open_socket(0);
  struct sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("bind");
  getsockname(fd, (struct sockaddr *)&address, &length);
  printf("listening %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    prepare(&inbox, ROOM, 1);
    int count = recvmmsg(fd, inbox.messages, BATCH, MSG_WAITFORONE, NULL);
    for (int i = 0; i < count; i++) inbox.parts[i].iov_len = inbox.messages[i].msg_len;
    for (int sent = 0; sent < count;) {
      int gone = sendmmsg(fd, inbox.messages + sent, count - sent, 0);
      sent += gone > 0 ? gone : 1; /* the kernel refused this one: the load will miss it */
    }
  }
}

/* The first four bytes name the slice, so that a straggler of an earlier one is not counted. */
static void top_up(struct flow *flow, int window, int64_t now) {
  int count = window - flow->in_flight < BATCH ? window - flow->in_flight : BATCH;
  if (count <= 0) return;
  int sent = sendmmsg(flow->fd, outbox.messages, count, 0);
  if (sent <= 0) return;
  flow->in_flight += sent;
  flow->last_sent = now;
}

static int collect(struct flow *flow, uint32_t slice) {
  int count = recvmmsg(flow->fd, inbox.messages, BATCH, 0, NULL), fresh = 0;
  for (int i = 0; i < count; i++) {
    uint32_t mark;
    memcpy(&mark, inbox.bytes[i], sizeof mark);
    if (mark == slice) fresh++;
  }
  flow->in_flight -= fresh < flow->in_flight ? fresh : flow->in_flight;
  return fresh;
}

/*
 * Restarts idle flows and those whose datagrams are overdue, BURST datagrams at most: returns how
 * many were lost.
 */
static long revive(struct flow *flows, int count, int window, int64_t now) {
  long lost = 0;
  for (int i = 0, burst = 0; i < count && burst < BURST; i++) {
    if (flows[i].in_flight > 0 && now - flows[i].last_sent < OVERDUE_MS * MS) continue;
    lost += flows[i].in_flight;
    flows[i].in_flight = 0;
    top_up(&flows[i], window, now);
    burst += window;
  }
  return lost;
}

static long in_flight(const struct flow *flows, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++) sum += flows[i].in_flight;
  return sum;
}

static void run_slice(int epoll, struct flow *flows, int count, int window, int64_t length) {
  static uint32_t slice;
  struct epoll_event events[EVENTS];
  int64_t now = now_ns(), end = now + length, checked = 0;
  long trips = 0, lost = 0;
  slice++;
  for (int i = 0; i < BATCH; i++) memcpy(outbox.bytes[i], &slice, sizeof slice);
  for (;;) {
    int going = now < end;
    if (!going && in_flight(flows, count) == 0) break;
    int ready = epoll_wait(epoll, events, EVENTS, going ? CHECK_MS : OVERDUE_MS);
    if (!going && ready == 0) break;
    for (int i = 0; i < ready; i++) {
      struct flow *flow = &flows[events[i].data.u32];
      trips += collect(flow, slice);
      if (going) top_up(flow, window, now);
    }
    now = now_ns();
    if (now >= end || now - checked < CHECK_MS * MS) continue;
    lost += revive(flows, count, window, now);
    checked = now;
  }
  lost += in_flight(flows, count);
  for (int i = 0; i < count; i++) flows[i].in_flight = 0;
  printf("%ld %ld\n", trips, lost);
  fflush(stdout);
}

static int load(int port, int count, int window, int bytes) {
  struct flow *flows = calloc(count, sizeof *flows);
  struct sockaddr_in address = loopback(port);
  int epoll = epoll_create1(0);
  char line[64];
  prepare(&inbox, ROOM, 0);
  prepare(&outbox, bytes, 0);
  for (int i = 0; i < count; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
    flows[i].fd = open_socket(SOCK_NONBLOCK);
    if (connect(flows[i].fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    epoll_ctl(epoll, EPOLL_CTL_ADD, flows[i].fd, &event);
  }
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    run_slice(epoll, flows, count, window, atoll(line) * MS);
  }
  return 0;
}

int main(int count, char **words) {
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody is left to stop us once the bench is gone */
  if (count == 2 && strcmp(words[1], "echo") == 0) echo();
  if (count == 6 && strcmp(words[1], "load") == 0) {
    return load(atoi(words[2]), atoi(words[3]), atoi(words[4]), atoi(words[5]));
  }
  fprintf(stderr, "usage: peers echo | peers load PORT FLOWS WINDOW BYTES\n");
  return 2;
}
