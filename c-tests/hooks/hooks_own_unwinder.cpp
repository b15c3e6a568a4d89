// The same as hooks_exceptions in a program that has an unwinder of its own in its file (-static-libgcc -static-libstdc++).
#include "hooks_exceptions.cpp"
