"""The wasmtime driver, over the C API.

    c_declarations  the C API's declarations; _c_types is generated from them
    bindings        the loaded library
    config          engine settings
    compiler        bytes to compiled modules
    compile_cache   compiled modules on disk
    apart           modules that guests made, compiled by a worker
    compile_pool    the workers, and who gets one
    compile_worker  the worker process itself
    module_shape    what it looks at before it compiles
    hostcalls       where guests enter Python
    epochs          the ticker
    fault_handlers  wasmtime's signal handlers, kept in place
    threads         the pool of deep threads
    module          a compiled program
    instance        one program in memory
    holdings        what it holds beside its memory
    memory_image    captured memory, laid under new instances
    fork            Asyncify
    touched_pages   what a fork must copy
    resident_pages  what stacks really take
    traps           why a guest stopped
    runtime         what modules and instances share
    engine          all of it together

Import from `wasmsand.engine` what is public; this package loads the C library.
"""
