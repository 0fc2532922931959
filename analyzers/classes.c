/* SPDX-License-Identifier: MIT */
#include "analyzers/analyzer.h"

const struct an_class *const an_classes[] = {
	&an_class_trace,
	&an_class_cpu,
	&an_class_gc,
	&an_class_alloc,
	&an_class_tasks,
	&an_class_locks,
	&an_class_threadpool,
	&an_class_threads,
	&an_class_exceptions,
	&an_class_jit,
	&an_class_counters,
	&an_class_stacks,
	NULL,
};

const struct an_param an_params_rows[] = {
	{ "top", "rows of each table; 0: all", "number", "20", "0..1000000" },
	{ 0 },
};
