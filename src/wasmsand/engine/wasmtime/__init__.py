"""The wasmtime engine, over wasmtime's C API.

    c_declarations  the C API's declarations; _c_types is generated from them
    bindings        the loaded library
    config          engine settings
    compiler        bytes to compiled modules
    compile_cache   compiled modules on disk
    apart           modules that guests made, compiled by a worker
    compile_pool    the workers, and who gets one
    worker_process  one worker, as the host sees it
    compile_worker  the worker process itself
    module_shape    what the worker checks before it compiles
    imports         what guests can import
    hostcalls       where guests enter Python
    epochs          the ticker
    fault_handlers  wasmtime's signal handlers, kept in place
    threads         the pool of deep threads
    module          a compiled program
    instance        one program in memory
    store           that program, in C
    guest_thread    a further thread of a program
    shared_memory   memories that threads share
    holdings        what an instance holds beside its memory
    memory_image    captured memory, laid under new instances
    touched_pages   what a fork must copy
    resident_pages  what stacks really take
    traps           why a guest stopped
    runtime         what modules and instances share
    abilities       what this engine can do beyond the protocol
    engine          all of it together

Importing this package's modules loads the C library. Nothing outside of `wasmsand.engine` does:
see `engine/choosing.py`.
"""
