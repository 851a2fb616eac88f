// functions: path_filestat_get path_filestat_set_times
// Metadata by path, of a link or of what it means.
#include "expect.h"

int main(void) {
    make_file("f", "12345");
    OK(__wasi_path_create_directory(CWD, "d"));
    OK(__wasi_path_symlink("f", CWD, "s"));
    __wasi_filestat_t stat;
    OK(__wasi_path_filestat_get(CWD, 0, "f", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_REGULAR_FILE && stat.size == 5 && stat.nlink == 1);
    OK(__wasi_path_filestat_get(CWD, 0, "d", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_DIRECTORY && stat.nlink == 2);
    OK(__wasi_path_filestat_get(CWD, 0, "s", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_SYMBOLIC_LINK && stat.size == 1);
    OK(__wasi_path_filestat_get(CWD, FOLLOW, "s", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_REGULAR_FILE && stat.size == 5);
    OK(__wasi_path_filestat_get(ROOT, FOLLOW, "dev/null", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_CHARACTER_DEVICE);
    OK(__wasi_path_filestat_get(ROOT, FOLLOW, "proc/self/fd/1", &stat));
    CHECK(stat.filetype == __WASI_FILETYPE_UNKNOWN);
    FAILS(NOENT, __wasi_path_filestat_get(CWD, 0, "missing", &stat));
    FAILS(INVAL, __wasi_path_filestat_get(CWD, 4, "f", &stat));

    const __wasi_fstflags_t both = __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM;
    OK(__wasi_path_filestat_set_times(CWD, FOLLOW, "s", 11, 22, both));
    OK(__wasi_path_filestat_get(CWD, 0, "f", &stat));
    CHECK(stat.atim == 11 && stat.mtim == 22);
    OK(__wasi_path_filestat_set_times(CWD, 0, "s", 33, 44, both));
    OK(__wasi_path_filestat_get(CWD, 0, "s", &stat));
    CHECK(stat.atim == 33 && stat.mtim == 44);
    OK(__wasi_path_filestat_get(CWD, 0, "f", &stat));
    CHECK(stat.atim == 11 && stat.mtim == 22);
    OK(__wasi_path_filestat_set_times(CWD, 0, "f", 0, 0,
                                      __WASI_FSTFLAGS_ATIM_NOW | __WASI_FSTFLAGS_MTIM_NOW));
    OK(__wasi_path_filestat_get(CWD, 0, "f", &stat));
    CHECK(stat.atim > 1000 && stat.mtim > 1000);
    FAILS(PERM, __wasi_path_filestat_set_times(ROOT, 0, "etc/passwd", 1, 1, both));
    FAILS(INVAL, __wasi_path_filestat_set_times(
                     CWD, 0, "f", 1, 1, both | __WASI_FSTFLAGS_MTIM_NOW));
    return 0;
}
