/* Packets with file descriptors over a UNIX socket (SOCK_SEQPACKET). */
#pragma once

#include "base/err.h"

#include <stddef.h>

#define MR_TRANSPORT_FDS 2 /* limit of descriptors in one packet */

/* Fills in a struct sockaddr_un for the path. */
int mr_transport_address(const char *path, void *sockaddr_un, struct mr_error *e);
int mr_transport_send(int socket, const void *p, size_t n, const int *fds, size_t fds_count);
/* Receives one packet of exactly `n` bytes, without waiting. MR_EAGAIN: there is none. MR_EAWAY:
 * the peer has hung up. MR_EFORMAT: the packet has another size. The caller owns the descriptors in
 * `fds`, also after an error; -1: none. */
int mr_transport_receive(int socket, void *p, size_t n, int fds[MR_TRANSPORT_FDS]);
