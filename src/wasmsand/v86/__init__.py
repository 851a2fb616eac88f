"""A whole Linux as a sandbox: a v86 machine in a Node process, behind the SDK's `Backend`.

    image       the built machine: emulator, kernel, disks, saved state
    confined    starts Node without rights that it does not need
    node        the Node process and its pipes
    machine.mjs what runs in Node: the emulator and the channel to the guest
    frames      frames of the channel
    agent       requests to the agent, which is process 1 of the guest
    command     a command in the guest and its streams
    linux       system calls of the guest (i386)
    files       file operations, made of system calls
    disk        disk images: what the user has changed
    machine     one machine: started from its saved state, and again when it is lost
    backend     `V86Backend`

Rules: the guest is hostile, and so is everything that comes through the channel. A machine that is
lost (its kernel has panicked, Node was killed, nobody answers) fails the calls in flight with an
error that says so, and the next call starts it again. Imported only if a sandbox has this mode.
"""
