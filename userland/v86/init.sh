#!/bin/busybox sh
# The first program of the machine: mounts its disks and starts the agent as process 1.
# Rules: it runs once, when the machine is built; nothing of it is left in the saved machine.
busybox mkdir -p /proc /sys /dev /lower /scratch /new
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do
    busybox insmod "/modules/$module" || echo "init: $module cannot be loaded"
done < /modules/order
tries=0
while [ ! -b /dev/sdb ] && [ "$tries" -lt 100 ]; do busybox sleep 0.1; tries=$((tries + 1)); done
busybox mount -t ext4 -o noatime /dev/sda /lower || exec busybox sh
# Python compiles what it imports. Users may not write there, so it is done now.
busybox chroot /lower /usr/bin/python3 -c 'import argparse, ast, base64, bisect, calendar, collections, contextlib, copy, csv, dataclasses, datetime, decimal, difflib, email, enum, fractions, functools, glob, gzip, hashlib, heapq, html, http.client, inspect, io, itertools, json, logging, math, operator, os, pathlib, pickle, platform, pprint, queue, random, re, select, shlex, shutil, signal, socket, sqlite3, statistics, string, struct, subprocess, sys, tarfile, tempfile, textwrap, threading, time, traceback, typing, unicodedata, unittest, urllib.request, uuid, xml.etree.ElementTree, zipfile'
busybox mount -o remount,ro /lower
busybox mount -t ext4 -o noatime,nodiscard /dev/sdb /scratch || exec busybox sh
busybox mkdir -p /scratch/upper /scratch/work
busybox mount -t overlay -o lowerdir=/lower,upperdir=/scratch/upper,workdir=/scratch/work,metacopy=off,redirect_dir=off,index=off overlay /new
busybox mount -t proc -o nosuid,nodev,noexec proc /new/proc
busybox mount -t sysfs -o nosuid,nodev,noexec sysfs /new/sys
busybox mount -t devtmpfs devtmpfs /new/dev
busybox mkdir -p /new/dev/pts /new/dev/shm
busybox mount -t devpts -o mode=620,ptmxmode=666 devpts /new/dev/pts
busybox mount -t tmpfs -o mode=1777,size=64m tmpfs /new/dev/shm
busybox mount -t tmpfs -o mode=755,size=8m tmpfs /new/run
busybox mkdir -m 700 -p /new/run/host /new/run/scratch
busybox mount --move /scratch /new/run/scratch
busybox mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
busybox ln -sf /proc/self/fd /new/dev/fd
busybox ln -sf /proc/self/fd/0 /new/dev/stdin
busybox ln -sf /proc/self/fd/1 /new/dev/stdout
busybox ln -sf /proc/self/fd/2 /new/dev/stderr
echo '+memory +pids' > /new/sys/fs/cgroup/cgroup.subtree_control
busybox mkdir /new/sys/fs/cgroup/box
echo '+memory +pids' > /new/sys/fs/cgroup/box/cgroup.subtree_control
busybox ip link set lo up
busybox hostname sandbox
busybox stty -F /dev/ttyS0 raw -echo
# Read the programs that nearly every command needs, so that they are in the saved memory.
busybox chroot /new /bin/bash -c 'ls / | cat | sort | head -c 1 | wc -c; grep -c x /etc/passwd; sed -n 1p /etc/passwd; cp /etc/passwd /tmp/warm; rm /tmp/warm' > /dev/null
busybox sync
exec busybox switch_root /new /usr/lib/wasmsand/agent
