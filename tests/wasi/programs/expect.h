/* What the test programs share: they check one behaviour each and say where it failed.

   A program ends with 0 if all is as expected. It starts with the names of the functions
   that it is the test of, in a comment that test_programs.py reads. */

#ifndef EXPECT_H
#define EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wasi/api.h>

/* The directory that programs are started in is descriptor 3, the root is 4. */
#define CWD 3
#define ROOT 4

#define FOLLOW __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW
#define ALL_RIGHTS (((uint64_t)1 << 30) - 1)
#define READ_RIGHTS \
    (__WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_READDIR | __WASI_RIGHTS_FD_SEEK | \
     __WASI_RIGHTS_FD_TELL | __WASI_RIGHTS_FD_FILESTAT_GET | __WASI_RIGHTS_FD_ADVISE | \
     __WASI_RIGHTS_FD_FILESTAT_SET_TIMES | __WASI_RIGHTS_FD_FDSTAT_SET_FLAGS | \
     __WASI_RIGHTS_POLL_FD_READWRITE | __WASI_RIGHTS_FD_SYNC | __WASI_RIGHTS_FD_DATASYNC)
#define WRITE_RIGHTS \
    (READ_RIGHTS | __WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_ALLOCATE | \
     __WASI_RIGHTS_FD_FILESTAT_SET_SIZE)

#define DIRECTORY_RIGHTS \
    (ALL_RIGHTS & ~(__WASI_RIGHTS_FD_WRITE | __WASI_RIGHTS_FD_ALLOCATE | \
                    __WASI_RIGHTS_FD_FILESTAT_SET_SIZE))

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition, -1))
#define OK(call) expect(__FILE__, __LINE__, #call, (call), __WASI_ERRNO_SUCCESS)
#define FAILS(name, call) expect(__FILE__, __LINE__, #call, (call), __WASI_ERRNO_##name)

static void write_all(__wasi_fd_t fd, const void *data, size_t size) {
    const uint8_t *next = data;
    while (size) {
        __wasi_ciovec_t vector = {next, size};
        __wasi_size_t done = 0;
        if (__wasi_fd_write(fd, &vector, 1, &done)) __builtin_trap();
        next += done;
        size -= done;
    }
}

static void say_on(__wasi_fd_t fd, const char *text) { write_all(fd, text, strlen(text)); }

__attribute__((unused)) static void say(const char *text) { say_on(1, text); }

static void say_number_on(__wasi_fd_t fd, int64_t number) {
    char digits[24];
    int at = sizeof digits;
    bool negative = number < 0;
    uint64_t left = negative ? -(uint64_t)number : (uint64_t)number;
    do digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (negative) digits[--at] = '-';
    write_all(fd, digits + at, sizeof digits - (size_t)at);
}

_Noreturn static void fail(const char *file, int line, const char *text, int number) {
    say_on(2, file);
    say_on(2, ":");
    say_number_on(2, line);
    say_on(2, ": ");
    say_on(2, text);
    if (number >= 0) {
        say_on(2, " gave errno ");
        say_number_on(2, number);
    }
    say_on(2, "\n");
    __wasi_proc_exit(1);
}

static void expect(const char *file, int line, const char *text, int got, int wanted) {
    if (got != wanted) fail(file, line, text, got);
}

/* Open beneath the working directory. */
__attribute__((unused)) static __wasi_fd_t open_with(
    const char *path, __wasi_oflags_t flags, uint64_t rights) {
    __wasi_fd_t fd = 0;
    OK(__wasi_path_open(CWD, FOLLOW, path, flags, rights, ALL_RIGHTS, 0, &fd));
    return fd;
}

__attribute__((unused)) static void make_file(const char *path, const char *content) {
    __wasi_fd_t fd = open_with(path, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC, WRITE_RIGHTS);
    say_on(fd, content);
    OK(__wasi_fd_close(fd));
}

/* The content of a file, which is short. */
__attribute__((unused)) static const char *content_of(const char *path) {
    static char text[4096];
    __wasi_fd_t fd = open_with(path, 0, READ_RIGHTS);
    __wasi_iovec_t vector = {(uint8_t *)text, sizeof text - 1};
    __wasi_size_t size = 0;
    OK(__wasi_fd_read(fd, &vector, 1, &size));
    text[size] = 0;
    OK(__wasi_fd_close(fd));
    return text;
}

__attribute__((unused)) static bool same(const char *one, const char *other) {
    return strcmp(one, other) == 0;
}

#endif
