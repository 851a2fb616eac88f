/* Foreign calls for WebAssembly without a host that makes functions: takes the place of
 * src/wasm32/ffi.c.
 *
 * A function is called through a table of all the types that calls can have, and a callback is
 * one of a fixed number of functions for its type, which signatures.awk has written. A callback
 * whose type is not there is refused (FFI_BAD_TYPEDEF), and so is one when all of its type are in
 * use.
 *
 * Two things differ from other ports. The address of a callback is not known before its type is:
 * after ffi_prep_closure_loc it stands in the closure (ftramp), and what ffi_closure_alloc gave is
 * to be forgotten. And a function that is called by a type that it has not would end the program;
 * so a program that knows the types of its functions can say so (ffi_wasm_signature), and
 * arguments are then made to fit, as they do on machines that have registers. Whether a call is
 * possible thus depends on the function: ffi_wasm_can_call is to be asked before ffi_call. */
#include <ffi.h>
#include <ffi_common.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* An argument or a result as WebAssembly has it. */
union word {
	int32_t i;
	int64_t l;
	float f;
	double d;
};

struct call {
	const char *signature;
	void (*call)(ffi_fp, union word *, const union word *);
};

struct pool {
	const char *signature;
	int first, count;
};

static union word run_callback(int slot, union word *words);
#include "signatures.h"

static ffi_closure *slots[sizeof callbacks / sizeof *callbacks];

/* If set: the signature of a function that the program knows, or null. A star after the
 * parameters says that others may follow. */
const char *(*ffi_wasm_signature)(ffi_fp);

static int compare(const void *searched, const void *entry)
{
	const char *a = searched, *b = *(const char *const *)entry;
	size_t length = strlen(a), other = strlen(b);
	return length == other ? memcmp(a, b, length) : length < other ? -1 : 1;
}

#define FIND(table, signature) \
	bsearch(signature, table, sizeof table / sizeof *table, sizeof *table, compare)

/* The one member that a structure consists of, for which it is passed, or the type itself. */
static const ffi_type *innermost(const ffi_type *type)
{
	while (type->type == FFI_TYPE_STRUCT && type->elements && type->elements[0]
		&& !type->elements[1] && type->elements[0]->size == type->size)
		type = type->elements[0];
	return type;
}

/* The letter of a type that is passed by its value; 'p' if it is passed by its address, 'q' for
 * two words, 0 if it is not passed at all. */
static char letter(const ffi_type *type)
{
	switch (innermost(type)->type) {
	case FFI_TYPE_VOID: return 'v';
	case FFI_TYPE_UINT64: case FFI_TYPE_SINT64: return 'l';
	case FFI_TYPE_FLOAT: return 'f';
	case FFI_TYPE_DOUBLE: return 'd';
	case FFI_TYPE_LONGDOUBLE: return 'q';
	case FFI_TYPE_STRUCT: return type->size ? 'p' : 0;
	case FFI_TYPE_COMPLEX: return 'p';
	default: return 'i';
	}
}

/* A result that is written to an address, which the caller passes first. */
static bool is_indirect(const ffi_type *result)
{
	char kind = letter(result);
	return kind == 'p' || kind == 'q';
}

static ffi_status signature_of(const ffi_cif *cif, char *signature)
{
	int count = 0;
	bool indirect = is_indirect(cif->rtype);
	if (indirect) signature[count++] = 'i';
	for (unsigned i = 0; i < cif->nfixedargs; i++) {
		char kind = letter(cif->arg_types[i]);
		if (count + 2 > MOST_WORDS) return FFI_BAD_TYPEDEF;
		if (kind == 'q') signature[count++] = 'l';
		if (kind) signature[count++] = kind == 'q' ? 'l' : kind == 'p' ? 'i' : kind;
	}
	if (cif->flags) { /* the address of further arguments */
		if (count == MOST_WORDS) return FFI_BAD_TYPEDEF;
		signature[count++] = 'i';
	}
	char result = letter(cif->rtype);
	signature[count++] = indirect || !result ? 'v' : result;
	signature[count] = 0;
	return FFI_OK;
}

static ffi_status prepare(ffi_cif *cif, unsigned fixed, bool variadic)
{
	char signature[MOST_WORDS + 2];
	cif->nfixedargs = fixed;
	cif->flags = variadic;
	return signature_of(cif, signature);
}

static const char *known_signature(ffi_fp function)
{
	return ffi_wasm_signature ? ffi_wasm_signature(function) : 0;
}

/* Whether ffi_call has the code to call this function with these types. */
int ffi_wasm_can_call(const ffi_cif *cif, ffi_fp function)
{
	char signature[MOST_WORDS + 2];
	const char *known = known_signature(function);
	size_t length = known ? strlen(known) : 0;
	if (length > MOST_WORDS + 1) return 0;
	if (!known) return signature_of(cif, signature) == FFI_OK && FIND(calls, signature);
	for (size_t i = 0; i <= length; i++) signature[i] = known[i] == '*' ? 'i' : known[i];
	return !!FIND(calls, signature);
}

ffi_status FFI_HIDDEN ffi_prep_cif_machdep(ffi_cif *cif)
{
	return prepare(cif, cif->nargs, false);
}

ffi_status FFI_HIDDEN ffi_prep_cif_machdep_var(ffi_cif *cif, unsigned fixed, unsigned all)
{
	(void)all;
	return prepare(cif, fixed, true);
}

/* Reads an integer as wide as its type, and makes it as wide as a word. */
static union word load(const ffi_type *type, const void *value)
{
	union word word = { .l = 0 };
	switch (innermost(type)->type) {
	case FFI_TYPE_UINT8: word.i = *(const uint8_t *)value; break;
	case FFI_TYPE_SINT8: word.i = *(const int8_t *)value; break;
	case FFI_TYPE_UINT16: word.i = *(const uint16_t *)value; break;
	case FFI_TYPE_SINT16: word.i = *(const int16_t *)value; break;
	case FFI_TYPE_UINT64: case FFI_TYPE_SINT64: case FFI_TYPE_DOUBLE:
		memcpy(&word, value, 8);
		break;
	default: memcpy(&word, value, 4);
	}
	return word;
}

static void store_result(const ffi_type *type, void *place, union word word)
{
	switch (type->type) {
	case FFI_TYPE_VOID: return;
	/* Integers are made as wide as an ffi_arg, but not those in structures. */
	case FFI_TYPE_UINT8: *(ffi_arg *)place = (uint8_t)word.i; return;
	case FFI_TYPE_SINT8: *(ffi_sarg *)place = (int8_t)word.i; return;
	case FFI_TYPE_UINT16: *(ffi_arg *)place = (uint16_t)word.i; return;
	case FFI_TYPE_SINT16: *(ffi_sarg *)place = (int16_t)word.i; return;
	default: memcpy(place, &word, type->size);
	}
}

/* One kind of number as another, where a function is called by other types than its own. */
static union word convert(union word word, char from, char to)
{
	union word result = { .l = 0 };
	if (from == to) return word;
	double number = from == 'f' ? word.f : word.d;
	int64_t integer = from == 'i' ? word.i : from == 'l' ? word.l : 0;
	bool floating = from == 'f' || from == 'd';
	switch (to) {
	case 'i': result.i = (int32_t)integer; break;
	case 'l': result.l = integer; break;
	case 'f': result.f = floating ? (float)number : 0; break;
	case 'd': result.d = floating ? number : 0; break;
	}
	return result;
}

/* A call as it is put together. */
struct frame {
	union word words[MOST_WORDS];
	char kinds[MOST_WORDS + 2];
	int count;
};

static void push(struct frame *frame, char kind, union word word)
{
	frame->kinds[frame->count] = kind;
	frame->words[frame->count++] = word;
}

static union word address(const void *pointer)
{
	return (union word) { .i = (int32_t)(uintptr_t)pointer };
}

/* A structure is passed by the address of a copy, which the function may change. */
#define COPY(type, value) memcpy(alloca((type)->size), value, (type)->size)

/* The bytes that further arguments can take: each at most its size, aligned. */
static size_t further_size(const ffi_cif *cif, unsigned fixed)
{
	size_t size = 0;
	for (unsigned i = fixed; i < cif->nargs; i++) size += cif->arg_types[i]->size + 16;
	return size + 16;
}

void ffi_call(ffi_cif *cif, ffi_fp function, void *rvalue, void **avalue)
{
	struct frame frame = { .count = 0 };
	char signature[MOST_WORDS + 2];
	const char *known = known_signature(function);
	const char *star = known ? strchr(known, '*') : 0;
	unsigned fixed = cif->nfixedargs;
	bool variadic = cif->flags;

	if (known) {
		variadic = star;
		if (star && (unsigned)(star - known) < cif->nargs) fixed = star - known;
		else fixed = cif->nargs;
	}
	bool indirect = is_indirect(cif->rtype);
	if (indirect) push(&frame, 'i', address(rvalue ? rvalue : alloca(cif->rtype->size)));
	for (unsigned i = 0; i < fixed && frame.count + 2 <= MOST_WORDS; i++) {
		const ffi_type *type = cif->arg_types[i];
		char kind = letter(type);
		if (kind == 'q') {
			push(&frame, 'l', load(&ffi_type_uint64, avalue[i]));
			push(&frame, 'l', load(&ffi_type_uint64, (char *)avalue[i] + 8));
		} else if (kind == 'p') {
			push(&frame, 'i', address(COPY(type, avalue[i])));
		} else if (kind) {
			push(&frame, kind, load(type, avalue[i]));
		}
	}

	/* Those that may follow are passed in memory, by their address. */
	if (variadic) {
		char *area = alloca(further_size(cif, fixed)), *end = area;
		for (unsigned i = fixed; i < cif->nargs; i++) {
			const ffi_type *type = cif->arg_types[i];
			char kind = letter(type);
			size_t align = kind == 'l' || kind == 'd' ? 8 : kind == 'q' ? 16 : 4;
			if (!kind) continue;
			end = (char *)(((uintptr_t)end + align - 1) & -align);
			if (kind == 'q') {
				memcpy(end, avalue[i], 16);
				end += 16;
			} else {
				union word word = kind == 'p' ? address(COPY(type, avalue[i]))
					: load(type, avalue[i]);
				if (kind == 'f') word = convert(word, 'f', 'd');
				memcpy(end, &word, align);
				end += align;
			}
		}
		if (known) { /* all that come before, even if fewer were given */
			while (frame.count < star - known) push(&frame, 'i', address(0));
		}
		push(&frame, 'i', address(area));
	}

	char result = letter(cif->rtype);
	if (!result || indirect) result = 'v';
	char returned = result;
	if (known) {
		int wanted = 0;
		for (const char *kind = known; kind[1]; kind++) {
			if (*kind == '*') {
				frame.kinds[wanted] = 'i';
			} else if (wanted >= frame.count) {
				frame.words[wanted] = address(0);
			} else {
				frame.words[wanted] = convert(frame.words[wanted], frame.kinds[wanted], *kind);
			}
			signature[wanted++] = *kind == '*' ? 'i' : *kind;
		}
		returned = known[strlen(known) - 1];
		frame.count = wanted;
	} else {
		memcpy(signature, frame.kinds, frame.count);
	}
	signature[frame.count] = returned;
	signature[frame.count + 1] = 0;

	const struct call *call = FIND(calls, signature);
	if (!call) abort(); /* ffi_wasm_can_call was not asked */
	union word word = { .l = 0 };
	call->call(function, &word, frame.words);
	if (rvalue && result != 'v') store_result(cif->rtype, rvalue, convert(word, returned, result));
}

void *ffi_closure_alloc(size_t size, void **code)
{
	*code = 0;
	return calloc(1, size < sizeof(ffi_closure) ? sizeof(ffi_closure) : size);
}

void ffi_closure_free(void *closure)
{
	for (size_t slot = 0; slot < sizeof slots / sizeof *slots; slot++)
		if (slots[slot] == closure) slots[slot] = 0;
	free(closure);
}

ffi_status ffi_prep_closure_loc(ffi_closure *closure, ffi_cif *cif,
	void (*function)(ffi_cif *, void *, void **, void *), void *user_data, void *code)
{
	(void)code;
	char signature[MOST_WORDS + 2];
	if (cif->flags || signature_of(cif, signature) != FFI_OK) return FFI_BAD_TYPEDEF;
	const struct pool *pool = FIND(pools, signature);
	for (int slot = pool ? pool->first : 0; pool && slot < pool->first + pool->count; slot++) {
		if (slots[slot] && slots[slot] != closure) continue;
		slots[slot] = closure;
		closure->ftramp = (void *)callbacks[slot];
		closure->cif = cif;
		closure->fun = function;
		closure->user_data = user_data;
		return FFI_OK;
	}
	return FFI_BAD_TYPEDEF;
}

static union word run_callback(int slot, union word *words)
{
	ffi_closure *closure = slots[slot];
	if (!closure) abort(); /* it was freed */
	ffi_cif *cif = closure->cif;
	void *values[MOST_WORDS];
	bool indirect = is_indirect(cif->rtype);
	/* Integers come back as wide as an ffi_arg, and structures as they are. */
	union word result = { .l = 0 };
	void *place = indirect ? (void *)(uintptr_t)words->i : &result;
	if (indirect) words++;
	for (unsigned i = 0; i < cif->nargs; i++) {
		char kind = letter(cif->arg_types[i]);
		values[i] = kind == 'p' ? (void *)(uintptr_t)words->i : words;
		words += kind == 'q' ? 2 : kind != 0;
	}
	closure->fun(cif, place, values, closure->user_data);
	return result;
}
