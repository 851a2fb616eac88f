/* What a client sends to the server: this, with its files, and then its words, each ended by a zero. */
enum { DIRECTORY = 3, PASSED_FILES = 4, REFUSED = 125 };

struct request {
	unsigned arguments;
	unsigned variables;
	unsigned long length;
};
