// functions: fd_readdir
// Listings in buffers of any size, cookies that hold while the directory changes.
#include "expect.h"

#define FILES 60

struct entry {
    __wasi_dirent_t head;
    char name[256];
};

/* One entry after a cookie; false at the end. */
static bool next(__wasi_fd_t fd, __wasi_dircookie_t cookie, struct entry *entry) {
    static uint8_t buffer[sizeof(__wasi_dirent_t) + 256];
    __wasi_size_t used;
    OK(__wasi_fd_readdir(fd, buffer, sizeof buffer, cookie, &used));
    if (used < sizeof(__wasi_dirent_t)) return false;
    memcpy(&entry->head, buffer, sizeof entry->head);
    CHECK(used >= sizeof(__wasi_dirent_t) + entry->head.d_namlen);
    memcpy(entry->name, buffer + sizeof(__wasi_dirent_t), entry->head.d_namlen);
    entry->name[entry->head.d_namlen] = 0;
    return true;
}

static void name_of(int number, char *name) {
    strcpy(name, "file-00");
    name[5] += number / 10;
    name[6] += number % 10;
}

int main(void) {
    OK(__wasi_path_create_directory(CWD, "d"));
    OK(__wasi_path_create_directory(CWD, "d/sub"));
    OK(__wasi_path_symlink("nowhere", CWD, "d/link"));
    char path[32] = "d/", *name = path + 2;
    for (int i = 0; i < FILES; i++) {
        name_of(i, name);
        make_file(path, "");
    }
    __wasi_fd_t fd = open_with("d", __WASI_OFLAGS_DIRECTORY, DIRECTORY_RIGHTS);

    // While it is listed, every second file is removed and others are added.
    int seen[FILES] = {0}, others = 0;
    struct entry entry;
    __wasi_dircookie_t cookie = __WASI_DIRCOOKIE_START;
    for (int turn = 0; next(fd, cookie, &entry); turn++) {
        CHECK(turn < 200);
        cookie = entry.head.d_next;
        __wasi_filestat_t stat;
        OK(__wasi_path_filestat_get(fd, 0, same(entry.name, "..") ? "." : entry.name, &stat));
        if (!same(entry.name, "..")) {
            CHECK(stat.ino == entry.head.d_ino);
            CHECK(stat.filetype == entry.head.d_type);
        }
        if (!strncmp(entry.name, "file-", 5)) {
            int number = (entry.name[5] - '0') * 10 + entry.name[6] - '0';
            seen[number]++;
            if (number + 1 < FILES && number % 2 == 0) {
                name_of(number + 1, name);
                OK(__wasi_path_unlink_file(CWD, path));
            }
        } else {
            others++;
        }
    }
    CHECK(others == 4);  // . .. sub link
    for (int i = 0; i < FILES; i++) CHECK(seen[i] == (i % 2 == 0));

    // A cookie leads to the same place again.
    struct entry first, again;
    CHECK(next(fd, 0, &first) && next(fd, first.head.d_next, &entry));
    CHECK(next(fd, first.head.d_next, &again) && same(entry.name, again.name));
    CHECK(!next(fd, cookie, &entry) && !next(fd, UINT64_MAX, &entry));

    // A buffer is filled to its end, with a cut entry if need be.
    uint8_t small[70];
    __wasi_size_t used;
    for (__wasi_size_t size = 0; size <= sizeof small; size++) {
        OK(__wasi_fd_readdir(fd, small, size, 0, &used));
        CHECK(used == size);
    }
    static uint8_t whole[8192];
    OK(__wasi_fd_readdir(fd, whole, sizeof whole, 0, &used));
    CHECK(used < sizeof whole);
    CHECK(!memcmp(whole, small, sizeof small));

    __wasi_fd_t file = open_with("d/file-00", 0, READ_RIGHTS);
    FAILS(NOTDIR, __wasi_fd_readdir(file, whole, sizeof whole, 0, &used));
    FAILS(BADF, __wasi_fd_readdir(1000, whole, sizeof whole, 0, &used));
    return 0;
}
