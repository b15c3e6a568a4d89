// record_fields.c as C++.
#include "record_fields.c"
