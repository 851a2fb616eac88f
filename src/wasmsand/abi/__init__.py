"""Guest ABIs: how a WebAssembly program calls the kernel."""
