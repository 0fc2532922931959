/* SPDX-License-Identifier: MIT */

/* What types of the base library mean for who waits for whom (runtime-events.md §5.8). */

#include <stdio.h>

#include "analyzers/heap/tasks_heap_internal.h"
#include "analyzers/names.h"

/* How a name is told: as it is, or by its beginning. */
static const struct {
	const char *name;
	enum th_kind kind;
	bool prefix;
} names[] = {
	{ "AsyncStateMachineBox`1[", TH_BOX, true },
	{ "DebugFinalizableAsyncStateMachineBox`1[", TH_BOX, true },
	{ "StateMachineBox`1[", TH_BOX, true },
	{ "Task", TH_TASK, false },
	{ "Task`1[", TH_TASK, true },
	{ "WhenAllPromise", TH_WHEN_ALL, true },
	{ "CompleteOnInvokePromise", TH_WHEN_ANY, true },
	{ "TwoTaskWhenAnyPromise", TH_WHEN_ANY, true },
	{ "UnwrapPromise`1[", TH_UNWRAP, true },
	{ "ContinuationTaskFrom", TH_CONTINUE_WITH, true },
	{ "ContinuationResultTaskFrom", TH_CONTINUE_WITH, true },
	{ "CancellationPromise`1[", TH_WAIT_ASYNC, true },
	{ "DelayPromise", TH_DELAY, true },
	{ "TaskNode", TH_SEMAPHORE, false },
	{ "ContinueWithTaskContinuation", TH_CONTINUATION, false },
	{ "StandardTaskContinuation", TH_CONTINUATION, false },
	{ "SetOnInvokeMres", TH_BLOCKED, false },
	{ "SetOnCountdownMres", TH_BLOCKED, false },
	{ "ContinuationWrapper", TH_WRAPPER, false },
	{ "SynchronizationContextAwaitTaskContinuation", TH_WRAPPER, false },
	{ "TaskSchedulerAwaitTaskContinuation", TH_WRAPPER, false },
	{ "AwaitTaskContinuation", TH_WRAPPER, false },
	{ "TaskCompletionSource", TH_SOURCE, false },
	{ "TaskCompletionSource`1[", TH_SOURCE, true },
	{ "TimerQueueTimer", TH_TIMER, false },
	{ "System.Threading.TimerQueueTimer", TH_TIMER, false },
	{ "System.Collections.Generic.List`1[System.Object]", TH_LIST, false },
	{ "System.Object[]", TH_ARRAY, false },
	{ "System.Action", TH_ACTION, false },
	{ "System.Action`1[System.Object]", TH_ACTION, false },
	{ "System.Threading.Channels.AsyncOperation`1[", TH_CHANNEL_READ, true },
	{ "System.Threading.Channels.BlockedReadAsyncOperation`1[", TH_CHANNEL_READ, true },
	{ "System.Threading.Channels.WaitingReadAsyncOperation", TH_CHANNEL_READ, true },
	{ "System.Threading.Channels.VoidAsyncOperationWithData`1[", TH_CHANNEL_WRITE, true },
	{ "System.Threading.Channels.BlockedWriteAsyncOperation`1[", TH_CHANNEL_WRITE, true },
	{ "System.Threading.Channels.WaitingWriteAsyncOperation", TH_CHANNEL_WRITE, true },
	{ "AwaitableSocketAsyncEventArgs", TH_IO, true },
	{ "System.Net.Sockets.SocketAsyncEventArgs", TH_IO, true },
	{ "ThreadPoolValueTaskSource", TH_IO, true },
};

static const char tasks_space[] = "System.Threading.Tasks.";

/* "<Fetch>d__2", alone or with arguments of its own. */
static bool is_holder(const char *name)
{
	const char *close = name[0] == '<' ? strchr(name, '>') : NULL;

	return close && strncmp(close, ">d__", 4) == 0;
}

enum th_kind th_kind_of(const struct an_heap_type *type)
{
	const char *name = type->name ? type->name : "";
	size_t skip = sizeof(tasks_space) - 1;

	if (strncmp(name, tasks_space, skip) == 0)
		name += skip;
	else if (strcmp(name, "Task") == 0 || strncmp(name, "Task`1[", 7) == 0)
		return TH_OTHER; /* somebody's own */
	if (type->flags & 8 && strcmp(name, "System.Object[]") != 0)
		return TH_OTHER; /* arrays of these */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i].name);

		if (names[i].prefix ? strncmp(name, names[i].name, n) == 0
				    : strcmp(name, names[i].name) == 0)
			return names[i].kind;
	}
	if (is_holder(name))
		return TH_HOLDER;
	return type->flags & 1 ? TH_DELEGATE : TH_OTHER;
}

bool th_is_task(enum th_kind kind)
{
	switch (kind) {
	case TH_BOX:
	case TH_TASK:
	case TH_WHEN_ALL:
	case TH_WHEN_ANY:
	case TH_UNWRAP:
	case TH_CONTINUE_WITH:
	case TH_WAIT_ASYNC:
	case TH_DELAY:
	case TH_SEMAPHORE:
		return true;
	default:
		return false;
	}
}

bool th_is_combined(enum th_kind kind)
{
	return kind == TH_WHEN_ALL || kind == TH_WHEN_ANY || kind == TH_UNWRAP ||
	       kind == TH_CONTINUE_WITH || kind == TH_WAIT_ASYNC;
}

/* The last of the arguments in the outermost brackets: "Box`1[A,B[C,D]]" gives "B[C,D]". */
static struct an_slice last_argument(const char *name)
{
	struct an_slice all = an_slice_of(name), arg;
	size_t open = an_slice_find(all, '['), depth = 0, from;

	if (open == all.n || name[all.n - 1] != ']')
		return all;
	from = open + 1;
	for (size_t i = from; i < all.n - 1; i++) {
		if (name[i] == '[')
			depth++;
		else if (name[i] == ']' && depth)
			depth--;
		else if (name[i] == ',' && !depth)
			from = i + 1;
	}
	arg = (struct an_slice){ .p = name + from, .n = all.n - 1 - from };
	return arg;
}

void th_box_method(const char *type_name, char *buf, size_t size)
{
	an_name_tidy(last_argument(type_name), an_slice_of("MoveNext"), buf, size);
}

bool th_is_holder_of(const char *box_name, const char *holder_name)
{
	struct an_slice machine = last_argument(box_name);
	size_t n = strlen(holder_name);

	if (n > machine.n || memcmp(machine.p + machine.n - n, holder_name, n) != 0)
		return false;
	return n == machine.n || machine.p[machine.n - n - 1] == '+' ||
	       machine.p[machine.n - n - 1] == '.';
}

void th_describe(enum an_leaf leaf, const char *type_name, char *buf, size_t size)
{
	char type[256];

	an_name_type(an_slice_of(type_name ? type_name : ""), type, sizeof(type));
	switch (leaf) {
	case AN_LEAF_NONE:
		snprintf(buf, size, "nothing that can be seen: it runs, or its turn comes");
		break;
	case AN_LEAF_TASK:
		snprintf(buf, size, "a %s that nobody has completed", type);
		break;
	case AN_LEAF_SOURCE:
		snprintf(buf, size, "a TaskCompletionSource that nobody has completed (%s)", type);
		break;
	case AN_LEAF_WORK:
		snprintf(buf, size, "a %s with code of its own: queued, or running", type);
		break;
	case AN_LEAF_SEMAPHORE:
		snprintf(buf, size, "SemaphoreSlim.WaitAsync");
		break;
	case AN_LEAF_DELAY:
		snprintf(buf, size, "Task.Delay");
		break;
	case AN_LEAF_TIMER:
		snprintf(buf, size, "a timer (%s)", type);
		break;
	case AN_LEAF_CHANNEL_READ:
		snprintf(buf, size, "a channel read");
		break;
	case AN_LEAF_CHANNEL_WRITE:
		snprintf(buf, size, "a channel write");
		break;
	case AN_LEAF_IO:
		snprintf(buf, size, "input or output (%s)", type);
		break;
	case AN_LEAF_VALUE_TASK:
		snprintf(buf, size, "a source of a ValueTask (%s)", type);
		break;
	case AN_LEAF_COMBINED:
		snprintf(buf, size, "a combination of tasks whose parts were not found");
		break;
	case AN_LEAF_CYCLE:
		snprintf(buf, size, "itself: these methods await each other");
		break;
	}
}
