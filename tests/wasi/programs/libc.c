// What the C library makes of paths: absolute, relative, above the working directory.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show(const char *path) {
    char text[64] = "";
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("%s: %s\n", path, strerror(errno));
        return;
    }
    if (fgets(text, sizeof text, file)) text[strcspn(text, "\n")] = 0;
    fclose(file);
    printf("%s: %s\n", path, text);
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) show(arguments[i]);
    FILE *out = fopen("made", "w");
    fprintf(out, "by the libc\n");
    fclose(out);
    show("made");
    mkdir("sub", 0777);
    chdir("sub");
    show("../made");
    show("/etc/hostname");
    chdir("..");
    DIR *directory = opendir(".");
    int entries = 0;
    for (struct dirent *entry; (entry = readdir(directory));) entries += entry->d_name[0] != '.';
    closedir(directory);
    printf("%d entries, a terminal: %d %d, PWD %s\n", entries, isatty(0), isatty(1), getenv("PWD"));
    return 0;
}
