//! libtopdown-preload.so: loaded before a program's own libraries (LD_PRELOAD), it measures the program's threads and
//! regions from start to end, and the program runs as it would without.

mod engine;

mod names;
mod overlap;

mod itt;
mod likwid;
