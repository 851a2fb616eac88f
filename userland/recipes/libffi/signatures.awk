# Writes signatures.h: the types of functions that can be called, and that callbacks can have.
#
# A WebAssembly function is called by its exact type, so for each type there is a piece of code
# that does it, and for each callback a function that was there from the start. A type is a word
# of letters, the result last: i and l are integers of 32 and 64 bits, f and d floating point
# numbers of 32 and 64, v is no result. Tables are sorted by length, then by letters.

# All words of `count` letters out of `letters`, which are sorted, are given to visit().
function words(letters, count, word,    i) {
	if (!count) { visit(word); return }
	for (i = 1; i <= length(letters); i++) words(letters, count - 1, word substr(letters, i, 1))
}

function can_be_called(word) {
	if (length(word) <= 3) return 1
	if (length(word) == 4) return word !~ /f/
	return word ~ /^[il]*$/ || word ~ /^[di]*$/
}

function callback_count(word, result) {
	if (word ~ /^i*$/ && result ~ /[iv]/) return length(word) <= 6 ? 64 : 0
	if (word ~ /^[dil]*$/ && length(word) <= 3) return 4
	return length(word) <= 2 ? 2 : 0
}

function visit(word,    i, result) {
	if (!can_be_called(word)) return
	for (i = 1; i <= 5; i++) {
		result = substr("dfilv", i, 1)
		make_call(word, result)
		make_callbacks(word, result, callback_count(word, result))
	}
}

# The types of the parameters, each with a name if `named`.
function parameters(word, named,    i, list) {
	for (i = 1; i <= length(word); i++)
		list = list (i > 1 ? ", " : "") type[substr(word, i, 1)] (named ? " a" i - 1 : "")
	return list ? list : "void"
}

function make_call(word, result,    i, arguments) {
	for (i = 1; i <= length(word); i++)
		arguments = arguments (i > 1 ? ", " : "") "a[" i - 1 "]." substr(word, i, 1)
	printf "static void call_%s%s(ffi_fp f, union word *r, const union word *a)\n", word, result
	printf "{ %s((%s (*)(%s))f)(%s); }\n", result == "v" ? "" : "r->" result " = ", type[result],
		parameters(word, 0), arguments
	calls[++call_count] = sprintf("{ \"%s%s\", call_%s%s }", word, result, word, result)
}

function make_callbacks(word, result, count,    i, slot, values) {
	if (!count) return
	for (i = 1; i <= length(word); i++)
		values = values (i > 1 ? ", " : "") "{ ." substr(word, i, 1) " = a" i - 1 " }"
	for (slot = slots; slot < slots + count; slot++) {
		printf "static %s callback_%d(%s)\n", type[result], slot, parameters(word, 1)
		printf "{ union word a[] = { %s }; union word r = run_callback(%d, a); %s}\n",
			values ? values : "{ 0 }", slot, result == "v" ? "(void)r; " : "return r." result "; "
	}
	pools[++pool_count] = sprintf("{ \"%s%s\", %d, %d }", word, result, slots, count)
	slots += count
}

BEGIN {
	type["v"] = "void"; type["i"] = "int32_t"; type["l"] = "int64_t"
	type["f"] = "float"; type["d"] = "double"
	for (n = 0; n <= 6; n++) words("dfil", n, "")
	for (; n <= 16; n++) words("i", n, "") # MOST_WORDS of wasm32.c

	print "static const struct call calls[] = {"
	for (i = 1; i <= call_count; i++) print calls[i] ","
	print "};\nstatic const struct pool pools[] = {"
	for (i = 1; i <= pool_count; i++) print pools[i] ","
	print "};\nstatic const ffi_fp callbacks[] = {"
	for (i = 0; i < slots; i++) printf "(ffi_fp)callback_%d,\n", i
	print "};"
}
