#!/bin/sh
# ping, traceroute and the like: there is nothing that they could use, so say what works instead.
name=${0##*/}
echo "$name: the sandbox has no ICMP, so hosts cannot be pinged or traced; to see whether a host" \
	"and port can be reached, use: nc -zv HOST PORT, or curl -v URL" >&2
exit 2
