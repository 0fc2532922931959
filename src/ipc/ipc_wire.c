/* SPDX-License-Identifier: MIT */
#include "src/ipc/ipc_wire.h"

#include <string.h>
#include <strings.h>

#include "nettrace/nettrace.h"

static const uint8_t magic[14] = "DOTNET_IPC_V1";

const char *ipc_status_text(enum ipc_status st)
{
	switch (st) {
	case IPC_OK:
		return "ok";
	case IPC_MORE:
		return "the answer is incomplete";
	case IPC_EMAGIC:
		return "the other side is not a .NET diagnostic port";
	case IPC_ESIZE:
		return "the answer has an impossible size";
	case IPC_ENOREPLY:
		return "the answer is of an unknown kind";
	case IPC_EPAYLOAD:
		return "the answer does not hold what it must";
	}
	return "unknown";
}

/* --- reading --- */

/* A cursor that sticks at the first read that does not fit; later reads give 0. */
struct in {
	const uint8_t *cur, *end;
	bool bad;
};

static const uint8_t *take(struct in *s, size_t n)
{
	const uint8_t *p = s->cur;

	if (s->bad || n > (size_t)(s->end - s->cur)) {
		s->bad = true;
		return NULL;
	}
	s->cur += n;
	return p;
}

static uint16_t get_u16(struct in *s)
{
	const uint8_t *p = take(s, 2);

	return p ? (uint16_t)(p[0] | (unsigned)p[1] << 8) : 0;
}

static uint32_t get_u32(struct in *s)
{
	const uint8_t *p = take(s, 4);

	return p ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			       (uint32_t)p[3] << 24
		 : 0;
}

static uint64_t get_u64(struct in *s)
{
	uint64_t low = get_u32(s);
	uint64_t high = get_u32(s);

	return low | high << 32;
}

/* Servers end a text with a NUL; one that does not is taken as it is. */
static struct ipc_text get_text(struct in *s)
{
	struct ipc_text t = { NULL, 0 };
	uint32_t units = get_u32(s);
	const uint8_t *p;

	if (s->bad || units == 0)
		return t;
	if (units > (size_t)(s->end - s->cur) / 2) {
		s->bad = true;
		return t;
	}
	p = take(s, (size_t)units * 2);
	if (!p)
		return t;
	t.utf16 = p;
	t.bytes = (size_t)units * 2;
	while (t.bytes > 0 && p[t.bytes - 1] == 0 && p[t.bytes - 2] == 0)
		t.bytes -= 2;
	return t;
}

enum ipc_status ipc_header_read(const uint8_t *p, size_t len, struct ipc_header *ret)
{
	struct in s = { p, p + len, false };
	struct ipc_header h;

	/* Garbage is known as such from its first byte: nobody waits for 20 of them. */
	if (len > 0 && memcmp(p, magic, len < sizeof(magic) ? len : sizeof(magic)) != 0)
		return IPC_EMAGIC;
	if (len < IPC_HEADER_BYTES)
		return IPC_MORE;
	take(&s, sizeof(magic));
	h.size = get_u16(&s);
	h.set = p[16];
	h.command = p[17];
	if (h.size < IPC_HEADER_BYTES)
		return IPC_ESIZE;
	*ret = h;
	return IPC_OK;
}

enum ipc_status ipc_reply_read(const uint8_t *p, size_t len, struct ipc_reply *ret)
{
	struct ipc_header h;
	struct ipc_reply r = { 0 };
	enum ipc_status st = ipc_header_read(p, len, &h);

	if (st != IPC_OK)
		return st;
	if (h.set != IPC_SET_SERVER || (h.command != IPC_REPLY_OK && h.command != IPC_REPLY_ERROR))
		return IPC_ENOREPLY;
	if (len < h.size)
		return IPC_MORE;
	r.ok = h.command == IPC_REPLY_OK;
	r.payload = p + IPC_HEADER_BYTES;
	r.payload_bytes = h.size - IPC_HEADER_BYTES;
	r.size = h.size;
	if (!r.ok) {
		struct in s = { r.payload, r.payload + r.payload_bytes, false };

		r.hresult = get_u32(&s);
		if (s.bad)
			return IPC_EPAYLOAD;
	}
	*ret = r;
	return IPC_OK;
}

enum ipc_status ipc_session_id_read(const struct ipc_reply *r, uint64_t *ret)
{
	struct in s = { r->payload, r->payload + r->payload_bytes, false };
	uint64_t id = get_u64(&s);

	if (!r->ok || s.bad)
		return IPC_EPAYLOAD;
	*ret = id;
	return IPC_OK;
}

void ipc_error_text(const struct ipc_reply *r, struct ipc_text *ret)
{
	struct in s = { r->payload, r->payload + r->payload_bytes, false };

	*ret = (struct ipc_text){ NULL, 0 };
	if (r->ok)
		return;
	get_u32(&s);
	*ret = get_text(&s); /* runtimes that send 8 bytes have no text there: 0 or cut */
}

static const struct {
	uint32_t value;
	const char *name, *text;
} hresults[] = {
	{ IPC_H_BAD_ENCODING, "BAD_ENCODING", "the runtime could not read the request" },
	{ IPC_H_UNKNOWN_COMMAND, "UNKNOWN_COMMAND", "the runtime does not know this command" },
	{ IPC_H_UNKNOWN_MAGIC, "UNKNOWN_MAGIC", "the runtime speaks another protocol" },
	{ 0x80131387, "UnknownError", "the runtime reported an unknown error" },
	{ IPC_H_NOT_SUPPORTED, "NOTSUPPORTED", "this runtime was built without that ability" },
	{ IPC_H_FAIL, "FAIL",
	  "the runtime could not do it (64 sessions open at once, or out of memory)" },
	{ IPC_H_NOT_YET_AVAILABLE, "NOT_YET_AVAILABLE", "the runtime is still starting" },
	{ IPC_H_RUNTIME_UNINITIALIZED, "RUNTIME_UNINITIALIZED", "the runtime is still starting" },
	{ IPC_H_INVALID_ARGUMENT, "INVALIDARG", "the runtime refused an argument" },
	{ 0x8007007a, "INSUFFICIENT_BUFFER", "a buffer of the runtime was too small" },
	{ 0x800000cb, "ENVVAR_NOT_FOUND", "there is no such environment variable" },
	{ 0x8013136a, "PROFILER_ALREADY_ACTIVE", "a profiler is attached already" },
};

const char *ipc_hresult_name(uint32_t hresult)
{
	for (size_t i = 0; i < sizeof(hresults) / sizeof(hresults[0]); i++)
		if (hresults[i].value == hresult)
			return hresults[i].name;
	return NULL;
}

const char *ipc_hresult_text(uint32_t hresult)
{
	for (size_t i = 0; i < sizeof(hresults) / sizeof(hresults[0]); i++)
		if (hresults[i].value == hresult)
			return hresults[i].text;
	return "the runtime reported an error";
}

size_t ipc_text_utf8(const struct ipc_text *t, char *buf, size_t size)
{
	size_t n = 0;

	if (size == 0)
		return 0;
	if (t->utf16)
		n = nt_utf16_to_utf8(t->utf16, t->bytes, buf, size - 1);
	buf[n] = '\0';
	return n;
}

/* --- writing --- */

struct out {
	uint8_t *buf;
	size_t cap, len;
	bool bad; /* did not fit, or was not text */
};

static void put(struct out *o, uint64_t v, size_t bytes)
{
	if (o->bad || bytes > o->cap - o->len) {
		o->bad = true;
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		o->buf[o->len++] = (uint8_t)(v >> (8 * i));
}

static void set_u32(struct out *o, size_t at, uint32_t v)
{
	for (size_t i = 0; i < 4; i++)
		o->buf[at + i] = (uint8_t)(v >> (8 * i));
}

/* The next code point of valid UTF-8; 0 at the end, UINT32_MAX when it is not valid. */
static uint32_t utf8_next(const uint8_t **p)
{
	static const uint32_t least[4] = { 0, 0x80, 0x800, 0x10000 };
	const uint8_t *s = *p;
	uint32_t c = *s++;
	size_t more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : 4;

	if (more == 4)
		return UINT32_MAX;
	if (more > 0)
		c &= 0x3fu >> more;
	for (size_t i = 0; i < more; i++) {
		if (*s >> 6 != 2) /* also stops at the NUL */
			return UINT32_MAX;
		c = c << 6 | (*s++ & 0x3fu);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return UINT32_MAX;
	*p = s;
	return c;
}

/* NULL is "no text". */
static void put_text(struct out *o, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t at = o->len;
	uint32_t units = 0, c;

	put(o, 0, 4);
	if (!text)
		return;
	do {
		c = utf8_next(&p);
		if (c == UINT32_MAX) {
			o->bad = true;
			return;
		}
		if (c >= 0x10000) {
			put(o, 0xd800 + ((c - 0x10000) >> 10), 2);
			put(o, 0xdc00 + ((c - 0x10000) & 0x3ff), 2);
			units += 2;
		} else {
			put(o, c, 2);
			units++;
		}
	} while (c != 0 && !o->bad);
	if (!o->bad)
		set_u32(o, at, units);
}

static struct out begin(uint8_t *buf, size_t cap, uint8_t set, uint8_t command)
{
	struct out o = { buf, cap < IPC_MAX_MESSAGE ? cap : IPC_MAX_MESSAGE, 0, false };

	for (size_t i = 0; i < sizeof(magic); i++)
		put(&o, magic[i], 1);
	put(&o, 0, 2);
	put(&o, set, 1);
	put(&o, command, 1);
	put(&o, 0, 2);
	return o;
}

static size_t end(struct out *o)
{
	if (o->bad)
		return 0;
	o->buf[14] = (uint8_t)o->len;
	o->buf[15] = (uint8_t)(o->len >> 8);
	return o->len;
}

size_t ipc_put_plain(uint8_t *buf, size_t cap, enum ipc_set set, uint8_t command)
{
	struct out o = begin(buf, cap, (uint8_t)set, command);

	return end(&o);
}

size_t ipc_put_stop(uint8_t *buf, size_t cap, uint64_t session_id)
{
	struct out o = begin(buf, cap, IPC_SET_EVENTPIPE, IPC_STOP_TRACING);

	put(&o, session_id, 8);
	return end(&o);
}

const struct ipc_provider *ipc_collect_find(const struct ipc_collect *c, const char *name)
{
	for (size_t i = 0; i < c->provider_count; i++)
		if (strcasecmp(c->providers[i].name, name) == 0)
			return &c->providers[i];
	return NULL;
}

static bool has_filter(const struct ipc_collect *c)
{
	for (size_t i = 0; i < c->provider_count; i++)
		if (c->providers[i].filter)
			return true;
	return false;
}

/* Version 5 and later always carry a filter; "all but none" is no filter. */
static void put_filter(struct out *o, const struct ipc_event_filter *f)
{
	size_t n = f ? f->count : 0;

	put(o, f && f->enable, 1);
	put(o, n, 4);
	for (size_t i = 0; i < n && !o->bad; i++)
		put(o, f->ids[i], 4);
}

static void put_provider(struct out *o, const struct ipc_provider *p, unsigned version)
{
	if (!p->name || !*p->name || p->level > 5) {
		o->bad = true;
		return;
	}
	put(o, p->keywords, 8);
	put(o, p->level, 4);
	put_text(o, p->name);
	put_text(o, p->args);
	if (version >= 5)
		put_filter(o, p->filter);
}

unsigned ipc_collect_version(const struct ipc_collect *c)
{
	if (c->block)
		return 6;
	if (has_filter(c))
		return 5;
	if (c->rundown_keywords != IPC_RUNDOWN_NONE && c->rundown_keywords != IPC_RUNDOWN_DEFAULT)
		return 4;
	return c->stacks ? 2 : 3;
}

/*
 * Filters are not removed from the providers, which are the caller's: versions below 5 do not carry
 * them, so *gave_up remembers it and the version is chosen as if there were none.
 */
bool ipc_collect_fall_back(struct ipc_collect *c, unsigned *version, unsigned *gave_up)
{
	struct ipc_collect rest;

	switch (*version) {
	case 6:
		c->block = false;
		*gave_up |= IPC_GAVE_UP_BLOCK;
		break;
	case 5:
		*gave_up |= has_filter(c) ? IPC_GAVE_UP_FILTER : 0u;
		break;
	case 4:
		if (c->rundown_keywords != IPC_RUNDOWN_THREADS)
			*gave_up |= IPC_GAVE_UP_RUNDOWN_KEYWORDS;
		c->rundown_keywords = IPC_RUNDOWN_DEFAULT;
		break;
	case 3:
		c->stacks = true;
		*gave_up |= IPC_GAVE_UP_NO_STACKS;
		break;
	case 2:
		if (c->rundown_keywords == IPC_RUNDOWN_NONE)
			*gave_up |= IPC_GAVE_UP_NO_RUNDOWN;
		*version = 1;
		return true;
	default:
		return false;
	}
	rest = *c;
	if (*version <= 5)
		rest.provider_count = 0;
	*version = ipc_collect_version(&rest);
	return true;
}

size_t ipc_put_collect(uint8_t *buf, size_t cap, const struct ipc_collect *c, unsigned version)
{
	struct out o;

	if (version < 1 || version > 6 || c->buffer_mb == 0 || c->provider_count == 0 ||
	    c->provider_count > IPC_MAX_PROVIDERS)
		return 0;
	o = begin(buf, cap, IPC_SET_EVENTPIPE, (uint8_t)(version + 1));
	if (version >= 5)
		put(&o, 0, 4); /* type 0: the stream comes over this connection */
	put(&o, c->buffer_mb, 4);
	put(&o, 1, 4); /* format: nettrace */
	if (version >= 4)
		put(&o, c->rundown_keywords, 8);
	else if (version >= 2)
		put(&o, c->rundown_keywords != IPC_RUNDOWN_NONE, 1);
	if (version >= 3)
		put(&o, c->stacks, 1);
	put(&o, c->provider_count, 4);
	for (size_t i = 0; i < c->provider_count && !o.bad; i++)
		put_provider(&o, &c->providers[i], version);
	if (version >= 6)
		put(&o, c->block, 4);
	return end(&o);
}

/* --- core dumps --- */

enum { DUMP_LOG = 1, DUMP_CRASH_REPORT = 4 }; /* flags of versions 2 and 3 */

size_t ipc_put_dump(uint8_t *buf, size_t cap, const struct ipc_dump *d, unsigned version)
{
	struct out o;
	unsigned flags = d->log ? DUMP_LOG : 0;

	if (version < 1 || version > 3)
		return 0;
	if (version >= 2 && d->crash_report)
		flags |= DUMP_CRASH_REPORT;
	o = begin(buf, cap, IPC_SET_DUMP, (uint8_t)version);
	put_text(&o, d->path);
	put(&o, d->type, 4);
	put(&o, flags, 4); /* version 1: a number that is 0 or 1 */
	return end(&o);
}

bool ipc_dump_fall_back(const struct ipc_dump *d, unsigned *version, unsigned *gave_up)
{
	if (*version <= 1)
		return false;
	if (*version == 3)
		*gave_up |= IPC_DUMP_GAVE_UP_WHY;
	else if (d->crash_report)
		*gave_up |= IPC_DUMP_GAVE_UP_CRASH_REPORT;
	--*version;
	return true;
}

/* --- environment and perf maps --- */

size_t ipc_put_set_environment(uint8_t *buf, size_t cap, const char *name, const char *value)
{
	struct out o = begin(buf, cap, IPC_SET_PROCESS, IPC_SET_ENVIRONMENT);

	if (!*name || !value)
		return 0;
	put_text(&o, name);
	put_text(&o, value);
	return end(&o);
}

size_t ipc_put_perf_map(uint8_t *buf, size_t cap, enum ipc_perf_map type)
{
	struct out o = begin(buf, cap, IPC_SET_PROCESS, IPC_ENABLE_PERF_MAP);

	put(&o, type, 4);
	return end(&o);
}

/* --- process information --- */

uint8_t ipc_process_info_command(unsigned version)
{
	return version >= 3   ? IPC_PROCESS_INFO3
	       : version == 2 ? IPC_PROCESS_INFO2
			      : IPC_PROCESS_INFO;
}

enum ipc_status ipc_process_info_read(const struct ipc_reply *r, unsigned version,
				      struct ipc_process_info *ret)
{
	struct in s = { r->payload, r->payload + r->payload_bytes, false };
	struct ipc_process_info p = { 0 };
	const uint8_t *cookie;

	if (version >= 3 && get_u32(&s) < 1)
		return IPC_EPAYLOAD;
	p.pid = get_u64(&s);
	cookie = take(&s, sizeof(p.cookie));
	p.command_line = get_text(&s);
	p.os = get_text(&s);
	p.arch = get_text(&s);
	if (version >= 2) {
		p.entry_assembly = get_text(&s);
		p.runtime_version = get_text(&s);
	}
	if (version >= 3)
		p.rid = get_text(&s);
	if (!r->ok || s.bad || !cookie)
		return IPC_EPAYLOAD;
	memcpy(p.cookie, cookie, sizeof(p.cookie));
	*ret = p;
	return IPC_OK;
}

enum ipc_status ipc_environment_read(const struct ipc_reply *r, uint32_t *ret_bytes)
{
	struct in s = { r->payload, r->payload + r->payload_bytes, false };
	uint32_t bytes = get_u32(&s);

	if (!r->ok || s.bad)
		return IPC_EPAYLOAD;
	*ret_bytes = bytes;
	return IPC_OK;
}

enum ipc_status ipc_environment_begin(struct ipc_environment *e, const uint8_t *block, size_t len)
{
	struct in s = { block, block + len, false };
	uint32_t n = get_u32(&s);

	if (s.bad)
		return IPC_EPAYLOAD;
	e->cur = s.cur;
	e->end = s.end;
	e->left = n;
	return IPC_OK;
}

enum ipc_status ipc_environment_next(struct ipc_environment *e, struct ipc_text *ret)
{
	struct in s = { e->cur, e->end, false };
	struct ipc_text t;

	if (e->left == 0)
		return IPC_MORE;
	t = get_text(&s);
	if (s.bad)
		return IPC_EPAYLOAD;
	e->cur = s.cur;
	e->left--;
	*ret = t;
	return IPC_OK;
}
