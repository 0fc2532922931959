/* SPDX-License-Identifier: MIT */
/* What the names of frames say about a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzers/wait_frames.h"

static enum an_frame_kind kind(const char *raw)
{
	const struct an_method m = { .raw = raw };

	return an_frame_kind_of(&m);
}

/* The leaves of blocked threads, by runtime version, as they were seen in recordings. */
static void leaves_of_blocked_threads_wait(void **state)
{
	static const char *const names[] = {
		"System.Threading.Monitor.Enter_Slowpath",
		"System.Threading.Monitor.Wait",
		"System.Threading.WaitSubsystem.Wait",
		"System.Threading.WaitSubsystem+ThreadWaitInfo.Wait",
		"System.Threading.WaitHandle.WaitOneNoCheck",
		"System.Threading.Lock.TryEnterSlow",
		"System.Threading.SemaphoreSlim.WaitCore",
		"System.Threading.SemaphoreSlim.WaitUntilCountOrTimeout",
		"Interop+Sys.LowLevelMonitor_Wait",
		"System.Threading.ReaderWriterLockSlim.WaitOnEvent",
		"System.Threading.ReaderWriterLockSlim.TryEnterWriteLockCore",
		"System.Threading.Thread.Sleep",
		"System.Threading.Thread.Join",
		"System.Threading.ManualResetEventSlim.Wait",
		"System.Threading.Tasks.Task.SpinThenBlockingWait",
		"System.Threading.LowLevelLifoSemaphore.WaitNative",
		"System.Net.Sockets.SocketAsyncEngine.EventLoop",
		"Interop+Sys.Read",
		"System.IO.FileSystemWatcher+RunningInstance.ProcessEvents",
		"System.Collections.Concurrent.BlockingCollection`1[System.Int32]"
		".TryTakeWithNoTimeValidation",
		"System.Collections.Concurrent.BlockingCollection`1[System.Collections.Generic."
		"List`1[System.Int32]].TryTakeWithNoTimeValidation",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(kind(names[i]), AN_FRAME_WAIT);
}

static void others_mean_something_else(void **state)
{
	(void)state;
	assert_int_equal(kind("System.Threading.SpinWait.SpinOnceCore"), AN_FRAME_SPIN);
	assert_int_equal(kind("System.Threading.Thread.LongSpinWait"), AN_FRAME_SPIN);
	assert_int_equal(kind("Interop+Sys.Compress"), AN_FRAME_NATIVE);
	assert_int_equal(kind("Interop+Kernel32.SetEvent"), AN_FRAME_NATIVE);
	assert_int_equal(kind("dynamicClass.IL_STUB_PInvoke"), AN_FRAME_NATIVE);
	assert_int_equal(kind("System.Threading.Thread.StartCallback"), AN_FRAME_WAIT_LEAF);
	assert_int_equal(kind("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart"),
			 AN_FRAME_WAIT_LEAF);
	assert_int_equal(kind("System.Threading.Monitor.Exit_Slowpath"), AN_FRAME_POLL);
}

static void names_that_only_begin_alike_are_plain(void **state)
{
	static const char *const names[] = {
		"",
		"Main",
		"Shop.Monitor.Wait",
		"System.Threading.MonitorX.Wait",
		"System.Threading.Monitor.WaitForIt",
		"System.Threading.Monitor",
		"System.Threading.ThreadPool.Sleep",
		"System.Threading.Thread[Sleep",
		"InteropTest.Read",
		"Shop.Interop.Read",
		"System.Threading.Tasks.Task.InternalWaitCoreX",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(kind(names[i]), AN_FRAME_PLAIN);
}

static void the_program_is_told_from_its_libraries(void **state)
{
	static const struct an_method own = { .raw = "Systematic.Shop.Run" };
	static const struct an_method library = { .raw = "System.String.Concat" };
	static const struct an_method stub = { .raw = "dynamicClass.IL_STUB_PInvoke" };
	static const struct an_method waits = { .raw = "System.Threading.Tasks.Task.InternalWait" };

	(void)state;
	assert_false(an_frame_is_library(&own));
	assert_true(an_frame_is_library(&library));
	assert_true(an_frame_is_library(&stub));
	assert_true(an_frame_waits_for_task(&waits));
	assert_false(an_frame_waits_for_task(&own));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_of_blocked_threads_wait),
		cmocka_unit_test(others_mean_something_else),
		cmocka_unit_test(names_that_only_begin_alike_are_plain),
		cmocka_unit_test(the_program_is_told_from_its_libraries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
