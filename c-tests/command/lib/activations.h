/* activations.h: functions of one program, each with the mix of mix_of_function (functions.h) of its place. */
#ifndef ACTIVATIONS_H
#define ACTIVATIONS_H
#include "functions.h"

enum { LEAF, DOWN_A, DOWN_B, JUMP_A, JUMP_B, HOST, INNER, ACTIVE };
#endif
