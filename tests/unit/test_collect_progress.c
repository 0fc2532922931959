/* SPDX-License-Identifier: MIT */
/* What the line about a running session says. */
#include "src/collect/collect_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check(const struct collect_progress *p, const char *want)
{
	char text[200];

	assert_string_equal(collect_progress_text(p, text, sizeof(text)), want);
}

static void what_it_says(void **state)
{
	struct collect_progress p = {
		.elapsed_ns = 65 * UINT64_C(1000000000),
		.bytes = 4210000,
		.events = 1234567,
		.events_per_s = 987,
	};

	(void)state;
	check(&p, "01:05  4.2 MB  1234567 events  987/s  0 lost  (Ctrl-C stops)");
	p.keys = true;
	check(&p, "01:05  4.2 MB  1234567 events  987/s  0 lost  (Enter stops)");
	p.duration_ms = 90500;
	check(&p, "01:05 of 91 s  4.2 MB  1234567 events  987/s  0 lost");
	p.lost = 12;
	check(&p, "01:05 of 91 s  4.2 MB  1234567 events  987/s  12 lost  "
		  "events are lost: --buffersize");
	p.waiting = true;
	check(&p, "01:05 of 91 s  4.2 MB  1234567 events  987/s  12 lost  "
		  "the disk is too slow");
	p.live = "deadlock: threads 1, 2";
	check(&p, "01:05 of 91 s  4.2 MB  1234567 events  987/s  12 lost  "
		  "deadlock: threads 1, 2");
	/* While it ends, that is what one waits for. */
	p.stopping = true;
	p.rundown_bytes = 29000000;
	check(&p, "01:05 of 91 s  4.2 MB  1234567 events  987/s  12 lost  rundown: 29.0 MB");
}

static void it_is_cut_to_the_buffer(void **state)
{
	const struct collect_progress p = { .bytes = UINT64_MAX, .events = UINT64_MAX };
	char text[20];

	(void)state;
	collect_progress_text(&p, text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

/* Tests have no terminal. */
static void how_often(void **state)
{
	(void)state;
	assert_int_equal(collect_progress_ms(true), 0);
	assert_in_range(collect_progress_ms(false), 500, 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says),
		cmocka_unit_test(it_is_cut_to_the_buffer),
		cmocka_unit_test(how_often),
	};

	return cmocka_run_group_tests_name("collect_progress", tests, NULL, NULL);
}
