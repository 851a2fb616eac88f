// functions: path_create_directory path_remove_directory path_rename path_unlink_file
// Making, moving and removing names.
#include "expect.h"

static bool exists(const char *path) {
    __wasi_filestat_t stat;
    return __wasi_path_filestat_get(CWD, 0, path, &stat) == 0;
}

int main(void) {
    OK(__wasi_path_create_directory(CWD, "d"));
    OK(__wasi_path_create_directory(CWD, "d/e/"));
    FAILS(EXIST, __wasi_path_create_directory(CWD, "d"));
    FAILS(NOENT, __wasi_path_create_directory(CWD, "missing/d"));
    make_file("f", "f");
    make_file("g", "g");
    FAILS(NOTDIR, __wasi_path_create_directory(CWD, "f/x"));

    OK(__wasi_path_rename(CWD, "f", CWD, "d/h"));
    CHECK(!exists("f") && same(content_of("d/h"), "f"));
    OK(__wasi_path_rename(CWD, "g", CWD, "d/h"));
    CHECK(!exists("g") && same(content_of("d/h"), "g"));
    FAILS(INVAL, __wasi_path_rename(CWD, "d", CWD, "d/e/d"));
    FAILS(ISDIR, __wasi_path_rename(CWD, "d/h", CWD, "d/e"));
    FAILS(NOTDIR, __wasi_path_rename(CWD, "d/e", CWD, "d/h"));
    FAILS(NOENT, __wasi_path_rename(CWD, "missing", CWD, "x"));
    __wasi_fd_t d = open_with("d", __WASI_OFLAGS_DIRECTORY, DIRECTORY_RIGHTS);
    OK(__wasi_path_rename(d, "h", CWD, "back"));
    CHECK(same(content_of("back"), "g"));

    FAILS(NOTDIR, __wasi_path_remove_directory(CWD, "back"));
    FAILS(NOTEMPTY, __wasi_path_remove_directory(CWD, "d"));
    FAILS(ISDIR, __wasi_path_unlink_file(CWD, "d"));
    FAILS(NOTDIR, __wasi_path_unlink_file(CWD, "back/"));
    FAILS(NOENT, __wasi_path_unlink_file(CWD, "missing"));
    OK(__wasi_path_unlink_file(CWD, "back"));
    OK(__wasi_path_remove_directory(CWD, "d/e/"));
    OK(__wasi_path_remove_directory(CWD, "d"));
    CHECK(!exists("back") && !exists("d"));
    FAILS(ACCES, __wasi_path_create_directory(ROOT, "etc/new"));
    FAILS(ACCES, __wasi_path_unlink_file(ROOT, "etc/passwd"));

    // An open file lives on without a name; a removed directory takes nothing new.
    make_file("gone", "still here");
    __wasi_fd_t fd = open_with("gone", 0, READ_RIGHTS);
    OK(__wasi_path_unlink_file(CWD, "gone"));
    char text[16] = {0};
    __wasi_iovec_t in = {(uint8_t *)text, sizeof text};
    __wasi_size_t size;
    OK(__wasi_fd_read(fd, &in, 1, &size));
    CHECK(same(text, "still here"));
    FAILS(NOENT, __wasi_path_create_directory(d, "x"));
    return 0;
}
