// functions: fd_prestat_get fd_prestat_dir_name
// The directories that a program starts with, and their order.
#include "expect.h"

int main(void) {
    __wasi_prestat_t prestat;
    char name[256];
    __wasi_fd_t fd = 3;
    for (;; fd++) {
        __wasi_errno_t error = __wasi_fd_prestat_get(fd, &prestat);
        if (error == __WASI_ERRNO_BADF) break;
        CHECK(error == 0);
        CHECK(prestat.tag == __WASI_PREOPENTYPE_DIR);
        CHECK(prestat.u.dir.pr_name_len < sizeof name);
        FAILS(NAMETOOLONG,
              __wasi_fd_prestat_dir_name(fd, (uint8_t *)name, prestat.u.dir.pr_name_len - 1));
        OK(__wasi_fd_prestat_dir_name(fd, (uint8_t *)name, prestat.u.dir.pr_name_len));
        name[prestat.u.dir.pr_name_len] = 0;
        say(name);
        say("\n");
        __wasi_fdstat_t stat;
        OK(__wasi_fd_fdstat_get(fd, &stat));
        CHECK(stat.fs_filetype == __WASI_FILETYPE_DIRECTORY);
        CHECK(stat.fs_rights_inheriting == ALL_RIGHTS);
        CHECK(stat.fs_rights_base & __WASI_RIGHTS_PATH_OPEN);
        CHECK(!(stat.fs_rights_base & (__WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE)));
    }
    // What is open but no preopen ends the list too, as libcs expect.
    FAILS(BADF, __wasi_fd_prestat_get(0, &prestat));
    __wasi_fd_t opened = open_with(".", __WASI_OFLAGS_DIRECTORY, READ_RIGHTS);
    CHECK(opened == fd);
    FAILS(BADF, __wasi_fd_prestat_get(opened, &prestat));
    FAILS(BADF, __wasi_fd_prestat_dir_name(opened, (uint8_t *)name, sizeof name));
    return 0;
}
