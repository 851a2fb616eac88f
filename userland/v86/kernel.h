/* Owns what agent.c needs of Linux on i386: system calls, their numbers, structures and errors.
 *
 * Rules: no libc and no headers of the building machine, so that the compiler alone can make the
 * program; numbers and layouts are those of the kernel's ABI for i386.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    SYS_exit = 1, SYS_fork = 2, SYS_read = 3, SYS_write = 4, SYS_open = 5, SYS_close = 6,
    SYS_execve = 11, SYS_chdir = 12, SYS_mount = 21, SYS_kill = 37, SYS_mkdir = 39,
    SYS_rmdir = 40, SYS_setsid = 66, SYS_setpgid = 57, SYS_dup2 = 63, SYS_wait4 = 114,
    SYS_poll = 168, SYS_rt_sigaction = 174, SYS_rt_sigprocmask = 175, SYS_pread64 = 180,
    SYS_pwrite64 = 181, SYS_setgroups = 206, SYS_setuid = 213, SYS_setgid = 214,
    SYS_fcntl64 = 221, SYS_exit_group = 252, SYS_pipe2 = 331, SYS_prlimit64 = 340,
    SYS_umask = 60, SYS_ioctl = 54, SYS_setpriority = 97,
};

enum {
    EINTR = 4, EAGAIN = 11, ENOMEM = 12, EACCES = 13, ENOTDIR = 20, EINVAL = 22, EMFILE = 24,
    ENOENT = 2, EPIPE = 32, ENAMETOOLONG = 36,
    O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_NOCTTY = 0400, O_NONBLOCK = 04000,
    O_CLOEXEC = 02000000,
    F_SETFL = 4, F_DUPFD_CLOEXEC = 1030, F_SETPIPE_SZ = 1031, FIONREAD = 0x541b, WNOHANG = 1, POLLIN = 1, POLLOUT = 4, POLLERR = 8, POLLHUP = 16,
    SIGKILL = 9, SIGPIPE = 13, SIGCHLD = 17, SIG_BLOCK = 0, SIG_SETMASK = 2, SA_RESTART = 0x10000000,
    RLIMIT_CORE = 4, RLIMIT_NOFILE = 7,
};

struct pollfd { int fd; short events, revents; };
struct rlimit64 { u64 soft, hard; };
struct sigaction { void (*handler)(int); u32 flags; void (*restorer)(void); u64 mask; };

static inline int call6(int number, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f)
{
    /* Six arguments need ebp, which the compiler may use to address the operands. */
    u32 values[6] = {a, b, c, d, e, f};
    int result = number;
    __asm__ volatile(
        "pushl %%ebp\n\t"
        "pushl %%ebx\n\t"
        "pushl %%esi\n\t"
        "pushl %%edi\n\t"
        "movl %1, %%edi\n\t"
        "movl (%%edi), %%ebx\n\t"
        "movl 4(%%edi), %%ecx\n\t"
        "movl 8(%%edi), %%edx\n\t"
        "movl 12(%%edi), %%esi\n\t"
        "movl 20(%%edi), %%ebp\n\t"
        "movl 16(%%edi), %%edi\n\t"
        "int $0x80\n\t"
        "popl %%edi\n\t"
        "popl %%esi\n\t"
        "popl %%ebx\n\t"
        "popl %%ebp"
        : "+a"(result)
        : "r"(values)
        : "ecx", "edx", "memory", "cc");
    return result;
}

#define call(number, ...) call_(number, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define call_(number, a, b, c, d, e, f, ...) \
    call6(number, (u32)(a), (u32)(b), (u32)(c), (u32)(d), (u32)(e), (u32)(f))

/* The compiler may call these for copies and initialisations. */
void *memcpy(void *target, const void *source, u32 count)
{
    void *start = target;
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(count) : : "memory");
    return start;
}

void *memset(void *target, int value, u32 count)
{
    void *start = target;
    __asm__ volatile("rep stosb" : "+D"(target), "+c"(count) : "a"(value) : "memory");
    return start;
}

static u32 length_of(const char *text)
{
    u32 count = 0;
    while (text[count])
        count++;
    return count;
}
