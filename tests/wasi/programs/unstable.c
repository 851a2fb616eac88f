// The predecessor `wasi_unstable`: other layouts of filestat and subscription, other origins.
#include <stdint.h>

#define IMPORT(name) __attribute__((import_module("wasi_unstable"), import_name(#name)))

typedef struct { const void *data; uint32_t size; } vector;
IMPORT(fd_write) uint32_t fd_write(uint32_t, const vector *, uint32_t, uint32_t *);
IMPORT(fd_read) uint32_t fd_read(uint32_t, const vector *, uint32_t, uint32_t *);
IMPORT(fd_seek) uint32_t fd_seek(uint32_t, int64_t, uint32_t, uint64_t *);
IMPORT(fd_filestat_get) uint32_t fd_filestat_get(uint32_t, void *);
IMPORT(path_filestat_get)
uint32_t path_filestat_get(uint32_t, uint32_t, const char *, uint32_t, void *);
IMPORT(path_open)
uint32_t path_open(uint32_t, uint32_t, const char *, uint32_t, uint32_t, uint64_t, uint64_t,
                   uint32_t, uint32_t *);
IMPORT(poll_oneoff) uint32_t poll_oneoff(const void *, void *, uint32_t, uint32_t *);
IMPORT(proc_exit) _Noreturn void proc_exit(uint32_t);

#define CHECK(condition) do { if (!(condition)) proc_exit(__LINE__ % 256); } while (0)

typedef struct {
    uint64_t dev, ino;
    uint8_t type;
    uint32_t links;
    uint64_t size, atim, mtim, ctim;
} filestat;

typedef struct {
    uint64_t userdata;
    uint8_t type;
    uint64_t identifier;
    uint32_t clock;
    uint64_t timeout, precision;
    uint16_t flags;
} clock_subscription;

typedef struct {
    uint64_t userdata;
    uint16_t error;
    uint8_t type;
    uint64_t bytes;
    uint16_t flags;
} event;

void _start(void) {
    _Static_assert(sizeof(filestat) == 56, "layout");
    _Static_assert(sizeof(clock_subscription) == 56, "layout");
    uint32_t fd, size;
    uint64_t at;
    CHECK(path_open(3, 0, "u", 1, 1, 0x3fffffff, 0, 0, &fd) == 0);
    vector out = {"0123456789", 10};
    CHECK(fd_write(fd, &out, 1, &size) == 0 && size == 10);
    CHECK(fd_seek(fd, -3, 1, &at) == 0 && at == 7);   // from the end
    CHECK(fd_seek(fd, -2, 0, &at) == 0 && at == 5);   // from here
    CHECK(fd_seek(fd, 2, 2, &at) == 0 && at == 2);    // from the start
    char text[4] = "";
    vector in = {text, 3};
    CHECK(fd_read(fd, &in, 1, &size) == 0 && text[0] == '2' && text[2] == '4');
    struct { filestat stat; uint64_t guard; } room = {.guard = 77};
    CHECK(fd_filestat_get(fd, &room.stat) == 0);
    CHECK(room.stat.size == 10 && room.stat.type == 4 && room.stat.links == 1 && room.guard == 77);
    CHECK(path_filestat_get(3, 0, "u", 1, &room.stat) == 0 && room.stat.size == 10);
    CHECK(room.guard == 77);
    clock_subscription wanted = {.userdata = 5, .identifier = 6, .clock = 1, .timeout = 1000000};
    event happened;
    CHECK(poll_oneoff(&wanted, &happened, 1, &size) == 0 && size == 1);
    CHECK(happened.userdata == 5 && happened.error == 0 && happened.type == 0);
    vector done = {"unstable ok\n", 12};
    fd_write(1, &done, 1, &size);
    proc_exit(0);
}
