/* SPDX-License-Identifier: MIT */
/* Messages of the diagnostic port against bytes written out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/ipc/ipc_wire.h"

#define MAGIC "DOTNET_IPC_V1\0"

/* Compares a message with its expected bytes behind the magic. */
static void check(const uint8_t *got, size_t len, const char *rest, size_t rest_len)
{
	assert_int_equal(len, 14 + rest_len);
	assert_memory_equal(got, MAGIC, 14);
	assert_memory_equal(got + 14, rest, rest_len);
}
#define CHECK(got, len, rest) check(got, len, rest, sizeof(rest) - 1)

static void plain_requests(void **state)
{
	uint8_t buf[64];
	size_t n;

	(void)state;
	n = ipc_put_plain(buf, sizeof(buf), IPC_SET_PROCESS, IPC_RESUME_RUNTIME);
	CHECK(buf, n, "\x14\0\x04\x01\0\0");
	n = ipc_put_plain(buf, sizeof(buf), IPC_SET_PROCESS, ipc_process_info_command(3));
	CHECK(buf, n, "\x14\0\x04\x08\0\0");
	n = ipc_put_plain(buf, sizeof(buf), IPC_SET_PROCESS, ipc_process_info_command(2));
	CHECK(buf, n, "\x14\0\x04\x04\0\0");
	n = ipc_put_plain(buf, sizeof(buf), IPC_SET_PROCESS, ipc_process_info_command(1));
	CHECK(buf, n, "\x14\0\x04\0\0\0");
	n = ipc_put_stop(buf, sizeof(buf), UINT64_C(0x1122334455667788));
	CHECK(buf, n, "\x1c\0\x02\x01\0\0\x88\x77\x66\x55\x44\x33\x22\x11");
	n = ipc_put_stop(buf, sizeof(buf), UINT64_C(0x8000000000000001));
	CHECK(buf, n, "\x1c\0\x02\x01\0\0\x01\0\0\0\0\0\0\x80");
	for (size_t cap = 0; cap < 28; cap++)
		assert_int_equal(ipc_put_stop(buf, cap, 1), 0);
	assert_int_equal(ipc_put_stop(buf, 28, 1), 28);
}

static void collect2_is_the_captured_message(void **state)
{
	static const struct ipc_provider provider = {
		.name = "Microsoft-Windows-DotNETRuntime",
		.keywords = UINT64_C(0xffffffffffffffbf),
		.level = 5,
		.args = "",
	};
	const struct ipc_collect c = { 256, IPC_RUNDOWN_DEFAULT, true, false, &provider, 1 };
	uint8_t buf[256];
	size_t n;

	(void)state;
	assert_int_equal(ipc_collect_version(&c), 2);
	n = ipc_put_collect(buf, sizeof(buf), &c, 2);
	CHECK(buf, n,
	      "\x77\0\x02\x03\0\0\0\x01\0\0\x01\0\0\0\x01\x01\0\0\0"
	      "\xbf\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0\x20\0\0\0"
	      "M\0i\0c\0r\0o\0s\0o\0f\0t\0-\0W\0i\0n\0d\0o\0w\0s\0-\0"
	      "D\0o\0t\0N\0E\0T\0R\0u\0n\0t\0i\0m\0e\0\0\0\x01\0\0\0\0\0");
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(ipc_put_collect(buf, cap, &c, 2), 0);
}

static void collect_of_every_version(void **state)
{
	static const uint32_t ids[] = { 7 };
	static const struct ipc_event_filter filter = { true, ids, 1 };
	static const struct ipc_provider plain = { "A", 1, 4, NULL, NULL };
	static const struct ipc_provider filtered = { "A", 1, 4, NULL, &filter };
	struct ipc_collect c = { 256, UINT64_C(0x80020139), true, false, &plain, 1 };
	uint8_t buf[256];

#define A4 "\x01\0\0\0\0\0\0\0\x04\0\0\0\x02\0\0\0A\0\0\0\0\0\0\0"
	(void)state;
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 1),
	      "\x38\0\x02\x02\0\0\0\x01\0\0\x01\0\0\0\x01\0\0\0" A4);
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 3),
	      "\x3a\0\x02\x04\0\0\0\x01\0\0\x01\0\0\0\x01\x01\x01\0\0\0" A4);
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 4),
	      "\x41\0\x02\x05\0\0\0\x01\0\0\x01\0\0\0\x39\x01\x02\x80\0\0\0\0\x01\x01\0\0\0" A4);
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 5),
	      "\x4a\0\x02\x06\0\0\0\0\0\0\0\x01\0\0\x01\0\0\0\x39\x01\x02\x80\0\0\0\0\x01"
	      "\x01\0\0\0" A4 "\0\0\0\0\0");
	c.block = true;
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 6),
	      "\x4e\0\x02\x07\0\0\0\0\0\0\0\x01\0\0\x01\0\0\0\x39\x01\x02\x80\0\0\0\0\x01"
	      "\x01\0\0\0" A4 "\0\0\0\0\0\x01\0\0\0");
	c = (struct ipc_collect){ 256, 0, false, false, &filtered, 1 };
	CHECK(buf, ipc_put_collect(buf, sizeof(buf), &c, 5),
	      "\x4e\0\x02\x06\0\0\0\0\0\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0"
	      "\x01\0\0\0" A4 "\x01\x01\0\0\0\x07\0\0\0");
#undef A4
}

static void collect_that_cannot_be_sent(void **state)
{
	struct ipc_provider p = { "A", 1, 4, NULL, NULL };
	struct ipc_collect c = { 1, 0, true, false, &p, 1 };
	static struct ipc_provider many[IPC_MAX_PROVIDERS + 1];
	static char name[40000];
	static uint8_t buf[IPC_MAX_MESSAGE + 100];

	(void)state;
	assert_true(ipc_put_collect(buf, sizeof(buf), &c, 2) > 0);
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 0), 0);
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 7), 0);
	p.name = "";
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
	p.name = "A";
	p.level = 6;
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
	p.level = 5;
	c.buffer_mb = 0;
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
	c.buffer_mb = 1;
	c.provider_count = 0;
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
	for (size_t i = 0; i < IPC_MAX_PROVIDERS + 1; i++)
		many[i] = p;
	c.providers = many;
	c.provider_count = IPC_MAX_PROVIDERS;
	assert_true(ipc_put_collect(buf, sizeof(buf), &c, 2) > 0);
	c.provider_count++;
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
	/* Longer than the size field can say, though the buffer is bigger. */
	memset(name, 'x', sizeof(name) - 1);
	p.name = name;
	c.providers = &p;
	c.provider_count = 1;
	assert_int_equal(ipc_put_collect(buf, sizeof(buf), &c, 2), 0);
}

/* The name in a CollectTracing1 of one provider, as UTF-16, or 0 when it was refused. */
static size_t encode_name(const char *name, uint8_t *ret)
{
	const struct ipc_provider p = { name, 0, 4, NULL, NULL };
	const struct ipc_collect c = { 1, 0, true, false, &p, 1 };
	uint8_t buf[256];
	size_t n = ipc_put_collect(buf, sizeof(buf), &c, 1), units;

	if (n == 0)
		return 0;
	units = buf[44] | (size_t)buf[45] << 8;
	memcpy(ret, buf + 48, units * 2);
	return units;
}

static void names_are_utf16(void **state)
{
	static const char *const bad[] = {
		"\x80",
		"\xff",
		"a\xc3",
		"\xc0\x80",
		"\xe0\x80\x80",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		"\xf0\x9f\x98",
		"\xf8\x88\x80\x80\x80",
	};
	uint8_t got[64];

	(void)state;
	assert_int_equal(encode_name("\xc3\xa9\xe2\x82\xac", got), 3);
	assert_memory_equal(got, "\xe9\0\xac\x20\0\0", 6);
	assert_int_equal(encode_name("\xf0\x9f\x98\x80", got), 3);
	assert_memory_equal(got, "\x3d\xd8\0\xde\0\0", 6);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(encode_name(bad[i], got), 0);
}

static void oldest_sufficient_version(void **state)
{
	static const uint32_t ids[] = { 1 };
	static const struct ipc_event_filter filter = { false, ids, 1 };
	static const struct ipc_provider p = { "A", 1, 4, NULL, NULL };
	static const struct ipc_provider f = { "A", 1, 4, NULL, &filter };
	struct ipc_collect c = { 1, IPC_RUNDOWN_DEFAULT, true, false, &p, 1 };

	(void)state;
	assert_int_equal(ipc_collect_version(&c), 2);
	c.rundown_keywords = IPC_RUNDOWN_NONE;
	assert_int_equal(ipc_collect_version(&c), 2);
	c.stacks = false;
	assert_int_equal(ipc_collect_version(&c), 3);
	c.rundown_keywords = 1;
	assert_int_equal(ipc_collect_version(&c), 4);
	c.providers = &f;
	assert_int_equal(ipc_collect_version(&c), 5);
	c.block = true;
	assert_int_equal(ipc_collect_version(&c), 6);
}

static void a_provider_is_found_whatever_its_case(void **state)
{
	static const struct ipc_provider two[] = { { "A", 1, 4, NULL, NULL },
						   { "Some-Source", 1, 4, NULL, NULL } };
	const struct ipc_collect c = { 1, 1, true, false, two, 2 };

	(void)state;
	assert_ptr_equal(ipc_collect_find(&c, "some-source"), &two[1]);
	assert_null(ipc_collect_find(&c, "Some"));
}

static void falling_back_says_what_was_given_up(void **state)
{
	static const struct ipc_event_filter filter = { false, NULL, 0 };
	static const struct ipc_provider f = { "A", 1, 4, NULL, &filter };
	struct ipc_collect c = { 1, 1, false, true, &f, 1 };
	unsigned version = ipc_collect_version(&c), gave_up = 0;

	(void)state;
	assert_int_equal(version, 6);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 5);
	assert_int_equal(gave_up, IPC_GAVE_UP_BLOCK);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 4);
	assert_int_equal(gave_up, IPC_GAVE_UP_BLOCK | IPC_GAVE_UP_FILTER);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 3);
	assert_true(gave_up & IPC_GAVE_UP_RUNDOWN_KEYWORDS);
	assert_true(c.rundown_keywords == IPC_RUNDOWN_DEFAULT);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 2);
	assert_true(gave_up & IPC_GAVE_UP_NO_STACKS);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 1);
	assert_false(gave_up & IPC_GAVE_UP_NO_RUNDOWN);
	assert_false(ipc_collect_fall_back(&c, &version, &gave_up));

	/* Without a rundown: version 1 always has one. */
	c = (struct ipc_collect){ 1, IPC_RUNDOWN_NONE, true, false, &f, 1 };
	version = 2;
	gave_up = 0;
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(gave_up, IPC_GAVE_UP_NO_RUNDOWN);

	/* Threads in the rundown are a wish of ours: nothing was given up that anybody asked for.
	 */
	c = (struct ipc_collect){ 1, IPC_RUNDOWN_THREADS, true, false, &f, 1 };
	c.provider_count = 0;
	version = ipc_collect_version(&c);
	gave_up = 0;
	assert_int_equal(version, 4);
	assert_true(ipc_collect_fall_back(&c, &version, &gave_up));
	assert_int_equal(version, 2);
	assert_int_equal(gave_up, 0);
	assert_true(c.rundown_keywords == IPC_RUNDOWN_DEFAULT);
}

static enum ipc_status read_reply(const char *bytes, size_t len, struct ipc_reply *ret)
{
	/* Its own heap block: reading one byte too far is seen. */
	uint8_t *copy = malloc(len ? len : 1);
	enum ipc_status st;

	memcpy(copy, bytes, len);
	st = ipc_reply_read(copy, len, ret);
	free(copy);
	return st;
}

static void answers(void **state)
{
	static const char ok[] = MAGIC "\x18\0\xff\0\0\0\0\0\0\0";
	static const char error[] = MAGIC "\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	static const char error8[] = MAGIC "\x1c\0\xff\xff\0\0\x84\x13\x13\x80\0\0\0\0";
	static const char empty[] = MAGIC "\x14\0\xff\0\0\0";
	struct ipc_reply r;

	(void)state;
	for (size_t n = 0; n < sizeof(ok) - 1; n++)
		assert_int_equal(read_reply(ok, n, &r), IPC_MORE);
	assert_int_equal(read_reply(ok, sizeof(ok) - 1, &r), IPC_OK);
	assert_true(r.ok);
	assert_int_equal(r.payload_bytes, 4);
	assert_int_equal(r.size, 24);
	assert_int_equal(read_reply(empty, sizeof(empty) - 1, &r), IPC_OK);
	assert_int_equal(r.payload_bytes, 0);
	assert_int_equal(read_reply(error, sizeof(error) - 1, &r), IPC_OK);
	assert_false(r.ok);
	assert_int_equal(r.hresult, IPC_H_UNKNOWN_COMMAND);
	assert_string_equal(ipc_hresult_name(r.hresult), "UNKNOWN_COMMAND");
	assert_int_equal(read_reply(error8, sizeof(error8) - 1, &r), IPC_OK);
	assert_int_equal(r.hresult, IPC_H_BAD_ENCODING);
	assert_null(ipc_hresult_name(0x12345678));
	assert_non_null(ipc_hresult_text(0x12345678));
}

static void damaged_answers(void **state)
{
	struct ipc_reply r;

	(void)state;
	/* Wrong from the first byte on; nobody waits for more. */
	assert_int_equal(read_reply("H", 1, &r), IPC_EMAGIC);
	assert_int_equal(read_reply("DOTNET_IPC_V2\0\x18\0\xff\0\0\0", 20, &r), IPC_EMAGIC);
	assert_int_equal(read_reply(MAGIC "\x13\0\xff\0\0\0", 20, &r), IPC_ESIZE);
	assert_int_equal(read_reply(MAGIC "\0\0\xff\0\0\0", 20, &r), IPC_ESIZE);
	assert_int_equal(read_reply(MAGIC "\xff\xff\xff\0\0\0", 20, &r), IPC_MORE);
	assert_int_equal(read_reply(MAGIC "\x14\0\x04\0\0\0", 20, &r), IPC_ENOREPLY);
	assert_int_equal(read_reply(MAGIC "\x14\0\xff\x01\0\0", 20, &r), IPC_ENOREPLY);
	assert_int_equal(read_reply(MAGIC "\x14\0\xff\xff\0\0", 20, &r), IPC_EPAYLOAD);
	for (int st = IPC_EPAYLOAD; st <= IPC_MORE; st++)
		assert_non_null(ipc_status_text((enum ipc_status)st));
}

static void session_ids_are_opaque(void **state)
{
	static const uint8_t id[] = MAGIC "\x1c\0\xff\0\0\0\x01\0\0\0\0\0\0\x80";
	static const uint8_t short_id[] = MAGIC "\x18\0\xff\0\0\0\x01\0\0\0";
	struct ipc_reply r;
	uint64_t got = 0;

	(void)state;
	assert_int_equal(ipc_reply_read(id, sizeof(id) - 1, &r), IPC_OK);
	assert_int_equal(ipc_session_id_read(&r, &got), IPC_OK);
	assert_true(got == UINT64_C(0x8000000000000001));
	assert_int_equal(ipc_reply_read(short_id, sizeof(short_id) - 1, &r), IPC_OK);
	assert_int_equal(ipc_session_id_read(&r, &got), IPC_EPAYLOAD);
}

/* Texts: "s" with its NUL, none (count 0), empty (count 1). */
#define COOKIE "0123456789abcdef"
#define INFO1                                                                                      \
	"\x39\x30\0\0\0\0\0\0" COOKIE "\x02\0\0\0s\0\0\0"                                          \
	"\0\0\0\0"                                                                                 \
	"\x01\0\0\0\0\0"

static void process_info(void **state)
{
	static const char payload[] = "\x01\0\0\0" INFO1 "\x03\0\0\0\x3d\xd8\0\xde\0\0"
				      "\x03\0\0\0001\0000\0\0\0"
				      "\x01\0\0\0\0\0";
	const size_t len = sizeof(payload) - 1;
	struct ipc_process_info info;
	char text[16];

	(void)state;
	for (size_t n = 0; n <= len; n++) {
		uint8_t *copy = malloc(n ? n : 1);
		struct ipc_reply r = { true, 0, copy, n, n + 20 };
		enum ipc_status st;

		memcpy(copy, payload, n);
		st = ipc_process_info_read(&r, 3, &info);
		assert_int_equal(st, n == len ? IPC_OK : IPC_EPAYLOAD);
		if (st == IPC_OK) {
			assert_int_equal(info.pid, 12345);
			assert_memory_equal(info.cookie, COOKIE, 16);
			assert_int_equal(ipc_text_utf8(&info.command_line, text, 16), 1);
			assert_string_equal(text, "s");
			assert_null(info.os.utf16);
			assert_int_equal(ipc_text_utf8(&info.arch, text, sizeof(text)), 0);
			assert_int_equal(ipc_text_utf8(&info.entry_assembly, text, 16), 4);
			assert_string_equal(text, "\xf0\x9f\x98\x80");
			/* Never half a character. */
			assert_int_equal(ipc_text_utf8(&info.entry_assembly, text, 4), 0);
			assert_int_equal(ipc_text_utf8(&info.runtime_version, text, 16), 2);
			assert_string_equal(text, "10");
		}
		free(copy);
	}
}

static void process_info_of_older_versions(void **state)
{
	static const uint8_t one[] = INFO1;
	static const uint8_t huge[] = "\0\0\0\0\0\0\0\0" COOKIE "\xff\xff\xff\xff"
				      "aaaa";
	static const uint8_t version0[] = "\0\0\0\0" INFO1 "\0\0\0\0\0\0\0\0\0\0\0\0";
	struct ipc_process_info info;
	struct ipc_reply r = { true, 0, one, sizeof(one) - 1, 0 };

	(void)state;
	assert_int_equal(ipc_process_info_read(&r, 1, &info), IPC_OK);
	assert_null(info.entry_assembly.utf16);
	assert_int_equal(ipc_process_info_read(&r, 2, &info), IPC_EPAYLOAD);
	r = (struct ipc_reply){ true, 0, huge, sizeof(huge) - 1, 0 };
	assert_int_equal(ipc_process_info_read(&r, 1, &info), IPC_EPAYLOAD);
	r = (struct ipc_reply){ true, 0, version0, sizeof(version0) - 1, 0 };
	assert_int_equal(ipc_process_info_read(&r, 3, &info), IPC_EPAYLOAD);
}

static void environment(void **state)
{
	static const uint8_t answer[] = MAGIC "\x1a\0\xff\0\0\0\x16\0\0\0\0\0";
	static const uint8_t block[] = "\x02\0\0\0\x04\0\0\0A\0=\0B\0\0\0\x01\0\0\0\0\0";
	struct ipc_environment e;
	struct ipc_reply r;
	struct ipc_text t;
	uint32_t bytes = 0;
	char text[8];

	(void)state;
	assert_int_equal(ipc_reply_read(answer, sizeof(answer) - 1, &r), IPC_OK);
	assert_int_equal(ipc_environment_read(&r, &bytes), IPC_OK);
	assert_int_equal(bytes, 22);
	assert_int_equal(ipc_environment_begin(&e, block, sizeof(block) - 1), IPC_OK);
	assert_int_equal(ipc_environment_next(&e, &t), IPC_OK);
	ipc_text_utf8(&t, text, sizeof(text));
	assert_string_equal(text, "A=B");
	assert_int_equal(ipc_environment_next(&e, &t), IPC_OK);
	assert_int_equal(ipc_text_utf8(&t, text, sizeof(text)), 0);
	assert_int_equal(ipc_environment_next(&e, &t), IPC_MORE);
	/* Cut anywhere: what is whole comes out, then the fault. */
	for (size_t n = 0; n < sizeof(block) - 1; n++) {
		enum ipc_status st = ipc_environment_begin(&e, block, n);

		for (unsigned i = 0; st == IPC_OK && i < 3; i++)
			st = ipc_environment_next(&e, &t);
		assert_int_equal(st, IPC_EPAYLOAD);
	}
}

static void dumps_of_every_version(void **state)
{
	const struct ipc_dump d = { "/a", IPC_DUMP_FULL, true, true };
	const struct ipc_dump plain = { "/a", IPC_DUMP_MINI, false, false };
	const struct ipc_dump bad = { "/\xff", IPC_DUMP_MINI, false, false };
	unsigned version = 3, gave_up = 0;
	uint8_t buf[64];
	size_t n;

	(void)state;
	n = ipc_put_dump(buf, sizeof(buf), &d, 3);
	CHECK(buf, n, "\x26\0\x01\x03\0\0\x03\0\0\0/\0a\0\0\0\x04\0\0\0\x05\0\0\0");
	n = ipc_put_dump(buf, sizeof(buf), &d, 2);
	CHECK(buf, n, "\x26\0\x01\x02\0\0\x03\0\0\0/\0a\0\0\0\x04\0\0\0\x05\0\0\0");
	n = ipc_put_dump(buf, sizeof(buf), &d, 1);
	CHECK(buf, n, "\x26\0\x01\x01\0\0\x03\0\0\0/\0a\0\0\0\x04\0\0\0\x01\0\0\0");
	n = ipc_put_dump(buf, sizeof(buf), &plain, 3);
	CHECK(buf, n, "\x26\0\x01\x03\0\0\x03\0\0\0/\0a\0\0\0\x01\0\0\0\0\0\0\0");
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(ipc_put_dump(buf, cap, &plain, 3), 0);
	assert_int_equal(ipc_put_dump(buf, sizeof(buf), &plain, 0), 0);
	assert_int_equal(ipc_put_dump(buf, sizeof(buf), &plain, 4), 0);
	assert_int_equal(ipc_put_dump(buf, sizeof(buf), &bad, 3), 0);

	assert_true(ipc_dump_fall_back(&d, &version, &gave_up));
	assert_int_equal(version, 2);
	assert_int_equal(gave_up, IPC_DUMP_GAVE_UP_WHY);
	assert_true(ipc_dump_fall_back(&d, &version, &gave_up));
	assert_int_equal(version, 1);
	assert_int_equal(gave_up, IPC_DUMP_GAVE_UP_WHY | IPC_DUMP_GAVE_UP_CRASH_REPORT);
	assert_false(ipc_dump_fall_back(&d, &version, &gave_up));
	version = 2;
	gave_up = 0;
	assert_true(ipc_dump_fall_back(&plain, &version, &gave_up));
	assert_int_equal(gave_up, 0);
}

static void texts_of_failed_dumps(void **state)
{
	static const uint8_t with[] = MAGIC "\x20\0\xff\xff\0\0\x05\x40\0\x80\x02\0\0\0n\0\0\0";
	static const uint8_t plain[] = MAGIC "\x18\0\xff\xff\0\0\x05\x40\0\x80";
	static const uint8_t eight[] = MAGIC "\x1c\0\xff\xff\0\0\x05\x40\0\x80\0\0\0\0";
	static const uint8_t cut[] = MAGIC "\x1e\0\xff\xff\0\0\x05\x40\0\x80\x02\0\0\0n\0";
	static const uint8_t good[] = MAGIC "\x1c\0\xff\0\0\0\0\0\0\0\x01\0\0\0";
	struct ipc_reply r;
	struct ipc_text t;
	char text[8];

	(void)state;
	assert_int_equal(ipc_reply_read(with, sizeof(with) - 1, &r), IPC_OK);
	assert_int_equal(r.hresult, IPC_H_FAIL);
	ipc_error_text(&r, &t);
	assert_int_equal(ipc_text_utf8(&t, text, sizeof(text)), 1);
	assert_string_equal(text, "n");
	assert_int_equal(ipc_reply_read(plain, sizeof(plain) - 1, &r), IPC_OK);
	ipc_error_text(&r, &t);
	assert_null(t.utf16);
	assert_int_equal(ipc_reply_read(eight, sizeof(eight) - 1, &r), IPC_OK);
	ipc_error_text(&r, &t);
	assert_null(t.utf16);
	assert_int_equal(ipc_reply_read(cut, sizeof(cut) - 1, &r), IPC_OK);
	ipc_error_text(&r, &t);
	assert_null(t.utf16);
	assert_int_equal(ipc_reply_read(good, sizeof(good) - 1, &r), IPC_OK);
	ipc_error_text(&r, &t);
	assert_null(t.utf16);
}

static void variables_and_perf_maps(void **state)
{
	uint8_t buf[64];
	size_t n;

	(void)state;
	n = ipc_put_set_environment(buf, sizeof(buf), "A", "B");
	CHECK(buf, n, "\x24\0\x04\x03\0\0\x02\0\0\0A\0\0\0\x02\0\0\0B\0\0\0");
	n = ipc_put_set_environment(buf, sizeof(buf), "A", "");
	CHECK(buf, n, "\x22\0\x04\x03\0\0\x02\0\0\0A\0\0\0\x01\0\0\0\0\0");
	assert_int_equal(ipc_put_set_environment(buf, sizeof(buf), "A", NULL), 0);
	assert_int_equal(ipc_put_set_environment(buf, sizeof(buf), "", "B"), 0);
	assert_int_equal(ipc_put_set_environment(buf, sizeof(buf), "A", "\xc0\x80"), 0);
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(ipc_put_set_environment(buf, cap, "A", ""), 0);
	n = ipc_put_perf_map(buf, sizeof(buf), IPC_PERF_MAP_PERFMAP);
	CHECK(buf, n, "\x18\0\x04\x05\0\0\x03\0\0\0");
	n = ipc_put_plain(buf, sizeof(buf), IPC_SET_PROCESS, IPC_DISABLE_PERF_MAP);
	CHECK(buf, n, "\x14\0\x04\x06\0\0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_requests),
		cmocka_unit_test(collect2_is_the_captured_message),
		cmocka_unit_test(collect_of_every_version),
		cmocka_unit_test(collect_that_cannot_be_sent),
		cmocka_unit_test(names_are_utf16),
		cmocka_unit_test(oldest_sufficient_version),
		cmocka_unit_test(a_provider_is_found_whatever_its_case),
		cmocka_unit_test(falling_back_says_what_was_given_up),
		cmocka_unit_test(answers),
		cmocka_unit_test(damaged_answers),
		cmocka_unit_test(session_ids_are_opaque),
		cmocka_unit_test(process_info),
		cmocka_unit_test(process_info_of_older_versions),
		cmocka_unit_test(environment),
		cmocka_unit_test(dumps_of_every_version),
		cmocka_unit_test(texts_of_failed_dumps),
		cmocka_unit_test(variables_and_perf_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
