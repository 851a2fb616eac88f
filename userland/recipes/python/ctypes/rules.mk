
# How symbols.cpp is compiled; appended to Makefile.pre.in.
Modules/_ctypes/symbols.o: Modules/_ctypes/symbols.cpp pyconfig.h
	$(CC) -x c++ -std=c++20 -fno-exceptions -fno-rtti $(CONFIGURE_CFLAGS) $(PY_CPPFLAGS) -c $< -o $@
