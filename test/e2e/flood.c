/*
 * Many sources, each with one datagram: every address of 127.128.0.0/9 is ours, and IP_PKTINFO lets one ordinary socket
 * send from any of them. In C, so that the flood costs less than the proxy that it floods.
 *
 *   flood PORT SOURCES RATE   sends to 127.0.0.1:PORT, RATE a second; prints "sent COUNT in MS ms"
 *
 *   flood echo                answers every datagram; prints "listening PORT"
 *
 * What it cannot send in time it sends later, never in one burst: a machine that is too slow makes the flood longer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

enum { BURST = 40, PAYLOAD = 64 };

static int64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static void send_from(int fd, uint32_t source, struct sockaddr_in *to) {
  char payload[PAYLOAD] = "flood", control[CMSG_SPACE(sizeof(struct in_pktinfo))] = {0};
  struct iovec part = {.iov_base = payload, .iov_len = sizeof payload};
  struct msghdr message = {.msg_name = to, .msg_namelen = sizeof *to, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  struct in_pktinfo from = {.ipi_spec_dst.s_addr = htonl(source)};
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof from);
  memcpy(CMSG_DATA(header), &from, sizeof from);
  if (sendmsg(fd, &message, 0) < 0) {
    perror("sendmsg");
    exit(1);
  }
}

static int echo(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (bind(fd, (struct sockaddr *)&address, length) < 0) return 1;
  getsockname(fd, (struct sockaddr *)&address, &length);
  printf("listening %d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (char payload[2048];;) {
    ssize_t bytes = recvfrom(fd, payload, sizeof payload, 0, (struct sockaddr *)&address, &length);
    if (bytes >= 0) sendto(fd, payload, bytes, 0, (struct sockaddr *)&address, length);
  }
}

int main(int count, char **words) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (count == 2) return echo();
  if (count != 4) return 2;
  int64_t sources = atoll(words[2]), rate = atoll(words[3]);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  int64_t start = now_us(), sent = 0;
  while (sent < sources) {
    int64_t due = (now_us() - start) * rate / 1000000 + 1;
    for (int burst = 0; sent < due && sent < sources && burst < BURST; burst++, sent++) {
      /* An odd factor visits every address of the block once, far from the one before. */
      send_from(fd, 0x7f800000 | ((uint32_t)sent * 0x9e3779b1u & 0x7fffff), &to);
    }
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
  printf("sent %lld in %lld ms\n", (long long)sent, (long long)(now_us() - start) / 1000);
  return 0;
}
