/* What mmap counts in; memory itself grows by 64 KiB. */
#define PAGESIZE 4096
