/* The version of the header is that of the library, as text and as a number. */
#include "check.h"

#if TD_VERSION != TD_VERSION_MAJOR * 1000000 + TD_VERSION_MINOR * 1000 + TD_VERSION_PATCH
#error "the preprocessor cannot compare versions"
#endif

int main(void)
{
    char text[64];
    snprintf(text, sizeof text, "%d.%d.%d", TD_VERSION_MAJOR, TD_VERSION_MINOR, TD_VERSION_PATCH);
    CHECK_EQ(strcmp(td_version(), text), 0);
    return 0;
}
