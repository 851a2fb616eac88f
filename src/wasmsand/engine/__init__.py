"""WebAssembly.

protocol        what every engine must do
abilities       what an engine may lack, and the fallback
compile_orders  orders to compile modules that guests made
shipped_modules compiled modules that installed packages bring along
choosing        which engine this host process uses
asyncify        fork, for any engine
forking         locks when the host process forks
wasmtime        the engine of this package, over wasmtime's C API
"""

from wasmsand.engine.choosing import default_engine as default_engine
