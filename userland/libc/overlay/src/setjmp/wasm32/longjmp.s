# longjmp by pointer; direct calls are compiled to __wasm_longjmp. In assembly,
# because the compiler treats the name longjmp specially wherever it meets it.

	.functype	__throw_longjmp (i32, i32) -> ()

	.section	.text.longjmp,"",@
	.globl	longjmp
	.type	longjmp,@function
longjmp:
	.functype	longjmp (i32, i32) -> ()
	local.get	0
	local.get	1
	call	__throw_longjmp
	unreachable
	end_function

	.weak	_longjmp
	.type	_longjmp,@function
	.set	_longjmp, longjmp
