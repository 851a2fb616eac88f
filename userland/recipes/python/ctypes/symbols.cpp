/* What ctypes finds in the program itself: functions and variables by their names.
 *
 * Nothing is loaded at run time, but everything that ctypes.pythonapi and CDLL("libc.so.6") are
 * asked for is linked into the interpreter. This file has the names and takes the place of the
 * libc's dlopen, dlsym, dlclose, dlerror and dl_iterate_phdr. Of Python it is the stable ABI, from the list that
 * CPython has of it (stable_abi.awk), and a few more; of the libc what programs use ctypes for.
 *
 * A WebAssembly function must be called by its own type, and ctypes calls most by a guess (int
 * for everything). So each name has its type beside it, and libffi is told how to find that; a
 * wrong guess then costs a wrong value, as elsewhere, and not the process. It is C++ because only
 * templates can take the type of a function apart. */
#include <Python.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

extern "C" {
extern const char *(*ffi_wasm_signature)(void (*)(void));
extern const struct _frozen *_PyImport_FrozenBootstrap, *_PyImport_FrozenStdlib, *_PyImport_FrozenTest;
}

namespace {

/* The letters of libffi's signatures. */
template <class T> constexpr char letter()
{
	if constexpr (__is_same(T, void)) return 'v';
	else if constexpr (__is_same(T, float)) return 'f';
	else if constexpr (__is_same(T, double)) return 'd';
	else {
		static_assert(__is_scalar(T) && sizeof(T) <= 8, "a function that takes structures");
		return sizeof(T) == 8 ? 'l' : 'i';
	}
}

template <char... C> constexpr char text[] = { C..., 0 };

template <class R, class... A> constexpr const char *signature(R (*)(A...))
{
	return text<letter<A>()..., letter<R>()>;
}

template <class R, class... A> constexpr const char *signature(R (*)(A..., ...))
{
	return text<letter<A>()..., '*', letter<R>()>;
}

struct symbol {
	const char *name;
	void *address;
	const char *signature; /* null for a variable */
};

#define FUNCTION(name) { #name, (void *)&name, signature(&name) },
#define DATA(name) { #name, (void *)&name, nullptr },

symbol symbols[] = {
#include "stable_abi.inc"
	/* What is used of Python beyond its stable ABI. */
	FUNCTION(PyCell_Get) FUNCTION(PyCell_New) FUNCTION(PyCell_Set)
	FUNCTION(PyDict_Pop) FUNCTION(PyEval_SetProfile) FUNCTION(PyEval_SetTrace)
	FUNCTION(PyFloat_Pack8) FUNCTION(PyFloat_Unpack8) FUNCTION(PyFrame_GetBack)
	FUNCTION(PyFunction_GetCode) FUNCTION(PyFunction_New) FUNCTION(PyFunction_SetDefaults)
	FUNCTION(PyGILState_Check) FUNCTION(PyInstanceMethod_New) FUNCTION(PyInterpreterState_Head)
	FUNCTION(PyInterpreterState_ThreadHead) FUNCTION(PyMethod_New) FUNCTION(PyObject_GET_WEAKREFS_LISTPTR)
	FUNCTION(PyRun_AnyFileExFlags) FUNCTION(PyRun_SimpleString) FUNCTION(PyRun_SimpleStringFlags)
	FUNCTION(PyRun_String) FUNCTION(PyRun_StringFlags) FUNCTION(PyThreadState_Next)
	FUNCTION(PyUnicode_CopyCharacters) FUNCTION(PyUnicode_New)
	FUNCTION(PyUnstable_Code_GetExtra) FUNCTION(PyUnstable_Code_SetExtra)
	FUNCTION(PyUnstable_Eval_RequestCodeExtraIndex) FUNCTION(Py_GetArgcArgv)
	FUNCTION(_PyBytes_Resize) FUNCTION(_PyObject_GetDictPtr)
	DATA(PyImport_FrozenModules) DATA(_PyImport_FrozenBootstrap) DATA(_PyImport_FrozenStdlib)
	DATA(_PyImport_FrozenTest) DATA(Py_DebugFlag) DATA(Py_OptimizeFlag) DATA(Py_VerboseFlag)

	/* string.h, strings.h, wchar.h */
	FUNCTION(memchr) FUNCTION(memcmp) FUNCTION(memcpy) FUNCTION(memmem) FUNCTION(memmove)
	FUNCTION(memset) FUNCTION(stpcpy) FUNCTION(strcasecmp) FUNCTION(strcat) FUNCTION(strchr)
	FUNCTION(strcmp) FUNCTION(strcpy) FUNCTION(strcspn) FUNCTION(strdup) FUNCTION(strerror)
	FUNCTION(strlen) FUNCTION(strncasecmp) FUNCTION(strncat) FUNCTION(strncmp) FUNCTION(strncpy)
	FUNCTION(strndup) FUNCTION(strnlen) FUNCTION(strpbrk) FUNCTION(strrchr) FUNCTION(strsep)
	FUNCTION(strsignal) FUNCTION(strspn) FUNCTION(strstr) FUNCTION(strtok) FUNCTION(strtok_r)
	FUNCTION(strverscmp) FUNCTION(wcscmp) FUNCTION(wcscpy) FUNCTION(wcslen) FUNCTION(wcschr)

	/* ctype.h */
	FUNCTION(isalnum) FUNCTION(isalpha) FUNCTION(isdigit) FUNCTION(islower) FUNCTION(isprint)
	FUNCTION(ispunct) FUNCTION(isspace) FUNCTION(isupper) FUNCTION(isxdigit) FUNCTION(tolower)
	FUNCTION(toupper)

	/* stdlib.h */
	FUNCTION(abort) FUNCTION(abs) FUNCTION(atof) FUNCTION(atoi) FUNCTION(atol) FUNCTION(atoll)
	FUNCTION(bsearch) FUNCTION(calloc) FUNCTION(exit) FUNCTION(_exit) FUNCTION(free)
	FUNCTION(getenv) FUNCTION(labs) FUNCTION(llabs) FUNCTION(malloc) FUNCTION(putenv)
	FUNCTION(qsort) FUNCTION(rand) FUNCTION(random) FUNCTION(realloc) FUNCTION(realpath)
	FUNCTION(setenv) FUNCTION(srand) FUNCTION(srandom) FUNCTION(strtod) FUNCTION(strtol)
	FUNCTION(strtoll) FUNCTION(strtoul) FUNCTION(strtoull) FUNCTION(system) FUNCTION(unsetenv)

	/* stdio.h */
	DATA(stderr) DATA(stdin) DATA(stdout)
	FUNCTION(dprintf) FUNCTION(fclose) FUNCTION(fdopen) FUNCTION(feof) FUNCTION(ferror)
	FUNCTION(fflush) FUNCTION(fgetc) FUNCTION(fgets) FUNCTION(fileno) FUNCTION(fopen)
	FUNCTION(fprintf) FUNCTION(fputc) FUNCTION(fputs) FUNCTION(fread) FUNCTION(fscanf)
	FUNCTION(fseek) FUNCTION(ftell) FUNCTION(fwrite) FUNCTION(getchar) FUNCTION(perror)
	FUNCTION(printf) FUNCTION(putchar) FUNCTION(puts) FUNCTION(remove) FUNCTION(rename)
	FUNCTION(rewind) FUNCTION(scanf) FUNCTION(setbuf) FUNCTION(setvbuf) FUNCTION(snprintf)
	FUNCTION(sprintf) FUNCTION(sscanf) FUNCTION(vprintf) FUNCTION(vsnprintf)

	/* math.h */
	FUNCTION(acos) FUNCTION(asin) FUNCTION(atan) FUNCTION(atan2) FUNCTION(cbrt) FUNCTION(ceil)
	FUNCTION(cos) FUNCTION(cosf) FUNCTION(cosh) FUNCTION(erf) FUNCTION(exp) FUNCTION(exp2)
	FUNCTION(expm1) FUNCTION(fabs) FUNCTION(floor) FUNCTION(fmax) FUNCTION(fmin) FUNCTION(fmod)
	FUNCTION(frexp) FUNCTION(hypot) FUNCTION(ldexp) FUNCTION(log) FUNCTION(log10)
	FUNCTION(log1p) FUNCTION(log2) FUNCTION(modf) FUNCTION(nextafter) FUNCTION(pow)
	FUNCTION(powf) FUNCTION(round) FUNCTION(sin) FUNCTION(sinf) FUNCTION(sinh) FUNCTION(sqrt)
	FUNCTION(sqrtf) FUNCTION(tan) FUNCTION(tanh) FUNCTION(tgamma) FUNCTION(trunc)

	/* unistd.h, fcntl.h, sys/...: the system */
	FUNCTION(access) FUNCTION(alarm) FUNCTION(chdir) FUNCTION(chmod) FUNCTION(close)
	FUNCTION(dup) FUNCTION(dup2) FUNCTION(fcntl) FUNCTION(fstat) FUNCTION(fsync)
	FUNCTION(ftruncate) FUNCTION(getcwd) FUNCTION(getegid) FUNCTION(geteuid) FUNCTION(getgid)
	FUNCTION(gethostname) FUNCTION(getpagesize) FUNCTION(getpgid) FUNCTION(getpid)
	FUNCTION(getppid) FUNCTION(getrandom) FUNCTION(getrlimit) FUNCTION(getrusage)
	FUNCTION(gettid) FUNCTION(getuid) FUNCTION(ioctl) FUNCTION(isatty) FUNCTION(kill)
	FUNCTION(lseek) FUNCTION(mkdir) FUNCTION(mmap) FUNCTION(mprotect) FUNCTION(munmap)
	FUNCTION(nice) FUNCTION(open) FUNCTION(openat) FUNCTION(pause) FUNCTION(pipe)
	FUNCTION(poll) FUNCTION(prctl) FUNCTION(pread) FUNCTION(pwrite) FUNCTION(raise)
	FUNCTION(read) FUNCTION(readlink) FUNCTION(rmdir) FUNCTION(sched_yield) FUNCTION(setpgid)
	FUNCTION(setrlimit) FUNCTION(setsid) FUNCTION(sleep) FUNCTION(stat) FUNCTION(symlink)
	FUNCTION(sync) FUNCTION(syscall) FUNCTION(sysconf) FUNCTION(truncate) FUNCTION(umask)
	FUNCTION(uname) FUNCTION(unlink) FUNCTION(usleep) FUNCTION(waitpid) FUNCTION(write)
	FUNCTION(setlocale) DATA(environ) { "__errno_location", (void *)&__errno_location, "i" },

	/* time.h */
	FUNCTION(asctime) FUNCTION(clock) FUNCTION(clock_gettime) FUNCTION(ctime)
	FUNCTION(difftime) FUNCTION(gettimeofday) FUNCTION(gmtime) FUNCTION(gmtime_r)
	FUNCTION(localtime) FUNCTION(localtime_r) FUNCTION(mktime) FUNCTION(nanosleep)
	FUNCTION(strftime) FUNCTION(time) FUNCTION(tzset)
};

constexpr size_t count = sizeof symbols / sizeof *symbols;
const symbol *by_address[count];
char message[256];
bool failed;

int compare_names(const void *a, const void *b)
{
	return strcmp(((const symbol *)a)->name, ((const symbol *)b)->name);
}

/* Numbers of functions and addresses of variables overlap: functions come first. */
int compare_addresses(const void *a, const void *b)
{
	const symbol *x = *(const symbol *const *)a, *y = *(const symbol *const *)b;
	if (!x->signature != !y->signature) return x->signature ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

const char *known_signature(void (*function)(void))
{
	symbol wanted = { nullptr, (void *)function, "" };
	const symbol *searched = &wanted;
	void *found = bsearch(&searched, by_address, count, sizeof *by_address, compare_addresses);
	return found ? (*(const symbol **)found)->signature : nullptr;
}

void sort_symbols()
{
	if (ffi_wasm_signature) return;
	qsort(symbols, count, sizeof *symbols, compare_names);
	for (size_t i = 0; i < count; i++) by_address[i] = &symbols[i];
	qsort(by_address, count, sizeof *by_address, compare_addresses);
	ffi_wasm_signature = known_signature;
}

void *fail(const char *format, const char *name)
{
	snprintf(message, sizeof message, format, name);
	failed = true;
	return nullptr;
}

/* Libraries that are part of the program. */
const char *const linked[] = {
	"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1",
};

} // namespace

extern "C" {

void *dlopen(const char *name, int)
{
	sort_symbols();
	if (!name) return symbols;
	for (const char *library : linked)
		if (!strcmp(name, library)) return symbols;
	if (access(name, F_OK))
		return fail("%.200s: cannot open shared object file: No such file or directory", name);
	return fail("%.200s: shared libraries cannot be loaded: programs are linked statically", name);
}

void *dlsym(void *__restrict, const char *__restrict name)
{
	sort_symbols();
	symbol wanted = { name, nullptr, nullptr };
	void *found = bsearch(&wanted, symbols, count, sizeof *symbols, compare_names);
	return found ? ((symbol *)found)->address : fail("python3: undefined symbol: %.200s", name);
}

int dlclose(void *)
{
	return 0;
}

char *dlerror(void)
{
	bool was = failed;
	failed = false;
	return was ? message : nullptr;
}

/* The program, which has no name, and what is part of it. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	struct dl_phdr_info info = {};
	info.dlpi_name = "";
	int result = visit(&info, sizeof info, data);
	for (size_t i = 0; !result && i < sizeof linked / sizeof *linked; i++) {
		info.dlpi_name = linked[i];
		result = visit(&info, sizeof info, data);
	}
	return result;
}

}
