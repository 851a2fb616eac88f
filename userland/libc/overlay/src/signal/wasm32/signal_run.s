# __signal_run() is called by the host between two loop turns of the program. A leaf function keeps up to 128 bytes below the stack pointer without
# moving it: step over them before C code uses the stack.

	.globaltype	__stack_pointer, i32
	.functype	__signal_run_for_host () -> ()

	.section	.text.__signal_run,"",@
	.globl	__signal_run
	.type	__signal_run,@function
__signal_run:
	.functype	__signal_run () -> ()
	.local	i32
	global.get	__stack_pointer
	local.tee	0
	i32.const	128
	i32.sub
	global.set	__stack_pointer
	call	__signal_run_for_host
	local.get	0
	global.set	__stack_pointer
	end_function
