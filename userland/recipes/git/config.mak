# Both programs that speak HTTP are one, which has libcurl and OpenSSL once: `http-programs.c`
# calls the one whose name it was started by.
remote-curl.o: EXTRA_CPPFLAGS = -Dcmd_main=main_of_remote_http
http-fetch.o: EXTRA_CPPFLAGS = -Dcmd_main=main_of_http_fetch
OBJECTS += http-programs.o
git-remote-http: http-fetch.o http-programs.o
