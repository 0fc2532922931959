/* SPDX-License-Identifier: MIT */
#include "analyzers/wait_frames.h"

#include <string.h>

/* method: a name; "" any; with '*' at the end a beginning.  type: ditto. */
struct row {
	const char *type, *method;
	enum an_frame_kind kind;
};

static const struct row rows[] = {
	/* locks */
	{ "System.Threading.Monitor", "Wait", AN_FRAME_WAIT },
	{ "System.Threading.Monitor", "ObjWait", AN_FRAME_WAIT },
	{ "System.Threading.Monitor", "Enter", AN_FRAME_WAIT_LEAF },
	{ "System.Threading.Monitor", "Enter_Slowpath", AN_FRAME_WAIT },
	{ "System.Threading.Monitor", "ReliableEnter", AN_FRAME_WAIT },
	{ "System.Threading.Monitor", "TryEnter_Slowpath", AN_FRAME_WAIT },
	{ "System.Threading.Lock", "TryEnterSlow", AN_FRAME_WAIT },
	{ "System.Threading.Condition", "Wait", AN_FRAME_WAIT },
	{ "System.Threading.SemaphoreSlim", "Wait", AN_FRAME_WAIT },
	{ "System.Threading.SemaphoreSlim", "WaitCore", AN_FRAME_WAIT },
	{ "System.Threading.SemaphoreSlim", "WaitUntilCountOrTimeout*", AN_FRAME_WAIT },
	{ "System.Threading.ReaderWriterLockSlim", "WaitOnEvent", AN_FRAME_WAIT },
	{ "System.Threading.ReaderWriterLockSlim", "TryEnterReadLockCore", AN_FRAME_WAIT },
	{ "System.Threading.ReaderWriterLockSlim", "TryEnterWriteLockCore", AN_FRAME_WAIT },
	{ "System.Threading.ReaderWriterLockSlim", "TryEnterUpgradeableReadLockCore",
	  AN_FRAME_WAIT },
	/* events, threads, timers */
	{ "System.Threading.WaitHandle", "Wait*", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem", "Wait*", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem", "Sleep", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem+ThreadWaitInfo", "Wait", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem+ThreadWaitInfo", "Sleep", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem+ThreadWaitInfo", "UninterruptibleWait", AN_FRAME_WAIT },
	{ "System.Threading.WaitSubsystem+ThreadWaitInfo", "UninterruptibleSleep0", AN_FRAME_WAIT },
	{ "System.Threading.LowLevelMonitor", "Wait*", AN_FRAME_WAIT },
	{ "System.Threading.ManualResetEventSlim", "Wait", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "Sleep", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "SleepInternal", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "UninterruptibleSleep0", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "Yield*", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "Join*", AN_FRAME_WAIT },
	{ "System.Threading.Thread", "StartCore", AN_FRAME_WAIT_LEAF },
	{ "System.Threading.Thread", "StartCallback", AN_FRAME_WAIT_LEAF },
	{ "System.Threading.Thread+StartHelper", "Run", AN_FRAME_WAIT_LEAF },
	{ "System.Threading.TimerQueue", "TimerThread", AN_FRAME_WAIT_LEAF },
	/* tasks */
	{ "System.Threading.Tasks.Task", "SpinThenBlockingWait", AN_FRAME_WAIT },
	{ "System.Threading.Tasks.Task", "InternalWaitCore", AN_FRAME_WAIT },
	{ "System.Threading.Tasks.Task", "WaitAllBlockingCore", AN_FRAME_WAIT },
	/* the thread pool */
	{ "System.Threading.LowLevelLifoSemaphore", "Wait*", AN_FRAME_WAIT },
	{ "System.Threading.LowLevelLifoSemaphore", "Block*", AN_FRAME_WAIT },
	{ "System.Threading.LowLevelLifoSemaphoreBase", "", AN_FRAME_WAIT },
	{ "System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart",
	  AN_FRAME_WAIT_LEAF },
	{ "System.Threading.PortableThreadPool+GateThread", "GateThreadStart", AN_FRAME_WAIT_LEAF },
	/* input and output */
	{ "System.Net.Sockets.SocketAsyncEngine", "EventLoop", AN_FRAME_WAIT },
	{ "Interop+Sys", "WaitForSocketEvents", AN_FRAME_WAIT },
	{ "Interop+Sys", "LowLevelMonitor_Wait", AN_FRAME_WAIT },
	{ "Interop+Sys", "LowLevelMonitor_TimedWait", AN_FRAME_WAIT },
	{ "Interop+Sys", "Read", AN_FRAME_WAIT },
	{ "Interop+Sys", "Poll", AN_FRAME_WAIT },
	{ "System.ConsolePal", "Read*", AN_FRAME_WAIT },
	{ "System.IO.FileSystemWatcher+RunningInstance", "", AN_FRAME_WAIT },
	/* consumers */
	{ "System.Collections.Concurrent.BlockingCollection`1", "TryTakeWithNoTimeValidation",
	  AN_FRAME_WAIT },
	/* spinning */
	{ "System.Threading.SpinWait", "SpinOnceCore", AN_FRAME_SPIN },
	{ "System.Threading.Thread", "SpinWait*", AN_FRAME_SPIN },
	{ "System.Threading.Thread", "LongSpinWait", AN_FRAME_SPIN },
	/* where running threads are stopped */
	{ "System.Threading.Thread", "PollGC", AN_FRAME_POLL },
	{ "System.Threading.Thread", "<PollGC>g__PollGCWorker*", AN_FRAME_POLL },
	{ "System.Threading.Monitor", "Exit_Slowpath", AN_FRAME_POLL },
	{ "System.Threading.Monitor", "Exit", AN_FRAME_POLL },
	/* calls into native code */
	{ "Interop", "", AN_FRAME_NATIVE },
	{ "Interop+*", "", AN_FRAME_NATIVE },
	{ "dynamicClass", "IL_STUB_PInvoke", AN_FRAME_NATIVE },
	{ "", "IL_STUB_PInvoke", AN_FRAME_NATIVE },
};

/* For whom the frame is not enough to tell that it waits, but says for what. */
static const struct {
	const char *type, *method, *what;
} reasons[] = {
	{ "System.Threading.Monitor", "Wait", "Monitor.Pulse" },
	{ "System.Threading.Monitor", "ObjWait", "Monitor.Pulse" },
	{ "System.Threading.Monitor", "Enter*", "a lock" },
	{ "System.Threading.Monitor", "ReliableEnter*", "a lock" },
	{ "System.Threading.Monitor", "TryEnter*", "a lock" },
	{ "System.Threading.Lock", "Enter*", "a lock" },
	{ "System.Threading.Lock", "TryEnter*", "a lock" },
	{ "System.Threading.SemaphoreSlim", "Wait*", "a semaphore" },
	{ "System.Threading.ReaderWriterLockSlim", "", "a reader-writer lock" },
	{ "System.Threading.ManualResetEventSlim", "Wait", "an event" },
	{ "System.Threading.CountdownEvent", "Wait", "a countdown" },
	{ "System.Threading.Barrier", "SignalAndWait", "a barrier" },
	{ "System.Threading.WaitHandle", "Wait*", "an event or handle" },
	{ "System.Threading.Thread", "Sleep*", "Thread.Sleep" },
	{ "System.Threading.Thread", "UninterruptibleSleep0", "Thread.Sleep" },
	{ "System.Threading.Thread", "Join*", "a thread to end" },
	{ "System.Threading.Tasks.Task", "InternalWait*", "a task" },
	{ "System.Threading.Tasks.Task", "SpinThenBlockingWait", "a task" },
	{ "System.Threading.Tasks.Task", "WaitAllBlockingCore", "tasks" },
	{ "System.Threading.Tasks.Task", "WaitAnyCore", "one of some tasks" },
	{ "System.Collections.Concurrent.BlockingCollection`1", "", "an item of a collection" },
	{ "System.Threading.LowLevelLifoSemaphore", "Wait*", "work" },
	{ "System.Threading.LowLevelLifoSemaphore", "Block*", "work" },
	{ "System.Threading.LowLevelLifoSemaphoreBase", "", "work" },
	{ "System.Threading.PortableThreadPool+WorkerThread", "WorkerThreadStart", "work" },
	{ "System.Threading.PortableThreadPool+GateThread", "GateThreadStart", "its next look" },
	{ "System.Threading.PortableThreadPool+WaitThread", "WaitThreadStart",
	  "registered handles" },
	{ "System.Threading.TimerQueue", "TimerThread", "the next timer" },
	{ "System.Net.Sockets.SocketAsyncEngine", "EventLoop", "sockets" },
	{ "Interop+Sys", "WaitForSocketEvents", "sockets" },
	{ "Interop+Sys", "Read", "input" },
	{ "Interop+Sys", "Poll", "input" },
	{ "System.ConsolePal", "Read*", "input" },
	{ "System.IO.FileSystemWatcher+RunningInstance", "", "changes of files" },
};

/* Where "Type[arguments]" ends in a raw name, or NULL when it is another type. */
static const char *skip_type(const char *raw, const char *type)
{
	size_t n = strlen(type);

	if (n && type[n - 1] == '*') {
		if (strncmp(raw, type, n - 1) != 0)
			return NULL;
		raw += n - 1 + strcspn(raw + n - 1, "[.");
	} else {
		if (strncmp(raw, type, n) != 0)
			return NULL;
		raw += n;
	}
	if (*raw == '[') {
		size_t depth = 0;

		do {
			depth += *raw == '[';
			depth -= *raw == ']';
			raw++;
		} while (*raw && depth);
	}
	if (!n)
		return raw;
	return *raw == '.' ? raw + 1 : NULL;
}

static bool same_method(const char *name, const char *method)
{
	size_t n = strlen(method);

	if (!n)
		return true;
	if (method[n - 1] == '*')
		return strncmp(name, method, n - 1) == 0;
	return strcmp(name, method) == 0;
}

enum an_frame_kind an_frame_kind_of(const struct an_method *m)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = skip_type(m->raw, rows[i].type);

		if (name && same_method(name, rows[i].method))
			return rows[i].kind;
	}
	return AN_FRAME_PLAIN;
}

bool an_frame_waits_for_task(const struct an_method *m)
{
	static const char *const names[] = {
		"System.Threading.Tasks.Task.SpinThenBlockingWait",
		"System.Threading.Tasks.Task.InternalWaitCore",
		"System.Threading.Tasks.Task.InternalWait",
		"System.Threading.Tasks.Task.WaitAllBlockingCore",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(m->raw, names[i]))
			return true;
	return false;
}

const char *an_frame_waits_for(const struct an_method *m)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		const char *name = skip_type(m->raw, reasons[i].type);

		if (name && same_method(name, reasons[i].method))
			return reasons[i].what;
	}
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Beginnings of raw names. */
static const struct {
	const char *begin;
	enum an_async_frame kind;
} async_frames[] = {
	{ "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start", AN_ASYNC_CARRIER },
	{ "System.Runtime.CompilerServices.AsyncTaskMethodBuilder.Start", AN_ASYNC_CARRIER },
	{ "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder.Start", AN_ASYNC_CARRIER },
	{ "System.Runtime.CompilerServices.AsyncVoidMethodBuilder.Start", AN_ASYNC_CARRIER },
	{ "System.Runtime.CompilerServices.TaskAwaiter+<>c", AN_ASYNC_CARRIER },
	{ "System.Threading.ExecutionContext.Run", AN_ASYNC_CARRIER },
	{ "System.Threading.Tasks.AwaitTaskContinuation.", AN_ASYNC_CARRIER },
	{ "System.Threading.Tasks.Task.RunContinuations", AN_ASYNC_CARRIER },
	{ "System.Threading.Tasks.Task.FinishContinuations", AN_ASYNC_CARRIER },
	{ "System.Runtime.CompilerServices.AsyncMethodBuilderCore+ContinuationWrapper",
	  AN_ASYNC_CARRIER },
};

/* "AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[...].MoveNext" and its like. */
static enum an_async_frame async_builder(const char *raw)
{
	static const char *const begins[] = {
		"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1",
		"System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder`1",
		"System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder",
	};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (strncmp(raw, begins[i], strlen(begins[i])) != 0)
			continue;
		if (strstr(raw, "StateMachineBox"))
			return AN_ASYNC_RESUMER;
		return AN_ASYNC_CARRIER;
	}
	return AN_ASYNC_NONE;
}

enum an_async_frame an_frame_async(const struct an_method *m)
{
	if (strncmp(m->raw, "System.", 7) == 0) {
		for (size_t i = 0; i < sizeof(async_frames) / sizeof(async_frames[0]); i++)
			if (!strncmp(m->raw, async_frames[i].begin, strlen(async_frames[i].begin)))
				return async_frames[i].kind;
		if (async_builder(m->raw) != AN_ASYNC_NONE)
			return async_builder(m->raw);
	}
	return ends_with(m->raw, ".MoveNext") && strstr(m->raw, ">d__") ? AN_ASYNC_BODY
									: AN_ASYNC_NONE;
}

bool an_frame_is_library(const struct an_method *m)
{
	static const char *const begins[] = { "System.",  "Microsoft.", "Interop.",
					      "Interop+", "Internal.",	"dynamicClass." };

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(m->raw, begins[i], strlen(begins[i])))
			return true;
	return false;
}
