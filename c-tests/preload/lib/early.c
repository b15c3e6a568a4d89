/* A library whose constructor, which runs before all others, does to the environment what the program's argument says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

__attribute__((constructor)) static void early(int argc, char **argv)
{
    static char one[] = "OWN=1", *own[] = {one, NULL}, *none[] = {NULL}, text[5000];
    const char *what = argc > 2 ? argv[1] : "";
    if (!strcmp(what, "clearenv"))
        clearenv();
    if (!strcmp(what, "no environ"))
        environ = NULL;
    if (!strcmp(what, "an empty environ"))
        environ = none;
    if (!strcmp(what, "an environ of its own"))
        environ = own;
    if (!strcmp(what, "emptied in its place"))
        environ[0] = NULL;
    if (!strcmp(what, "setenv")) {
        clearenv();
        setenv("OWN", "1", 1);
    }
    if (!strcmp(what, "putenv") && getenv("TOPDOWN_OUTPUT")) {
        snprintf(text, sizeof text, "TOPDOWN_OUTPUT=%s/own.topdown", argv[2]);
        putenv(text);
    }
}
