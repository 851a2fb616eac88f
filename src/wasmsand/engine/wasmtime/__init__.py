"""The wasmtime engine, over wasmtime's C API.

    c_declarations  the C API's declarations; _c_types is generated from them
    bindings        the loaded library
    config          engine settings
    compiler        compiles bytes to modules
    compile_cache   compiled modules on disk
    shipped         compiled modules of installed packages
    processors      the processors that those are compiled for
    apart           modules that guests made, compiled by a worker
    compile_pool    the workers, and the order in which they are assigned
    worker_process  one worker, from the host's side
    compile_worker  the code of a worker process
    module_shape    what the worker checks before it compiles
    imports         what guests can import
    hostcalls       the C callbacks through which guests call Python
    epochs          the ticker
    fault_handlers  wasmtime's signal handlers, kept in place
    threads         the pool of deep threads
    module          a compiled program
    instance        one program in memory
    store           that program, in C
    guest_thread    a further thread of a program
    shared_memory   memories that threads share
    holdings        the memory of an instance besides its linear memory
    memory_image    captured memory with which new instances start
    touched_pages   what a fork must copy
    resident_pages  how much of a stack is resident
    traps           why a guest stopped
    runtime         what modules and instances share
    abilities       what this engine can do beyond the protocol
    engine          the engine itself

Importing this package's modules loads the C library. Code outside `wasmsand.engine` does not import
them: see `engine/choosing.py`.
"""
