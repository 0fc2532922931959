/* SPDX-License-Identifier: MIT */
#ifndef SRC_IPC_IPC_WIRE_H
#define SRC_IPC_IPC_WIRE_H

/*
 * Messages of the .NET diagnostic port, to and from bytes.
 *
 * Pure: no I/O, no allocation.  Encoders write into a buffer of the caller and return the number of
 * bytes, 0 if they do not fit (a message cannot exceed IPC_MAX_MESSAGE).  Decoders are given what
 * arrived and never read past it; the texts they return point into it.
 *
 * Layout of every message, little-endian, nothing aligned:
 *   0  14  "DOTNET_IPC_V1" and a NUL
 *  14   2  size of the whole message, these 20 bytes included
 *  16   1  command set      17  1  command      18  2  zero
 *  20      payload
 * A text is u32 count of UTF-16 units with its NUL, then the units; count 0 is "no text".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IPC_HEADER_BYTES = 20,
	IPC_MAX_MESSAGE = 65535,
	IPC_MAX_PROVIDERS = 1000,
	IPC_COOKIE_BYTES = 16,
	IPC_ADVERTISE_BYTES = 34, /* see port_server.h */
	IPC_ADVERTISE_COOKIE_AT = 8,
};

enum ipc_set {
	IPC_SET_DUMP = 1,
	IPC_SET_EVENTPIPE = 2,
	IPC_SET_PROFILER = 3,
	IPC_SET_PROCESS = 4,
	IPC_SET_SERVER = 0xff,
};

enum ipc_command {
	IPC_STOP_TRACING = 1, /* set EVENTPIPE; CollectTracing N is command N + 1 */
	IPC_PROCESS_INFO =
		0, /* set PROCESS, and so the rest; GenerateCoreDump N of set DUMP is N */
	IPC_RESUME_RUNTIME = 1,
	IPC_PROCESS_ENVIRONMENT = 2,
	IPC_SET_ENVIRONMENT = 3,
	IPC_PROCESS_INFO2 = 4,
	IPC_ENABLE_PERF_MAP = 5,
	IPC_DISABLE_PERF_MAP = 6,
	IPC_PROCESS_INFO3 = 8,
	IPC_REPLY_OK = 0, /* set SERVER */
	IPC_REPLY_ERROR = 0xff,
};

enum ipc_status {
	IPC_OK = 0,
	IPC_MORE = 1, /* needs more bytes */
	IPC_EMAGIC = -1, /* not a diagnostic port */
	IPC_ESIZE = -2, /* a size that contradicts the message */
	IPC_ENOREPLY = -3, /* well-formed, but not an answer */
	IPC_EPAYLOAD = -4, /* the payload does not hold what it must */
};

const char *ipc_status_text(enum ipc_status st);

struct ipc_header {
	size_t size; /* of the whole message, at least IPC_HEADER_BYTES */
	uint8_t set, command;
};

/* IPC_MORE until 20 bytes are there. */
enum ipc_status ipc_header_read(const uint8_t *p, size_t len, struct ipc_header *ret);

/* --- answers --- */

enum ipc_hresult {
	IPC_H_OK = 0,
	IPC_H_BAD_ENCODING = 0x80131384,
	IPC_H_UNKNOWN_COMMAND = 0x80131385,
	IPC_H_UNKNOWN_MAGIC = 0x80131386,
	IPC_H_NOT_SUPPORTED = 0x80131515,
	IPC_H_FAIL = 0x80004005,
	IPC_H_NOT_YET_AVAILABLE = 0x8013135b,
	IPC_H_RUNTIME_UNINITIALIZED = 0x80131371,
	IPC_H_INVALID_ARGUMENT = 0x80070057,
};

struct ipc_reply {
	bool ok;
	uint32_t hresult; /* of an error; IPC_H_OK otherwise */
	const uint8_t *payload;
	size_t payload_bytes;
	size_t size; /* of the whole message; what follows it is a stream or a continuation */
};

/* Reads an answer once it is complete; IPC_MORE until then. */
enum ipc_status ipc_reply_read(const uint8_t *p, size_t len, struct ipc_reply *ret);
/* The session id in the answer to CollectTracing or StopTracing: opaque, any 64 bits. */
enum ipc_status ipc_session_id_read(const struct ipc_reply *r, uint64_t *ret);

/* "UNKNOWN_COMMAND"; NULL when the value is not one of the port's. */
const char *ipc_hresult_name(uint32_t hresult);
/* For people: "the runtime does not know this command". Never NULL. */
const char *ipc_hresult_text(uint32_t hresult);

/* --- texts --- */

struct ipc_text {
	const uint8_t *utf16; /* little-endian, without the NUL; NULL if the text is absent */
	size_t bytes;
};

/* UTF-8, always terminated, cut at a character so that it fits; returns its length. */
size_t ipc_text_utf8(const struct ipc_text *t, char *buf, size_t size);

/* What GenerateCoreDump3 says beside the number; absent unless the answer is such an error. */
void ipc_error_text(const struct ipc_reply *r, struct ipc_text *ret);

/* --- requests --- */

/* A command without payload (ProcessInfo, ResumeRuntime, ProcessEnvironment). */
size_t ipc_put_plain(uint8_t *buf, size_t cap, enum ipc_set set, uint8_t command);
size_t ipc_put_stop(uint8_t *buf, size_t cap, uint64_t session_id);

/* Which event ids of a provider to record; after keywords and level. */
struct ipc_event_filter {
	bool enable; /* true: only these ids; false: all but these */
	const uint32_t *ids;
	size_t count;
};

struct ipc_provider {
	const char *name; /* UTF-8, not empty */
	uint64_t keywords;
	uint32_t level; /* 0 to 5; 0 delivers only events of level "always" */
	const char *args; /* NULL: none */
	const struct ipc_event_filter *filter; /* NULL: none */
};

#define IPC_RUNDOWN_NONE    UINT64_C(0)
#define IPC_RUNDOWN_DEFAULT UINT64_C(0x80020139)
/* With the threads: a runtime that cannot (before .NET 9) sends the default without a word. */
#define IPC_RUNDOWN_THREADS (IPC_RUNDOWN_DEFAULT | UINT64_C(0x10800))

struct ipc_collect {
	uint32_t buffer_mb; /* of the runtime's buffers, at least 1 */
	uint64_t rundown_keywords;
	bool stacks;
	bool block; /* a full buffer stops the writers instead of dropping events */
	const struct ipc_provider *providers;
	size_t provider_count;
};

/* The provider of that name, whatever its case; NULL: it is not recorded. */
const struct ipc_provider *ipc_collect_find(const struct ipc_collect *c, const char *name);

/* What an older runtime made us do without. */
enum ipc_gave_up {
	IPC_GAVE_UP_BLOCK = 1, /* full buffers drop events */
	IPC_GAVE_UP_FILTER = 2, /* all event ids of the providers arrive */
	IPC_GAVE_UP_RUNDOWN_KEYWORDS = 4, /* the default rundown, or none, as before */
	IPC_GAVE_UP_NO_STACKS = 8, /* stacks arrive although not wanted */
	IPC_GAVE_UP_NO_RUNDOWN = 16, /* a rundown arrives although not wanted */
};

/* The oldest CollectTracing (2 to 6) that can say all of c. */
unsigned ipc_collect_version(const struct ipc_collect *c);

/*
 * After the runtime did not know version *version: gives up what needed it, in c, and sets *version
 * to the next one to try.  Adds to *gave_up.  False when even CollectTracing 1 is unknown.
 */
bool ipc_collect_fall_back(struct ipc_collect *c, unsigned *version, unsigned *gave_up);

/*
 * CollectTracing 1 to 6.  0 also when c cannot be sent: no or too many providers, an empty name,
 * text that is not UTF-8.
 */
size_t ipc_put_collect(uint8_t *buf, size_t cap, const struct ipc_collect *c, unsigned version);

/* --- core dumps --- */

enum ipc_dump_type {
	IPC_DUMP_MINI = 1,
	IPC_DUMP_HEAP = 2,
	IPC_DUMP_TRIAGE = 3, /* like mini, without what may be personal */
	IPC_DUMP_FULL = 4,
};

struct ipc_dump {
	const char *path; /* UTF-8; resolved by the target */
	enum ipc_dump_type type;
	bool log; /* the dumper writes its doings to the target's standard output */
	bool crash_report; /* a JSON file beside the dump */
};

/* What GenerateCoreDump of an older version cannot do, in a newer one's place. */
enum ipc_dump_gave_up {
	IPC_DUMP_GAVE_UP_WHY = 1, /* a failure comes without its reason */
	IPC_DUMP_GAVE_UP_CRASH_REPORT = 2,
};

/* GenerateCoreDump 1 to 3.  0: text that is not UTF-8, or too long. */
size_t ipc_put_dump(uint8_t *buf, size_t cap, const struct ipc_dump *d, unsigned version);
/* To the next older version; false when there is none. */
bool ipc_dump_fall_back(const struct ipc_dump *d, unsigned *version, unsigned *gave_up);

/* --- environment and perf maps --- */

/*
 * 0: an empty name, text that is not UTF-8, or too long.  There is always a value: "no text"
 * removes the variable in CoreCLR and crashes NativeAOT 10.
 */
size_t ipc_put_set_environment(uint8_t *buf, size_t cap, const char *name, const char *value);

enum ipc_perf_map {
	IPC_PERF_MAP_ALL = 1,
	IPC_PERF_MAP_JITDUMP = 2,
	IPC_PERF_MAP_PERFMAP = 3,
};

size_t ipc_put_perf_map(uint8_t *buf, size_t cap, enum ipc_perf_map type);

/* --- process information --- */

struct ipc_process_info {
	uint64_t pid; /* in the process's own namespace */
	uint8_t cookie[IPC_COOKIE_BYTES];
	struct ipc_text command_line, os, arch;
	struct ipc_text entry_assembly, runtime_version; /* 2 and 3 */
	struct ipc_text rid; /* 3 */
};

/* version 1 to 3: which ProcessInfo was asked.  The command byte of each: */
uint8_t ipc_process_info_command(unsigned version);
enum ipc_status ipc_process_info_read(const struct ipc_reply *r, unsigned version,
				      struct ipc_process_info *ret);

/*
 * The answer to ProcessEnvironment says how many bytes follow it on the connection; these hold a
 * count and then "NAME=value" texts.
 */
enum ipc_status ipc_environment_read(const struct ipc_reply *r, uint32_t *ret_bytes);

struct ipc_environment {
	const uint8_t *cur, *end;
	uint32_t left; /* texts still to come, as announced */
};

enum ipc_status ipc_environment_begin(struct ipc_environment *e, const uint8_t *block, size_t len);
/* IPC_OK: *ret is the next variable.  IPC_MORE: that was all.  IPC_EPAYLOAD: the block is cut. */
enum ipc_status ipc_environment_next(struct ipc_environment *e, struct ipc_text *ret);

#endif
