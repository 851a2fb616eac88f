/* The agent: process 1 of the Linux in a v86 machine. It runs commands and makes system calls for
 * the host.
 *
 * Owns the guest's end of the channel: a stream of frames in each direction, carried by reads and
 * writes of two files on a 9p file system that the host serves. A frame is a header (struct frame)
 * and a payload. The host's end is src/wasmsand/v86/agent.py, which describes the payloads.
 *
 * Rules: the agent waits for a byte on the serial port before it opens the channel; the machine is
 * saved in that state, in which the guest has no request in flight. The agent never blocks on a
 * command: inputs and outputs are pipes that it polls, and each has a window. Every command has a
 * cgroup of its own below `box`, so that a kill reaches all its processes.
 */

#include "kernel.h"

enum {
    CALL = 1, RUN = 2, INPUT = 3, KILL = 4, WINDOW = 5,         /* from the host */
    CALLED = 1, STARTED = 2, OUTPUT = 3, ENDED = 4, TAKEN = 5, HELLO = 6, /* to the host */
};
enum { COMMANDS = 64, STREAMS = 12, PIECE = 65536, FRAME_MAX = 2359296, ARGUMENTS = 32768,
       FD_MAX = 512 };

struct frame { u32 length, id; u8 kind, pad[3]; };

struct stream {
    int fd;              /* our end of the pipe; -1: closed */
    int guest_fd;        /* its number in the command */
    u32 window;          /* outputs: how many bytes the host still takes */
    u32 left;            /* outputs: what was in the pipe when the command's process ended */
    int closing;         /* inputs: close it when everything is written */
    u32 start, end;      /* inputs: what is not written yet */
    u8 *waiting;
};

struct command {
    u32 id;              /* 0: free */
    int pid;             /* 0: ended and reaped */
    int status;
    int inputs, outputs;
    struct stream in[STREAMS], out[STREAMS];
};

static struct command commands[COMMANDS];
static u8 input_space[COMMANDS][4][PIECE];
static u8 received[FRAME_MAX + sizeof(struct frame)];
static u8 sending[PIECE * 8 + 64];
static char *strings[ARGUMENTS];
static u32 have;
static int to_host, from_reader, wake_pipe[2];

static void panic(const char *why)
{
    call(SYS_write, 2, why, length_of(why));
    for (;;)
        call(SYS_exit_group, 1);    /* the end of process 1 is a panic of the kernel */
}

static void send(u32 id, u8 kind, const void *head, u32 head_length, const void *data, u32 length)
{
    struct frame frame = {head_length + length, id, kind, {0, 0, 0}};
    u8 *place = sending;
    u32 total = sizeof frame + head_length + length;
    memcpy(place, &frame, sizeof frame);
    memcpy(place + sizeof frame, head, head_length);
    if (data != place + sizeof frame + head_length)
        memcpy(place + sizeof frame + head_length, data, length);
    for (u32 done = 0; done < total;) {
        int count = call(SYS_pwrite64, to_host, place + done, total - done, 0, 0);
        if (count < 0 && count != -EINTR)
            panic("agent: the channel to the host is broken\n");
        if (count > 0)
            done += count;
    }
}

static void send_number(u32 id, u8 kind, int number)
{
    send(id, kind, &number, sizeof number, 0, 0);
}

/* Append the decimal digits of a number, and a text; returns the new end. */
static char *add_number(char *end, u32 number)
{
    char digits[10];
    int count = 0;
    do {
        digits[count++] = '0' + number % 10;
        number /= 10;
    } while (number);
    while (count)
        *end++ = digits[--count];
    *end = 0;
    return end;
}

static char *add_text(char *end, const char *text)
{
    while ((*end = *text++))
        end++;
    return end;
}

static char *cgroup_file(char *path, u32 id, const char *name)
{
    add_text(add_number(add_text(path, "/sys/fs/cgroup/box/c"), id), name);
    return path;
}

static int write_file(const char *path, const char *text)
{
    int fd = call(SYS_open, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    int result = call(SYS_write, fd, text, length_of(text));
    call(SYS_close, fd);
    return result;
}

static struct command *find(u32 id)
{
    for (int i = 0; i < COMMANDS; i++)
        if (commands[i].id == id && id)
            return &commands[i];
    return 0;
}

static void close_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        call(SYS_close, stream->fd);
    stream->fd = -1;
}

/* ---- System calls for the host ----
 * The payload: number, then six arguments (kind, value), then the content of the inputs.
 * kind 0: a number; 1: an input of `value` bytes; 2: an output of `value` bytes; 3: an output of
 * which the result says how much is filled. */
static void make_call(u32 id, u8 *payload, u32 length)
{
    static u8 output[PIECE * 4 + 64];
    u32 *words = (u32 *)payload, values[6], kinds[6], sizes[6];
    u32 at = 13 * 4, room = sizeof output, used = 0;
    if (length < at)
        return send_number(id, CALLED, -EINVAL);
    for (int i = 0; i < 6; i++) {
        u32 kind = kinds[i] = words[1 + 2 * i], value = sizes[i] = words[2 + 2 * i];
        values[i] = value;
        if (kind == 1) {
            if (value > length - at)
                return send_number(id, CALLED, -EINVAL);
            values[i] = (u32)(payload + at);
            at += value;
        } else if (kind >= 2) {
            if (value > room)
                return send_number(id, CALLED, -EINVAL);
            values[i] = (u32)(output + used);
            used += value;
            room -= value;
        }
    }
    int result = call6(words[0], values[0], values[1], values[2], values[3], values[4], values[5]);
    u32 filled = 0;
    for (int i = 0; i < 6; i++) {
        u32 size = sizes[i];
        if (kinds[i] < 2 || result < 0)
            continue;
        if (kinds[i] == 3 && (u32)result < size)
            size = result;
        memcpy(sending + sizeof(struct frame) + 4 + filled, (u8 *)values[i], size);
        filled += size;
    }
    send(id, CALLED, &result, 4, sending + sizeof(struct frame) + 4, filled);
}

/* ---- Commands ----
 * The payload of RUN: uid, gid, maximum of open files, numbers of arguments, variables, inputs and
 * outputs; then the descriptors of inputs and outputs; then the directory, the arguments and the
 * variables, each with a NUL. */
static int search(char **argv, char **env)
{
    static char path[4200];
    char *name = argv[0], *list = 0;
    for (char *at = name; *at; at++)
        if (*at == '/')
            return call(SYS_execve, name, argv, env);
    for (char **each = env; *each; each++)
        if ((*each)[0] == 'P' && (*each)[1] == 'A' && (*each)[2] == 'T' && (*each)[3] == 'H' &&
            (*each)[4] == '=')
            list = *each + 5;
    int problem = -ENOENT;
    while (list && *list) {
        char *end = path;
        while (*list && *list != ':' && end < path + 4000)
            *end++ = *list++;
        if (*list == ':')
            list++;
        *end++ = '/';
        if (length_of(name) > 190)
            return -ENAMETOOLONG;
        add_text(end, name);
        int result = call(SYS_execve, path, argv, env);
        if (result != -ENOENT && result != -ENOTDIR)
            problem = result;
        if (result != -ENOENT && result != -ENOTDIR && result != -EACCES)
            return result;
    }
    return problem;
}

static void become(struct command *command, int (*ends)[2], u32 *words, char *cwd, char **argv,
                   char **env, int report)
{
    char path[80];
    u64 nothing = 0;
    struct rlimit64 files = {words[2], words[2]}, core = {0, 0};
    int problem = 0;
    call(SYS_setsid);
    call(SYS_umask, 022);
    call(SYS_setpriority, 0, 0, 0);
    write_file(cgroup_file(path, command->id, "/cgroup.procs"), "0");
    /* Move the pipes out of the way of the descriptors that they become; exec closes the rest. */
    int total = command->inputs + command->outputs;
    for (int i = 0; i < total; i++)
        ends[i][0] = call(SYS_fcntl64, ends[i][i >= command->inputs], F_DUPFD_CLOEXEC, FD_MAX);
    report = call(SYS_fcntl64, report, F_DUPFD_CLOEXEC, FD_MAX);
    for (int i = 0; i < total; i++) {
        struct stream *stream = i < command->inputs ? &command->in[i]
                                                    : &command->out[i - command->inputs];
        call(SYS_dup2, ends[i][0], stream->guest_fd);
    }
    call(SYS_prlimit64, 0, RLIMIT_CORE, &core, 0);
    call(SYS_prlimit64, 0, RLIMIT_NOFILE, &files, 0);
    u32 groups[2] = {words[1], 100};
    if (words[0]) {
        call(SYS_setgroups, 2, groups);
        call(SYS_setgid, words[1]);
        problem = call(SYS_setuid, words[0]);
    }
    call(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, 0, 8);
    if (problem >= 0)
        problem = call(SYS_chdir, cwd);
    int in_program = 0;
    if (problem >= 0) {
        in_program = 1;
        problem = search(argv, env);
    }
    int told[2] = {problem, in_program};
    call(SYS_write, report, told, sizeof told);
    call(SYS_exit_group, 127);
}

static void run(u32 id, u8 *payload, u32 length)
{
    u32 *words = (u32 *)payload, at = 7 * 4;
    int refused[2] = {-EINVAL, 1};
    struct command *command = 0;
    for (int i = 0; i < COMMANDS && !command; i++)
        if (!commands[i].id)
            command = &commands[i];
    if (!command) {
        refused[0] = -EAGAIN;
        return send(id, STARTED, refused, sizeof refused, 0, 0);
    }
    /* i386 reads words at any address. */
    if (length < at || words[3] < 1 || words[3] > 16000 || words[4] > 16000 || words[5] < 1 ||
        words[5] > 4 || words[6] > STREAMS || length < at + 4 * (words[5] + words[6]) ||
        payload[length - 1])
        return send(id, STARTED, refused, sizeof refused, 0, 0);
    memset(command, 0, sizeof *command);
    command->id = id;
    command->inputs = words[5];
    command->outputs = words[6];
    for (u32 i = 0; i < words[5] + words[6]; i++, at += 4) {
        struct stream *stream = i < words[5] ? &command->in[i] : &command->out[i - words[5]];
        stream->fd = -1;
        stream->guest_fd = *(u32 *)(payload + at) % FD_MAX;
        stream->window = PIECE;
        stream->waiting = i < 4 ? input_space[command - commands][i] : 0;
    }
    char *cwd = (char *)payload + at;
    u32 count = words[3] + words[4], found = 0;
    at += length_of(cwd) + 1;
    for (u32 i = 0; i < count && at < length; i++, found++) {
        strings[i + (i >= words[3])] = (char *)payload + at;
        at += length_of((char *)payload + at) + 1;
    }
    strings[words[3]] = strings[count + 1] = 0;
    char path[80];
    int ends[2 * STREAMS][2], report[2], total = command->inputs + command->outputs, made = 0;
    int problem = found == count ? call(SYS_pipe2, report, O_CLOEXEC) : -EINVAL;
    for (; made < total && problem >= 0; made++) {
        problem = call(SYS_pipe2, ends[made], O_CLOEXEC);
        if (problem < 0)
            break;
        struct stream *stream = made < command->inputs ? &command->in[made]
                                                       : &command->out[made - command->inputs];
        stream->fd = ends[made][made < command->inputs];
        call(SYS_fcntl64, stream->fd, F_SETFL, O_NONBLOCK);
    }
    if (problem >= 0)
        problem = call(SYS_mkdir, cgroup_file(path, id, ""), 0755);
    int pid = problem < 0 ? problem : call(SYS_fork);
    if (pid == 0)
        become(command, ends, words, cwd, strings, strings + words[3] + 1, report[1]);
    for (int i = 0; i < made; i++)
        call(SYS_close, ends[i][i >= command->inputs]);
    refused[0] = pid;
    if (pid > 0) {
        command->pid = pid;
        call(SYS_close, report[1]);
        int told[2], status;
        if (call(SYS_read, report[0], told, sizeof told) == sizeof told) {
            refused[0] = told[0];
            refused[1] = told[1];
            call(SYS_wait4, pid, &status, 0, 0);
        }
        call(SYS_close, report[0]);
    }
    if (refused[0] <= 0) {
        for (int i = 0; i < command->inputs; i++)
            close_stream(&command->in[i]);
        for (int i = 0; i < command->outputs; i++)
            close_stream(&command->out[i]);
        call(SYS_rmdir, cgroup_file(path, id, ""));
        command->id = 0;
    }
    send(id, STARTED, refused, sizeof refused, 0, 0);
}

static void write_input(struct command *command, struct stream *stream)
{
    while (stream->fd >= 0 && stream->start < stream->end) {
        int count = call(SYS_write, stream->fd, stream->waiting + stream->start,
                         stream->end - stream->start);
        if (count == -EAGAIN || count == -EINTR)
            return;
        if (count < 0) {
            int told[2] = {stream->guest_fd, -1};      /* nobody reads any more */
            close_stream(stream);
            send(command->id, TAKEN, told, sizeof told, 0, 0);
            return;
        }
        int told[2] = {stream->guest_fd, count};
        stream->start += count;
        send(command->id, TAKEN, told, sizeof told, 0, 0);
    }
    stream->start = stream->end = 0;
    if (stream->closing)
        close_stream(stream);
}

static void input(u32 id, u8 *payload, u32 length)
{
    struct command *command = find(id);
    if (!command || length < 4)
        return;
    for (int i = 0; i < command->inputs; i++) {
        struct stream *stream = &command->in[i];
        if (stream->guest_fd != *(int *)payload || stream->fd < 0)
            continue;
        if (length == 4)
            stream->closing = 1;
        else if (length - 4 <= PIECE - stream->end) {
            memcpy(stream->waiting + stream->end, payload + 4, length - 4);
            stream->end += length - 4;
        }
        write_input(command, stream);
    }
}

/* Pass on output; returns whether there was any. */
static int read_output(struct command *command, struct stream *stream)
{
    static u8 space[PIECE];
    if (stream->fd < 0 || !stream->window)
        return 0;
    u32 most = stream->window < PIECE ? stream->window : PIECE;
    int count = call(SYS_read, stream->fd, space, most);
    if (count == -EAGAIN || count == -EINTR)
        return 0;
    if (count <= 0) {
        close_stream(stream);
        return 0;
    }
    stream->window -= count;
    stream->left -= (u32)count < stream->left ? (u32)count : stream->left;
    send(command->id, OUTPUT, &stream->guest_fd, 4, space, count);
    return 1;
}

/* A command has ended when its first process has ended and its output so far was passed on. */
static void finish(struct command *command)
{
    for (int i = 0; i < command->outputs; i++) {
        struct stream *stream = &command->out[i];
        while (stream->left && read_output(command, stream))
            ;
        if (stream->fd >= 0 && stream->left)
            return;      /* the host has to make room first */
    }
    for (int i = 0; i < command->inputs; i++)
        close_stream(&command->in[i]);
    for (int i = 0; i < command->outputs; i++)
        close_stream(&command->out[i]);
    send_number(command->id, ENDED, command->status);
    command->id = 0;
}

static void window(u32 id, u8 *payload, u32 length)
{
    struct command *command = find(id);
    if (!command || length < 8)
        return;
    for (int i = 0; i < command->outputs; i++)
        if (command->out[i].guest_fd == ((int *)payload)[0])
            command->out[i].window += ((u32 *)payload)[1];
}

static void handle(struct frame *frame, u8 *payload)
{
    char path[80];
    switch (frame->kind) {
    case CALL: make_call(frame->id, payload, frame->length); break;
    case RUN: run(frame->id, payload, frame->length); break;
    case INPUT: input(frame->id, payload, frame->length); break;
    case KILL: write_file(cgroup_file(path, frame->id, "/cgroup.kill"), "1"); break;
    case WINDOW: window(frame->id, payload, frame->length); break;
    }
}

static void receive(void)
{
    int count = call(SYS_read, from_reader, received + have, sizeof received - have);
    if (count == -EINTR || count == -EAGAIN)
        return;
    if (count <= 0)
        panic("agent: the channel from the host has ended\n");
    have += count;
    u32 at = 0;
    while (have - at >= sizeof(struct frame)) {
        struct frame frame;
        memcpy(&frame, received + at, sizeof frame);
        if (frame.length > FRAME_MAX)
            panic("agent: a frame is too long\n");
        if (have - at < sizeof frame + frame.length)
            break;
        handle(&frame, received + at + sizeof frame);
        at += sizeof frame + frame.length;
    }
    have -= at;
    for (u32 i = 0; i < have && at; i++)
        received[i] = received[at + i];
}

static void reap(void)
{
    int status, pid;
    while ((pid = call(SYS_wait4, -1, &status, WNOHANG, 0)) > 0)
        for (int i = 0; i < COMMANDS; i++)
            if (commands[i].id && commands[i].pid == pid) {
                commands[i].pid = 0;
                commands[i].status = status;
                for (int k = 0; k < commands[i].outputs; k++)
                    if (commands[i].out[k].fd >= 0)
                        call(SYS_ioctl, commands[i].out[k].fd, FIONREAD, &commands[i].out[k].left);
            }
}

static void on_child(int number)
{
    (void)number;
    call(SYS_write, wake_pipe[1], "", 1);
}

/* Waiting for the host blocks, so a process of its own does it. */
static int start_reader(int from_host)
{
    static u8 space[PIECE * 4];
    int ends[2];
    if (call(SYS_pipe2, ends, O_CLOEXEC) < 0)
        panic("agent: no pipe\n");
    call(SYS_fcntl64, ends[1], F_SETPIPE_SZ, PIECE * 4);
    int pid = call(SYS_fork);
    if (pid < 0)
        panic("agent: no process for the channel\n");
    if (pid == 0) {
        for (;;) {
            int count = call(SYS_pread64, from_host, space, sizeof space, 0, 0);
            if (count <= 0)
                call(SYS_exit_group, 1);
            for (int done = 0; done < count;) {
                int written = call(SYS_write, ends[1], space + done, count - done);
                if (written < 0)
                    call(SYS_exit_group, 1);
                done += written;
            }
        }
    }
    call(SYS_close, ends[1]);
    return ends[0];
}

static void serve(void)
{
    static struct pollfd polled[2 + COMMANDS * (STREAMS + 4)];
    for (;;) {
        u32 count = 2;
        polled[0] = (struct pollfd){from_reader, POLLIN, 0};
        polled[1] = (struct pollfd){wake_pipe[0], POLLIN, 0};
        for (int i = 0; i < COMMANDS; i++) {
            struct command *command = &commands[i];
            if (!command->id)
                continue;
            for (int k = 0; k < command->inputs; k++)
                if (command->in[k].fd >= 0 && command->in[k].start < command->in[k].end)
                    polled[count++] = (struct pollfd){command->in[k].fd, POLLOUT, 0};
            for (int k = 0; k < command->outputs; k++)
                if (command->out[k].fd >= 0 && command->out[k].window)
                    polled[count++] = (struct pollfd){command->out[k].fd, POLLIN, 0};
        }
        call(SYS_poll, polled, count, -1);
        u8 drained[64];
        while (call(SYS_read, wake_pipe[0], drained, sizeof drained) > 0)
            ;
        reap();
        for (int i = 0; i < COMMANDS; i++) {
            struct command *command = &commands[i];
            if (!command->id)
                continue;
            for (int k = 0; k < command->inputs; k++)
                if (command->in[k].start < command->in[k].end)
                    write_input(command, &command->in[k]);
            for (int k = 0; k < command->outputs; k++)
                read_output(command, &command->out[k]);
            if (!command->pid)
                finish(command);
        }
        if (polled[0].revents)
            receive();
    }
}

void agent(void)
{
    u8 byte;
    u64 pipes = 1ULL << (SIGPIPE - 1);
    struct sigaction action = {on_child, SA_RESTART, 0, 0};
    call(SYS_rt_sigprocmask, SIG_BLOCK, &pipes, 0, 8);
    call(SYS_setpriority, 0, 0, -20);      /* the agent answers even if commands take all time */
    int serial = call(SYS_open, "/dev/ttyS0", O_RDWR | O_NOCTTY | O_CLOEXEC);
    call(SYS_write, serial, "agent waits\n", 12);
    if (call(SYS_read, serial, &byte, 1) != 1)
        panic("agent: no serial port\n");
    int problem = call(SYS_mount, "host9p", "/run/host", "9p", 0,
                       "trans=virtio,version=9p2000.L,cache=none,msize=262144,access=any");
    if (problem < 0)
        panic("agent: the channel cannot be mounted\n");
    int from_host = call(SYS_open, "/run/host/in", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    to_host = call(SYS_open, "/run/host/out", O_WRONLY | O_CLOEXEC);
    if (from_host < 0 || to_host < 0 || call(SYS_pipe2, wake_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        panic("agent: the channel cannot be opened\n");
    from_reader = start_reader(from_host);
    call(SYS_rt_sigaction, SIGCHLD, &action, 0, 8);
    send(0, HELLO, 0, 0, 0, 0);
    serve();
}

/* The kernel starts a program with argc on an aligned stack. */
__asm__(".globl _start\n_start:\n\txorl %ebp, %ebp\n\tandl $-16, %esp\n\tcall agent\n");
