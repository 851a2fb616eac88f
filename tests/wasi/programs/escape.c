// functions: path_open
// Nothing above a directory can be reached from it; everything below can, by any detour.
#include "expect.h"

static const char *const outside[] = {
    "..",     "../",   "../work/f", "d/../..", "d/../../work/f", "/etc/passwd", "/",
    "up/etc", "up",    "root",      "root/etc/passwd",           "d/deep/up/f",
};

int main(void) {
    make_file("f", "inside");
    OK(__wasi_path_create_directory(CWD, "d"));
    OK(__wasi_path_create_directory(CWD, "d/deep"));
    make_file("d/f", "inside too");
    OK(__wasi_path_symlink("../", CWD, "up"));
    OK(__wasi_path_symlink("../../..", CWD, "d/deep/up"));
    OK(__wasi_path_symlink("../f", CWD, "d/back"));
    FAILS(NOTCAPABLE, __wasi_path_symlink("/", CWD, "root"));
    // An absolute link can be made where it can be followed: from the root.
    OK(__wasi_path_symlink("/", ROOT, "home/user/work/root"));
    __wasi_fd_t fd;
    OK(__wasi_path_open(ROOT, FOLLOW, "home/user/work/root/etc/passwd", 0, READ_RIGHTS, 0, 0, &fd));

    __wasi_filestat_t stat;
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        const char *path = outside[i];
        FAILS(NOTCAPABLE, __wasi_path_open(CWD, FOLLOW, path, 0, READ_RIGHTS, 0, 0, &fd));
        FAILS(NOTCAPABLE, __wasi_path_open(CWD, FOLLOW, path, __WASI_OFLAGS_CREAT, WRITE_RIGHTS, 0,
                                           0, &fd));
        FAILS(NOTCAPABLE, __wasi_path_filestat_get(CWD, FOLLOW, path, &stat));
        FAILS(NOTCAPABLE, __wasi_path_filestat_set_times(CWD, FOLLOW, path, 0, 0,
                                                         __WASI_FSTFLAGS_ATIM_NOW));
        FAILS(NOTCAPABLE, __wasi_path_link(CWD, FOLLOW, path, CWD, "new"));
    }
    FAILS(NOTCAPABLE, __wasi_path_create_directory(CWD, "../new"));
    FAILS(NOTCAPABLE, __wasi_path_rename(CWD, "f", CWD, "../f"));
    FAILS(NOTCAPABLE, __wasi_path_rename(CWD, "../f", CWD, "f"));
    FAILS(NOTCAPABLE, __wasi_path_unlink_file(CWD, "up/work/f"));
    FAILS(NOTCAPABLE, __wasi_path_remove_directory(CWD, "../work/d"));
    FAILS(NOTCAPABLE, __wasi_path_symlink("x", CWD, "../new"));

    const char *const inside[] = {"f", "./f", "d/../f", "d/back", "d/deep/../../f", "d/deep/../back"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        CHECK(same(content_of(inside[i]), "inside"));
    // A directory that was opened confines as a preopen does.
    OK(__wasi_path_open(CWD, 0, "d", __WASI_OFLAGS_DIRECTORY, DIRECTORY_RIGHTS,
                        ALL_RIGHTS, 0, &fd));
    __wasi_fd_t other;
    OK(__wasi_path_open(fd, FOLLOW, "f", 0, READ_RIGHTS, 0, 0, &other));
    FAILS(NOTCAPABLE, __wasi_path_open(fd, FOLLOW, "../f", 0, READ_RIGHTS, 0, 0, &other));
    FAILS(NOTCAPABLE, __wasi_path_open(fd, FOLLOW, "back", 0, READ_RIGHTS, 0, 0, &other));
    return 0;
}
