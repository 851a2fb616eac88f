// functions: path_link path_symlink path_readlink
// Hard and symbolic links.
#include "expect.h"

int main(void) {
    make_file("f", "content");
    __wasi_filestat_t one, two;
    OK(__wasi_path_link(CWD, 0, "f", CWD, "g"));
    OK(__wasi_path_filestat_get(CWD, 0, "f", &one));
    OK(__wasi_path_filestat_get(CWD, 0, "g", &two));
    CHECK(one.ino == two.ino && one.dev == two.dev && two.nlink == 2);
    FAILS(EXIST, __wasi_path_link(CWD, 0, "f", CWD, "g"));
    FAILS(NOENT, __wasi_path_link(CWD, 0, "missing", CWD, "h"));
    OK(__wasi_path_create_directory(CWD, "d"));
    FAILS(PERM, __wasi_path_link(CWD, 0, "d", CWD, "h"));
    FAILS(INVAL, __wasi_path_link(CWD, 2, "f", CWD, "h"));

    OK(__wasi_path_symlink("f", CWD, "s"));
    FAILS(EXIST, __wasi_path_symlink("f", CWD, "s"));
    FAILS(NOENT, __wasi_path_symlink("", CWD, "e"));
    uint8_t text[17] = "................";
    __wasi_size_t size;
    OK(__wasi_path_readlink(CWD, "s", text, sizeof text, &size));
    CHECK(size == 1 && text[0] == 'f' && text[1] == '.');
    OK(__wasi_path_symlink("a-long-target", CWD, "t"));
    OK(__wasi_path_readlink(CWD, "t", text, 6, &size));
    CHECK(size == 6 && !memcmp(text, "a-long.", 7));
    OK(__wasi_path_readlink(CWD, "t", text, 0, &size));
    CHECK(size == 0);
    FAILS(INVAL, __wasi_path_readlink(CWD, "f", text, sizeof text, &size));
    FAILS(NOENT, __wasi_path_readlink(CWD, "missing", text, sizeof text, &size));

    // The link itself, or what it means.
    OK(__wasi_path_link(CWD, 0, "s", CWD, "to-link"));
    OK(__wasi_path_filestat_get(CWD, 0, "to-link", &one));
    CHECK(one.filetype == __WASI_FILETYPE_SYMBOLIC_LINK);
    OK(__wasi_path_link(CWD, FOLLOW, "s", CWD, "to-file"));
    OK(__wasi_path_filestat_get(CWD, 0, "to-file", &one));
    CHECK(one.filetype == __WASI_FILETYPE_REGULAR_FILE && one.nlink == 3);
    return 0;
}
