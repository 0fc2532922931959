/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_FAKE_RUNTIME_H
#define TESTS_SUPPORT_FAKE_RUNTIME_H

/*
 * The diagnostic port of a runtime that does as it is told: on the test's own loop, on a socket in
 * a directory of its own.  Or it connects to a port of somebody else's, as told by dial, and
 * advertises itself anew whenever a request has been read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum fake_stop {
	FAKE_STOP_PROPER, /* rest of the stream, its end, then the answer */
	FAKE_STOP_ANSWER_FIRST, /* the answer, then the rest and the end */
	FAKE_STOP_NO_ANSWER, /* rest and end, never an answer */
	FAKE_STOP_ERROR, /* answers with an error, though the stream ends as it should */
	FAKE_STOP_IGNORED, /* neither */
	FAKE_STOP_ENDLESS, /* answers, and the stream goes on for ever */
	FAKE_STOP_HANG_UP, /* closes that connection; the stream goes on */
};

/* What is answered to a command that the rest of the script says nothing about. */
struct fake_answer {
	uint16_t command; /* set << 8 | command */
	bool error;
	const uint8_t *payload;
	size_t bytes;
	const uint8_t *more; /* behind the answer */
	size_t more_bytes;
	bool closes; /* behind all of that */
};

struct fake_script {
	const struct fake_answer *answers; /* ends at command 0; NULL: none */
	unsigned knows; /* newest CollectTracing, 1 to 6; 0: none */
	unsigned info_knows; /* newest ProcessInfo, 1 to 3; 0: none */
	uint32_t error; /* the answer to CollectTracing, if not 0 */
	unsigned starting; /* so many "not yet available" come first */
	bool then_silent; /* and no answer behind them */
	size_t error_bytes; /* of the error's payload: 4, or 8 */
	uint64_t session_id;
	size_t chunk; /* bytes sent at a time; 0: all at once */
	bool silent; /* reads and never answers */
	bool wrong_magic;
	bool cut_answer; /* closes within the answer, behind cut_at bytes */
	size_t cut_at;
	bool closes; /* the stream ends by itself behind stream_bytes */
	const uint8_t *stream; /* at once, behind the answer */
	size_t stream_bytes;
	const uint8_t *rest; /* when stopped */
	size_t rest_bytes;
	enum fake_stop stop;
	bool suspended; /* the stream stays silent until ResumeRuntime */
	const char *dial; /* the port to connect to; NULL: listen */
	uint8_t cookie; /* all bytes of it */
	uint64_t pid; /* as advertised */
	size_t advertise_bytes; /* 0: all 34; else so many, and then it closes */
	bool wrong_advertise; /* bad magic */
	bool dies; /* closes what it has dialled once it has advertised */
};

enum { FAKE_MAX_COMMANDS = 64 };

struct fake_runtime {
	uv_loop_t *loop;
	uv_pipe_t listener;
	uv_timer_t timer; /* of the endless stream */
	struct fake_script script;
	char dir[64], path[96];
	struct fake_conn *conns;
	struct fake_conn *stream; /* the session's; NULL when it is closed */
	/* What was seen. */
	uint16_t commands[FAKE_MAX_COMMANDS]; /* set << 8 | command */
	size_t command_count;
	uint64_t stopped_id;
	size_t accepted, open;
	size_t dialled, resumes;
	bool stream_lost; /* the client closed the stream before its end */
};

/* Listens; asserts on failure. */
void fake_runtime_start(struct fake_runtime *f, uv_loop_t *loop, const struct fake_script *script);
/* As ResumeRuntime does. */
void fake_runtime_resume(struct fake_runtime *f);
/* Closes everything; the loop has to run once more. */
void fake_runtime_stop(struct fake_runtime *f);

#endif
