/* SPDX-License-Identifier: MIT */
/* Functions that have no safe use here become compile errors. */
#ifndef TOOLS_BANNED_H
#define TOOLS_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef alloca /* a macro in the C library */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok
#pragma GCC poison atoi atol atoll atof gets alloca

#endif
