// functions: fd_fdstat_set_rights
// Rights can be given up, never gained; what is missing is ENOTCAPABLE.
#include "expect.h"

static __wasi_fdstat_t stat_of(__wasi_fd_t fd) {
    __wasi_fdstat_t stat;
    OK(__wasi_fd_fdstat_get(fd, &stat));
    return stat;
}

int main(void) {
    make_file("f", "content");
    OK(__wasi_path_create_directory(CWD, "d"));
    uint8_t byte;
    __wasi_iovec_t in = {&byte, 1};
    __wasi_ciovec_t out = {&byte, 1};
    __wasi_size_t size;
    __wasi_filesize_t at;
    __wasi_filestat_t status;

    // Only rights that mean something for a file are kept.
    __wasi_fd_t fd = open_with("f", 0, ALL_RIGHTS);
    CHECK(stat_of(fd).fs_rights_base == (WRITE_RIGHTS & ~__WASI_RIGHTS_FD_READDIR));
    CHECK(stat_of(fd).fs_rights_inheriting == 0);
    OK(__wasi_fd_fdstat_set_rights(fd, __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_TELL, 0));
    OK(__wasi_fd_read(fd, &in, 1, &size));
    OK(__wasi_fd_tell(fd, &at));
    OK(__wasi_fd_seek(fd, 0, __WASI_WHENCE_CUR, &at));
    FAILS(NOTCAPABLE, __wasi_fd_seek(fd, 0, __WASI_WHENCE_SET, &at));
    FAILS(NOTCAPABLE, __wasi_fd_pread(fd, &in, 1, 0, &size));
    FAILS(NOTCAPABLE, __wasi_fd_write(fd, &out, 1, &size));
    FAILS(NOTCAPABLE, __wasi_fd_filestat_get(fd, &status));
    FAILS(NOTCAPABLE, __wasi_fd_filestat_set_size(fd, 0));
    FAILS(NOTCAPABLE, __wasi_fd_filestat_set_times(fd, 0, 0, 0));
    FAILS(NOTCAPABLE, __wasi_fd_fdstat_set_flags(fd, 0));
    FAILS(NOTCAPABLE, __wasi_fd_sync(fd));
    FAILS(NOTCAPABLE, __wasi_fd_datasync(fd));
    FAILS(NOTCAPABLE, __wasi_fd_advise(fd, 0, 0, 0));
    FAILS(NOTCAPABLE, __wasi_fd_allocate(fd, 0, 1));
    FAILS(NOTCAPABLE, __wasi_fd_fdstat_set_rights(fd, __WASI_RIGHTS_FD_WRITE, 0));
    FAILS(NOTCAPABLE, __wasi_fd_fdstat_set_rights(fd, 0, 1));
    OK(__wasi_fd_fdstat_set_rights(fd, 0, 0));
    FAILS(NOTCAPABLE, __wasi_fd_read(fd, &in, 1, &size));
    OK(__wasi_fd_close(fd));

    // A directory hands down no more than its inheriting rights.
    __wasi_fd_t directory = 0;
    OK(__wasi_path_open(CWD, 0, "d", __WASI_OFLAGS_DIRECTORY,
                        __WASI_RIGHTS_PATH_OPEN | __WASI_RIGHTS_PATH_CREATE_FILE,
                        __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE, 0, &directory));
    FAILS(NOTCAPABLE, __wasi_path_open(directory, 0, "x", __WASI_OFLAGS_CREAT,
                                       __WASI_RIGHTS_FD_SEEK, 0, 0, &fd));
    FAILS(NOTCAPABLE, __wasi_path_open(directory, 0, "x", __WASI_OFLAGS_CREAT,
                                       __WASI_RIGHTS_FD_READ, __WASI_RIGHTS_FD_SEEK, 0, &fd));
    FAILS(NOTCAPABLE, __wasi_path_open(directory, 0, "x",
                                       __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC,
                                       __WASI_RIGHTS_FD_WRITE, 0, 0, &fd));
    FAILS(NOTCAPABLE, __wasi_path_open(directory, 0, "x", __WASI_OFLAGS_CREAT,
                                       __WASI_RIGHTS_FD_WRITE, 0, __WASI_FDFLAGS_SYNC, &fd));
    OK(__wasi_path_open(directory, 0, "x", __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_WRITE, 0, 0, &fd));
    CHECK(stat_of(fd).fs_rights_base == __WASI_RIGHTS_FD_WRITE);
    FAILS(NOTCAPABLE, __wasi_fd_read(fd, &in, 1, &size));
    OK(__wasi_fd_write(fd, &out, 1, &size));

    // Every path function needs a right of its own.
    FAILS(NOTCAPABLE, __wasi_path_create_directory(directory, "y"));
    FAILS(NOTCAPABLE, __wasi_path_filestat_get(directory, 0, "x", &status));
    FAILS(NOTCAPABLE, __wasi_path_filestat_set_times(directory, 0, "x", 0, 0, 0));
    FAILS(NOTCAPABLE, __wasi_path_link(directory, 0, "x", CWD, "y"));
    FAILS(NOTCAPABLE, __wasi_path_link(CWD, 0, "f", directory, "y"));
    FAILS(NOTCAPABLE, __wasi_path_readlink(directory, "x", &byte, 1, &size));
    FAILS(NOTCAPABLE, __wasi_path_remove_directory(directory, "x"));
    FAILS(NOTCAPABLE, __wasi_path_rename(directory, "x", CWD, "y"));
    FAILS(NOTCAPABLE, __wasi_path_rename(CWD, "f", directory, "y"));
    FAILS(NOTCAPABLE, __wasi_path_symlink("x", directory, "y"));
    FAILS(NOTCAPABLE, __wasi_path_unlink_file(directory, "x"));
    FAILS(NOTCAPABLE, __wasi_fd_readdir(directory, &byte, 1, 0, &size));

    // Bits that are no rights are nobody's.
    OK(__wasi_path_open(CWD, 0, "f", 0, ~(uint64_t)0, ~(uint64_t)0, 0, &fd));
    CHECK(stat_of(fd).fs_rights_base == (WRITE_RIGHTS & ~__WASI_RIGHTS_FD_READDIR));
    return 0;
}
