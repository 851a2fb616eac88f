"""The public Python API. Import its names from `wasmsand`.

Layout, lowest first (each imports only from those above it):

    results, errors    what is returned and what is raised
    arguments          checks of what callers pass in
    option_table, options
                       the table of options; SandboxOptions: everything that a sandbox is made from
    backend            Backend, the seam below the API: what a kind of sandbox has to provide
    polled_process     started commands of backends that are reached by requests
    unsupported        what backends of other processes and servers do not offer
    local              LocalBackend: a machine of this process
    opening            which backend a sandbox gets; those of higher layers by name only
    attachment         what the parts of one sandbox share
    output             output of commands: collecting and decoding
    globbing           patterns of file names
    transfer           trees between host and sandbox; the only code that writes to the host
    environment, command_builder
                       variables; requests for commands, the same for every interface
    command_handle, commands, watching, files
                       the parts of a sandbox
    conversation, shell, python_session
                       interpreters that keep their state (python_driver runs in the sandbox)
    sandbox, pool      Sandbox, SandboxPool
    async_calls        blocking calls on threads, cancellation
    async_sandbox      AsyncSandbox and its parts, made by scripts/make_async.py

Rules: only `local` knows the machine (values of commands are those of `machine/command.py`);
whatever may wait goes through the backend; every class that blocks has a twin in `async_sandbox`,
which is never edited by hand.
"""
