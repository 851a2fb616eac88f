// functions: path_open
// The flags of path_open, and what each kind of file says to them.
#include "expect.h"

static __wasi_errno_t try_open(
    const char *path, __wasi_lookupflags_t lookup, __wasi_oflags_t flags, uint64_t rights,
    __wasi_fd_t *fd) {
    return __wasi_path_open(CWD, lookup, path, flags, rights, 0, 0, fd);
}

int main(void) {
    const __wasi_oflags_t create = __WASI_OFLAGS_CREAT, exclusive = __WASI_OFLAGS_EXCL,
                          truncate = __WASI_OFLAGS_TRUNC, directory = __WASI_OFLAGS_DIRECTORY;
    __wasi_fd_t fd;
    FAILS(NOENT, try_open("f", 0, 0, READ_RIGHTS, &fd));
    OK(try_open("f", 0, create | exclusive, WRITE_RIGHTS, &fd));
    say_on(fd, "content");
    FAILS(EXIST, try_open("f", 0, create | exclusive, WRITE_RIGHTS, &fd));
    OK(try_open("f", 0, create, READ_RIGHTS, &fd));
    CHECK(same(content_of("f"), "content"));
    OK(try_open("f", 0, truncate, WRITE_RIGHTS, &fd));
    CHECK(same(content_of("f"), ""));
    FAILS(NOTDIR, try_open("f", 0, directory, READ_RIGHTS, &fd));
    FAILS(NOTDIR, try_open("f/", 0, 0, READ_RIGHTS, &fd));
    FAILS(NOTDIR, try_open("f/x", 0, create, READ_RIGHTS, &fd));
    FAILS(NOENT, try_open("", 0, 0, READ_RIGHTS, &fd));

    OK(__wasi_path_create_directory(CWD, "d"));
    OK(try_open("d", 0, directory, READ_RIGHTS, &fd));
    OK(try_open("d/", 0, 0, READ_RIGHTS, &fd));
    FAILS(ISDIR, try_open("d", 0, 0, WRITE_RIGHTS, &fd));
    FAILS(ISDIR, try_open("d", 0, create, READ_RIGHTS, &fd));
    FAILS(INVAL, try_open("new", 0, create | directory, READ_RIGHTS, &fd));

    OK(__wasi_path_symlink("f", CWD, "link"));
    OK(__wasi_path_symlink("nowhere", CWD, "dangling"));
    OK(__wasi_path_symlink("loop", CWD, "loop"));
    FAILS(LOOP, try_open("link", 0, 0, READ_RIGHTS, &fd));
    OK(try_open("link", FOLLOW, 0, READ_RIGHTS, &fd));
    FAILS(LOOP, try_open("loop", FOLLOW, 0, READ_RIGHTS, &fd));
    FAILS(NOENT, try_open("dangling", FOLLOW, 0, READ_RIGHTS, &fd));
    FAILS(EXIST, try_open("dangling", FOLLOW, create | exclusive, WRITE_RIGHTS, &fd));
    OK(try_open("dangling", FOLLOW, create, WRITE_RIGHTS, &fd));
    CHECK(same(content_of("nowhere"), ""));

    FAILS(INVAL, try_open("f", 2, 0, READ_RIGHTS, &fd));
    FAILS(INVAL, try_open("f", 0, 16, READ_RIGHTS, &fd));
    FAILS(INVAL, __wasi_path_open(CWD, 0, "f", 0, READ_RIGHTS, 0, 32, &fd));
    FAILS(NOTDIR, __wasi_path_open(1, 0, "f", 0, READ_RIGHTS, 0, 0, &fd));
    FAILS(BADF, __wasi_path_open(1000, 0, "f", 0, READ_RIGHTS, 0, 0, &fd));

    static char path[5000];
    memset(path, 'x', 300);
    FAILS(NAMETOOLONG, try_open(path, 0, 0, READ_RIGHTS, &fd));
    memset(path, '.', sizeof path - 1);
    for (size_t i = 1; i < sizeof path - 1; i += 2) path[i] = '/';
    FAILS(NAMETOOLONG, try_open(path, 0, 0, READ_RIGHTS, &fd));
    // A file of root's that everybody may read.
    OK(__wasi_path_open(ROOT, FOLLOW, "etc/passwd", 0, READ_RIGHTS, 0, 0, &fd));
    FAILS(ACCES, __wasi_path_open(ROOT, FOLLOW, "etc/passwd", 0, WRITE_RIGHTS, 0, 0, &fd));
    FAILS(ACCES, __wasi_path_open(ROOT, FOLLOW, "root/x", 0, READ_RIGHTS, 0, 0, &fd));

    // As many as there may be, and no host trouble after that.
    int opened = 0;
    __wasi_errno_t error;
    while (!(error = try_open("f", 0, 0, READ_RIGHTS, &fd))) opened++;
    CHECK(error == __WASI_ERRNO_MFILE && opened > 100);
    FAILS(MFILE, try_open("never", 0, create, WRITE_RIGHTS, &fd));
    OK(__wasi_fd_close(fd));
    FAILS(NOENT, try_open("never", 0, 0, READ_RIGHTS, &fd));
    return 0;
}
