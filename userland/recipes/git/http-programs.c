/*
 * Which of git's two programs that speak HTTP was started: git-http-fetch, or git-remote-http
 * under one of its names. `config.mak` gives their main functions these names.
 */
#include "git-compat-util.h"
#include "strbuf.h"

int main_of_remote_http(int argc, const char **argv);
int main_of_http_fetch(int argc, const char **argv);

int cmd_main(int argc, const char **argv)
{
	if (argc && ends_with(argv[0], "http-fetch"))
		return main_of_http_fetch(argc, argv);
	return main_of_remote_http(argc, argv);
}
