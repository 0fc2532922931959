/* SPDX-License-Identifier: MIT */
#include "analyzers/analyzer.h"

const struct an_class *const an_classes[] = {
	&an_class_trace, &an_class_cpu, &an_class_gc, &an_class_tasks, NULL,
};
