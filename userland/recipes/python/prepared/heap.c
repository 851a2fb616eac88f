
/* Appended to main.c: the heap as it is stored.
 *
 * Memory of the checkpoint is shared by all interpreters, page by page, until one of them
 * writes to it. Two things would have them write all over it: counts of references, and the
 * allocator, which first fills what is free between stored objects. */
#include "pycore_code.h"
#include "pycore_object.h"
#include "pycore_obmalloc.h"
#include <sys/mman.h>

/* What the libc maps for the buffer of a stream. */
enum { STREAM_BUFFER_SIZE = 128 * 1024 + 4096 };

struct pending {
	PyObject **objects;
	size_t count, room;
};

/* An immortal object's count of references is never written. */
static int make_immortal(PyObject *object, void *argument)
{
	struct pending *pending = argument;
	if (!object || _Py_IsImmortal(object)) return 0;
	_Py_SetImmortalUntracked(object);
	if (pending->count == pending->room) {
		pending->room = pending->room ? pending->room * 2 : 1024;
		pending->objects = PyMem_RawRealloc(pending->objects,
			pending->room * sizeof *pending->objects);
		if (!pending->objects) Py_FatalError("no memory to prepare the heap");
	}
	pending->objects[pending->count++] = object;
	return 0;
}

/* The collector does not know code objects, and so they cannot be traversed. */
static void visit_code(PyCodeObject *code, struct pending *pending)
{
	PyObject *parts[] = {
		code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames,
		code->co_localspluskinds, code->co_filename, code->co_name, code->co_qualname,
		code->co_linetable,
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) make_immortal(parts[i], pending);
}

static void make_all_immortal(PyObject *known_to_collector)
{
	struct pending pending = { 0 };
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(known_to_collector); i++)
		make_immortal(PyList_GET_ITEM(known_to_collector, i), &pending);
	while (pending.count) {
		PyObject *object = pending.objects[--pending.count];
		if (PyCode_Check(object)) visit_code((PyCodeObject *)object, &pending);
		else if (Py_TYPE(object)->tp_traverse)
			Py_TYPE(object)->tp_traverse(object, make_immortal, &pending);
	}
	PyMem_RawFree(pending.objects);
}

/* Takes every free block of one size that lies between others, for good. */
static void fill_pools(size_t size)
{
	for (;;) {
		char *block = PyObject_Malloc(size);
		size_t offset = (uintptr_t)block % POOL_SIZE;
		if (!block || offset == POOL_OVERHEAD) {
			PyObject_Free(block); /* the first one of a new pool */
			return;
		}
	}
}

/* Takes every gap between mappings that has this size, for good. A gap that is used again is
 * cleared first, and so written; memory that was never used need not be. */
static void fill_gaps(size_t size)
{
	char *previous = 0;
	/* The lowest gap is taken first, so the last ones follow each other, behind everything. */
	for (int neighbours = 0; neighbours < 2;) {
		char *start = mmap(0, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
		if (start == MAP_FAILED) return;
		neighbours = start == previous + size ? neighbours + 1 : 0;
		previous = start;
	}
}

static void settle_heap(void)
{
	PyObject *collector = PyImport_ImportModule("gc");
	PyObject *known = collector ? PyObject_CallMethod(collector, "get_objects", NULL) : 0;
	if (!known) fail();
	make_all_immortal(known);
	/* From here on the collector leaves them alone: they are in no generation any more. */
	PyObject *done = PyObject_CallMethod(collector, "freeze", NULL);
	if (!done) fail();
	for (size_t size = ALIGNMENT; size <= SMALL_REQUEST_THRESHOLD; size += ALIGNMENT)
		fill_pools(size);
	fill_gaps(ARENA_SIZE);
	fill_gaps(STREAM_BUFFER_SIZE);
}
