/* Named semaphores for multiprocessing, as FIFOs: processes share no memory here.
 *
 * Each byte in the FIFO is one unit: to wait is to read a byte, to post is to write one. What
 * processes have in a file that they map is exchanged then, since a semaphore is what guards it. A
 * FIFO is empty again when the last process has closed it, as multiprocessing never does with
 * a semaphore that is in use. A semaphore's handle is its descriptor plus one. */
#ifndef FIFO_SEMAPHORE_H
#define FIFO_SEMAPHORE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As many as a FIFO holds with room to spare. */
#undef SEM_VALUE_MAX
#define SEM_VALUE_MAX 32767

static inline int
fifo_descriptor(sem_t *semaphore)
{
    return (int)(intptr_t)semaphore - 1;
}

static inline int
fifo_path(char *path, size_t size, const char *name)
{
    while (*name == '/') name++;
    if (*name && !strchr(name, '/') && snprintf(path, size, "/dev/shm/sem.%s", name) < (int)size) {
        return 0;
    }
    errno = EINVAL;
    return -1;
}

static inline int
fifo_fill(int fd, unsigned value)
{
    static const char units[1024];
    while (value) {
        ssize_t written = write(fd, units, value < sizeof units ? value : sizeof units);
        if (written < 0) return -1;
        value -= (unsigned)written;
    }
    return 0;
}

static inline sem_t *
fifo_open(const char *name, int flags, ...)
{
    char path[NAME_MAX];
    unsigned value = 0;
    int fresh = 0;
    if (fifo_path(path, sizeof path, name) < 0) return SEM_FAILED;
    if (flags & O_CREAT) {
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = va_arg(arguments, mode_t);
        value = va_arg(arguments, unsigned);
        va_end(arguments);
        if (value > SEM_VALUE_MAX) {
            errno = EINVAL;
            return SEM_FAILED;
        }
        fresh = mkfifo(path, mode) == 0;
        if (!fresh && (errno != EEXIST || flags & O_EXCL)) return SEM_FAILED;
    }
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return SEM_FAILED;
    if (fresh && fifo_fill(fd, value) < 0) {
        close(fd);
        unlink(path);
        errno = ENOSPC;
        return SEM_FAILED;
    }
    return (sem_t *)(intptr_t)(fd + 1);
}

/* Publishes what this process has changed in mapped files, and reads what others have. */
static inline void
fifo_exchange(void)
{
    msync(NULL, SIZE_MAX, MS_SYNC);
}

static inline int
fifo_trywait(sem_t *semaphore)
{
    char unit;
    if (read(fifo_descriptor(semaphore), &unit, 1) != 1) return -1;
    fifo_exchange();
    return 0;
}

/* The milliseconds until `deadline`, at most a minute, rounded up; -1 for no deadline. */
static inline int
fifo_patience(const struct timespec *deadline)
{
    struct timespec now;
    if (!deadline) return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    long long left = (long long)(deadline->tv_sec - now.tv_sec) * 1000
                     + (deadline->tv_nsec - now.tv_nsec + 999999) / 1000000;
    return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static inline int
fifo_timedwait(sem_t *semaphore, const struct timespec *deadline)
{
    while (fifo_trywait(semaphore) < 0) {
        if (errno != EAGAIN) return -1;
        struct pollfd waiting = {.fd = fifo_descriptor(semaphore), .events = POLLIN};
        int patience = fifo_patience(deadline);
        if (patience == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (poll(&waiting, 1, patience) < 0) return -1;
    }
    return 0;
}

static inline int
fifo_wait(sem_t *semaphore)
{
    return fifo_timedwait(semaphore, NULL);
}

static inline int
fifo_post(sem_t *semaphore)
{
    fifo_exchange();
    if (fifo_fill(fifo_descriptor(semaphore), 1) == 0) return 0;
    if (errno == EAGAIN) errno = EOVERFLOW;
    return -1;
}

static inline int
fifo_getvalue(sem_t *semaphore, int *value)
{
    return ioctl(fifo_descriptor(semaphore), FIONREAD, value);
}

static inline int
fifo_close(sem_t *semaphore)
{
    return close(fifo_descriptor(semaphore));
}

static inline int
fifo_unlink(const char *name)
{
    char path[NAME_MAX];
    return fifo_path(path, sizeof path, name) < 0 ? -1 : unlink(path);
}

#define sem_open fifo_open
#define sem_wait fifo_wait
#define sem_trywait fifo_trywait
#define sem_timedwait fifo_timedwait
#define sem_post fifo_post
#define sem_getvalue fifo_getvalue
#define sem_close fifo_close
#define sem_unlink fifo_unlink

#endif
