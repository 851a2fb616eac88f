/*
 * What OpenBSD's C library has and musl lacks, as far as netcat uses it; included before every
 * file. nc.c has the functions.
 */
#ifndef NETCAT_OPENBSD_H
#define NETCAT_OPENBSD_H

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define main netcat_main

/* There are no promises to make here: the sandbox limits the process. */
#define pledge(promises, execpromises) 0
#define unveil(path, permissions) 0

/* No routing tables, and no addresses but one's own. */
#define RT_TABLEID_MAX 0
#define setrtable(table) (errno = EOPNOTSUPP, -1)
#define SO_BINDANY SO_REUSEADDR
#define IPV6_MINHOPCOUNT 73

/* The class selectors of RFC 2474, and RFC 5865. */
#define IPTOS_DSCP_CS0 0x00
#define IPTOS_DSCP_CS1 0x20
#define IPTOS_DSCP_CS2 0x40
#define IPTOS_DSCP_CS3 0x60
#define IPTOS_DSCP_CS4 0x80
#define IPTOS_DSCP_CS5 0xa0
#define IPTOS_DSCP_CS6 0xc0
#define IPTOS_DSCP_CS7 0xe0
#define IPTOS_DSCP_VA 0xb0

uint32_t arc4random_uniform(uint32_t bound);
int b64_ntop(const unsigned char *data, size_t size, char *text, size_t room);
long long strtonum(const char *text, long long least, long long most, const char **problem);

#endif
