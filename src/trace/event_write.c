/* SPDX-License-Identifier: MIT */

/* What the three formats of an event share, and the choice between them. */

#include "src/trace/event_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void event_guid(const uint8_t *p, char buf[37])
{
	snprintf(buf, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 p[3], p[2], p[1], p[0], p[5], p[4], p[7], p[6], p[8], p[9], p[10], p[11], p[12],
		 p[13], p[14], p[15]);
}

void event_time(int64_t unix_ns, char buf[40])
{
	int64_t ns = unix_ns % 1000000000;
	time_t seconds = (time_t)(unix_ns / 1000000000);
	char date[24] = "", fraction[12];
	struct tm tm;
	size_t n;

	if (ns < 0) {
		ns += 1000000000;
		seconds--;
	}
	if (gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	n = (size_t)snprintf(fraction, sizeof(fraction), ".%09" PRId64, ns);
	while (fraction[n - 1] == '0')
		n--;
	if (n == 1)
		n = 0;
	snprintf(buf, 40, "%s%.*sZ", date, (int)n, fraction);
}

static bool reserve(struct event_buffer *b, size_t need)
{
	size_t room = b->room ? b->room : 1024;
	char *grown;

	if (b->failed)
		return false;
	if (need <= b->room)
		return true;
	while (room < need)
		room *= 2; /* need comes from bytes that are there: no overflow */
	grown = realloc(b->text, room);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->text = grown;
	b->room = room;
	return true;
}

bool event_string(struct event_buffer *b, const struct nt_value *v)
{
	if (v->kind == NT_V_UTF8) {
		if (!reserve(b, v->bytes + 1))
			return false;
		if (v->bytes)
			memcpy(b->text, v->data, v->bytes);
		b->len = v->bytes;
		return true;
	}
	if (!reserve(b, v->bytes / 2 * 3 + 1))
		return false;
	b->len = nt_utf16_to_utf8(v->data, v->bytes, b->text, b->room);
	return true;
}

bool event_raw_payload(const struct nt_event *ev)
{
	return ev->payload_bytes && (ev->def->layout == NT_LAYOUT_NONE || !ev->def->field_count);
}

void event_frame(const struct event_names *names, const struct nt_event *ev, size_t frame,
		 char *buf, size_t size)
{
	uint64_t address = ev->stack[frame], ip = address;
	const struct an_method *m;
	uint32_t epoch;

	if (!names->complete) {
		snprintf(buf, size, "0x%" PRIx64, address);
		return;
	}
	/* A caller's address is where it goes on: the call is before it. */
	if (frame && ip)
		ip--;
	epoch = an_methods_epoch_in(names->follow, an_methods_base(names->follow, ev), ip);
	m = an_methods_find(names->complete, ip, epoch);
	if (m)
		snprintf(buf, size, "%s%s", m->name, m->args);
	else
		an_methods_describe_at(names->complete, address, epoch, buf, size);
}

void event_write_head(struct event_writer *w)
{
	if (w->format == EVENT_CSV)
		out_text(w->out, "time_ms,thread_id,provider,id,version,name,payload\n");
}

enum nt_status event_write(struct event_writer *w, const struct nt_event *ev)
{
	enum nt_status st = NT_OK;

	switch (w->format) {
	case EVENT_TEXT:
		st = event_write_text(w, ev);
		break;
	case EVENT_NDJSON:
		st = event_write_json(w, ev);
		break;
	case EVENT_CSV:
		st = event_write_csv(w, ev);
		break;
	}
	if (st == NT_OK && w->buffer.failed)
		return NT_ENOMEM;
	/* Nobody reads on, or the disk is full: out_close() says which. */
	return st == NT_OK && out_failed(w->out) ? NT_STOPPED : st;
}

void event_writer_done(struct event_writer *w)
{
	free(w->buffer.text);
	memset(&w->buffer, 0, sizeof(w->buffer));
}
